"""Device weft changes nothing for other devices of a process, nor for what ran before it was there."""

import os
import subprocess
import sys

import pytest
from on_both_devices import torch

# Each prints the same in a process that loads weft and in one that does not.
CUDA_PROGRAMS = {
    "gradients": """
x = torch.arange(6.0, device="cuda", requires_grad=True)
(x * x).sum().backward()
y = (x.cpu().sin() * 2).cuda()
y.sum().backward()
print(x.grad.tolist(), torch.accelerator.current_accelerator())
""",
    "streams": """
stream = torch.cuda.Stream()
x = torch.ones(1 << 20, device="cuda", requires_grad=True)
with torch.cuda.stream(stream):
    y = x * 3
torch.cuda.current_stream().wait_stream(stream)
(y.sum() + (x * 2).sum()).backward()
print(x.grad.sum().item(), torch.accelerator.current_stream().device)
""",
    "pinned memory": """
x = torch.arange(8.0).pin_memory()
loader = torch.utils.data.DataLoader(torch.arange(8.0), batch_size=4, pin_memory=True)
print(x.is_pinned(), [b.is_pinned() for b in loader], x.to("cuda", non_blocking=True).sum().item())
print(torch.empty(3, pin_memory=True).is_pinned(), torch.arange(3.0, device="cuda").to("cpu", non_blocking=True).tolist())
""",
    "training with autocast": """
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 1)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cuda")
x = torch.randn(64, 16, device="cuda")
for _ in range(5):
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(x).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.item())
""",
    "CUDA graphs": """
torch.manual_seed(0)
model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(4, 8, device="cuda")
def step():
    optimizer.zero_grad(set_to_none=False)
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3): step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = step()
for _ in range(3):
    graph.replay()
    print(loss.item())
""",
    "torch.compile": """
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).cuda()
compiled = torch.compile(model)
x = torch.randn(4, 8, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = compiled(x).square().mean()
    loss.backward()
    torch.compile(optimizer.step)()
    print(loss.item())
""",
    "torch.distributed": """
import torch.distributed as dist
for backend in ("nccl", "gloo"):
    dist.init_process_group(backend, init_method="tcp://127.0.0.1:29517", rank=0, world_size=1)
    device = "cuda" if backend == "nccl" else "cpu"
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4).to(device))
    model(torch.ones(2, 4, device=device)).sum().backward()
    total = torch.ones(3, device=device)
    dist.all_reduce(total)
    print(backend, total.tolist(), [p.grad.sum().item() for p in model.parameters()])
    dist.destroy_process_group()
""",
    "checkpointing and random states": """
from torch.utils.checkpoint import checkpoint
torch.manual_seed(3)
x = torch.ones(4, 4, device="cuda", requires_grad=True)
checkpoint(lambda t: torch.nn.functional.dropout(t.exp(), 0.5), x, use_reentrant=False).sum().backward()
print(x.grad.tolist())
x.grad = None
checkpoint(lambda t: torch.nn.functional.dropout(t.exp(), 0.5), x, use_reentrant=True).sum().backward()
print(x.grad.tolist())
""",
}


def run(code: str, **environment: str) -> str:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", "import torch\n" + code], env={**os.environ, **environment},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch has no CUDA device here")
@pytest.mark.parametrize("program", CUDA_PROGRAMS.values(), ids=list(CUDA_PROGRAMS))
def test_cuda_is_as_without_weft(program):
    with_weft = "import sys; assert 'weft.torch' in sys.modules; w = torch.ones(2, device='weft', requires_grad=True)\n"
    with_weft += "(w * 2).sum().backward(); assert w.grad.tolist() == [2, 2]\n"
    without = run(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert run(with_weft + program, TORCH_DEVICE_BACKEND_AUTOLOAD="1") == without
    assert run(program + with_weft, TORCH_DEVICE_BACKEND_AUTOLOAD="1") == without  # in the other order


@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch has no CUDA device here")
def test_gradients_pass_between_cuda_and_weft():
    code = """
x = torch.arange(4.0, device="cuda", requires_grad=True)
y = x.sin().to("weft") * torch.arange(4.0, device="weft")
(y.to("cuda") * x).sum().backward()
z = torch.arange(4.0, requires_grad=True)
((z.sin() * torch.arange(4.0)) * z).sum().backward()
torch.testing.assert_close(x.grad.cpu(), z.grad)
"""
    run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="1")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch has no CUDA device here")
def test_copies_between_cuda_and_weft():
    code = """
x = torch.arange(12.0, device="cuda").view(3, 4)
w = torch.zeros(4, 3, device="weft")
w.t().copy_(x)                                   # through a view
assert w.tolist() == x.t().tolist()
c = torch.zeros(4, 3, dtype=torch.float64, device="cuda")
c[1:].copy_(w[1:])                               # another dtype, a part
assert c.tolist() == [[0, 0, 0]] + x.t().tolist()[1:]
z = torch.complex(x, -x)
assert z.conj().to("weft").cpu().tolist() == z.conj().tolist()
assert z.to("weft").conj().to("cuda").tolist() == z.conj().tolist()
w.fill_(torch.tensor(7, device="cuda"))
assert w.cpu().eq(7).all()
"""
    run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="1")


