"""A process with weft in it ends cleanly whatever its threads do, and a second import is refused or works: never
an abort."""

import os
import subprocess
import sys

import pytest

import weft

torch_device = pytest.mark.skipif(
    not os.path.exists(os.path.join(os.path.dirname(weft.__file__), "torch")) or not any(
        name.startswith("_C.") and name.endswith(".so")
        for name in os.listdir(os.path.join(os.path.dirname(weft.__file__), "torch"))),
    reason="the PyTorch device is not built")


def run(program: str, tmp_path: object = None, **environment: str) -> subprocess.CompletedProcess[str]:
    folder = {"WEFT_CACHE_DIR": str(tmp_path)} if tmp_path is not None else {}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "WEFT_DEVICE": "CPU", **folder, **environment})


WORK = {
    "runs": "for i in range(10**9): (x * float(i)).sum().item()",
    "compiles": "for i in range(10**9): (x[: 2 + i] * 2 + i % 7).cumsum(0).tolist()",
    "reads": "for i in range(10**9): x.tolist(), x.numpy(), x.any().item(), 3.0 in x",
    "captures": "for i in range(10**9): weft.jit(lambda t: t * 2 + 1)(x).tolist()",
    "has callbacks": """
@weft.function
def f(t): return t * 2
@f.backward
def _(grad, t): return grad * 2
for i in range(10**9):
    y = x.detach().requires_grad_()
    f(y).sum().backward()
    y.grad.tolist()""",
}


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("work", WORK)
def test_daemon_threads_at_work_when_the_process_ends(work: str, threads: int, tmp_path: object) -> None:
    body = "\n    ".join(WORK[work].strip().splitlines())
    program = f"""
import threading, time, weft
from weft import Tensor
def work():
    x = Tensor(list(range(1000)), dtype="float32")
    {body}
for _ in range({threads}):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.7)
print("end", flush=True)
"""
    for _ in range(3):
        done = run(program, tmp_path)
        assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr[-2000:]


def test_exits_of_other_kinds(tmp_path: object) -> None:
    start = """
import atexit, os, sys, threading, weft
from weft import Tensor
x = Tensor([1.0, 2.0])
"""
    late = start + """
class Late:
    def __del__(self): print((x + 5).tolist(), flush=True)
late = Late()
atexit.register(lambda: print((x * 3).tolist(), flush=True))
lazy = x + 1
"""
    done = run(late, tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("[3.0, 6.0]"), done.stderr
    done = run(start + "threading.Thread(target=lambda: [(x * i).tolist() for i in range(200)]).start()", tmp_path)
    assert done.returncode == 0, done.stderr
    done = run(start + "threading.Thread(target=lambda: [(x[:1] * i).tolist() for i in range(10**9)], daemon=True).start()\n"
               "(x + 1).tolist(); os._exit(7)", tmp_path)
    assert done.returncode == 7, done.stderr
    done = run(start + "threading.Thread(target=lambda: [(x[:1] * i).tolist() for i in range(10**9)], daemon=True).start()\n"
               "(x + 1).tolist(); sys.exit(5)", tmp_path)
    assert done.returncode == 5, done.stderr


def test_forks_while_threads_work(tmp_path: object) -> None:
    program = """
import os, threading, weft
from weft import Tensor
x = Tensor(list(range(100)), dtype="float32")
stop = []
def work():
    i = 0
    while not stop:
        (x[: 2 + i % 90] * 2 + i).cumsum(0).tolist()
        i += 1
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
for i in range(10):
    child = os.fork()
    if child == 0:
        assert (x[: 3 + i] * 7 + i).sum().item() >= 0
        import sys
        sys.exit(3) if i % 2 else os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
stop.append(1)
for t in threads: t.join()
print("end")
"""
    done = run(program, tmp_path)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr[-2000:]


def test_a_second_import_is_refused() -> None:
    program = """
import sys, importlib
import weft
x = weft.Tensor([1.0, 2.0])
taken = {n: sys.modules.pop(n) for n in list(sys.modules) if n == "weft" or n.startswith("weft.")}
for _ in range(3):
    try:
        import weft
    except ImportError as error:
        assert "loaded before in this process" in str(error), error
    else:
        raise AssertionError("imported again")
sys.modules.update(taken)
import weft
print((x + 1).tolist())
"""
    done = run(program)
    assert (done.returncode, done.stdout) == (0, "[2.0, 3.0]\n"), done.stderr


def test_reload() -> None:
    program = """
import importlib, weft, weft._core
x = weft.Tensor([1.0, 2.0])
importlib.reload(weft)
importlib.reload(weft.nn)
try:
    importlib.reload(weft._core)
except ImportError as error:
    assert "loaded before" in str(error)
y = weft.Tensor([1.0, 2.0]) + x
assert y.tolist() == [2, 4]
try:
    y.reshape(3)
except weft.errors.ShapeError:
    print("end")
"""
    done = run(program)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr


SUBINTERPRETER = """
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
{before}
interpreter = interpreters.create()
code = '''
import sys
try:
    import {module}
except ImportError as error:
    print("refused:", error, flush=True)
else:
    print("imported", flush=True)
'''
try:
    interpreters.run_string(interpreter, code)
except interpreters.RunFailedError as error:
    print("refused:", error)
interpreters.destroy(interpreter)
{after}
"""


@pytest.mark.parametrize("before", ["", "import weft", "import weft; weft.Tensor([1]).tolist()"])
def test_subinterpreters_are_refused(before: str) -> None:
    done = run(SUBINTERPRETER.format(before=before, module="weft._core",
                                     after="import weft; print(weft.Tensor([3]).tolist())"))
    assert done.returncode == 0 and "refused" in done.stdout and done.stdout.endswith("[3]\n"), done.stdout + done.stderr


@torch_device
def test_the_device_of_pytorch() -> None:
    again = """
import sys, torch, weft.torch
x = torch.ones(2, device="weft")
del sys.modules["weft.torch._C"]
try:
    import weft.torch._C
except ImportError as error:
    assert "weft.torch._C was loaded before" in str(error)
print((x + 1).tolist())
"""
    done = run(again)
    assert (done.returncode, done.stdout) == (0, "[2.0, 2.0]\n"), done.stderr
    daemon = """
import threading, time, torch, weft.torch
def work():
    x = torch.ones(100, device="weft")
    while True: torch.weft.synchronize(), weft.torch._C.realize(x * 2), (x * 3).sum().item()
threading.Thread(target=work, daemon=True).start()
time.sleep(1)
print("end", flush=True)
"""
    done = run(daemon)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr[-2000:]
