"""The CPU device in processes of their own: nothing installed, LLVM alone, C alone, many at once."""

import os
import pathlib
import subprocess
import sys

import pytest

PROGRAM = """
from weft import Tensor
x = Tensor([1.0, 2.0, 3.0])
print((x * 2 + 1).tolist(), x.sum().item())
"""
RIGHT = "[3.0, 5.0, 7.0] 6.0"


def start(cache: pathlib.Path, code: str = PROGRAM, **settings: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "WEFT_DEVICE": "CPU", "WEFT_CACHE_DIR": str(cache), **settings}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run(cache: pathlib.Path, code: str = PROGRAM, **settings: str) -> tuple[str, str]:
    process = start(cache, code, **settings)
    out, err = process.communicate(timeout=600)
    return out.strip(), err.strip()


def test_nothing_installed_says_what_to_install(tmp_path: pathlib.Path) -> None:
    _, err = run(tmp_path, WEFT_LLVM="/nowhere", CC="/nowhere")
    assert err.splitlines()[-1] == (
        "weft.errors.DeviceError: [CPU] there is neither LLVM 16 or newer nor a C compiler; install one "
        "(apt install libllvm19, or clang, or gcc), or use WEFT_DEVICE=REF, which is slow")


def test_without_llvm_the_c_compiler_is_used(tmp_path: pathlib.Path) -> None:
    out, err = run(tmp_path, WEFT_LLVM="/nowhere")
    if "neither" in err:
        pytest.skip("no C compiler")
    assert (out, err) == (RIGHT, "")


def test_llvm_that_is_asked_for_and_missing(tmp_path: pathlib.Path) -> None:
    _, err = run(tmp_path, WEFT_LLVM="/nowhere", WEFT_DEVICE="CPU:LLVM")
    assert err.splitlines()[-1].startswith("weft.errors.DeviceError: [CPU:LLVM] there is no LLVM 16")


def test_a_library_that_is_no_llvm(tmp_path: pathlib.Path) -> None:
    fake = tmp_path / "libLLVM.so"
    fake.write_text("nothing")
    _, err = run(tmp_path, WEFT_LLVM=str(fake), WEFT_DEVICE="CPU:LLVM")
    assert "weft.errors.DeviceError: [CPU:LLVM] " in err


def test_many_processes_share_one_cache(tmp_path: pathlib.Path) -> None:
    for _ in range(2):
        processes = [start(tmp_path) for _ in range(4)]
        for process in processes:
            out, err = process.communicate(timeout=600)
            assert (out.strip(), err) == (RIGHT, "")
    assert not [path for path in tmp_path.rglob("*.tmp*")]


def test_a_second_process_compiles_nothing(tmp_path: pathlib.Path) -> None:
    assert run(tmp_path, WEFT_DEVICE="CPU:C")[0] == RIGHT
    # No compiler is that fast.
    out, err = run(tmp_path, WEFT_DEVICE="CPU:C", WEFT_COMPILE_SECONDS="0")
    assert (out, err) == (RIGHT, "")
    _, err = run(tmp_path / "other", WEFT_DEVICE="CPU:C", WEFT_COMPILE_SECONDS="0")
    assert "was killed after 0 s" in err


def test_ending_while_llvm_is_loading(tmp_path: pathlib.Path) -> None:
    for _ in range(10):
        process = start(tmp_path, "import weft; weft.Tensor([1.0])")
        assert process.communicate(timeout=600) == ("", "")
        assert process.returncode == 0


def test_a_forked_child_runs(tmp_path: pathlib.Path) -> None:
    code = PROGRAM + """
import os
for _ in range(5):
    pid = os.fork()
    if pid == 0:
        assert (x * 5 + 2).tolist() == [7.0, 12.0, 17.0]
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""
    assert run(tmp_path, code) == (RIGHT, "")
