"""DLPack: what a capsule says is checked before its memory is touched, and so are the arguments of __dlpack__."""

import ctypes
import enum
from typing import Any

import numpy as np
import pytest

import weft
from weft import Tensor, from_dlpack


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("number", ctypes.c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", Device), ("ndim", ctypes.c_int32), ("dtype", DataType),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", DELETER), ("flags", ctypes.c_uint64), ("tensor", DLTensor)]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

MEMORY = np.arange(16, dtype=np.float32)
KEPT: list[Any] = []  # what capsules point to


class Giver:
    """Gives a capsule of float32 elements, or of what it is told instead."""

    def __init__(self, form: Any = Managed, major: int = 1, capsule_name: bytes | None = None, **changes: Any) -> None:
        self.freed = 0
        fields: dict[str, Any] = {"data": MEMORY.ctypes.data, "device": (1, 0), "dtype": (2, 32, 1), "shape": [4],
                                  "strides": [1], "byte_offset": 0, **changes}
        lists = {key: None if fields[key] is None else (ctypes.c_int64 * len(fields[key]))(*fields[key])
                 for key in ("shape", "strides")}
        ndim = fields.get("ndim", len(fields["shape"] or []))
        tensor = DLTensor(fields["data"], Device(*fields["device"]), ndim, DataType(*fields["dtype"]),
                          lists["shape"], lists["strides"], fields["byte_offset"])
        deleter = DELETER(self.free) if fields.get("deleter", True) else DELETER()
        self.made = Managed(tensor, None, deleter) if form is Managed else Versioned(major, 0, None, deleter, 0, tensor)
        self.name = capsule_name or (b"dltensor" if form is Managed else b"dltensor_versioned")
        KEPT.append((self, lists, deleter))

    def free(self, _: Any) -> None:
        self.freed += 1

    def __dlpack__(self, **_: Any) -> Any:
        return new_capsule(ctypes.addressof(self.made), self.name, None)


@pytest.mark.parametrize("form", [Managed, Versioned])
def test_a_capsule_made_by_hand(form: Any) -> None:
    giver = Giver(form, byte_offset=8, shape=[2, 2], strides=[4, 1])
    tensor = from_dlpack(giver)
    assert tensor.tolist() == [[2, 3], [6, 7]] and giver.freed == 0
    del tensor
    assert giver.freed == 1
    assert from_dlpack(Giver(form, shape=[4], strides=[-1], byte_offset=12)).tolist() == [3, 2, 1, 0]
    assert from_dlpack(Giver(form, shape=[2, 2], strides=None)).tolist() == [[0, 1], [2, 3]]
    assert from_dlpack(Giver(form, shape=[], strides=None)).item() == 0
    assert from_dlpack(Giver(form, shape=[1, 2], strides=[2**62, 1])).tolist() == [[0, 1]]
    assert from_dlpack(Giver(form, shape=[0, 3], data=None)).shape == (0, 3)
    assert from_dlpack(Giver(form, shape=[2], deleter=False)).tolist() == [0, 1]


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"data": None}, BufferError, "elements and no memory"),
    ({"data": None, "byte_offset": 64}, BufferError, "elements and no memory"),
    ({"ndim": -1}, BufferError, "-1 axes"),
    ({"ndim": 1_000_000}, BufferError, "1000000 axes"),
    ({"ndim": 2**31 - 1}, BufferError, "axes"),
    ({"shape": [1] * 65, "strides": None}, BufferError, "65 axes"),
    ({"shape": None, "ndim": 1}, BufferError, "no shape"),
    ({"shape": [-1]}, BufferError, "shape is"),
    ({"shape": [2, -2]}, BufferError, "shape is"),
    ({"shape": [2**62, 4], "strides": [1, 1]}, weft.ShapeError, "63 bits"),
    ({"shape": [0, 2**62, 2**62], "strides": None}, weft.ShapeError, "63 bits"),
    ({"shape": [2**61], "strides": [2**61]}, BufferError, "all memory"),
    ({"shape": [3], "strides": [2**62]}, BufferError, "all memory"),
    ({"shape": [2], "strides": [-(2**63)]}, BufferError, "all memory"),
    ({"shape": [2], "strides": [-(2**59)]}, BufferError, "none of a process"),
    ({"byte_offset": 2**64 - 4}, BufferError, "none of a process"),
    ({"byte_offset": 2**63}, BufferError, "none of a process"),
    ({"byte_offset": 2}, BufferError, "not aligned"),
    ({"dtype": (2, 32, 2)}, weft.DTypeError, "2 lanes"),
    ({"dtype": (2, 32, 0)}, weft.DTypeError, "0 lanes"),
    ({"dtype": (2, 33, 1)}, weft.DTypeError, "33 bits"),
    ({"dtype": (9, 32, 1)}, weft.DTypeError, "type 9"),
    ({"device": (2, 0)}, weft.DeviceError, "type 2"),
    ({"device": (-1, 0)}, weft.DeviceError, "type -1"),
]


