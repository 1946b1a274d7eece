"""Checkpoints of PyTorch are read without running anything of theirs."""

import collections
import io
import os
import pathlib
import pickle
import struct
import zipfile
from typing import Any

import numpy as np
import pytest

import weft
from weft import Tensor, dtypes
from weft.nn.state import torch_load

FORMS = {"archive": True, "old": False}
NAMES = {"float8_e4m3": "float8_e4m3fn"}


def archive(path: pathlib.Path, content: bytes, **files: bytes) -> pathlib.Path:
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("archive/data.pkl", content)
        for name, data in files.items():
            made.writestr(f"archive/data/{name}", data)
    return path


class Call:
    """Pickled as a call of a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.parts = function, arguments

    def __reduce__(self) -> Any:
        return self.parts


# -------------------------------------------------------------------------------------- what is read


@pytest.mark.parametrize("form", FORMS)
def test_state_dicts(tmp_path: pathlib.Path, form: str) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Linear(4, 2))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3, 5, 6)).sum().backward()
    optimizer.step()
    saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "names": ["a", ("b", None)],
             "rate": 0.1, "parameter": model[2].weight, "big": 2**70, "minus": -5, "flags": {True, 2}, "raw": b"\0\1"}
    torch.save(saved, tmp_path / "x.pt", _use_new_zipfile_serialization=FORMS[form])
    loaded = torch_load(tmp_path / "x.pt")
    for key in ("epoch", "names", "rate", "big", "minus", "flags", "raw"):
        assert loaded[key] == saved[key]
    assert list(loaded["model"]) == list(saved["model"])
    for name, tensor in saved["model"].items():
        assert loaded["model"][name].tolist() == tensor.tolist()
    assert loaded["parameter"].tolist() == model[2].weight.tolist()
    assert loaded["optimizer"]["param_groups"][0]["lr"] == 0.001
    assert loaded["optimizer"]["state"][0]["exp_avg"].tolist() == optimizer.state_dict()["state"][0]["exp_avg"].tolist()


# The old form has no storage class for some.
NEW_ALONE = ("uint16", "uint32", "uint64", "float8_e4m3", "float8_e5m2")
WRITTEN = [(dtype, form) for dtype in dtypes.all if dtype != dtypes.index for form in FORMS
           if form != "old" or dtype.name not in NEW_ALONE]


@pytest.mark.parametrize("dtype, form", WRITTEN, ids=[f"{dtype.name}-{form}" for dtype, form in WRITTEN])
def test_dtypes(tmp_path: pathlib.Path, dtype: weft.ir.DType, form: str) -> None:
    torch = pytest.importorskip("torch")
    kind = getattr(torch, NAMES.get(dtype.name, dtype.name))
    value = torch.tensor([[1, 0, 1], [0, 1, 1]]).to(kind)
    torch.save([value, value[1, 1], value[:0], value.T], tmp_path / "x.pt", _use_new_zipfile_serialization=FORMS[form])
    loaded = torch_load(tmp_path / "x.pt")
    assert [t.dtype for t in loaded] == [dtype] * 4
    assert [t.cast("int32").tolist() for t in loaded] == [[[1, 0, 1], [0, 1, 1]], 1, [], [[1, 0], [0, 1], [1, 1]]]
    assert [t.shape for t in loaded] == [(2, 3), (), (0, 3), (3, 2)]


@pytest.mark.parametrize("form", FORMS)
def test_tensors_of_one_storage_share_memory(tmp_path: pathlib.Path, form: str) -> None:
    torch = pytest.importorskip("torch")
    base = torch.arange(12.0).reshape(3, 4)
    torch.save({"a": base, "row": base[1], "t": base.T[1:, 1:], "step": base[:, ::2], "wide": base[:1].expand(5, 4)},
               tmp_path / "x.pt", _use_new_zipfile_serialization=FORMS[form])
    before = (tmp_path / "x.pt").read_bytes()
    loaded = torch_load(tmp_path / "x.pt")
    loaded["row"][0] = 99
    base[1, 0] = 99
    expected = {"a": base, "row": base[1], "t": base.T[1:, 1:], "step": base[:, ::2], "wide": base[:1].expand(5, 4)}
    assert {name: t.tolist() for name, t in loaded.items()} == {name: t.tolist() for name, t in expected.items()}
    assert loaded["a"].shares_memory_with(loaded["t"]) and (tmp_path / "x.pt").read_bytes() == before


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_protocols_of_pickles(tmp_path: pathlib.Path, form: str, protocol: int) -> None:
    torch = pytest.importorskip("torch")
    plain = {"f": frozenset([1]), "b": b"xx", "c": (1, 2, 3, 4), "a": bytearray(b"q"), 7: "x" * 300, ("k", 1): [[]]}
    saved = {**plain, "t": torch.ones(2), "size": torch.Size([1, 2]), "dtype": torch.float16, "on": torch.device("cpu")}
    torch.save(saved, tmp_path / "x.pt", pickle_protocol=protocol, _use_new_zipfile_serialization=FORMS[form])
    loaded = torch_load(tmp_path / "x.pt")
    assert loaded.pop("t").tolist() == [1, 1]
    assert loaded == {**plain, "size": (1, 2), "dtype": dtypes.float16, "on": "cpu"}


def test_archives_are_mapped(tmp_path: pathlib.Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"a": torch.arange(4.0)}, tmp_path / "x.pt")
    weft.counters.reset()
    assert torch_load(tmp_path / "x.pt")["a"].is_realized() and weft.counters.kernels == 0


# ------------------------------------------------------------------------------------ what is refused


def test_calls_are_refused_by_name(tmp_path: pathlib.Path) -> None:
    for function, name in ((os.system, "system"), (eval, "eval"), (getattr, "getattr"), (os.open, "open")):
        content = pickle.dumps({"a": Call(function, f"touch {tmp_path}/ran")}, protocol=2)
        for path in (archive(tmp_path / "x.pt", content), tmp_path / "y.pt"):
            if path.name == "y.pt":
                path.write_bytes(content)
            with pytest.raises(weft.UnsafeFileError, match=rf"\.{name}, which") as error:
                torch_load(path)
            assert "[torch_load]" in str(error.value) and path.name in str(error.value)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("content", [
    b"cos\nsystem\n(S'echo'\ntR.", b"(S'echo'\nios\nsystem\n.", b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
    b"\x80\x02cbuiltins\nset\nq\x00}b.",  # attributes of a function
    b"\x80\x02X\x01\x00\x00\x00a)R.", b"\x80\x02]q\x00)R.", b"\x82\x01.", b"\x80\x02ctorch\nFloatStorage\n)R.",
    b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n)R.", b"\x80\x02ccollections\nOrderedDict\n)\x81)R."])
def test_hand_made_pickles(tmp_path: pathlib.Path, content: bytes) -> None:
    with pytest.raises(weft.FileFormatError):
        torch_load(archive(tmp_path / "x.pt", content))


def test_whole_modules_are_refused(tmp_path: pathlib.Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save(torch.nn.Linear(2, 2), tmp_path / "x.pt")
    with pytest.raises(weft.UnsafeFileError, match=r"asks for torch\.nn\.modules\.linear\.Linear"):
        torch_load(tmp_path / "x.pt")


def test_pickles_that_want_much_memory_or_depth(tmp_path: pathlib.Path) -> None:
    far = b"\x80\x02Nr\xff\xff\xff\xff."  # the memo's last place
    assert torch_load(archive(tmp_path / "x.pt", far)) is None
    long_bytes = b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"."
    key = b"\x80\x02}" + b")" + b"\x85" * 200_000 + b"K\x01s."  # a tuple in a tuple in ...
    for content in (long_bytes, key, b"\x80\x02" + b"]" * 100 + b"a" * 200 + b"."):
        with pytest.raises(weft.FileFormatError):
            torch_load(archive(tmp_path / "x.pt", content))
    deep = b"\x80\x02" + b"]" * 300_000 + b"a" * 299_999 + b"."
    assert isinstance(torch_load(archive(tmp_path / "x.pt", deep)), list)


def tensor_pickle(kind: str = "FloatStorage", key: str = "0", numel: int = 4, offset: int = 0,
                  size: Any = (4,), stride: Any = (1,)) -> bytes:
    """What torch.save writes for one tensor."""
    def value(x: Any) -> bytes:
        return pickle.dumps(x, protocol=2)[2:-1]

    storage = (b"(" + value("storage") + b"ctorch\n" + kind.encode() + b"\n" + value(key) + value("cpu") + value(numel)
               + b"tQ")
    parts = storage + value(offset) + value(size) + value(stride) + b"\x89ccollections\nOrderedDict\n)R"
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + parts + b"tR."


def test_tensors_lie_in_their_storage(tmp_path: pathlib.Path) -> None:
    data = np.arange(4, dtype=np.float32).tobytes()
    assert torch_load(archive(tmp_path / "x.pt", tensor_pickle(), **{"0": data})).tolist() == [0, 1, 2, 3]
    wrong: list[dict[str, Any]] = [
        {"offset": 1}, {"offset": -1}, {"size": (5,)}, {"stride": (2,)}, {"stride": (-1,)}, {"size": (2, 2)},
        {"key": "1"}, {"numel": 5}, {"numel": -1}, {"numel": "x"}, {"kind": "DoubleStorage"}, {"kind": "QInt8Storage"},
        {"size": ("a",)},
        {"size": (2**62, 2**62), "stride": (0, 0)}, {"size": (1,) * 65, "stride": (1,) * 65}, {"size": None},
        {"size": (0, 2**64), "stride": (1, 1)}, {"offset": 2**63 - 1}, {"key": "../../data.pkl"},
    ]
    for change in wrong:
        with pytest.raises(weft.FileFormatError):
            torch_load(archive(tmp_path / "x.pt", tensor_pickle(**change), **{"0": data}))


def test_archives_that_are_none_of_pytorch(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.pt"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("a", "b")
    with pytest.raises(weft.FileFormatError, match="0 files data.pkl"):
        torch_load(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("a/data.pkl", b"\x80\x02N." * 100)
    with pytest.raises(weft.FileFormatError, match="compressed"):
        torch_load(path)
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("a/data.pkl", b"\x80\x02N.")
        made.writestr("a/byteorder", b"big")
    with pytest.raises(weft.FileFormatError, match="big-endian"):
        torch_load(path)
    for content in (b"", b"PK", b"PK\x03\x04", b"text", pickle.dumps([1, 2])):
        path.write_bytes(content)
        with pytest.raises(weft.FileFormatError):
            torch_load(path)


def test_storages_that_overlap(tmp_path: pathlib.Path) -> None:
    content = tensor_pickle()[:-1] + tensor_pickle(key="1")[2:-1] + b"\x86."
    data = np.arange(4, dtype=np.float32).tobytes()
    path = archive(tmp_path / "x.pt", content, **{"0": data, "1": data})
    assert [t.tolist() for t in torch_load(path)] == [[0, 1, 2, 3]] * 2
    with zipfile.ZipFile(path) as made:
        first, second = (made.getinfo(f"archive/data/{i}").header_offset for i in range(2))
    whole = path.read_bytes()  # the place of the second one, in the directory, becomes that of the first
    name = b"archive/data/1"
    path.write_bytes(whole.replace(struct.pack("<I", second) + name, struct.pack("<I", first) + name))
    with pytest.raises(weft.FileFormatError, match="overlaps"):
        torch_load(path)


@pytest.mark.parametrize("form", FORMS)
def test_broken_files(tmp_path: pathlib.Path, form: str) -> None:
    torch = pytest.importorskip("torch")
    memory = io.BytesIO()
    state = collections.OrderedDict((f"w{i}", torch.ones(i, 3)) for i in range(3))
    torch.save({"state": state, "t": state["w2"].T, "n": [1, "x", 2.5]}, memory,
               _use_new_zipfile_serialization=FORMS[form])
    content = np.frombuffer(memory.getvalue(), np.uint8)
    path = tmp_path / "x.pt"
    for length in range(0, len(content), 5):
        path.write_bytes(content[:length].tobytes())
        with pytest.raises(weft.FileFormatError):
            torch_load(path)
    rng = np.random.default_rng(2)
    for _ in range(400):
        broken = content.copy()
        at = rng.integers(0, len(broken), size=rng.integers(1, 5))
        broken[at] = rng.integers(0, 256, size=len(at))
        path.write_bytes(broken.tobytes())
        try:
            value = torch_load(path)
        except weft.FileFormatError as error:
            assert "x.pt" in str(error)
        else:
            tensors = [t for t in (value if isinstance(value, dict) else {}).values() if isinstance(t, Tensor)]
            assert all(t.numel() < 100_000 and t.numpy() is not None for t in tensors)
