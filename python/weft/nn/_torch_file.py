"""Checkpoints of PyTorch: a pickle of everything but the elements, which lie beside it in storages. Files
are zip archives, or in the form before PyTorch 1.6: pickles one after the other, then the storages."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, Optional

from weft import dtypes
from weft._core import DType, Tensor
from weft.nn._archive import Archive, Entry
from weft.nn._memory import LARGEST, MOST_AXES, File, Path
from weft.nn._pickle import Function, Pickle

_DTYPES = {
    "float64": dtypes.float64, "float32": dtypes.float32, "float16": dtypes.float16, "bfloat16": dtypes.bfloat16,
    "int64": dtypes.int64, "int32": dtypes.int32, "int16": dtypes.int16, "int8": dtypes.int8, "uint8": dtypes.uint8,
    "uint16": dtypes.uint16, "uint32": dtypes.uint32, "uint64": dtypes.uint64, "bool": dtypes.bool,
    "float8_e4m3fn": dtypes.float8_e4m3, "float8_e5m2": dtypes.float8_e5m2,
}
_STORAGES = {
    "Double": "float64", "Float": "float32", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64",
    "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool",
}
_OLD_MAGIC = 0x1950A86A20F9469CFC6C
_OLD_PROTOCOL = 1001
_LONGEST_NAME = 512  # of a storage


class _StorageKind(NamedTuple):
    dtype: Optional[DType]  # None: of bytes


class _Part(NamedTuple):
    begin: int
    size: int


class _Storage:
    """Where the bytes of one storage are in the file, and the flat tensors on them."""

    __slots__ = ("data", "dtype", "tensors")

    def __init__(self, dtype: DType | None, data: _Part | None) -> None:
        self.dtype = dtype
        self.data = data  # None: they are read later
        self.tensors: dict[DType, Tensor] = {}


class _File:
    def __init__(self, path: Path, device: str | None) -> None:
        self.file = File(path, "torch_load")
        self.device = device
        self.storages: dict[str, _Storage] = {}
        self.names = self.known_names()

    def fail(self, text: str) -> NoReturn:
        self.file.fail(text)

    def known_names(self) -> dict[str, Any]:
        """All that a checkpoint may name."""
        names: dict[str, Any] = {
            "collections.OrderedDict": Function(self.ordered_dict, is_copy=True),
            "torch._utils._rebuild_tensor": Function(self.tensor),
            "torch._utils._rebuild_tensor_v2": Function(self.tensor_with_flags),
            "torch._utils._rebuild_tensor_v3": Function(self.tensor_of_dtype),
            "torch._utils._rebuild_parameter": Function(lambda data, *_: data),
            "torch._utils._rebuild_parameter_with_state": Function(lambda data, *_: data),
            "torch._tensor._rebuild_from_type_v2": Function(_tensor_of_type),
            "_codecs.encode": Function(_latin_bytes, is_copy=True),  # how old pickles write bytes
            "torch.Tensor": "torch.Tensor",
            "torch.nn.parameter.Parameter": "torch.nn.parameter.Parameter",
            "torch.Size": Function(_size),
            "torch.device": Function(_device),
            "torch.storage.UntypedStorage": _StorageKind(None),
            "torch.UntypedStorage": _StorageKind(None),
        }
        for module in ("__builtin__", "builtins"):
            names[f"{module}.set"] = Function(self.plain_set, is_copy=True)
            names[f"{module}.frozenset"] = Function(lambda *a: frozenset(self.plain_set(*a)), is_copy=True)
            names[f"{module}.bytearray"] = Function(_byte_array, is_copy=True)
        for storage, dtype in _STORAGES.items():
            names[f"torch.{storage}Storage"] = _StorageKind(_DTYPES[dtype])
        for name, kind in _DTYPES.items():
            names[f"torch.{name}"] = kind
        return names

    def pickle(self, data: bytes, at: int = 0, storage: Callable[[Any], _Storage] | None = None) -> tuple[Any, int]:
        self.machine = Pickle(data, at, self.names, storage or self.no_storage, self.file.where)
        return self.machine.load(), self.machine.at

    def no_storage(self, _: Any) -> NoReturn:
        self.fail("a storage where there is none")

    # ---- containers

    def ordered_dict(self, pairs: Any = ()) -> OrderedDict[Any, Any]:
        result: OrderedDict[Any, Any] = OrderedDict()
        for pair in pairs:
            if type(pair) not in (list, tuple) or len(pair) != 2:
                self.fail("a dict of other things than pairs")
            self.machine.check_key(pair[0])
            result[pair[0]] = pair[1]
        return result

    def plain_set(self, values: Any = ()) -> set[Any]:
        for value in values:
            self.machine.check_key(value)
        return set(values)

    # ---- tensors

    def tensor(self, storage: Any, offset: Any, size: Any, stride: Any, dtype: Any = None) -> Tensor | None:
        """The one that a _rebuild function of PyTorch would make; None before its storage is read."""
        if type(storage) is not _Storage:
            self.fail("a tensor without a storage")
        if dtype is not None and not isinstance(dtype, DType):
            self.fail(f"a dtype that is a {type(dtype).__name__}")
        kind = dtype or storage.dtype
        if kind is None:
            self.fail("a tensor without a dtype")
        if storage.data is None:
            return None
        sizes, strides, start = _ints(size), _ints(stride), _ints([offset])
        if sizes is None or strides is None or start is None or len(sizes) != len(strides) or len(sizes) > MOST_AXES:
            self.fail("the sizes and strides of a tensor are not those of one")
        numel = math.prod(sizes)
        if numel == 0:
            self.file.check_shape(kind, sizes)
            return Tensor.empty(sizes, dtype=kind, device=self.device)
        last = start[0] + sum((n - 1) * s for n, s in zip(sizes, strides))
        if numel > LARGEST or (last + 1) * kind.itemsize > storage.data.size:
            self.fail(f"a tensor of {kind.name} ends at element {last}, in a storage of {storage.data.size} bytes")
        return self.flat(storage, kind).as_strided(sizes, strides, start[0])

    def tensor_with_flags(self, storage: Any, offset: Any, size: Any, stride: Any, _grad: Any, _hooks: Any,
                          flags: Any = None) -> Tensor | None:
        if flags is not None and (type(flags) not in (dict, OrderedDict) or flags):  # negated or conjugated lazily
            self.fail("a tensor whose elements are not its values")
        return self.tensor(storage, offset, size, stride)

    def tensor_of_dtype(self, storage: Any, offset: Any, size: Any, stride: Any, _grad: Any, _hooks: Any, dtype: Any,
                        *_: Any) -> Tensor | None:
        return self.tensor(storage, offset, size, stride, dtype)

    def flat(self, storage: _Storage, dtype: DType) -> Tensor:
        """All of a storage. Tensors of elements of one width share its memory."""
        if dtype not in storage.tensors:
            same = next((t for kind, t in storage.tensors.items() if kind.itemsize == dtype.itemsize), None)
            if same is not None and dtype != dtypes.bool:
                storage.tensors[dtype] = same.bitcast(dtype)
            else:
                assert storage.data is not None
                begin, size = storage.data
                # Memory has elements of one width.
                storage.tensors[dtype] = self.file.tensor(begin, dtype, [size // dtype.itemsize], self.device,
                                                          copy=bool(storage.tensors))
        return storage.tensors[dtype]

    def described(self, persistent: Any) -> tuple[DType | None, str, int]:
        """The dtype, name and bytes of the storage that a persistent id tells of."""
        if (type(persistent) is not tuple or len(persistent) < 5 or persistent[0] != "storage"
                or type(persistent[1]) is not _StorageKind):
            self.fail("a persistent id that is none of a storage")
        _, kind, key, _, numel = persistent[:5]
        if type(key) is not str or len(key) > _LONGEST_NAME or _ints([numel]) is None:
            self.fail("a storage without a name or a size")
        return kind.dtype, key, numel * (kind.dtype.itemsize if kind.dtype else 1)

    # ---- archives

    def load_archive(self) -> Any:
        archive = Archive(self.file)
        entries = archive.entries
        found = [name for name in entries if name == "data.pkl" or name.endswith("/data.pkl")]
        if len(found) != 1:
            self.fail(f"an archive with {len(found)} files data.pkl; one is needed")
        folder = found[0][: -len("data.pkl")]
        order = f"{folder}byteorder"
        if order in entries and self.content(entries[order]) != b"little":
            self.fail("its bytes are in big-endian order")

        def storage(persistent: Any) -> _Storage:
            dtype, key, nbytes = self.described(persistent)
            if key not in self.storages:
                name = f"{folder}data/{key}"
                if name not in entries:
                    self.fail(f"there is no {name[:200]}")
                self.storages[key] = _Storage(dtype, self.record(entries[name]))
            made = self.storages[key]
            assert made.data is not None
            if made.data.size < nbytes:
                self.fail(f"storage {key[:80]} has {made.data.size} bytes; {nbytes} are needed")
            return made

        return self.pickle(self.content(entries[found[0]]), 0, storage)[0]

    def record(self, entry: Entry) -> _Part:
        """Where a file of the archive is, which PyTorch never compresses."""
        if not entry.is_plain:
            self.fail(f"{entry.info.filename[:80]} is compressed or encrypted")
        return _Part(entry.begin, entry.size)

    def content(self, entry: Entry) -> bytes:
        return self.file.read(*self.record(entry))

    # ---- the form before archives

    def load_old(self) -> Any:
        data = self.file.read(0, self.file.size)
        magic, at = self.pickle(data)
        protocol, at = self.pickle(data, at)
        if type(magic) is not int or magic != _OLD_MAGIC or type(protocol) is not int or protocol != _OLD_PROTOCOL:
            self.fail("neither an archive nor a checkpoint of an old PyTorch")
        system, at = self.pickle(data, at)
        if type(system) is not dict or system.get("little_endian") is not True:
            self.fail("its bytes are in big-endian order")
        start = at
        _, at = self.pickle(data, start, self.old_storage)  # which storages there are: they come after it
        keys, at = self.pickle(data, at)
        if type(keys) is not list or not all(type(key) is str for key in keys) or len(set(keys)) != len(keys):
            self.fail("its storages have no names, or one of them twice")
        if set(keys) != set(self.storages):
            self.fail("its storages are not those of its tensors")
        for key in keys:
            at = self.read_old_storage(self.storages[key], at)
        return self.pickle(data, start, self.old_storage)[0]

    def old_storage(self, persistent: Any) -> _Storage:
        dtype, key, nbytes = self.described(persistent)
        if dtype is None or (len(persistent) > 5 and persistent[5] is not None):
            self.fail("a storage without a dtype, or a part of another one")
        storage = self.storages.setdefault(key, _Storage(dtype, None))
        if storage.data is not None and storage.data.size < nbytes:
            self.fail(f"storage {key[:80]} has {storage.data.size} bytes; {nbytes} are needed")
        return storage

    def read_old_storage(self, storage: _Storage, at: int) -> int:
        """The place after it."""
        assert storage.dtype is not None
        count = int.from_bytes(self.file.read_up_to(at, 8), "little", signed=True)
        end = at + 8 + count * storage.dtype.itemsize
        if count < 0 or end > self.file.size:
            self.fail("a storage is cut off")
        storage.data = _Part(at + 8, end - at - 8)
        return end


def _ints(values: Any) -> list[int] | None:
    """Sizes, strides or offsets, or None where they cannot be."""
    if type(values) not in (list, tuple) or not all(type(v) is int and 0 <= v <= LARGEST for v in values):
        return None
    return list(values)


def _size(sizes: Any = ()) -> tuple[Any, ...]:
    if type(sizes) not in (list, tuple) or len(sizes) > MOST_AXES:
        raise TypeError(f"a size that is no list of at most {MOST_AXES}")
    return tuple(sizes)


def _device(kind: Any, number: Any = None) -> str:
    if type(kind) is not str or len(kind) > 64 or (number is not None and _ints([number]) is None):
        raise TypeError("a device that is no name with a number")
    return kind if number is None else f"{kind}:{number}"


def _byte_array(data: Any = b"") -> bytearray:
    if type(data) is not bytes:
        raise TypeError("a bytearray of other things than bytes")
    return bytearray(data)


def _latin_bytes(text: Any, encoding: Any) -> bytes:
    if type(text) is not str or encoding != "latin1":
        raise TypeError("bytes that are no text of latin1")
    return text.encode("latin1")


def _tensor_of_type(function: Any, _kind: Any, arguments: Any, _state: Any = None) -> Any:
    """A tensor that its class does not matter for: what the function gives."""
    if (type(function) is not Function or function.is_copy or function.call is _tensor_of_type
            or type(arguments) is not tuple or len(arguments) > 16):
        raise TypeError("a tensor of a kind that is not known")
    return function.call(*arguments)


def torch_load(fn: Path, device: str | None = None) -> Any:
    """What torch.save wrote: a state dict, or lists, dicts, numbers and texts with tensors in them.

    Nothing in the file is run: what is no tensor and no plain value (a whole module, say) raises an
    UnsafeFileError that names it. Tensors that share a storage share memory; that is a map of the file, as
    with safe_load, in files of PyTorch 1.6 and later.
    """
    reader = _File(fn, device)
    is_archive = reader.file.read_up_to(0, 4) == b"PK\x03\x04"
    return reader.load_archive() if is_archive else reader.load_old()
