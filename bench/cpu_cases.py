"""The cases of the CPU benchmark, in one library: a process that is told what to do line by line.

    python cpu_cases.py LIBRARY FOLDER

It reads one JSON object a line and answers with one: {"prepare": CASE} makes the inputs, runs the case and leaves its
result in FOLDER/LIBRARY.npy; {"time": SECONDS} runs the case for so long and gives the least time of a run; an answer
{"error": ...} says what was in the way. Every run makes a fresh result and waits for it.
"""
import json
import math
import pathlib
import sys
import time

import numpy as np

TOKENS, WIDTH = 1024, 64  # of attention


class Case:
    """shapes: of its inputs, normal random numbers. mark: the speed asked of weft, relative to the fastest of the
    others. bound: of the error, relative to the largest magnitude of the reference. flops: 0 where memory sets the
    time."""

    def __init__(self, title, shapes, mark, bound, reference, flops=0):
        self.title, self.shapes, self.mark, self.bound = title, shapes, mark, bound
        self.reference, self.flops = reference, flops

    def inputs(self):
        random = np.random.default_rng(7)
        return [random.standard_normal(shape, dtype=np.float32) for shape in self.shapes]


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layernorm(x, weight, bias):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5) * weight + bias


def attention(q, k, v):
    return softmax(q @ k.swapaxes(-1, -2) * (1 / math.sqrt(WIDTH))) @ v