@pytest.mark.parametrize("form", [Managed, Versioned])
@pytest.mark.parametrize(("changes", "kind", "text"), WRONG, ids=[str(changes) for changes, _, _ in WRONG])
def test_what_a_capsule_says_is_checked(form: Any, changes: dict[str, Any], kind: type[Exception], text: str) -> None:
    giver = Giver(form, **changes)
    with pytest.raises(kind, match=text) as error:
        from_dlpack(giver)
    assert "[from_dlpack]" in str(error.value) and len(str(error.value)) < 600
    assert giver.freed == 1  # it was taken


def test_other_versions_and_other_capsules() -> None:
    for major in (0, 2, 2**32 - 1):
        giver = Giver(Versioned, major=major, data=None)
        with pytest.raises(BufferError, match=f"version {major} "):
            from_dlpack(giver)
        assert giver.freed == 1

    class Gives:
        def __init__(self, what: Any) -> None:
            self.what = what

        def __dlpack__(self, **_: Any) -> Any:
            return self.what

    capsule = Giver().__dlpack__()
    assert from_dlpack(Gives(capsule)).shape == (4,)
    for what in (None, 3, capsule, Giver(capsule_name=b"another").__dlpack__()):
        with pytest.raises(BufferError, match="a capsule that nobody has taken"):
            from_dlpack(Gives(what))
    with pytest.raises(TypeError, match="__dlpack__"):
        from_dlpack(3)


class Kind(enum.IntEnum):
    CPU = 1
    CUDA = 2


def test_arguments_of_dlpack() -> None:
    x = Tensor([1.0, 2.0])
    for fine in ({}, {"max_version": None}, {"max_version": (1, 0)}, {"max_version": (0, 8)}, {"max_version": (10**30, 0)},
                 {"dl_device": (1, 0)}, {"dl_device": (Kind.CPU, 0)}, {"dl_device": None}, {"stream": None},
                 {"stream": -1}, {"copy": True}, {"copy": None}, {"max_version": (1, 1), "copy": False},
                 {"max_version": (np.int64(1), np.int32(0))}):
        assert "dltensor" in repr(x.__dlpack__(**fine)), fine  # type: ignore[arg-type]
    for wrong in ({"max_version": (1,)}, {"max_version": ()}, {"max_version": 1}, {"max_version": ("1", 0)},
                  {"max_version": "10"}, {"max_version": (1.0, 0)}, {"max_version": (None, None)}, {"max_version": [1, 0]},
                  {"dl_device": 1}, {"dl_device": (1,)}, {"dl_device": ("cpu", 0)}, {"dl_device": (1, 0, 0)},
                  {"stream": "default"}, {"stream": 1.5}, {"copy": 1}, {"copy": "yes"}, {"nothing": 1}):
        with pytest.raises(TypeError):
            x.__dlpack__(**wrong)  # type: ignore[arg-type]
    for refused in ({"dl_device": (2, 0)}, {"dl_device": (Kind.CUDA, 0)}, {"dl_device": (1, 3)}, {"dl_device": (10**30, 0)},
                    {"stream": 1}, {"stream": 10**30}, {"copy": False}, {"max_version": (-(10**30), 0), "copy": False}):
        with pytest.raises(BufferError, match=r"\[dlpack\]"):
            x.__dlpack__(**refused)  # type: ignore[arg-type]
    assert x.tolist() == [1, 2]
