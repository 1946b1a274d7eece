"""Random programs of the families that bench/cliffs.py measures: a seed and a number make a case.

A case is text: the body of a function of tensors a, b, c, ... as PyTorch's users write it, and how its inputs are made.
The same text runs on weft's own Tensor where the names are the same; else a case has a text of its own for it, or none.
"""
import dataclasses
import math
import random

LETTERS = "abcdefghijklmnop"


@dataclasses.dataclass
class Input:
    shape: tuple
    dtype: str = "float32"
    kind: str = "normal"  # normal, positive, bool, index (below high), order (a permutation)
    high: int = 0


@dataclasses.dataclass
class Case:
    family: str
    inputs: list
    body: list  # lines; the last one returns
    own: list | None = None  # for weft's Tensor
    is_training: bool = False  # gradients are taken in it
    has_ties: bool = False  # integers among the results may differ

    def text(self):
        names = ", ".join(LETTERS[:len(self.inputs)])
        made = [f"# {n}: {'x'.join(map(str, i.shape)) or 'one'} {i.dtype} {i.kind}{f' < {i.high}' if i.high else ''}"
                for n, i in zip(LETTERS, self.inputs)]
        return "\n".join([*made, f"def program({names}):", *(f"    {line}" for line in self.body)])


FAMILIES = {}


def family(function):
    FAMILIES[function.__name__] = function
    return function


def make_case(seed, number):
    rng = random.Random(f"{seed} {number}")
    name = rng.choice(list(FAMILIES))
    case = FAMILIES[name](rng)
    case.family = name
    return case


def same(inputs, body, **more):
    """A case whose text is the same for both."""
    return Case("", inputs, body, own=body, **more)


# ---- sizes, layouts, pointwise work

def log_int(rng, low, high):
    return max(low, min(high, round(math.exp(rng.uniform(math.log(low), math.log(high + 1))))))


def shape_of(rng, rank, elements):
    """Sizes whose product is about `elements`."""
    cuts = [rng.uniform(0.3, 1) for _ in range(rank)]
    return tuple(max(1, round(elements ** (c / sum(cuts)))) for c in cuts)


def elements(rng, low=3e5, high=6e6):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def viewed(rng, name, shape, how=0.5):
    """The shape of memory, and lines that make a view of `shape` of it."""
    rank = len(shape)
    if rank == 0 or rng.random() > how:
        return shape, []
    kind = rng.choice(["permute", "permute", "step", "narrow", "flip", "expand"])
    if kind == "permute" and rank > 1:
        order = list(range(rank))
        rng.shuffle(order)
        memory = [0] * rank
        for to, source in enumerate(order):
            memory[source] = shape[to]
        return tuple(memory), [f"{name} = {name}.permute({', '.join(map(str, order))})"]
    axis = rng.randrange(rank)
    before = ":, " * axis
    memory = list(shape)
    if kind == "step":
        memory[axis] *= 2
        return tuple(memory), [f"{name} = {name}[{before}::2]"]
    if kind == "narrow":
        memory[axis] += 5
        return tuple(memory), [f"{name} = {name}[{before}3:-2]"]
    if kind == "flip":
        return shape, [f"{name} = {name}.flip({axis})"]
    if kind == "expand" and rank > 1:
        memory[axis] = 1
        return tuple(memory), [f"{name} = {name}.expand({', '.join(map(str, shape))})"]
    return shape, []


UNARY = ["{x}.relu()", "{x}.tanh()", "{x} * 0.5", "{x} + 1", "{x}.abs()", "{x}.sigmoid()", "{x}.exp()", "{x} * {x}",
         "-{x}", "{x}.clip(-1, 1)", "({x} * {x} + 1).sqrt()", "{x}.sin()"]
CHEAP = UNARY[:1] + UNARY[2:5] + UNARY[7:10]


def unary(rng, x, table=UNARY):
    return rng.choice(table).format(x=x)


def maybe(rng, x, share=0.4, table=UNARY):
    return f"({unary(rng, x, table)})" if rng.random() < share else x


def narrow_dtype(rng, share=0.2):
    return rng.choice(["bfloat16", "float16"]) if rng.random() < share else "float32"


def own_of(body, **names):
    """The same lines with other names."""
    out = []
    for line in body:
        for old, new in names.items():
            line = line.replace(old, new)
        out.append(line)
    return out