# As in a process whose accelerator is another: autograd then asks weft for no stream.
NO_ACCELERATOR = "from weft.torch import _C; assert _C.stop_being_accelerator()\n"


def test_weft_need_not_be_the_accelerator():
    current = "cuda" if torch.cuda.is_available() else "None"
    assert run(NO_ACCELERATOR + "print(torch.accelerator.current_accelerator(), torch.device('weft'))") == f"{current} weft"


def test_gradients_without_being_the_accelerator():
    program = """
def gradients(device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU(), torch.nn.Linear(4, 1)).to(device)
    x = torch.arange(6.0).view(2, 3).requires_grad_()
    moved = x.to(device)
    twice = (moved * 2 + moved.cpu().sin().to(device)) * moved  # several uses, and a way through the CPU
    loss = model(twice).square().mean()
    first, = torch.autograd.grad(loss, x, create_graph=True)
    (loss + first.square().sum()).backward()
    return [x.grad] + [p.grad.cpu() for p in model.parameters()]
for a, b in zip(gradients("cpu"), gradients("weft")):
    torch.testing.assert_close(a, b)
"""
    run(NO_ACCELERATOR + program)


def test_a_backward_before_the_device_is_loaded():
    code = """
x = torch.ones(3, requires_grad=True)
(x * 2).sum().backward()
import weft.torch
w = torch.ones(3, device="weft", requires_grad=True)
(w * 3).sum().backward()
(x * 5).sum().backward()
print(w.grad.tolist(), x.grad.tolist())
"""
    assert run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "[3.0, 3.0, 3.0] [7.0, 7.0, 7.0]"


def test_a_backward_on_another_thread_before_the_device_is_loaded():
    code = """
import threading
def backward(device):
    x = torch.ones(3, device=device, requires_grad=True)
    (x * 2).sum().backward()
    return x.grad.tolist()
other = threading.Thread(target=backward, args=("cpu",)); other.start(); other.join()
import weft.torch
results = []
threads = [threading.Thread(target=lambda: results.append(backward("weft"))) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(results == [[2.0, 2.0, 2.0]] * 4)
"""
    assert run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "True"


FORKS = """
import os
def backward(device):
    x = torch.ones(3, device=device, requires_grad=True)
    (x * 2).sum().backward()
    return x.grad.tolist()
def in_child(work):
    child = os.fork()
    if child == 0:
        try:
            print(work(), flush=True)
        except RuntimeError as error:
            print(str(error)[:40], flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(torch.cuda.is_available(), reason="PyTorch with CUDA refuses gradients in forked processes by itself")
def test_gradients_in_processes_that_are_forked_are_as_without_weft():
    code = FORKS + """
backward("cpu")
in_child(lambda: backward("cpu"))
"""
    without = run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert without == "[2.0, 2.0, 2.0]"
    assert run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="1") == without
    used = "with torch.no_grad(): (torch.ones(2, device='weft', requires_grad=True) * 2).tolist()\n"
    assert run(used + code, TORCH_DEVICE_BACKEND_AUTOLOAD="1") == without


@pytest.mark.parametrize("begin", ["", "import weft.torch", "backward('cpu')", "backward('cpu')\nimport weft.torch",
                                   "import weft.torch\nbackward('cpu')"])
@pytest.mark.skipif(torch.cuda.is_available(), reason="PyTorch with CUDA refuses gradients in forked processes by itself")
def test_gradients_on_the_device_in_a_process_that_is_forked(begin):
    code = FORKS + begin + """
def work():
    import weft.torch
    return backward("cpu"), backward("weft"), backward("cpu")
in_child(work)
in_child(lambda: in_child(work))
print(work())
"""
    right = "([2.0, 2.0, 2.0], [2.0, 2.0, 2.0], [2.0, 2.0, 2.0])"
    assert run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == f"{right}\n{right}\nNone\n{right}"


def test_tensors_without_values_have_gradients_first():
    code = """
from torch._subclasses import FakeTensorMode
x = torch.ones(3, requires_grad=True)
(x * 2).sum().backward()
with FakeTensorMode():
    y = torch.ones(3, device="weft", requires_grad=True)
    (y * 2).sum().backward()
    print(tuple(y.grad.shape))
z = torch.ones(3, requires_grad=True)
with torch.no_grad():
    w = torch.ones((), device="weft").requires_grad_()
    w.backward()
print(w.grad.item())
"""
    assert run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="1") == "(3,)\n1.0"
