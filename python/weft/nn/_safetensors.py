"""Files of safetensors: the length of a header in 8 bytes, the header in JSON, the elements of tensors."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

from weft import dtypes
from weft._core import DType, Tensor
from weft.errors import DTypeError, FileFormatError
from weft.nn._memory import (
    LARGEST,
    MOST_AXES,
    File,
    Path,
    bytes_of_tensor,
    write_file,
)

LONGEST_HEADER = 100_000_000
_ALIGNMENT = 64

_DTYPES = {
    "BOOL": dtypes.bool, "U8": dtypes.uint8, "I8": dtypes.int8, "I16": dtypes.int16, "U16": dtypes.uint16,
    "I32": dtypes.int32, "U32": dtypes.uint32, "I64": dtypes.int64, "U64": dtypes.uint64, "F16": dtypes.float16,
    "BF16": dtypes.bfloat16, "F32": dtypes.float32, "F64": dtypes.float64, "F8_E4M3": dtypes.float8_e4m3,
    "F8_E5M2": dtypes.float8_e5m2,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


class _Entry(NamedTuple):
    name: str
    dtype: DType
    shape: list[int]
    begin: int
    end: int


class _Reader:
    """The header of one file, checked."""

    def __init__(self, path: Path) -> None:
        self.file = File(path, "safe_load")
        size = self.file.size
        if size < 8:
            self.fail(f"{size} bytes are too few for the length of a header")
        length = int.from_bytes(self.file.read(0, 8), "little")
        if length > LONGEST_HEADER:
            self.fail(f"a header of {length} bytes; {LONGEST_HEADER} are allowed")
        if length > size - 8:
            self.fail(f"a header of {length} bytes, of which {size - 8} are there")
        header = self.parse(self.file.read(8, length))
        self.begin = 8 + length  # of the elements
        self.metadata = self.check_metadata(header.pop("__metadata__", {}))
        self.entries = [self.check_entry(name, entry) for name, entry in header.items()]
        self.check_places()

    def fail(self, text: str) -> NoReturn:
        self.file.fail(text)

    def parse(self, text: bytes) -> dict[str, Any]:
        def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            result = dict(pairs)
            if len(result) != len(pairs):
                names = sorted(name for name, _ in pairs)
                twice = next(name for name, after in zip(names, names[1:]) if name == after)
                self.fail(f"the header has {_short(twice)} twice")
            return result

        try:
            header = json.loads(text.decode("utf-8"), object_pairs_hook=unique)
        except (ValueError, RecursionError) as error:
            if isinstance(error, FileFormatError):
                raise
            self.fail(f"the header is no JSON: {_short(str(error))}")
        if not isinstance(header, dict):
            self.fail(f"the header is a {type(header).__name__}; a dict is needed")
        return header

    def check_metadata(self, metadata: Any) -> dict[str, str]:
        if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
            self.fail("__metadata__ is a dict of texts, which this is not")
        return metadata

    def check_entry(self, name: str, entry: Any) -> _Entry:
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            self.fail(f"{_short(name)} needs dtype, shape and data_offsets, and nothing else")
        dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(dtype, str) or dtype not in _DTYPES:
            self.fail(f"{_short(name)} has dtype {_short(dtype)}; there are {', '.join(_DTYPES)}")
        if not _are_sizes(shape):
            self.fail(f"{_short(name)} has shape {_short(shape)}; a list of at most {MOST_AXES} sizes is needed")
        if not _are_sizes(offsets) or len(offsets) != 2:
            self.fail(f"{_short(name)} has data_offsets {_short(offsets)}; a begin and an end are needed")
        begin, end = offsets
        needed = math.prod(shape) * _DTYPES[dtype].itemsize
        if end - begin != needed:
            self.fail(f"{_short(name)} has {end - begin} bytes from {begin} to {end}; "
                      f"{dtype} of {_short(shape)} needs {_short(needed)}")
        return _Entry(name, _DTYPES[dtype], shape, begin, end)

    def check_places(self) -> None:
        """Every byte after the header is one of one tensor."""
        last, at = "the header", 0
        for entry in sorted(self.entries, key=lambda e: (e.begin, e.end)):
            if entry.begin != at:
                kind = "overlaps with" if entry.begin < at else "leaves a hole after"
                self.fail(f"{_short(entry.name)} begins at byte {entry.begin}, which {kind} {_short(last)} up to {at}")
            last, at = entry.name, entry.end
        size = self.file.size - self.begin
        if at != size:
            self.fail(f"tensors end at byte {at} after the header, the file at {size}")

    def tensor(self, entry: _Entry, device: str | None) -> Tensor:
        return self.file.tensor(self.begin + entry.begin, entry.dtype, entry.shape, device)


def _are_sizes(value: Any) -> bool:
    return (isinstance(value, list) and len(value) <= MOST_AXES
            and all(type(size) is int and 0 <= size <= LARGEST for size in value))


def _short(value: Any) -> str:
    """Of what JSON has, however deep: lists and dicts in it are not shown."""
    if isinstance(value, list):
        shown = [_short(each) if not isinstance(each, (list, dict)) else "..." for each in value[:70]]
        text = f"[{', '.join(shown)}]"
    else:
        text = str(value) if not isinstance(value, dict) else "a dict"
    text = text if len(text) < 80 else f"{text[:76]} ..."
    return repr(text) if isinstance(value, str) else text


def safe_load_metadata(fn: Path) -> dict[str, str]:
    """The texts that safe_save was given as metadata."""
    return _Reader(fn).metadata


def safe_load(fn: Path, device: str | None = None) -> dict[str, Tensor]:
    """The tensors of a file of safetensors, by name.

    Their memory is a map of the file: nothing is read before it is used, and a write to a tensor goes
    to other memory. The file must not be written in place or made shorter meanwhile (a tensor of a shorter
    one raises a FileFormatError when it is used); putting another one in its place (as safe_save does) is
    fine.

    >>> import os, tempfile
    >>> from weft.nn.state import safe_load, safe_save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.safetensors")
    ...     safe_save({"x": Tensor([1.0, 2.0])}, path)
    ...     safe_load(path)["x"].tolist()
    [1.0, 2.0]
    """
    reader = _Reader(fn)
    return {entry.name: reader.tensor(entry, device) for entry in reader.entries}


def safe_save(tensors: Mapping[str, Tensor], fn: Path, metadata: Mapping[str, str] | None = None) -> None:
    """Writes tensors to a file of safetensors; the file is whole at every moment, the old one or the new."""
    if metadata is not None and not _are_texts((*metadata.keys(), *metadata.values())):
        raise TypeError("[safe_save] metadata is a dict of texts")
    for name, tensor in tensors.items():
        if not isinstance(name, str) or name == "__metadata__":
            raise TypeError(f"[safe_save] {name!r} cannot be the name of a tensor")
        if not isinstance(tensor, Tensor):
            raise TypeError(f"[safe_save] {name} is a {type(tensor).__name__}; a Tensor is needed")
        if tensor.dtype not in _NAMES:
            raise DTypeError(f"[safe_save] {name} has dtype {tensor.dtype.name}, which the format has not")
    if tensors:
        first, *others = tensors.values()
        first.realize(*others)
    # Wide elements first: then all are aligned.
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(metadata)}
    at = 0
    for name in order:
        tensor = tensors[name]
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [at, at + tensor.nbytes()]}
        at += tensor.nbytes()
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    if len(text) > LONGEST_HEADER:
        raise ValueError(f"[safe_save] a header of {len(text)} bytes; the format has {LONGEST_HEADER}")
    write_file(fn, [len(text).to_bytes(8, "little"), text, *(bytes_of_tensor(tensors[name]) for name in order)])


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)
