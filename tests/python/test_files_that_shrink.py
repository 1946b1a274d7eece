"""A file whose map is the memory of tensors becomes shorter: an error where they are used, and the process lives."""

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import Tensor, custom_kernel, jit
from weft.ir import UOp
from weft.nn.state import npy_load, npy_save, safe_load, safe_save, torch_load

COUNT = 100_000  # many pages

USES: dict[str, Callable[[Tensor], Any]] = {
    "numpy": lambda t: t.numpy(),
    "tolist": lambda t: t.tolist(),
    "item": lambda t: t[COUNT - 1].item(),
    "sum": lambda t: (t * 2).sum().item(),
    "a view": lambda t: t[5:][::2].tolist(),
    "assign": lambda t: Tensor.zeros(COUNT, device=t.device).assign(t).tolist(),
    "copy": lambda t: t.clone().tolist(),
    "bitcast": lambda t: t.bitcast("int32").sum().item(),
    "dlpack": lambda t: np.from_dlpack(t),  # type: ignore[call-overload]
    "to": lambda t: t.to("REF" if t.device != "REF" else "CPU").numpy(),
    "save": lambda t: safe_save({"t": t}, os.devnull + "x"),
    "custom kernel": lambda t: custom_kernel(twice, [(COUNT, "float32")], [t]).realize(),
    "write": lambda t: t.__setitem__(3, 7.0) or t.tolist(),  # type: ignore[func-returns-value]
}


def twice(out: UOp, x: UOp) -> UOp:
    i = UOp.range(COUNT, 0)
    return out.index(i).assign(x.index(i).load() * 2).end(i)


def saved(folder: pathlib.Path) -> pathlib.Path:
    path = folder / "model.safetensors"
    safe_save({"t": Tensor(np.arange(COUNT, dtype=np.float32))}, path)
    return path


@pytest.mark.parametrize("device", ["CPU", "REF"])
@pytest.mark.parametrize("use", USES)
def test_a_use_raises(tmp_path: pathlib.Path, use: str, device: str) -> None:
    path = saved(tmp_path)
    tensor = safe_load(path, device)["t"]
    derived = tensor + 1
    os.truncate(path, 4096)
    with pytest.raises(weft.FileFormatError, match="become shorter"):
        USES[use](tensor)
    with pytest.raises(weft.FileFormatError, match="4096 are there"):
        derived.tolist()
    assert (Tensor([1.0], device=device) + 1).tolist() == [2]
    safe_save({"t": Tensor([1.0, 2.0])}, path)
    assert safe_load(path)["t"].tolist() == [1, 2]


EXPORTS: dict[str, Callable[[Tensor], Any]] = {
    "numpy": lambda t: t.numpy(copy=False),
    "asarray": lambda t: np.asarray(t),
    "a view": lambda t: np.asarray(t[7:]),
    "memoryview": lambda t: memoryview(t),
    "dlpack": lambda t: np.from_dlpack(t),  # type: ignore[call-overload]
}


@pytest.mark.parametrize("export", EXPORTS)
def test_what_was_given_away_before_keeps_its_values(tmp_path: pathlib.Path, export: str) -> None:
    path = saved(tmp_path)
    seen = EXPORTS[export](safe_load(path, "CPU")["t"])
    os.truncate(path, 4096)
    assert np.asarray(seen)[-1] == COUNT - 1


def test_the_protocol_of_buffers_has_an_error_of_its_own(tmp_path: pathlib.Path) -> None:
    path = saved(tmp_path)
    tensor = safe_load(path)["t"]
    os.truncate(path, 4096)
    with pytest.raises(BufferError, match="become shorter"):
        memoryview(tensor)


def test_a_byte_less_is_noticed(tmp_path: pathlib.Path) -> None:
    path = saved(tmp_path)
    tensor = safe_load(path)["t"]
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(weft.FileFormatError):
        tensor.sum().item()


def test_writes_that_fail_change_nothing(tmp_path: pathlib.Path) -> None:
    path = saved(tmp_path)
    tensor = safe_load(path)["t"]
    total = Tensor.zeros(COUNT).contiguous().realize()
    os.truncate(path, 0)
    total += 1
    with pytest.raises(weft.FileFormatError):
        (total + tensor).realize()
    assert total.sum().item() == COUNT


def test_in_a_jit(tmp_path: pathlib.Path) -> None:
    path = saved(tmp_path)
    tensor = safe_load(path)["t"]

    @jit
    def f(x: Tensor) -> Tensor:
        return (tensor * x).sum()

    for _ in range(4):
        assert f(Tensor([2.0])).item() > 0
    os.truncate(path, 4096)
    for _ in range(2):
        with pytest.raises(weft.FileFormatError, match="become shorter"):
            f(Tensor([2.0])).item()


def test_other_formats(tmp_path: pathlib.Path) -> None:
    npy_save(Tensor(np.arange(COUNT, dtype=np.float32)), tmp_path / "a.npy")
    array = npy_load(tmp_path / "a.npy")
    os.truncate(tmp_path / "a.npy", 5000)
    with pytest.raises(weft.FileFormatError):
        array.sum().item()
    torch = pytest.importorskip("torch")
    torch.save({"t": torch.arange(COUNT)}, tmp_path / "a.pt")
    loaded = torch_load(tmp_path / "a.pt")["t"]
    os.truncate(tmp_path / "a.pt", 5000)
    with pytest.raises(weft.FileFormatError):
        loaded.sum().item()


def test_what_was_written_or_replaced_is_fine(tmp_path: pathlib.Path) -> None:
    path = saved(tmp_path)
    tensor = safe_load(path)["t"]
    written = safe_load(path)["t"]
    written += 1
    written.realize()
    safe_save({"t": Tensor([1.0])}, path)  # takes its place
    assert tensor.sum().item() > 0
    os.truncate(path, 0)
    assert written[:3].tolist() == [1, 2, 3] and tensor[:3].tolist() == [0, 1, 2]
    os.unlink(path)
    assert tensor[:3].tolist() == [0, 1, 2]


def test_the_process_lives(tmp_path: pathlib.Path) -> None:
    program = f"""
import os, weft
from weft import Tensor
from weft.nn.state import safe_load
t = safe_load({str(saved(tmp_path))!r})["t"]
(t + 1).realize()
os.truncate({str(tmp_path / "model.safetensors")!r}, 0)
for use in (t.tolist, lambda: (t * 2).sum().item(), t.numpy, lambda: Tensor.stack(t, t).tolist()):
    try:
        use()
    except weft.FileFormatError:
        print("raised")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "raised\n" * 4), done.stderr


def test_descriptors_are_closed(tmp_path: pathlib.Path) -> None:
    path = saved(tmp_path)

    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = opened()
    held = [safe_load(path) for _ in range(50)]
    assert opened() <= before + 50
    del held
    assert opened() <= before + 1
