"""Loops of reads and writes that bench/loops.py measures, each a function of a library and a size.

A row gives what is to be read in the end, and how many statements it ran. `x` is Weft or Torch: the same text runs on
both. Data that a row begins with is in memory.
"""
import random


class Weft:
    name = "weft"

    def __init__(self):
        import weft
        self.Tensor = weft.Tensor

    def data(self, *shape, dtype="float32", seed=0, grad=False):
        made = self.Tensor(array(shape, dtype, seed)).realize()
        return made.requires_grad_() if grad else made

    def zeros(self, *shape, dtype="float32"):
        return self.Tensor.zeros(*shape, dtype=dtype).realize()

    def ones(self, *shape, dtype="float32"):
        return self.Tensor.ones(*shape, dtype=dtype).realize()

    def ints(self, numbers):
        return self.Tensor(numbers).realize()

    def minimum(self, a, b):
        return a.minimum(b)

    def maximum(self, a, b):
        return a.maximum(b)

    def where(self, condition, a, b):
        return self.Tensor.where(condition, a, b)

    def copy(self, a):
        return a.clone()

    def gradient(self, loss, leaf):
        return loss.gradient(leaf)[0]

    def read(self, outputs):
        outputs[0].realize(*outputs[1:])


class Torch:
    def __init__(self, device):
        import torch
        if device == "weft":
            import weft.torch  # noqa: F401
        self.torch, self.device, self.name = torch, device, f"torch {device}"

    def kind(self, dtype):
        return getattr(self.torch, dtype)

    def data(self, *shape, dtype="float32", seed=0, grad=False):
        made = self.torch.from_numpy(array(shape, dtype, seed)).to(self.device)
        return made.requires_grad_() if grad else made

    def zeros(self, *shape, dtype="float32"):
        return self.torch.zeros(*shape, dtype=self.kind(dtype), device=self.device)

    def ones(self, *shape, dtype="float32"):
        return self.torch.ones(*shape, dtype=self.kind(dtype), device=self.device)

    def ints(self, numbers):
        return self.torch.tensor(numbers, device=self.device)

    def minimum(self, a, b):
        return self.torch.minimum(a, b)

    def maximum(self, a, b):
        return self.torch.maximum(a, b)

    def where(self, condition, a, b):
        return self.torch.where(condition, a, b)

    def copy(self, a):
        return a.clone()

    def gradient(self, loss, leaf):
        return self.torch.autograd.grad(loss, leaf)[0]

    def read(self, outputs):
        for output in outputs:
            output.detach().cpu()


def array(shape, dtype, seed):
    import numpy as np
    chance = np.random.default_rng(seed)
    if dtype.startswith("int"):
        return chance.integers(0, 100, shape).astype(dtype)
    return chance.random(shape).astype(dtype)


def permutation(n, seed=1):
    order = list(range(n))
    random.Random(seed).shuffle(order)
    return order


# ------------------------------------------------------------------------------------------- of any promise


def bubble_sort(x, n):
    size = int((2 * n) ** 0.5) + 1
    b, count = x.data(size), 0
    for end in range(size - 1, 0, -1):
        for j in range(end):
            b[j], b[j + 1] = x.minimum(b[j], b[j + 1]), x.maximum(b[j], b[j + 1])
            count += 2
    return [b], count


def sin_or_cos(x, n):
    b, c = x.zeros(n), x.data(n)
    for i in range(n):
        b[i] = c[i].sin() if i % 2 else c[i].cos()
    return [b], n


def paths(x, n):
    side = int(n ** 0.5)
    b = x.ones(side, side)
    for i in range(1, side):
        for j in range(1, side):
            b[i, j] = b[i - 1, j] + b[i, j - 1]
    return [b], (side - 1) ** 2


def smoothing(x, n):
    b, c, s = x.zeros(n), x.data(n), x.zeros(1)
    for i in range(n):
        s = s * .5 + c[i]
        b[i] = s[0]
    return [b], 2 * n


def running_sum(x, n):
    b, c, add = x.zeros(n), x.data(n), x.zeros(1)
    for i in range(n):
        add += c[i]
        b[i] = add[0]
    return [b], 2 * n


def random_blocks(x, n):
    chance, b = random.Random(3), x.zeros(64, 64)
    for i in range(n):
        top, left = chance.randrange(60), chance.randrange(60)
        b[top:top + chance.randint(1, 4), left:left + chance.randint(1, 4)] = i
    return [b], n


def sign_by_parity(x, n):
    b, c = x.zeros(n), x.data(n)
    for i in range(n):
        b[i] = c[i] if i % 2 else -c[i]
    return [b], n


def swap_ends(x, n):
    b = x.data(2 * n)
    for i in range(n):
        last = x.copy(b[2 * n - 1 - i])
        b[2 * n - 1 - i] = x.copy(b[i])
        b[i] = last
    return [b], 2 * n


def two_writes(x, n):
    b, c = x.zeros(2 * n), x.data(n)
    for i in range(n):
        b[2 * i] = c[i]
        b[2 * i + 1] = 2 * c[i]
    return [b], 2 * n


