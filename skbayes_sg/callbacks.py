"""Callbacks: to stop a fit early, to save it on the way, to see its progress.

``model.set_callbacks(ConvergenceStop(), Checkpoint("fit.npz"))`` is scikit-learn's way (1.9). A
fit calls them between blocks of draws. A block is a hundredth of all draws.

With scikit-learn 1.9 a fit calls scikit-learn's own too, such as ``sklearn.callback.ProgressBar``,
also through pipelines and searches. With 1.7 and 1.8 only the callbacks of this module exist, and
`clone` forgets them.

An interrupt (Ctrl-C) needs no callback. It ends `fit` with KeyboardInterrupt, as it ends a search
or a script around it; but if each chain has four draws, the estimator is fitted with those that are
there, and warns of how many they are. Before, it stays as it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from math import inf
from pathlib import Path
from time import perf_counter, time
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from skbayes_sg import stored
from skbayes_sg.chains.run import Chain, DrawBlock, block_draws, drawn, is_cut, joined, time_is_up
from skbayes_sg.inference.engine import Engine
from skbayes_sg.inference.options import Fingerprint
from skbayes_sg.inference.result import Fit
from skbayes_sg.validation import require_positive

if not TYPE_CHECKING and find_spec("sklearn.callback"):
    from sklearn.callback import CallbackSupportMixin, with_callbacks
else:  # scikit-learn 1.7 and 1.8, and type checkers, as scikit-learn declares no types

    class CallbackSupportMixin:
        """Holds the callbacks of this module."""

        def set_callbacks(self, *callbacks: Any) -> Self:
            """Set the callbacks of `fit`; none by default."""
            if not all(isinstance(callback, Callback) for callback in callbacks):
                raise TypeError(
                    "callbacks must be instances out of skbayes_sg.callbacks; others need "
                    "scikit-learn 1.9"
                )
            self._skl_callbacks = list(callbacks)
            return self

    def with_callbacks(method: Callable) -> Callable:
        """Return the method: no callback has to be closed."""
        return method


__all__ = ["Callback", "Checkpoint", "ConvergenceStop", "FitSoFar", "TimeLimit"]


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__


_NOT_WHOLE = (
    "Checkpoint: {} is not a whole checkpoint of this version ({}); remove it to start the fit "
    "anew, or give another path"
)


class FitSoFar(NamedTuple):
    """A fit between two blocks of draws."""

    engine: Engine
    blocks: list[DrawBlock]
    n_draws: int
    """Draws of each chain that the fit will have"""
    seconds: float
    """Since `fit` was called"""
    fitted: Callable[[], Any]
    """Makes a copy of the estimator, fitted with the draws so far"""
    fingerprint: Fingerprint | None
    """None without a checkpoint"""

    @property
    def drawn(self) -> int:
        """Draws of each chain so far."""
        return drawn(self.blocks)

    @property
    def telling(self) -> bool:
        """Whether the draws are enough for diagnostics, and some of them count."""
        counting = any(groups[0].weights.any() for groups in self.blocks)
        return self.drawn >= 8 and counting  # the figures of fewer say nothing


class Callback:
    """The base of the callbacks of this module, and of your own.

    A fit that a callback ends has fewer draws than it was asked for. It says so, and keeps the
    checkpoint beside it.

    Attributes
    ----------
    is_enough : bool
        Whether the draws are enough where this callback ends the sampling. The fit is then
        complete, and nothing is said. True for `ConvergenceStop`.
    """

    is_enough = False

    def after_block(self, progress: FitSoFar) -> bool:
        """Look at the fit after a block of draws; True ends the sampling, from eight draws on."""
        raise NotImplementedError

    # -- scikit-learn's protocol, of which nothing is needed ------------------------------------

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Do nothing."""


