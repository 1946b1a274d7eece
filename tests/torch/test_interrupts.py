"""Ctrl-C ends what PyTorch asks of the device, and comes out as itself; afterwards every value reads right."""

import subprocess
import sys

PROGRAM = """
import os, signal, threading, time
import torch
import weft.torch

def ended(call):
    for attempt in range(3):
        pressed = []
        def press():
            pressed.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Timer(0.7, press).start()
        try:
            call()
        except KeyboardInterrupt:
            if time.monotonic() - pressed[0] < 1:
                return True
            continue
        raise AssertionError("not ended")
    return False

def many(x, count=3000):
    for k in range(count):
        x = x * 0.5 + x.max() * 0.0 + 1
    return x

x = torch.zeros(1 << 20, device="weft")
x += 1
CALLS
print(x.min().item(), x.max().item(), many(x, 5).cpu().max().item())
"""


def run(calls: str) -> str:
    process = subprocess.run([sys.executable, "-c", PROGRAM.replace("CALLS", calls)], text=True, capture_output=True,
                             timeout=600)
    assert process.returncode == 0, process.stderr
    return process.stdout.strip()


def test_eager() -> None:
    assert run("""
y = many(x)
assert ended(lambda: y.cpu())
assert ended(lambda: y.sum().item())
assert ended(lambda: print(y))
assert ended(lambda: torch.zeros(1 << 20).copy_(y))
""") == "1.0 1.0 1.96875"


def test_compiled() -> None:
    assert run("""
@torch.compile(backend="weft")
def step(x): return many(x, 100)
step(x).cpu()
def steps():
    y = x
    for k in range(100): y = step(y)
    return y.cpu()
assert ended(steps)
""") == "1.0 1.0 1.96875"
