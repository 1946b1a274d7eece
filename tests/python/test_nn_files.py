"""Files of weights: safetensors, PyTorch's checkpoints, NumPy's files."""

import json
import os
import pathlib
from typing import Any

import numpy as np
import pytest

import weft
from weft import Tensor, dtypes
from weft.nn.state import (
    npy_load,
    npy_save,
    npz_load,
    npz_save,
    safe_load,
    safe_load_metadata,
    safe_save,
    torch_load,
)

WIDTHS = {"BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "F64": 8,
          "I64": 8, "U64": 8, "F8_E4M3": 1, "F8_E5M2": 1}


def write(path: pathlib.Path, header: Any, data: bytes = b"") -> pathlib.Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def entry(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


# ------------------------------------------------------------------------------------- safetensors


@pytest.mark.parametrize("dtype", [d for d in dtypes.all if d != dtypes.index], ids=lambda d: d.name)
def test_every_dtype(tmp_path: pathlib.Path, dtype: weft.ir.DType) -> None:
    tensors = {"a": Tensor([[1, 0, 1], [1, 1, 0]]).cast(dtype), "b": Tensor(1).cast(dtype),
               "none": Tensor.empty(0, 5, dtype=dtype), "t": Tensor([[1, 0], [0, 0], [1, 1]]).cast(dtype).T}
    safe_save(tensors, tmp_path / "x")
    back = safe_load(tmp_path / "x")
    assert set(back) == set(tensors)
    for name, tensor in tensors.items():
        assert (back[name].dtype, back[name].shape) == (dtype, tensor.shape)
        assert back[name].cast("float32").tolist() == tensor.cast("float32").tolist()


def test_names_of_dtypes_are_those_of_the_format(tmp_path: pathlib.Path) -> None:
    for name, width in WIDTHS.items():
        path = write(tmp_path / "x", {"t": entry(name, [3], 0, 3 * width)}, bytes(3 * width))
        assert safe_load(path)["t"].element_size() == width
    path = write(tmp_path / "x", {"t": entry("BF16", [2], 0, 4)}, b"\x80\x3f\x00\xc0")
    assert safe_load(path)["t"].tolist() == [1.0, -2.0]
    path = write(tmp_path / "x", {"t": entry("F8_E4M3", [2], 0, 2)}, b"\x38\xc0")
    assert safe_load(path)["t"].tolist() == [1.0, -2.0]


def test_files_are_mapped_and_writes_go_elsewhere(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x"
    safe_save({"a": Tensor([1.0, 2.0]), "b": Tensor([3, 4], dtype="uint8")}, path, {"k": "v"})
    before = path.read_bytes()
    assert safe_load_metadata(path) == {"k": "v"}
    weft.counters.reset()
    tensors = safe_load(path)
    assert all(t.is_realized() for t in tensors.values())
    lazy = tensors["a"] + 1
    tensors["a"] += 10
    tensors["b"][0] = 7
    assert (tensors["a"].tolist(), tensors["b"].tolist(), lazy.tolist()) == ([11, 12], [7, 4], [2, 3])
    assert path.read_bytes() == before and safe_load(path)["a"].tolist() == [1, 2]


def test_saving_over_a_file_that_is_mapped(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x"
    safe_save({"a": Tensor([1.0, 2.0])}, path)
    old = safe_load(path)["a"]
    safe_save({"a": old * 10}, path)
    assert (old.tolist(), safe_load(path)["a"].tolist()) == ([1, 2], [10, 20])
    assert os.listdir(tmp_path) == ["x"]


def test_saving_that_fails_leaves_the_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x"
    safe_save({"a": Tensor([1.0])}, path)
    for wrong, error in (({"a": 1}, TypeError), ({"__metadata__": Tensor(1)}, TypeError), ({1: Tensor(1)}, TypeError)):
        with pytest.raises(error, match=r"\[safe_save\]"):
            safe_save(wrong, path)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="metadata is a dict of texts"):
        safe_save({}, path, {"a": 1})  # type: ignore[dict-item]
    with pytest.raises(FileNotFoundError):
        safe_save({"a": Tensor(1)}, tmp_path / "none" / "x")
    assert safe_load(path)["a"].tolist() == [1] and os.listdir(tmp_path) == ["x"]


def test_elements_that_are_not_aligned(tmp_path: pathlib.Path) -> None:
    data = b"\x01" + np.array([1.5, 2.5], np.float32).tobytes() + b"\x07"
    header = {"a": entry("U8", [1], 0, 1), "b": entry("F32", [2], 1, 9), "c": entry("I8", [], 9, 10)}
    tensors = safe_load(write(tmp_path / "x", header, data))
    assert [t.tolist() for t in tensors.values()] == [[1], [1.5, 2.5], 7]


def test_many_tensors(tmp_path: pathlib.Path) -> None:
    safe_save({f"layer.{i}": Tensor(np.full(i % 5, i, np.int32)) for i in range(3000)}, tmp_path / "x")
    tensors = safe_load(tmp_path / "x")
    assert len(tensors) == 3000 and all(t.tolist() == [int(n[6:])] * (int(n[6:]) % 5) for n, t in tensors.items())


WRONG_HEADERS = [
    (b"{", "no JSON"),
    (b"[]", "a dict is needed"),
    (b"\xff\xfe", "no JSON"),
    (b"[" * 100_000, "no JSON"),
    (b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
     "'a' twice"),
    (b'{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}', "'dtype' twice"),
    ({"a": 1}, "needs dtype"),
    ({"a": {**entry("F32", [1], 0, 4), "more": 1}}, "nothing else"),
    ({"a": entry("F31", [1], 0, 4)}, "dtype 'F31'"),
    ({"a": entry("F32", [-1], 0, 4)}, "shape"),
    ({"a": entry("F32", [True], 0, 4)}, "shape"),
    ({"a": entry("F32", [1.0], 0, 4)}, "shape"),  # type: ignore[list-item]
    ({"a": entry("F32", [1] * 65, 0, 4)}, "at most 64"),
    ({"a": entry("F32", [0, 10**30], 0, 0)}, "shape"),
    ({"a": entry("F32", [2**62, 4], 0, 4)}, "needs 7"),
    ({"a": entry("F32", [1], 4, 0)}, "-4 bytes"),
    ({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}, "a begin and an end"),
    ({"a": entry("F32", [2], 0, 8)}, "end at byte 8"),
    ({"a": entry("U8", [3], 0, 3)}, "end at byte 3"),
    ({"a": entry("U8", [3], 0, 3), "b": entry("U8", [2], 2, 4)}, "overlaps"),
    ({"a": entry("U8", [1], 0, 1), "b": entry("U8", [2], 2, 4)}, "leaves a hole"),
    ({"a": entry("U8", [3], 1, 4)}, "leaves a hole"),
    ({"a": entry("BOOL", [4], 0, 4)}, "a bool is the byte 9"),
    ({"__metadata__": {"a": 1}}, "__metadata__"),
    ({"__metadata__": []}, "__metadata__"),
]


@pytest.mark.parametrize(("header", "text"), WRONG_HEADERS, ids=[t for _, t in WRONG_HEADERS])
def test_headers_are_checked(tmp_path: pathlib.Path, header: Any, text: str) -> None:
    path = write(tmp_path / "name.safetensors", header, b"\x09\x00\x01\x00")
    with pytest.raises(weft.FileFormatError, match=text) as error:
        safe_load(path)
    assert "[safe_load]" in str(error.value) and "name.safetensors" in str(error.value)
    assert len(str(error.value)) < 600


@pytest.mark.parametrize("content", [b"", b"1234567", b"\xff" * 8, (100_000_001).to_bytes(8, "little") + b"{}",
                                     (3).to_bytes(8, "little") + b"{}"])
def test_lengths_of_headers(tmp_path: pathlib.Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(weft.FileFormatError, match=r"header"):
        safe_load(tmp_path / "x")


def test_no_file(tmp_path: pathlib.Path) -> None:
    for load in (safe_load, torch_load, npy_load, npz_load):
        with pytest.raises(FileNotFoundError):
            load(tmp_path / "none")


# ------------------------------------------------------------------------------------ NumPy's files


@pytest.mark.parametrize("array", [
    np.arange(6, dtype=np.float32).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)), np.float64(3.5),
    np.zeros((0, 4), np.int8), np.array([True, False]), np.arange(4, dtype=">i4"), np.arange(6)[::-2],
    np.array([1.5], np.float16)], ids=lambda a: f"{a.dtype}-{a.shape}")
def test_numpy_files(tmp_path: pathlib.Path, array: Any) -> None:
    np.save(tmp_path / "a.npy", array)
    np.savez_compressed(tmp_path / "a.npz", x=array, y=array)
    for tensor in (npy_load(tmp_path / "a.npy"), *npz_load(tmp_path / "a.npz").values()):
        assert tensor.shape == array.shape and tensor.tolist() == array.tolist()
        assert np.dtype(tensor.dtype.name) == array.dtype.newbyteorder("=")
    npy_save(npy_load(tmp_path / "a.npy"), tmp_path / "b.npy")
    npz_save({"p": npy_load(tmp_path / "a.npy")}, tmp_path / "b.npz")
    for again in (np.load(tmp_path / "b.npy"), np.load(tmp_path / "b.npz")["p"]):
        assert again.tolist() == array.tolist() and again.dtype == array.dtype.newbyteorder("=")


def test_arrays_of_objects_are_refused(tmp_path: pathlib.Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}, None]), allow_pickle=True)
    with pytest.raises(weft.FileFormatError, match="no tensors of NumPy's object"):
        npy_load(tmp_path / "a.npy")
    np.savez(tmp_path / "a.npz", x=np.array(["text"]))
    with pytest.raises(weft.FileFormatError, match="no tensors of NumPy's <U4"):
        npz_load(tmp_path / "a.npz")
    with pytest.raises(weft.DTypeError, match="cast to float32"):
        npy_save(Tensor([1.0], dtype="bfloat16"), tmp_path / "b.npy")


