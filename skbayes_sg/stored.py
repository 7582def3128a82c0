"""Values in files that run no code when they are read: arrays, numbers and names.

A file is an ``.npz``. Its array ``tree`` is a JSON text of nodes, parts before wholes, and the
other arrays have the numbers of their nodes as names. A node says what kind of thing it is and what
it is made of, where ``[k]`` is the thing that node k stands for, so that what two things share they
share again. Kinds are arrays and their numbers, lists, tuples, dicts, generators of random numbers,
and types of the package, by name.

To read makes arrays by ``numpy.load(allow_pickle=False)``, and instances of types that the package
has loaded, whose attributes are set: neither constructors nor `__setstate__` are called. No name
in a file is imported. A text in JSON and a digest tell damage; what others wrote may be wrong, but
is only data.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from typing import IO, Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.version import __version__

_WRITER = f"skbayes_sg {__version__}"
_ROOMS = (  # whose types are values, which act on nothing outside of the process
    "skbayes_sg.chains.",
    "skbayes_sg.data.minibatches.",
    "skbayes_sg.diagnostics.",
    "skbayes_sg.inference.",
    "skbayes_sg.linalg.",
    "skbayes_sg.posterior.",
    "skbayes_sg.priors.",
    "skbayes_sg.samplers.",
)
_BIT_GENERATORS = {kind.__name__: kind for kind in (np.random.PCG64, np.random.SFC64)}
_DIGEST_BYTES = 64  # at the end of a file, where a zip has its comment; of all before


def write(file: IO[bytes], value: Any) -> None:
    """Write a value to an empty file that can be read.

    Raises
    ------
    TypeError
        If there is something in it that is none of the kinds.
    """
    nodes, arrays = taken_apart(value)
    tree = json.dumps({"written by": _WRITER, "nodes": nodes})
    with ZipFile(file, "w") as archive:
        archive.comment = bytes(_DIGEST_BYTES)
        for name, array in {**arrays, "tree": np.array(tree)}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    size = file.seek(-_DIGEST_BYTES, os.SEEK_END)
    digest = _digest(file, size)
    file.seek(size)
    file.write(digest)


def read(file: IO[bytes]) -> Any:
    """Read a value from a file.

    Raises
    ------
    ValueError and others
        If the file was cut off or changed, is another file, or of another version.
    """
    size = max(0, file.seek(0, os.SEEK_END) - _DIGEST_BYTES)
    if _digest(file, size) != file.read():
        raise ValueError("it was cut off or changed, or is another file")
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        tree = json.loads(str(arrays["tree"]))
        if tree["written by"] != _WRITER:
            raise ValueError(f"it was written by {tree['written by']}, and this is {_WRITER}")
        return _put_together(tree["nodes"], arrays)


def _digest(file: IO[bytes], size: int) -> bytes:
    """Digest of the first bytes of a file, so many; the file is then at their end."""
    digest = hashlib.sha256()
    file.seek(0)
    for start in range(0, size, 1 << 20):
        digest.update(file.read(min(1 << 20, size - start)))
    return digest.hexdigest().encode()


def taken_apart(value: Any) -> tuple[list[list], dict[str, NDArray]]:
    """The nodes of a value, the last for all of it, and its arrays."""
    nodes, arrays = list[list](), dict[str, NDArray]()
    by_id = dict[int, tuple[int, Any]]()  # the node, and the thing, which keeps the id

    def entry(part: Any) -> Any:
        kind = type(part)
        if part is None or kind in (bool, int, float, str):
            return part
        if id(part) in by_id:
            return [by_id[id(part)][0]]
        name, content = f"{kind.__module__}.{kind.__qualname__}", list[Any]()
        if isinstance(part, np.ndarray | np.generic) and not part.dtype.hasobject:
            name = "array" if isinstance(part, np.ndarray) else "number"
        elif kind in (list, tuple):
            name, content = kind.__name__, [entry(item) for item in part]
        elif kind is dict:
            name, content = "dict", [[entry(key), entry(item)] for key, item in part.items()]
        elif kind is np.random.SeedSequence:
            name, content = "SeedSequence", [entry(part.state)]
        elif kind is np.random.Generator and type(part.bit_generator) in _BIT_GENERATORS.values():
            bits = part.bit_generator
            name, content = type(bits).__name__, [entry(bits.seed_seq), entry(bits.state)]
        elif _type_of(name) is not kind:
            raise TypeError(
                f"a file that runs no code when it is read holds no {name}, since that is no type "
                "of skbayes_sg; fit without a Checkpoint, or with a sampler and a schedule out of "
                "skbayes_sg.samplers"
            )
        elif isinstance(part, tuple):
            content = [entry(item) for item in part]
        else:
            content = [entry(part.__getstate__())]
        by_id[id(part)] = len(nodes), part
        if name in ("array", "number"):
            arrays[str(len(nodes))] = np.asarray(part)
        nodes.append([name, *content])
        return [len(nodes) - 1]

    entry(value)
    return nodes, arrays


def _put_together(nodes: list[list], arrays: Any) -> Any:
    """The value that was taken apart."""
    parts = list[Any]()

    def part(entry: Any) -> Any:
        return parts[entry[0]] if isinstance(entry, list) else entry

    for name, *content in nodes:
        if name in ("array", "number"):
            array = arrays[str(len(parts))]
            new: Any = array if name == "array" else array[()]
        elif name in ("list", "tuple"):
            new = [part(item) for item in content]
            new = new if name == "list" else tuple(new)
        elif name == "dict":
            new = {part(key): part(item) for key, item in content}
        elif name == "SeedSequence":
            new = np.random.SeedSequence(**part(content[0]))
        elif name in _BIT_GENERATORS:
            bits = _BIT_GENERATORS[name](part(content[0]))
            bits.state = part(content[1])
            new = np.random.Generator(bits)
        elif (kind := _type_of(name)) is None:
            raise ValueError(f"it names {name}, which is no type of this version")
        elif issubclass(kind, tuple):
            new = tuple.__new__(kind, [part(item) for item in content])
        else:
            new = object.__new__(kind)
            state = part(content[0])
            if state is not None:
                vars(new).update(state)
        parts.append(new)
    return parts[-1]


def _type_of(name: str) -> type | None:
    """The type of a value of the package that has this name, if it has one and has loaded it."""
    module, _, last = name.rpartition(".")
    if not name.startswith(_ROOMS) or module not in sys.modules:
        return None
    value = vars(sys.modules[module]).get(last)
    return value if isinstance(value, type) and value.__module__ == module else None