class ConvergenceStop(Callback):
    """Ends the sampling when the chains agree and the draws are enough.

    The figures are those of `diagnostics_`: of the parameters, for networks of the predicted
    probabilities and the log posterior. A look costs as much as the diagnostics of a fit. There is
    one after each of the first five blocks, and after each fifth more draws later.

    Parameters
    ----------
    r_hat : float, default=1.01
        The largest R-hat must be at most this.
    ess : float, default=400
        The smallest effective number of draws, of bulk and of tails, must be at least this.

    Raises
    ------
    ValueError, TypeError
        If a number is not positive.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skbayes_sg import BayesianLogisticRegression
    >>> from skbayes_sg.callbacks import ConvergenceStop
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BayesianLogisticRegression(n_draws=2000, random_state=0)
    >>> model = model.set_callbacks(ConvergenceStop(ess=400)).fit(scale(X), y)
    >>> model.draws_.shape[1] < 2000, bool(model.diagnostics_["ess_min"] >= 400)
    (True, True)
    """

    is_enough = True

    def __init__(self, r_hat: float = 1.01, ess: float = 400.0) -> None:
        require_positive("r_hat", r_hat, "give a number a little above 1")
        require_positive("ess", ess, "give a number of draws such as 400")
        self.r_hat, self.ess = r_hat, ess

    def after_block(self, progress: FitSoFar) -> bool:
        blocks = len(progress.blocks) - 1
        if not progress.telling or blocks % max(1, blocks // 5):
            return False
        figures = progress.fitted().diagnostics_
        enough = min(figures["ess_min"], figures["ess_tail_min"]) >= self.ess
        return bool(figures["r_hat_max"] <= self.r_hat and enough)


class TimeLimit(Callback):
    """Ends a fit when a time is up; it keeps what was drawn, and warns of how much that is.

    Before the first draw, learning the prior, short runs that choose parameters and burn-in stop
    where they are. A warning says what was cut short. Each chain still draws eight times or a few
    times more. A fit goes beyond its limit by these draws, their figures, and one search for the
    mode, one update of the prior or one block of some tens of steps, whichever it is at. A
    `Checkpoint` keeps its file, from which the same fit goes on, unless something was cut short
    before the first draw.

    Parameters
    ----------
    seconds : float
        Since the data were checked, at the start of `fit`.

    Raises
    ------
    ValueError, TypeError
        If it is not a positive number.
    """

    def __init__(self, seconds: float) -> None:
        require_positive("seconds", seconds, "give the time in seconds")
        self.seconds = seconds

    def after_block(self, progress: FitSoFar) -> bool:
        return progress.seconds >= self.seconds


class Checkpoint(Callback):
    """Saves a fit on the way. The same fit, called again, goes on from there.

    A fit that was killed or interrupted and goes on ends with the draws of the unbroken fit, to the
    last bit, if `random_state` is a number. A fit with all of its draws removes the file, and so
    does one that `ConvergenceStop` ends. What comes before the first draw (finding the mode,
    learning the prior) is not saved, nor is a fit whose burn-in a `TimeLimit` cut short, as those
    that go on do not burn in. One file serves one fit at a time.

    The file is an ``.npz`` of arrays, and of a text in JSON with numbers and names of types of the
    package. No code runs when it is read. It is written beside, as ``<path>.unfinished``, and
    renamed, so that a full disk or a killed process leaves the file before; the next saving, and
    the end of the fit, remove what a killed process left unfinished. A digest at its end is
    compared before anything is read, so that a fit never goes on from a damaged file.

    Parameters
    ----------
    path : str or path
        The file. The digest tells damage, not intent: what others wrote runs no code, but its draws
        are what they want them to be.
    every : float, default=60
        Seconds between two savings.

    Raises
    ------
    ValueError
        By `fit`, if the file is the checkpoint of a fit with other data, parameters or seed, or if
        it is not a whole checkpoint of this version: cut off, changed, or another file.
    TypeError
        By `fit`, before anything is sampled, for a sampler or a schedule that is not of the
        package: a file could not hold it.
    OSError
        By `fit`, if the file cannot be opened or written.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import make_regression
    >>> from skbayes_sg import BayesianLinearRegression
    >>> from skbayes_sg.callbacks import Checkpoint
    >>> X, y = make_regression(200, 3, random_state=0)
    >>> path = os.path.join(tempfile.mkdtemp(), "fit.npz")
    >>> model = BayesianLinearRegression(prior_precision=1.0, random_state=0)
    >>> model = model.set_callbacks(Checkpoint(path, every=10)).fit(X, y)
    >>> os.path.exists(path)
    False
    """

    def __init__(self, path: str | os.PathLike, every: float = 60.0) -> None:
        require_positive("every", every, "give the time between two savings in seconds")
        self.path, self.every = path, every
        self._saved = 0.0

    def after_block(self, progress: FitSoFar) -> bool:
        if progress.seconds - self._saved >= self.every:
            self.save(progress)
        return False

    @property
    def _unfinished(self) -> Path:
        """The file that is written, and renamed when it is whole."""
        path = Path(self.path)
        return path.with_name(f"{path.name}.unfinished")

    def save(self, progress: FitSoFar) -> None:
        """Write the file; whatever fails on the way leaves the file before."""
        if is_cut():  # the fit that goes on would not repeat what was cut short
            return
        parts = (progress.fingerprint, progress.engine, progress.blocks)
        unfinished = self._unfinished
        try:
            unfinished.unlink(missing_ok=True)  # of a killed process; of a link, not what it names
            with unfinished.open("xb+") as file:
                stored.write(file, parts)
                file.flush()
                os.fsync(file.fileno())  # or a power failure may leave an empty file
            unfinished.replace(self.path)
        except OSError as error:
            message = (
                f"{error.strerror}: the checkpoint is not written, the one before is kept; make "
                "room or change the path"
            )
            raise OSError(error.errno, message, str(self.path)) from error
        finally:  # of what was renamed there is nothing left beside
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
        self._saved = progress.seconds

    def load(self, fingerprint: Fingerprint) -> tuple[Engine, list[DrawBlock]] | None:
        """The engine and its draws so far; None if there is no file."""
        stored.taken_apart(fingerprint)  # which refuses what could not be saved, before it is drawn
        self._saved, path = 0.0, Path(self.path)
        if not path.exists():
            return None
        try:
            with path.open("rb") as file:
                written, run, blocks = stored.read(file)
            same = fingerprint.draws == written.draws and fingerprint.matches(written)
        except (MemoryError, OSError):
            raise
        except Exception as error:
            raise ValueError(_NOT_WHOLE.format(path, error)) from error
        if not same:
            raise ValueError(
                f"Checkpoint: {path} is of a fit with other data, parameters or seed; remove it, "
                "or give another path"
            )
        return run, blocks

    def remove(self) -> None:
        """Remove the file of a fit that is complete, and what a killed process left beside it."""
        for path in (Path(self.path), self._unfinished):
            path.unlink(missing_ok=True)


class CallbackRunner:
    """Calls the callbacks of one fit; without any it costs nothing.

    Parameters
    ----------
    estimator : BayesianEstimator
    twin : function
        Makes a copy of the estimator with the attributes of a fit.
    data : dict
        X and y, for scikit-learn's callbacks.

    Attributes
    ----------
    checkpoint : Checkpoint or None
        The first among the callbacks.
    end : float
        When the first `TimeLimit` is up, by `time.time`.
    ended : list of str
        Names of the callbacks that ended the sampling.
    enough : bool
        Whether one of them says that the draws are enough.
    """

    def __init__(self, estimator: Any, twin: Callable[[Fit], Any], **data: Any) -> None:
        self._estimator, self._twin = estimator, twin
        self._data, self._started = data, perf_counter()
        self._callbacks = list(getattr(estimator, "_skl_callbacks", ()))
        self._own, self.end = list[Callback](), inf
        self.checkpoint: Checkpoint | None = None
        for callback in self._callbacks:
            if isinstance(callback, Callback):
                self._own.append(callback)
            if isinstance(callback, TimeLimit):
                self.end = min(self.end, time() + callback.seconds)
            if isinstance(callback, Checkpoint):
                self.checkpoint = self.checkpoint or callback
        self._last: FitSoFar | None = None
        self.ended: list[str] = []
        self.enough = False
        self._open: list[Any] = []  # tasks of scikit-learn's callbacks, the innermost last
        if hasattr(estimator, "_init_callback_context"):
            root = estimator._init_callback_context(max_subtasks=None)
            self._begin(root)
            self._begin(root.subcontext("prepare"))

    def over(
        self,
        engine: Engine,
        n_draws: int,
        summary: Callable[[list[Chain]], Fit],
        fingerprint: Fingerprint | None,
    ) -> Callable[[list[DrawBlock]], bool] | None:
        """The function to call after each block of draws; None if there is no callback."""
        if not self._callbacks:
            return None
        if self._open:
            self._end()
            n_blocks = -(-n_draws // block_draws(n_draws))
            self._begin(self._open[0].subcontext("draw", max_subtasks=n_blocks))

        def on_block(blocks: list[DrawBlock]) -> bool:
            seconds = perf_counter() - self._started

            def fitted() -> Any:
                return self._twin(summary(joined(blocks)))

            progress = FitSoFar(engine, blocks, n_draws, seconds, fitted, fingerprint)
            self._last = progress
            ends = [callback for callback in self._own if callback.after_block(progress)]
            ends = ends if progress.telling else []
            self.ended = [type(callback).__name__ for callback in ends]
            self.enough = any(callback.is_enough for callback in ends)
            if self._open:
                self._begin(self._open[-1].subcontext("block"))
                if self._end((lambda: vars(progress.fitted())) if progress.telling else None):
                    self.ended.append("a callback of scikit-learn")
            return bool(self.ended)

        return on_block

    def end_the_fit(self) -> bool:
        """Whether a callback ended the sampling, or the time is up between two rounds of it."""
        if not self.ended and time_is_up():
            self.ended = [TimeLimit.__name__]
        return bool(self.ended)

    def close(self, n_drawn: int, n_draws: int) -> list[str]:
        """Close what is open, and say where each chain has some of so many draws."""
        complete, checkpoint = n_drawn >= n_draws or self.enough, self.checkpoint
        if checkpoint is not None:
            if complete:
                checkpoint.remove()
            elif self._last is not None:
                checkpoint.save(self._last)
        while self._open:
            self._end()
        if complete:
            return []
        remedies = ["raise seconds"] if TimeLimit.__name__ in self.ended else []
        if not is_cut():
            remedies.append(
                "with warm_start=True the next fit goes on from there"
                if checkpoint is None
                else f"the same fit, called again, goes on from {checkpoint.path}"
            )
        reason = f"{' and '.join(self.ended)} ended the sampling" if self.ended else "interrupted"
        return [
            f"{reason}: each chain has {n_drawn} of {n_draws} draws, which are kept; "
            + "; ".join(remedies)
        ]

    def _begin(self, context: Any) -> None:
        context.call_on_fit_task_begin(estimator=self._estimator, **self._data)
        self._open.append(context)

    def _end(self, attributes: Callable[[], dict] | None = None) -> bool:
        """End the innermost task; whether a callback wants the fit to stop."""
        more = {} if attributes is None else {"reconstruction_attributes": attributes}
        context = self._open.pop()
        return context.call_on_fit_task_end(estimator=self._estimator, **self._data, **more)
