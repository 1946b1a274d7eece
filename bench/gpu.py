"""`make bench BENCH_ARGS=gpu`: kernels on a GPU, checked and measured.

    gpu.py [--device CUDA] [--shrink N] [--only NAME ...] [--alone] [--seconds S]

Every case is checked against a float64 reference before it is measured (whole rows of it, where the whole would
take long). A time is that of one call in a batch of calls between two synchronisations, the best of several
batches. PyTorch (eager and compiled), JAX and tinygrad do the same work where they are importable and find the
GPU; --alone leaves them out. --shrink N divides every size by N: for looking at the script, not at figures.
"""
import argparse
import importlib
import math
import time

import numpy as np

import weft
from weft import Device, Tensor, dtypes

ROWS_CHECKED = 64
CHAIN = 100


class Case:
    """Work to do: inputs, the same function for each library, and the reference."""

    def __init__(self, name, inputs, functions, reference, tolerance, *, moved=0, flops=0, calls=1):
        self.name, self.inputs, self.functions, self.reference = name, inputs, functions, reference
        self.tolerance = tolerance
        self.moved, self.flops = moved, flops  # bytes and operations of a call
        self.calls = calls  # kernels that follow each other in it


def bfloat16(x):
    """float32 rounded to bfloat16, as float32."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def some_rows(count):
    return np.unique(np.linspace(0, count - 1, ROWS_CHECKED).astype(np.int64))


def cases(shrink):
    rng = np.random.default_rng(1)

    def normal(*shape):
        return rng.random(shape, np.float32) * 4 - 2

    def near_identity(n):
        return np.eye(n, dtype=np.float32) + normal(n, n) / 512

    def size(n):
        return max(n // shrink, 64)

    n = (1 << 28) // shrink
    rows, columns = size(16384), size(8192)
    norm_rows, norm_columns = size(32768), size(4096)
    side, half_side, single_side = size(16384), size(8192), size(4096)
    epsilon = 1e-5

    def chain(x):
        a, b = x[0][:1 << 20].astype(np.float64), x[1][:1 << 20].astype(np.float64)
        return (slice(0, 1 << 20),), np.maximum(np.sin(a) * np.exp(-b) + a, 0)

    def total(x):
        return (), np.sum(x[0], dtype=np.float64)

    def softmax(x):
        at = some_rows(rows)
        e = np.exp(x[0][at].astype(np.float64) - x[0][at].max(1, keepdims=True))
        return (at,), e / e.sum(1, keepdims=True)

    def rmsnorm(x):
        at = some_rows(norm_rows)
        v = x[0][at].astype(np.float64)
        return (at,), v / np.sqrt((v * v).mean(1, keepdims=True) + epsilon) * x[1]

    def transposed(x):
        at = some_rows(side)
        return (at,), x[0][:, at].T

    def product(x):
        at = some_rows(len(x[0]))
        return (at,), x[0][at].astype(np.float64) @ x[1].astype(np.float64)

    def steps(x):
        v, m = x[0].astype(np.float64), x[1].astype(np.float64)
        for _ in range(CHAIN):
            v = m @ v
        return (), v

    def weft_rmsnorm(x, w):
        v = x.cast(dtypes.float32)
        return (v * (v.square().mean(-1, keepdim=True) + epsilon).rsqrt()).cast(dtypes.bfloat16) * w

    def torch_rmsnorm(t):
        def function(x, w):
            v = x.float()
            return (v * (v.square().mean(-1, keepdim=True) + epsilon).rsqrt()).to(t.bfloat16) * w
        return function

    def jax_rmsnorm(j):
        def function(x, w):
            v = x.astype(j.numpy.float32)
            scale = j.lax.rsqrt((v * v).mean(-1, keepdims=True) + epsilon)
            return (v * scale).astype(j.numpy.bfloat16) * w
        return function

    def products(x, m):  # no two in one kernel
        for _ in range(CHAIN):
            x = m @ x
        return x

    # name, inputs, {library: function}, reference, tolerance, bytes, operations
    yield Case(f"sin/exp chain of {n / 2**20:g}M float32", lambda: [normal(n), normal(n)],
               {"weft": lambda a, b: (a.sin() * (-b).exp() + a).relu(),
                "torch": lambda t: lambda a, b: t.relu(a.sin() * (-b).exp() + a),
                "jax": lambda j: lambda a, b: j.nn.relu(j.numpy.sin(a) * j.numpy.exp(-b) + a)},
               chain, 1e-5, moved=3 * 4 * n)
    yield Case(f"sum of {n / 2**20:g}M float32", lambda: [rng.random(n, np.float32)],
               {"weft": lambda a: a.sum(), "torch": lambda t: lambda a: a.sum(), "jax": lambda j: lambda a: a.sum()},
               total, 1e-5, moved=4 * n)
    yield Case(f"softmax {rows}x{columns} bfloat16", lambda: [bfloat16(normal(rows, columns))],
               {"weft": lambda x: x.softmax(-1), "torch": lambda t: lambda x: t.softmax(x, -1),
                "jax": lambda j: lambda x: j.nn.softmax(x.astype(j.numpy.float32), -1).astype(j.numpy.bfloat16)},
               softmax, 1e-2, moved=4 * rows * columns)
    yield Case(f"rmsnorm {norm_rows}x{norm_columns} bfloat16",
               lambda: [bfloat16(normal(norm_rows, norm_columns)), bfloat16(normal(norm_columns))],
               {"weft": weft_rmsnorm, "torch": torch_rmsnorm, "jax": jax_rmsnorm},
               rmsnorm, 2e-2, moved=4 * norm_rows * norm_columns)
    yield Case(f"transpose {side} float32", lambda: [normal(side, side)],
               {"weft": lambda x: x.transpose(0, 1).contiguous(),
                "torch": lambda t: lambda x: x.t().contiguous(),
                "torch.compile": lambda t: lambda x: x.t().clone(memory_format=t.contiguous_format),
                "jax": lambda j: lambda x: x.T},
               transposed, 0, moved=8 * side * side)
    yield Case(f"matmul {half_side} bfloat16",
               lambda: [bfloat16(normal(half_side, half_side)), bfloat16(normal(half_side, half_side))],
               {"weft": lambda a, b: a @ b, "torch": lambda t: lambda a, b: a @ b, "jax": lambda j: lambda a, b: a @ b},
               product, 2e-2, flops=2 * half_side**3)
    yield Case(f"matmul {single_side} float32",
               lambda: [normal(single_side, single_side), normal(single_side, single_side)],
               {"weft": lambda a, b: a @ b, "torch": lambda t: lambda a, b: a @ b,
                "jax": lambda j: lambda a, b: j.numpy.matmul(a, b, precision=j.lax.Precision.HIGHEST)},
               product, 1e-4, flops=2 * single_side**3)
    yield Case(f"{CHAIN} dependent tiny kernels", lambda: [normal(16), near_identity(16)],
               {"weft": products, "torch": lambda t: products, "jax": lambda j: products}, steps, 1e-4, calls=CHAIN)


def is_narrow(case):
    return "bfloat16" in case.name


# ---- libraries: each gives (arrays of inputs, a function of them, a wait, a way back to NumPy)

def use_weft(case, arrays, device):
    kind = dtypes.bfloat16 if is_narrow(case) else dtypes.float32
    inputs = [Tensor(a, device=device).cast(kind).realize() for a in arrays]
    function = weft.jit(case.functions["weft"])
    return inputs, function, lambda: Device.synchronize(device), lambda r: r.cast(dtypes.float32).numpy()


def use_torch(case, arrays, _, compiled=False):
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        raise ImportError
    torch.backends.cuda.matmul.allow_tf32 = False
    kind = torch.bfloat16 if is_narrow(case) else torch.float32
    inputs = [torch.from_numpy(a).to("cuda").to(kind) for a in arrays]
    make = case.functions.get("torch.compile", case.functions["torch"]) if compiled else case.functions["torch"]
    function = make(torch)
    if case.calls > 1 and not compiled:  # as a CUDA graph: what jit is
        function = torch_graph(torch, function, inputs)
    elif compiled:
        function = torch.compile(function)
    return inputs, function, torch.cuda.synchronize, lambda r: r.float().cpu().numpy()


def torch_graph(torch, function, inputs):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        function(*inputs)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function(*inputs)

    def replay(*_):
        graph.replay()
        return result
    return replay


def use_compiled_torch(case, arrays, device):
    if case.calls > 1:
        raise ImportError  # it fuses them to one
    return use_torch(case, arrays, device, compiled=True)


def use_jax(case, arrays, _):
    jax = importlib.import_module("jax")
    if jax.default_backend() != "gpu" or "jax" not in case.functions:
        raise ImportError
    kind = jax.numpy.bfloat16 if is_narrow(case) else jax.numpy.float32
    inputs = [jax.numpy.asarray(a).astype(kind) for a in arrays]
    last = []

    def function(*x, jitted=jax.jit(case.functions["jax"](jax))):
        last[:] = [jitted(*x)]
        return last[0]
    return inputs, function, lambda: last and last[0].block_until_ready(), \
        lambda r: np.asarray(r.astype(jax.numpy.float32))


def use_tinygrad(case, arrays, _):
    tinygrad = importlib.import_module("tinygrad")
    if tinygrad.Device.DEFAULT not in ("CUDA", "NV"):
        raise ImportError
    kind = tinygrad.dtypes.bfloat16 if is_narrow(case) else tinygrad.dtypes.float32
    inputs = [tinygrad.Tensor(a).cast(kind).realize() for a in arrays]
    return inputs, tinygrad.TinyJit(lambda *x: tiny_function(case, tinygrad)(*x).realize()), \
        lambda: tinygrad.Device[tinygrad.Device.DEFAULT].synchronize(), \
        lambda r: r.cast(tinygrad.dtypes.float32).numpy()


def tiny_function(case, tinygrad):
    if "rmsnorm" not in case.name:
        return case.functions["weft"]

    def rmsnorm(x, w):
        v = x.cast(tinygrad.dtypes.float32)
        return (v * (v.square().mean(-1, keepdim=True) + 1e-5).rsqrt()).cast(tinygrad.dtypes.bfloat16) * w
    return rmsnorm


OTHERS = {"torch": use_torch, "compiled": use_compiled_torch, "jax": use_jax, "tinygrad": use_tinygrad}


# ---- checks, times, the table

def check(case, arrays, result):
    at, expected = case.reference(arrays)
    found = result[at].astype(np.float64)
    difference = np.abs(found - expected).max()
    scale = np.abs(expected).max()
    if not difference <= case.tolerance * scale:
        raise SystemExit(f"{case.name}: off by {difference:g}, where values are up to {scale:g}")


def best_time(function, inputs, wait, seconds):
    for _ in range(4):  # captured, compiled, warm
        function(*inputs)
    wait()
    begin = time.perf_counter()
    function(*inputs)
    wait()
    once = time.perf_counter() - begin
    batch = max(1, min(200, math.ceil(0.05 / max(once, 1e-6))))
    best, end = math.inf, time.perf_counter() + seconds
    while True:
        begin = time.perf_counter()
        for _ in range(batch):
            function(*inputs)
        wait()
        now = time.perf_counter()
        best = min(best, (now - begin) / batch)
        if now > end:
            return best


def measure(use, case, arrays, options):
    inputs, function, wait, back = use(case, arrays, options.device)
    check(case, arrays, back(function(*inputs)))
    return best_time(function, inputs, wait, options.seconds)


def rate(case, seconds):
    if case.flops:
        return f"{case.flops / seconds / 1e12:8.1f} TFLOP/s"
    if case.moved:
        return f"{case.moved / seconds / 1e12:8.2f} TB/s   "
    return f"{seconds / case.calls * 1e6:8.2f} us each"


def line(case, options):
    arrays = case.inputs()
    ours = measure(use_weft, case, arrays, options)
    text = f"{case.name:<36}{ours * 1e3:>10.3f} ms {rate(case, ours):<18}"
    for name, use in ({} if options.alone else OTHERS).items():
        try:
            theirs = measure(use, case, arrays, options)
        except ImportError:
            text += f"{'-':>20}"
            continue
        except Exception as error:  # of another library: no reason not to go on
            text += f"{type(error).__name__[:19]:>20}"
            continue
        text += f"{theirs * 1e3:>12.3f} {'x':>1}{theirs / ours:>6.2f}"
    print(text, flush=True)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="CUDA")
    parser.add_argument("--shrink", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args(arguments)
    entry = next((e for e in Device.all() if e.name == options.device), None)
    if entry is None or entry.missing:
        print(f"gpu: there is no device {options.device}{': ' + entry.missing if entry else ''}")
        return
    print(f"{options.device}: {entry.description}")
    others = "" if options.alone else "".join(f"{name + ' ms':>15}{'ratio':>5}" for name in OTHERS)
    print(f"{'':<36}{'weft':>13} {'':<18}{others}   (a ratio above 1: weft is faster)")
    for case in cases(options.shrink):
        if not options.only or any(word in case.name for word in options.only):
            line(case, options)


if __name__ == "__main__":
    main()
