"""The gallery's order and the texts that stand for its pictures.

The order: what a posterior is, what it is good for, data, then what is inside.
"""

import re
from typing import Any

from matplotlib import pyplot as plt
from sphinx_gallery.scrapers import matplotlib_scraper

ORDER = [
    "probabilities",
    "odds_ratios",
    "coefficients",
    "uncertainty",
    "reliability",
    "intervals",
    "exposure",
    "new_levels",
    "outliers",
    "grades",
    "unseen_digits",
    "abstention",
    "active_learning",
    "transfer",
    "learned_prior",
    "model_choice",
    "stream",
    "on_disk",
    "dask",
    "callbacks",
    "checks",
    "mixing",
    "covariance",
]


class ByTopic:
    """Sort key of sphinx-gallery; what is not named comes last."""

    def __init__(self, folder: str) -> None:
        pass

    def __call__(self, file: str) -> tuple[int, str]:
        """Place of an example."""
        name = file.removeprefix("plot_").removesuffix(".py")
        return (ORDER.index(name) if name in ORDER else len(ORDER)), name


def pictures(block: tuple, block_vars: dict, gallery_conf: dict, **options: Any) -> str:
    """Pictures of a cell, as sphinx-gallery has them, whose alternative texts name the axes."""
    texts = iter([_described(plt.figure(number)) for number in plt.get_fignums()])
    rst = matplotlib_scraper(block, block_vars, gallery_conf, **options)
    return re.sub(r"(?<=:alt: ).*", lambda match: next(texts) or match[0], rst)


def _described(figure: Any) -> str:
    """Titles and labels of the panels, each once."""
    panels = []
    for ax in figure.axes:
        title = " ".join(filter(None, map(ax.get_title, ("left", "center", "right"))))
        labels = " against ".join(filter(None, (ax.get_ylabel(), ax.get_xlabel())))
        panels.append(": ".join(filter(None, (title, labels))))
    return " ".join("; ".join(dict.fromkeys(filter(None, panels))).split())