def convolution(x, weight):
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.tensordot(windows, weight, axes=((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)


CASES = {
    "chain": Case("sin/exp chain, 16M", [(1 << 24,)], 3.0, 1e-6, lambda x: np.exp(np.sin(x) * 2 + 1) * 0.5 + x),
    "sum": Case("sum of 16M", [(1 << 24,)], 0.9, 1e-4, lambda x: x.sum()),  # terms cancel: their sum is some 4,000
    "softmax": Case("softmax 4096x4096", [(4096, 4096)], 1.5, 1e-5, softmax),
    "layernorm": Case("layernorm 8192x2048", [(8192, 2048), (2048,), (2048,)], 1.2, 1e-5, layernorm),
    "transpose": Case("transpose 4096x4096", [(4096, 4096)], 1.0, 0, lambda x: x.T),
    "matmul": Case("matmul 1024", [(1024, 1024)] * 2, 0.85, 1e-5, np.matmul, 2 * 1024**3),
    "matmul2048": Case("matmul 2048", [(2048, 2048)] * 2, 0.85, 1e-5, np.matmul, 2 * 2048**3),
    "vector": Case("matrix-vector 4096", [(4096, 4096), (4096,)], 0.9, 1e-5, np.matmul),
    "attention": Case("attention 12x1024x64", [(12, TOKENS, WIDTH)] * 3, 0.6, 1e-5, attention,
                      4 * 12 * TOKENS**2 * WIDTH),
    "convolution": Case("conv 8x64x56x56, 3x3", [(8, 64, 56, 56), (64, 64, 3, 3)], 0.6, 1e-5, convolution,
                        2 * 8 * 64 * 56 * 56 * 64 * 9),
}


class Numpy:
    def __init__(self):
        self.functions = {name: case.reference for name, case in CASES.items()}
        self.functions["transpose"] = lambda x: np.ascontiguousarray(x.T)

    def array(self, x):
        return x

    def function(self, name):
        return self.functions[name]

    def wait(self, result):
        pass

    def numpy(self, result):
        return np.asarray(result)


class Torch(Numpy):
    def __init__(self):
        import torch
        from torch.nn import functional as F
        self.torch = torch
        torch.set_grad_enabled(False)
        self.functions = {
            "chain": lambda x: torch.exp(torch.sin(x) * 2 + 1) * 0.5 + x, "sum": torch.sum,
            "softmax": lambda x: F.softmax(x, -1),
            "layernorm": lambda x, w, b: F.layer_norm(x, w.shape, w, b, 1e-5),
            "transpose": lambda x: x.T.contiguous(), "matmul": torch.matmul, "matmul2048": torch.matmul,
            "vector": torch.matmul, "attention": self.attention,
            "convolution": lambda x, w: F.conv2d(x, w, padding=1)}

    def attention(self, q, k, v):
        one_batch = (x.unsqueeze(0) for x in (q, k, v))
        return self.torch.nn.functional.scaled_dot_product_attention(*one_batch).squeeze(0)

    def array(self, x):
        return self.torch.from_numpy(x)


class TorchCompiled(Torch):
    def function(self, name):
        self.torch._dynamo.reset()
        return self.torch.compile(self.functions[name], dynamic=False)


class Jax(Numpy):
    def __init__(self):
        import jax
        from jax import numpy as jnp
        self.jax = jax

        def norm(x, weight, bias):
            centred = x - x.mean(axis=-1, keepdims=True)
            return centred * jax.lax.rsqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5) * weight + bias

        def attend(q, k, v):
            return jax.nn.softmax(q @ k.swapaxes(-1, -2) * (1 / math.sqrt(WIDTH))) @ v

        self.functions = {
            "chain": lambda x: jnp.exp(jnp.sin(x) * 2 + 1) * 0.5 + x, "sum": jnp.sum,
            "softmax": jax.nn.softmax, "layernorm": norm,
            "transpose": lambda x: x.T, "matmul": jnp.matmul, "matmul2048": jnp.matmul, "vector": jnp.matmul,
            "attention": attend, "convolution": lambda x, w: jax.lax.conv(x, w, (1, 1), "SAME")}

    def array(self, x):
        return self.jax.numpy.asarray(x)

    def function(self, name):
        return self.jax.jit(self.functions[name])

    def wait(self, result):
        result.block_until_ready()


class Tinygrad(Numpy):
    def __init__(self):
        import tinygrad
        self.Tensor, self.jit, self.device = tinygrad.Tensor, tinygrad.TinyJit, tinygrad.Device["CPU"]
        self.functions = {
            "chain": lambda x: (x.sin() * 2 + 1).exp() * 0.5 + x, "sum": lambda x: x.sum(),
            "softmax": lambda x: x.softmax(-1),
            "layernorm": lambda x, w, b: x.layernorm(eps=1e-5) * w + b, "transpose": lambda x: x.T.contiguous(),
            "matmul": lambda x, y: x.matmul(y), "matmul2048": lambda x, y: x.matmul(y),
            "vector": lambda x, y: x.matmul(y), "attention": lambda q, k, v: q.scaled_dot_product_attention(k, v),
            "convolution": lambda x, w: x.conv2d(w, padding=1)}

    def array(self, x):
        return self.Tensor(x).realize()

    def function(self, name):
        jitted = self.jit(lambda *inputs: self.functions[name](*inputs).realize())

        def call(*inputs):
            return jitted(*inputs)
        return call

    def wait(self, result):
        self.device.synchronize()

    def numpy(self, result):
        return result.numpy()


class Weft(Numpy):
    def __init__(self):
        import weft
        self.Tensor, self.forget = weft.Tensor, weft._core.clear_schedule_cache
        self.functions = {
            "chain": lambda x: (x.sin() * 2 + 1).exp() * 0.5 + x, "sum": lambda x: x.sum(),
            "softmax": lambda x: x.softmax(-1),
            "layernorm": lambda x, w, b: x.layernorm(eps=1e-5) * w + b, "transpose": lambda x: x.T.contiguous(),
            "matmul": lambda x, y: x.matmul(y), "matmul2048": lambda x, y: x.matmul(y),
            "vector": lambda x, y: x.matmul(y), "attention": self.attention, "convolution": self.convolution}

    def attention(self, q, k, v):
        return (q.matmul(k.transpose(-1, -2)) * (1 / math.sqrt(WIDTH))).softmax(-1).matmul(v)

    def convolution(self, x, weight):
        n, c, h, w = x.shape
        out, _, kh, kw = weight.shape
        windows = x.pad(((0, 0), (0, 0), (1, 1), (1, 1))).unfold(2, kh, 1).unfold(3, kw, 1)
        return (windows.reshape(n, 1, c, h, w, kh, kw) * weight.reshape(1, out, c, 1, 1, kh, kw)).sum(axis=(2, 5, 6))

    def array(self, x):
        return self.Tensor(x).realize()

    def function(self, name):
        self.forget()  # a case is a program of its own: the sizes of the one before it are no sizes that vary
        return lambda *inputs: self.functions[name](*inputs).realize()

    def numpy(self, result):
        return result.numpy()


LIBRARIES = {"numpy": Numpy, "torch": Torch, "torch.compile": TorchCompiled, "jax": Jax, "tinygrad": Tinygrad,
             "weft": Weft, "weft C": Weft}


class Worker:
    def __init__(self, library, folder):
        self.engine, self.file = LIBRARIES[library](), pathlib.Path(folder) / f"{library}.npy"
        self.run, self.arrays = None, []

    def prepare(self, name):
        self.run, self.arrays = None, []
        arrays = [self.engine.array(x) for x in CASES[name].inputs()]
        function = self.engine.function(name)
        for _ in range(3):  # TinyJit runs, captures, replays
            result = function(*arrays)
            self.engine.wait(result)
        np.save(self.file, self.engine.numpy(result))

        def run():
            self.engine.wait(function(*arrays))
        self.run, self.arrays = run, arrays
        return {"ready": name}

    def time(self, seconds):
        least, runs, end = math.inf, 0, time.perf_counter() + seconds
        while runs < 3 or time.perf_counter() < end:
            start = time.perf_counter()
            self.run()
            least = min(least, time.perf_counter() - start)
            runs += 1
        return {"least": least, "runs": runs}


def main():
    answers, worker = sys.stdout, None
    sys.stdout = sys.stderr  # what a library prints is no answer
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if worker is None:
                worker = Worker(*sys.argv[1:])
            answer = worker.prepare(command["prepare"]) if "prepare" in command else worker.time(command["time"])
        except Exception as error:  # whatever a library raises is its answer
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