def mean_of_two(x, n):
    b = x.ones(n)
    for i in range(2, n):
        b[i] = (b[i - 1] + b[i - 2]) * .5
    return [b], n - 2


def scatter_of_own(x, n):
    a, p = x.data(n), permutation(n)
    for i in range(n):
        a[p[i]] = a[i] + 1
    return [a], n


def add_by_list(x, n):
    b, p = x.data(n), permutation(n)
    for i in range(n):
        b[p[i]] += 1
    return [b], n


def index_tensor(x, n):
    b, p = x.data(n), x.ints(permutation(n))
    for i in range(n):
        b[p[i]] = i
    return [b], n


def lazy_sums(x, n):
    a, sums = x.zeros(n), []
    for i in range(n):
        a[i] = i * 1.5
        if i % (n // 40) == n // 40 - 1:
            sums.append(a.sum())
    return [*sums, a], n + 40


def gradient_of_random_writes(x, n):
    c, b, p = x.data(n, grad=True), x.zeros(n), permutation(n)
    for i in range(n):
        b[p[i]] = c[i] * 2
    return [x.gradient((b * b).sum(), c)], n


def gradient_of_recurrence(x, n):
    c, b = x.data(n, grad=True), x.zeros(n)
    for i in range(1, n):
        b[i] = b[i - 1] * .5 + c[i]
    return [x.gradient((b * b).sum(), c)], n


# ------------------------------------------------------------------------------------------------ beside those


def gauss_seidel(x, n):
    b = x.data(n)
    for i in range(1, n - 1):
        b[i] = (b[i - 1] + b[i + 1]) * .5
    return [b], n - 2


def biquad(x, n):
    c, y = x.data(n), x.zeros(n)
    for i in range(2, n):
        y[i] = c[i] * .2 + c[i - 1] * .3 + c[i - 2] * .2 - y[i - 1] * .4 - y[i - 2] * .1
    return [y], n - 2


def prefix_products(x, n):
    b, c = x.ones(n), x.data(n)
    for i in range(1, n):
        b[i] = b[i - 1] * (c[i] + .5)
    return [b], n - 1


def histogram(x, n):
    chance, b = random.Random(5), x.zeros(64, dtype="int32")
    for _ in range(n):
        b[chance.randrange(64)] += 1
    return [b], n


def cycle(x, n):
    b, p, at = x.zeros(n), permutation(n), 0
    for i in range(n):
        at = p[at]
        b[at] = i
    return [b], n


def triangle(x, n):
    side, count = int((2 * n) ** 0.5), 0
    b, c = x.zeros(side, side), x.data(side)
    for i in range(side):
        for j in range(i):
            b[i, j] = c[i] * c[j]
            count += 1
    return [b], count


def ping_pong(x, n):
    a, b = x.data(n), x.data(n, seed=2)
    for i in range(1, n):
        a[i] = b[i - 1] + 1
        b[i] = a[i] * .5
    return [a, b], 2 * n - 2


def red_black(x, n):
    b = x.data(1_001)
    for _ in range(n // 100):
        b[1:-1:2] = (b[:-2:2] + b[2::2]) * .5
        b[2:-2:2] = (b[1:-3:2] + b[3:-1:2]) * .5
    return [b], n // 100 * 2


def masked(x, n):
    b, c = x.zeros(n), x.data(n)
    for i in range(1, n):
        b[i] = x.where(c[i] > .5, b[i - 1], c[i])
    return [b], n - 1


def fibonacci(x, n):
    b = x.ones(n, dtype="int32")
    for i in range(2, n):
        b[i] = (b[i - 1] + b[i - 2]) % 9973
    return [b], n - 2


def sieve(x, n):
    b, count, is_prime = x.ones(n, dtype="int32"), 0, bytearray([1]) * n
    for i in range(2, int(n ** .5) + 1):
        if is_prime[i]:
            for j in range(i * i, n, i):
                is_prime[j] = 0
                b[j] = 0
                count += 1
    return [b], count


def matrix_vector(x, n):
    m, v, out = x.data(8, 8), x.data(8), x.zeros(n // 10, 8)
    for i in range(n // 10):
        v = (m * v).sum(1) * .2
        out[i] = v
    return [out], n // 10 * 2


def lu(x, n):
    size = 32 if n <= 10_000 else 100
    a = x.data(size, size) + 1
    for k in range(size):
        a[k, k] += size
    for k in range(size - 1):
        a[k + 1:, k] /= x.copy(a[k, k])
        a[k + 1:, k + 1:] -= x.copy(a[k + 1:, k:k + 1]) * x.copy(a[k:k + 1, k + 1:])
    return [a], 3 * size


def game_of_life(x, n):
    g = x.data(66, 66, dtype="int32") % 2
    for _ in range(n // 1_000):
        around = g[:-2, :-2] + g[:-2, 1:-1] + g[:-2, 2:] + g[1:-1, :-2] + g[1:-1, 2:] + g[2:, :-2] + g[2:, 1:-1] + g[2:, 2:]
        g[1:-1, 1:-1] = x.where((around == 3) | ((around == 2) & (g[1:-1, 1:-1] == 1)), 1, 0)
    return [g], n // 1_000


def edit_distance(x, n):
    side = int(n ** 0.5)
    d, cost = x.zeros(side, side), x.data(side, side)
    for i in range(1, side):
        for j in range(1, side):
            d[i, j] = x.minimum(x.minimum(d[i - 1, j] + 1, d[i, j - 1] + 1), d[i - 1, j - 1] + cost[i, j])
    return [d], (side - 1) ** 2


def knapsack(x, n):
    d, chance = x.zeros(1_000), random.Random(7)
    for i in range(n // 100):
        w = chance.randint(1, 50)
        d[w:] = x.maximum(d[w:], d[:-w] + float(i))
    return [d], n // 100


def rotation(x, n):
    out, u, v = x.zeros(n), x.data(), x.data(seed=2)
    for i in range(n):
        u, v = u * .8 - v * .6, u * .6 + v * .8
        out[i] = u
    return [out], 3 * n


def gather_by_list(x, n):
    b, c, p = x.zeros(n), x.data(n), permutation(n)
    for i in range(n):
        b[i] = c[p[i]] * 2
    return [b], n


def running_maximum(x, n):
    b, c = x.zeros(n), x.data(n)
    for i in range(1, n):
        b[i] = x.maximum(b[i - 1], c[i])
    return [b], n - 1


def transpose(x, n):
    side = int(n ** 0.5)
    b, c = x.zeros(side, side), x.data(side, side)
    for i in range(side):
        for j in range(side):
            b[j, i] = c[i, j] + 1
    return [b], side * side


def plain_writes(x, n):
    b, c = x.zeros(n), x.data(n)
    for i in range(n):
        b[i] = c[i] * 2
    return [b], n


def lazy_views(x, n):
    a, c, parts = x.zeros(n), x.data(n), []
    for i in range(1, n):
        a[i] = a[i - 1] * .5 + c[i]
        if i % (n // 20) == 0:
            parts.append(a[max(0, i - 10):i] * 2)
    return [*parts, a], n + 19


# Of the text, the program, and N; what `one by one` names is read so, all else together.
PROMISED = {
    "b[j], b[j+1] = minimum(...), maximum(...)": (bubble_sort, 10_000),
    "c[i].sin() if i % 2 else c[i].cos()": (sin_or_cos, 10_000),
    "b[i, j] = b[i-1, j] + b[i, j-1]": (paths, 10_000),
    "s = s*.5 + c[i]; b[i] = s[0]": (smoothing, 10_000),
    "add += c[i]; b[i] = add[0]": (running_sum, 10_000),
    "writes of random 2-D blocks": (random_blocks, 3_000),
    "c[i] if i % 2 else -c[i]": (sign_by_parity, 10_000),
    "swap of both ends": (swap_ends, 5_000),
    "b[2*i] = c[i]; b[2*i+1] = 2*c[i]": (two_writes, 10_000),
    "b[i] = (b[i-1] + b[i-2]) * .5": (mean_of_two, 10_000),
    "a[p[i]] = a[i] + 1": (scatter_of_own, 10_000),
    "b[p[i]] += 1": (add_by_list, 10_000),
    "x[i[k]] = k, i a tensor": (index_tensor, 1_000),
    "a[i] = i * 1.5, 40 sums on the way": (lazy_sums, 16_000),
    "gradient of writes at random places": (gradient_of_random_writes, 10_000),
    "gradient of a recurrence": (gradient_of_recurrence, 2_000),
}
OTHERS = {
    "b[i] = c[i] * 2": (plain_writes, 10_000),
    "b[i] = (b[i-1] + b[i+1]) * .5": (gauss_seidel, 10_000),
    "biquad filter": (biquad, 10_000),
    "prefix products": (prefix_products, 10_000),
    "histogram by Python's numbers": (histogram, 10_000),
    "along the cycles of a permutation": (cycle, 10_000),
    "b[i, j] = c[i] * c[j] for j < i": (triangle, 10_000),
    "a[i] = b[i-1] + 1; b[i] = a[i] * .5": (ping_pong, 10_000),
    "red and black sweeps of 1,000": (red_black, 10_000),
    "where(c[i] > .5, b[i-1], c[i])": (masked, 10_000),
    "Fibonacci modulo 9,973": (fibonacci, 10_000),
    "sieve of Eratosthenes": (sieve, 4_000),
    "v = m @ v * .2; out[i] = v": (matrix_vector, 10_000),
    "LU of 32x32, and of 100x100": (lu, 10_000),
    "game of life": (game_of_life, 10_000),
    "edit distance": (edit_distance, 10_000),
    "knapsack": (knapsack, 10_000),
    "u, v = rotated; out[i] = u": (rotation, 5_000),
    "b[i] = c[p[i]] * 2": (gather_by_list, 10_000),
    "b[i] = maximum(b[i-1], c[i])": (running_maximum, 10_000),
    "b[j, i] = c[i, j] + 1": (transpose, 10_000),
    "recurrence, 19 slices on the way": (lazy_views, 5_000),
}
ROWS = {**PROMISED, **OTHERS}
ONE_BY_ONE = {"a[i] = i * 1.5, 40 sums on the way"}