# ---- products

@family
def einsum(rng):
    letters = iter("abcdefghij")
    groups = [[next(letters) for _ in range(rng.choice(counts))] for counts in ((0, 0, 1, 2), (1, 1, 2), (1, 1, 2), (1, 1, 2))]
    work = elements(rng, 6e6, 4e8)
    flat = [x for g in groups for x in g]
    sizes = dict(zip(flat, shape_of(rng, len(flat), work)))
    batch, rows, columns, summed = groups
    operands = [batch + rows + summed, batch + columns + summed, batch + rows + columns]
    for o in operands:
        rng.shuffle(o)
    left, right, out = ("".join(o) for o in operands)
    dtype = narrow_dtype(rng)
    a = maybe(rng, "a", 0.25, CHEAP)
    after = maybe(rng, "out", 0.4)
    inputs = [Input(tuple(sizes[x] for x in o), dtype) for o in (left, right)]
    lines = [f'out = torch.einsum("{left},{right}->{out}", {a}, b)']
    if rng.random() < 0.3:
        inputs.append(Input(tuple(sizes[x] for x in out), dtype))
        after += " + c"
    lines.append(f"return {after}")
    return Case("", inputs, lines, own=own_of(lines, **{"torch.einsum": "Tensor.einsum"}))


@family
def matmul(rng):
    m, n, k = (log_int(rng, 8, 2048) for _ in range(3))
    while m * n * k > 6e8:
        m, n, k = (max(8, x * 2 // 3) for x in (m, n, k))
    while m * n * k < 8e6:
        m, n, k = (x * 3 // 2 for x in (m, n, k))
    dtype = narrow_dtype(rng, 0.25)
    batch = (rng.choice([2, 4, 8]),) if rng.random() < 0.25 else ()
    if batch:
        m = max(8, m // batch[0])
    ta, tb = rng.random() < 0.3, rng.random() < 0.5
    a, b = batch + ((k, m) if ta else (m, k)), (batch if rng.random() < 0.5 else ()) + ((n, k) if tb else (k, n))
    body = [f"out = {maybe(rng, 'a', 0.2, CHEAP)}{'.transpose(-1, -2)' if ta else ''} @ b{'.transpose(-1, -2)' if tb else ''}"]
    inputs = [Input(a, dtype), Input(b, dtype)]
    if rng.random() < 0.4:
        inputs.append(Input((n,), dtype))
        body.append("out = out + c")
    return same(inputs, [*body, f"return {maybe(rng, 'out', 0.4)}"])


@family
def vector_products(rng):
    m, k = log_int(rng, 300, 4096), log_int(rng, 500, 4096)
    kind = rng.choice(["mv", "vm", "outer", "rows", "distances"])
    if kind == "mv":
        return same([Input((m, k)), Input((k,))], ["return a @ b"])
    if kind == "vm":
        return same([Input((m,)), Input((m, k))], ["return a @ b"])
    if kind == "outer":
        return same([Input((m,)), Input((k,))], [f"return {maybe(rng, '(a[:, None] * b[None, :])')}"])
    if kind == "rows":
        return same([Input((m, k)), Input((m, k))], ["return (a * b).sum(1)"])
    n, d = log_int(rng, 100, 500), log_int(rng, 3, 64)
    return same([Input((n, d)), Input((n + 3, d))], ["return ((a[:, None] - b[None, :]) ** 2).sum(-1)"])


# ---- along axes

@family
def reduction(rng):
    rank = rng.choice([1, 2, 2, 3, 3, 4])
    shape = shape_of(rng, rank, elements(rng))
    memory, lines = viewed(rng, "a", shape)
    x = maybe(rng, "a", 0.4)
    axes = sorted(rng.sample(range(rank), rng.randint(1, rank)))
    axis = axes[0] if len(axes) == 1 else tuple(axes)
    one = rng.choice(axes)
    text = rng.choice(["sum({})", "sum({})", "mean({})", "var({})", "std({})", "max1", "argmax", "logsumexp({})", "min1", "norm",
                       "centred", "prod"]).format(axis)
    dtype = narrow_dtype(rng, 0.1) if text.startswith(("sum", "mean")) else "float32"
    own = None
    if text in ("max1", "min1"):
        body, own = [f"return {x}.a{text[:3]}({one})"], [f"return {x}.{text[:3]}({one})"]
    elif text == "argmax":
        body = [f"return {x}.argmax({one})"]
    elif text == "norm":
        body = [f"return ({x} * {x}).sum({axis}).sqrt()"]
    elif text == "centred":
        body = [f"return {x} - {x}.mean({axis}, keepdim=True)"]
        own = [body[0].replace("keepdim", "keepdim")]
    elif text == "prod":
        body = [f"return ({x} * 0.01 + 1).prod({one})"]
    else:
        body = [f"return {x}.{text}"]
    inputs = [Input(memory, dtype)]
    return Case("", inputs, lines + body, own=lines + (own or body), has_ties=text == "argmax")


@family
def normalisation(rng):
    rank = rng.choice([2, 2, 3, 4])
    shape = shape_of(rng, rank, elements(rng))
    memory, lines = viewed(rng, "a", shape, 0.3)
    axis = rng.randrange(rank)
    kind = rng.choice(["softmax", "log_softmax", "layernorm", "rmsnorm", "standard", "normalize", "batchnorm"])
    x = maybe(rng, "a", 0.2)
    dtype = narrow_dtype(rng, 0.1)
    if kind in ("softmax", "log_softmax"):
        return same([Input(memory, dtype)], [*lines, f"return {x}.{kind}({axis})"])
    if kind == "layernorm":
        body = [*lines, f"return torch.nn.functional.layer_norm({x}, ({shape[-1]},), b, c)"]
        own = [*lines, f"return {x}.layernorm() * b + c"]
        return Case("", [Input(memory, dtype), Input(shape[-1:], dtype), Input(shape[-1:], dtype)], body, own=own)
    if kind == "rmsnorm":
        return same([Input(memory, dtype)], [*lines, f"x = {x}", f"return x * (x * x).mean({axis}, keepdim=True).add(1e-5).rsqrt()"])
    if kind == "standard":
        return same([Input(memory)], [*lines, f"x = {x}", f"return (x - x.mean({axis}, keepdim=True)) / (x.std({axis}, keepdim=True) + 1e-5)"])
    if kind == "normalize":
        body = [*lines, f"return torch.nn.functional.normalize({x}, dim={axis})"]
        return Case("", [Input(memory)], body, own=[*lines, f"x = {x}", f"return x / (x * x).sum({axis}, keepdim=True).sqrt().clip(1e-12)"])
    others = tuple(i for i in range(rank) if i != 1)
    body = [*lines, f"x = {x}", f"mean, var = x.mean({others}, keepdim=True), x.var({others}, keepdim=True)",
            "return (x - mean) * (var + 1e-5).rsqrt()"]
    return same([Input(memory)], body)


@family
def scan(rng):
    rank = rng.choice([1, 2, 2, 3])
    shape = shape_of(rng, rank, elements(rng, 1e5, 3e6))
    memory, lines = viewed(rng, "a", shape, 0.3)
    axis = rng.randrange(rank)
    kind = rng.choice(["cumsum", "cumsum", "cumprod", "cummax", "logcumsumexp", "backward"])
    x = maybe(rng, "a", 0.3, CHEAP)
    if kind == "cumprod":
        return same([Input(memory)], [*lines, f"return (1 + {x} * 0.01).cumprod({axis})"])
    if kind == "cummax":
        return same([Input(memory)], [*lines, f"return {x}.cummax({axis})[0]"])
    if kind == "backward":
        return same([Input(memory)], [*lines, f"return {x}.flip({axis}).cumsum({axis}).flip({axis})"])
    return same([Input(memory)], [*lines, f"return {x}.{kind}({axis})"])


@family
def order(rng):
    rank = rng.choice([1, 2, 2])
    size = elements(rng, 1e5, 2e6)
    shape = (round(size),) if rank == 1 else shape_of(rng, 2, size)
    axis = rng.randrange(rank)
    kind = rng.choice(["sort", "argsort", "topk", "median", "kthvalue", "unique", "quantile", "mode", "searchsorted"])
    x = Input(shape)
    if kind == "sort":
        return same([x], [f"return a.sort({axis})[0]"])
    if kind == "argsort":
        return same([x], [f"return a.argsort({axis})"], has_ties=True)
    if kind == "topk":
        k = min(shape[axis], rng.choice([1, 3, 10, 50]))
        return same([x], [f"return a.topk({k}, {axis})[0]"])
    if kind == "median":
        return Case("", [x], [f"return a.median({axis})[0]"])
    if kind == "kthvalue":
        return Case("", [x], [f"return a.kthvalue({1 + rng.randrange(shape[axis])}, {axis})[0]"])
    if kind == "quantile":
        return Case("", [x], [f"return a.quantile({rng.choice([0.1, 0.5, 0.9])}, {axis})"])
    if kind == "mode":
        return Case("", [Input(shape, "int32", "index", 50)], [f"return a.mode({axis})[0]"])
    if kind == "searchsorted":
        n = log_int(rng, 100, 10000)
        return Case("", [Input((n,)), Input((round(size),))], ["return torch.searchsorted(a.sort()[0], b)"])
    return Case("", [Input((round(size),), "int32", "index", log_int(rng, 10, 100000))], ["return torch.unique(a)"])


# ---- at computed places

@family
def gather(rng):
    shape = shape_of(rng, 2, elements(rng, 2e5, 4e6))
    n = log_int(rng, max(16, shape[0] // 4), 3 * shape[0])
    memory, lines = viewed(rng, "a", shape, 0.3)
    kind = rng.choice(["rows", "select0", "select1", "gather", "embedding", "both", "take"])
    x = Input(memory)
    if kind in ("rows", "both"):
        if kind == "both":
            return same([x, Input((n * 20,), "int64", "index", shape[0]), Input((n * 20,), "int64", "index", shape[1])],
                        [*lines, "return a[b, c]"])
        return same([x, Input((n,), "int64", "index", shape[0])], [*lines, f"return {maybe(rng, 'a[b]')}"])
    if kind.startswith("select"):
        axis = int(kind[-1])
        return same([x, Input((n,), "int64", "index", shape[axis])], [*lines, f"return a.index_select({axis}, b)"])
    if kind == "gather":
        axis = rng.randrange(2)
        return same([x, Input(shape, "int64", "index", shape[axis])], [*lines, f"return a.gather({axis}, b)"])
    if kind == "take":
        total = shape[0] * shape[1]
        return Case("", [x, Input((n * 20,), "int64", "index", total)], [*lines, "return torch.take(a, b)"],
                    own=[*lines, "return a.take(b)"])
    batch = shape_of(rng, 2, n)
    body = ["return torch.nn.functional.embedding(b, a)"]
    return Case("", [Input(shape), Input(batch, "int64", "index", shape[0])], body, own=["return a[b]"])


@family
def scatter(rng):
    shape = shape_of(rng, 2, elements(rng, 1e5, 2e6))
    n = log_int(rng, max(16, shape[0] // 4), 3 * shape[0])
    kind = rng.choice(["scatter_add", "index_add", "put", "reduce", "embedding gradient", "bincount", "scatter"])
    axis = rng.randrange(2)
    if kind in ("scatter_add", "reduce", "scatter"):
        call = {"scatter_add": f"scatter_add({axis}, b, c)", "reduce": f'scatter_reduce({axis}, b, c, "amax")',
                "scatter": f"scatter({axis}, b, c * 0 + 1)"}[kind]
        own = {"scatter_add": f'scatter_reduce({axis}, b, c, "sum")'}.get(kind, call)
        inputs = [Input(shape), Input(shape, "int64", "index", shape[axis]), Input(shape)]
        return Case("", inputs, [f"return a.{call}"], own=[f"return a.{own}"])
    if kind == "index_add":
        source = list(shape)
        source[axis] = n
        return same([Input(shape), Input((n,), "int64", "index", shape[axis]), Input(tuple(source))],
                    [f"return a.index_add({axis}, b, c)"])
    if kind == "put":
        return Case("", [Input(shape), Input((n,), "int64", "index", shape[0]), Input((n, shape[1]))],
                    ["return a.index_put((b,), c, accumulate=True)"])
    if kind == "bincount":
        return Case("", [Input((round(elements(rng, 1e4, 1e6)),), "int64", "index", n)], [f"return torch.bincount(a, minlength={n})"])
    body = ["a.requires_grad_(True)", "out = torch.nn.functional.embedding(b, a)", "return torch.autograd.grad((out * c).sum(), a)[0]"]
    return Case("", [Input(shape), Input((n,), "int64", "index", shape[0]), Input((n, shape[1]))], body, is_training=True)
