"""Programs of the scheduler's benchmark, in one engine: builds the graph, schedules it, runs nothing.

    python schedule_programs.py weft|tinygrad PROGRAM N REPEATS SECONDS
    python schedule_programs.py weft|tinygrad lazy COUNT REPEATS SECONDS

Prints one JSON object: CPU seconds of each repeat, and the number of kernels. Every repeat builds the graph anew
and finds the engine's caches empty; there are REPEATS of them, or as many as fit into SECONDS, and one at least.
"""
import gc
import json
import math
import os
import sys
import time


class Weft:
    def __init__(self):
        import weft
        self.Tensor, self.clear_caches = weft.Tensor, weft._core.clear_schedule_cache

    def memory(self, *shape, dtype="float32"):
        return self.Tensor.empty(*shape, dtype=dtype).realize()

    def schedule(self, tensor):
        return tensor.kernel_count()

    def compile(self, tensor):
        return len(tensor.schedule())

    def convolution(self, x, weight, stride=1):
        out, c, kh, kw = weight.shape
        border = (kh // 2, kh // 2)
        windows = x.pad(((0, 0), (0, 0), border, border)).unfold(2, kh, stride).unfold(3, kw, stride)
        n, _, h, w = windows.shape[:4]
        return (windows.reshape(n, 1, c, h, w, kh, kw) * weight.reshape(1, out, c, 1, 1, kh, kw)).sum(axis=(2, 5, 6))

    def max_pool(self, x):
        return x.pad(((0, 0), (0, 0), (1, 1), (1, 1)), value=-math.inf).unfold(2, 3, 2).unfold(3, 3, 2).max(axis=(4, 5))


class Tinygrad:
    def __init__(self):
        import tinygrad
        from tinygrad.schedule import indexing
        from tinygrad.uop import divandmod
        self.Tensor, self.dtypes = tinygrad.Tensor, tinygrad.dtypes
        self.caches = indexing._apply_reshape, indexing.apply_movement_op, divandmod.fold_divmod_general

    def clear_caches(self):
        for cache in self.caches:
            cache.cache_clear()

    def memory(self, *shape, dtype="float32"):
        return self.Tensor.empty(*shape, dtype=getattr(self.dtypes, dtype)).realize()

    def schedule(self, tensor):
        return len(tensor.schedule_linear().src)

    def compile(self, tensor):
        from tinygrad.engine.realize import compile_linear
        return len(compile_linear(tensor.schedule_linear()).src)

    def convolution(self, x, weight, stride=1):
        return x.conv2d(weight, stride=stride, padding=weight.shape[-1] // 2)

    def max_pool(self, x):
        return x.max_pool2d(kernel_size=(3, 3), stride=2, padding=1)


def setitem(engine):
    def build(n):
        a = engine.Tensor.empty(n)
        for i in range(n):
            a[i] = i
        return a
    return build


def gpt2(engine):
    """GPT-2-small's forward of 1x128 tokens; n layers."""
    batch, tokens, width, heads, vocabulary = 1, 128, 768, 12, 50257
    memory, arange = engine.memory, engine.Tensor.arange
    token_table, place_table = memory(vocabulary, width), memory(1024, width)
    layers = [{"norm1": (memory(width), memory(width)), "qkv": (memory(width, 3*width), memory(3*width)),
               "out": (memory(width, width), memory(width)), "norm2": (memory(width), memory(width)),
               "up": (memory(width, 4*width), memory(4*width)), "down": (memory(4*width, width), memory(width))}
              for _ in range(12)]
    last_norm = memory(width), memory(width)
    ids = memory(batch, tokens, dtype="int32")

    def linear(x, p):
        return x.matmul(p[0]) + p[1]

    def norm(x, p):
        return x.layernorm(eps=1e-5) * p[0] + p[1]

    def gelu(x):
        return x * 0.5 * (1 + ((x + x*x*x * 0.044715) * math.sqrt(2 / math.pi)).tanh())

    def split(qkv, i):
        return qkv[:, :, i*width:(i+1)*width].reshape(batch, tokens, heads, width // heads).transpose(1, 2)

    def build(n):
        is_token = arange(vocabulary).reshape(1, 1, vocabulary, 1) == ids.reshape(batch, tokens, 1, 1)
        x = is_token.where(token_table.reshape(1, 1, vocabulary, width), 0.0).sum(axis=2) + place_table[:tokens]
        is_later = arange(tokens).reshape(tokens, 1) < arange(tokens).reshape(1, tokens)
        for p in layers[:n]:
            qkv = linear(norm(x, p["norm1"]), p["qkv"])
            q, k, v = split(qkv, 0), split(qkv, 1), split(qkv, 2)
            scores = is_later.where(-math.inf, q.matmul(k.transpose(-1, -2)) * (1 / math.sqrt(width // heads)))
            heard = scores.softmax(-1).matmul(v).transpose(1, 2).reshape(batch, tokens, width)
            x = x + linear(heard, p["out"])
            x = x + linear(gelu(linear(norm(x, p["norm2"]), p["up"])), p["down"])
        return norm(x, last_norm).matmul(token_table.transpose())
    return build


def convolutions(engine):
    """n of 3x3, 16 channels, 16x16 images."""
    image, weights = engine.memory(1, 16, 16, 16), [engine.memory(16, 16, 3, 3) for _ in range(50)]

    def build(n):
        x = image
        for weight in weights[:n]:
            x = engine.convolution(x, weight).relu()
        return x
    return build


def resnet18(engine):
    """ResNet-18's forward of one image of 224x224, its norms as they are after training; n stages of four."""
    memory = engine.memory

    def layer(inputs, outputs, size):
        return memory(outputs, inputs, size, size), memory(outputs, 1, 1), memory(outputs, 1, 1)

    image, stem, stages = memory(1, 3, 224, 224), layer(3, 64, 7), []
    for inputs, outputs, stride in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)):
        shortcut = None if stride == 1 else layer(inputs, outputs, 1)
        stages.append(((layer(inputs, outputs, 3), layer(outputs, outputs, 3), shortcut, stride),
                       (layer(outputs, outputs, 3), layer(outputs, outputs, 3), None, 1)))
    classes = [(memory(width, 1000), memory(1000)) for width in (64, 128, 256, 512)]

    def apply(x, p, stride=1):
        return engine.convolution(x, p[0], stride) * p[1] + p[2]

    def build(n):
        x = engine.max_pool(apply(image, stem, 2).relu())
        for stage in stages[:n]:
            for first, second, shortcut, stride in stage:
                straight = x if shortcut is None else apply(x, shortcut, stride)
                x = (apply(apply(x, first, stride).relu(), second) + straight).relu()
        weight, bias = classes[n - 1]
        return x.mean(axis=(2, 3)).matmul(weight) + bias
    return build


def chain(engine):
    x = engine.memory(16)

    def build(n):
        y = x
        for _ in range(n):
            y = y + 1
        return y
    return build


def irregular_chain(engine):
    """Sums and products with one of ten tensors, by random numbers: no part of it repeats."""
    tensors = [engine.memory(16) for _ in range(10)]

    def build(n):
        y, state = tensors[0], 42
        for _ in range(n):
            state = (state * 1103515245 + 12345) % 2**31
            other = tensors[(state >> 16) % 10]
            y = y * other if state >> 30 else y + other
        return y
    return build


def tree(engine):
    """A balanced product of sums, each with its own number: n ops."""
    x = engine.memory(16)

    def build(n):
        level = [x + float(i) for i in range((n + 1) // 2)]
        while len(level) > 1:
            odd = level[len(level) & ~1:]
            level = [a * b for a, b in zip(level[::2], level[1::2])] + odd
        return level[0]
    return build


# The size of the run before the first repeat, which sets up what an engine makes once.
PROGRAMS = {"setitem": (setitem, 10), "gpt2": (gpt2, 1), "convolutions": (convolutions, 2), "resnet18": (resnet18, 1),
            "chain": (chain, 10), "irregular_chain": (irregular_chain, 10), "tree": (tree, 10)}


class Repeats:
    """`for _ in Repeats(5, 20.0)`: 5 times, fewer when 20 s have passed."""

    def __init__(self, most, seconds):
        self.most, self.seconds = most, seconds

    def __iter__(self):
        start = time.monotonic()
        for i in range(self.most):
            if i > 0 and time.monotonic() - start > self.seconds:
                return
            yield i


def measure(engine, program, n, repeats):
    make, small = PROGRAMS[program]
    build = make(engine)
    engine.schedule(build(small))
    build_s, schedule_s, kernels = [], [], 0
    for _ in repeats:
        gc.collect()
        engine.clear_caches()
        start = time.process_time()
        tensor = build(n)
        built = time.process_time()
        kernels = engine.schedule(tensor)
        schedule_s.append(time.process_time() - built)
        build_s.append(built - start)
        del tensor
    return {"build_s": build_s, "schedule_s": schedule_s, "kernels": kernels}


def lazy(engine, count, repeats):
    """Seconds of `a + b`, the results kept and dropped."""
    a, b = engine.memory(4), engine.memory(4)
    kept_s, dropped_s = [], []
    for _ in repeats:
        live = [None] * count
        start = time.process_time()
        for i in range(count):
            live[i] = a + b
        kept_s.append((time.process_time() - start) / count)
        del live
        start = time.process_time()
        for i in range(count):
            a + b
        dropped_s.append((time.process_time() - start) / count)
    return {"kept_s": kept_s, "dropped_s": dropped_s}


def main():
    os.environ.update(WEFT_DEVICE="NULL", DEV="NULL", SCACHE="0")  # SCACHE=0: tinygrad's schedules are not kept
    program, n, repeats = sys.argv[2], int(sys.argv[3]), Repeats(int(sys.argv[4]), float(sys.argv[5]))
    engine = Weft() if sys.argv[1] == "weft" else Tinygrad()
    gc.disable()  # the kinder setting for tinygrad, which makes more objects
    result = lazy(engine, n, repeats) if program == "lazy" else measure(engine, program, n, repeats)
    print(json.dumps(result))
    sys.stdout.flush()
    os._exit(0)  # taking a large graph apart is not measured


if __name__ == "__main__":
    main()