# ----------------------------------------------------------------------------------- what is broken


def files(folder: pathlib.Path) -> dict[str, Any]:
    """A small file of every kind, and its loader."""
    rng = np.random.default_rng(0)
    tensors = {f"layer{i}.weight": Tensor(rng.normal(size=(i, 3)).astype(np.float32)) for i in range(4)}
    tensors["flag"] = Tensor([True, False])
    safe_save(tensors, folder / "a.safetensors", {"format": "pt"})
    npy_save(tensors["layer3.weight"], folder / "a.npy")
    npz_save(tensors, folder / "a.npz")
    np.savez_compressed(folder / "c.npz", a=np.zeros(100), b=np.arange(5))
    return {"a.safetensors": safe_load, "a.npy": npy_load, "a.npz": npz_load, "c.npz": npz_load}


def loads_or_says_why(load: Any, path: pathlib.Path) -> None:
    try:
        value = load(path)
    except weft.FileFormatError as error:
        assert path.name in str(error)
        return
    for tensor in value.values() if isinstance(value, dict) else [value]:
        if isinstance(tensor, Tensor):
            tensor.cast("float32").tolist()


def test_truncated_files(tmp_path: pathlib.Path) -> None:
    for name, load in files(tmp_path).items():
        content = (tmp_path / name).read_bytes()
        path = tmp_path / f"cut-{name}"
        for length in {*range(0, len(content), 7), len(content) - 1}:
            path.write_bytes(content[:length])
            with pytest.raises(weft.FileFormatError):
                load(path)


def test_corrupted_files(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(1)
    for name, load in files(tmp_path).items():
        content = np.frombuffer((tmp_path / name).read_bytes(), np.uint8)
        path = tmp_path / f"broken-{name}"
        for _ in range(150):
            broken = content.copy()
            at = rng.integers(0, len(broken), size=rng.integers(1, 4))
            broken[at] = rng.integers(0, 256, size=len(at))
            path.write_bytes(broken.tobytes())
            loads_or_says_why(load, path)
