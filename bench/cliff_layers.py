"""Families of bench/cliffs.py that are layers and steps: convolutions, attention, copies, optimisers, training, loops."""
from cliff_families import (CHEAP, Case, Input, elements, family, log_int, maybe, narrow_dtype, same, shape_of, unary,
                            viewed)


# ---- windows

def convolution_sizes(rng, axes, most=3e8):
    """(batch, inputs, outputs, plane, kernel, stride, dilation, padding, groups) of a convolution along so many axes."""
    while True:
        groups = rng.choice([1, 1, 1, 1, 2, 0])  # 0: one for each channel
        inputs, outputs = log_int(rng, 1, 128), log_int(rng, 4, 128)
        if groups == 0:
            groups = outputs = inputs
        elif groups > 1:
            inputs, outputs = max(groups, inputs // groups * groups), max(groups, outputs // groups * groups)
        kernel = tuple(rng.choice([1, 2, 3, 3, 3, 5, 7]) for _ in range(axes)) if rng.random() < 0.3 else \
            (rng.choice([1, 3, 3, 5, 7] if axes < 3 else [1, 2, 3]),) * axes
        plane = tuple(log_int(rng, 8, {1: 4000, 2: 128, 3: 24}[axes]) for _ in range(axes))
        stride, dilation = rng.choice([1, 1, 1, 2, 3]), rng.choice([1, 1, 1, 2])
        padding = rng.choice([0, kernel[0] // 2, 1])
        batch = rng.choice([1, 1, 2, 4, 8])
        work = batch * inputs // groups * outputs
        fits = True
        for size, k in zip(plane, kernel):
            out = (size + 2 * padding - dilation * (k - 1) - 1) // stride + 1
            fits = fits and out > 0
            work *= max(out, 1) * k
        if fits and 5e6 < work < most:
            return batch, inputs, outputs, plane, kernel, stride, dilation, padding, groups


@family
def convolution(rng):
    axes = rng.choice([1, 2, 2, 2, 3])
    batch, inputs, outputs, plane, kernel, stride, dilation, padding, groups = convolution_sizes(rng, axes)
    shape = (batch, inputs, *plane)
    layout = rng.random()
    memory, lines = viewed(rng, "a", shape, 1) if layout < 0.2 else (shape, [])
    if 0.2 <= layout < 0.35:  # channels last
        memory = (batch, *plane, inputs)
        lines = [f"a = a.permute(0, {axes + 1}, {', '.join(str(i + 1) for i in range(axes))})"]
    dtype = narrow_dtype(rng, 0.1)
    arguments = f"stride={stride}, padding={padding}, dilation={dilation}, groups={groups}"
    bias = rng.random() < 0.5
    tensors = [Input(memory, dtype), Input((outputs, inputs // groups, *kernel), dtype)] + [Input((outputs,), dtype)] * bias
    operands = "b, c" if bias else "b"
    x, after = maybe(rng, "a", 0.15, CHEAP), maybe(rng, "out", 0.4)
    return Case("", tensors, [*lines, f"out = torch.nn.functional.conv{axes}d({x}, {operands}, {arguments})", f"return {after}"],
                own=[*lines, f"out = {x}.conv2d({operands}, {arguments})", f"return {after}"])


@family
def transposed_convolution(rng):
    axes = rng.choice([1, 2, 2, 3])
    batch, inputs, outputs, plane, kernel, stride, dilation, padding, groups = convolution_sizes(rng, axes, 1e8)
    padding = min(padding, dilation * (min(kernel) - 1))
    tensors = [Input((batch, inputs, *plane)), Input((inputs, outputs // groups, *kernel))]
    arguments = f"stride={stride}, padding={padding}, dilation={dilation}, groups={groups}"
    return Case("", tensors, [f"return torch.nn.functional.conv_transpose{axes}d(a, b, {arguments})"],
                own=[f"return a.conv_transpose2d(b, {arguments})"])


@family
def convolution_gradient(rng):
    axes = rng.choice([1, 2, 2])
    batch, inputs, outputs, plane, kernel, stride, dilation, padding, groups = convolution_sizes(rng, axes, 1e8)
    tensors = [Input((batch, inputs, *plane)), Input((outputs, inputs // groups, *kernel))]
    arguments = f"stride={stride}, padding={padding}, dilation={dilation}, groups={groups}"
    start = ["a.requires_grad_(True)", "b.requires_grad_(True)"]
    return Case("", tensors, [*start, f"out = torch.nn.functional.conv{axes}d(a, b, {arguments})",
                              "return torch.autograd.grad((out * out).sum(), (a, b))"],
                own=[*start, f"out = a.conv2d(b, {arguments})", "return tuple((out * out).sum().gradient(a, b))"],
                is_training=True)


@family
def pool(rng):
    axes = rng.choice([1, 2, 2, 2, 3])
    plane = shape_of(rng, axes, elements(rng, 3e3, 4e4))
    plane = tuple(max(8, p) for p in plane)
    shape = (rng.choice([1, 2, 8]), log_int(rng, 8, 64), *plane)
    memory, lines = viewed(rng, "a", shape, 0.2)
    kind = rng.choice(["max", "max", "avg", "adaptive"])
    kernel, stride = rng.choice([2, 3, 5]), rng.choice([1, 2, 3])
    padding = rng.choice([0, 1])
    text = f"({kernel}, stride={stride}, padding={padding})"
    if kind == "adaptive":
        size = tuple(rng.choice([1, 3, 7]) for _ in range(axes))
        return Case("", [Input(memory)], [*lines, f"return torch.nn.functional.adaptive_avg_pool{axes}d(a, {size})"])
    wide = f"(({', '.join([str(kernel)] * axes)},), stride={stride}, padding={padding})"
    return Case("", [Input(memory)], [*lines, f"return torch.nn.functional.{kind}_pool{axes}d(a, {text[1:]}"],
                own=[*lines, f"return a.{kind}_pool2d{wide}"])


@family
def interpolation(rng):
    plane = shape_of(rng, 2, elements(rng, 1e3, 3e4))
    shape = (rng.choice([1, 2, 4]), log_int(rng, 4, 32), *plane)
    size = tuple(max(1, round(p * rng.choice([0.5, 1.5, 2, 3]))) for p in plane)
    mode = rng.choice(["nearest", "bilinear", "bilinear", "bicubic"])
    corners = f", align_corners={rng.random() < 0.5}" if mode == "bilinear" else ""
    own = [f'return a.interpolate({size}, mode="{mode}"{corners})'] if mode != "bicubic" else None
    return Case("", [Input(shape)], [f'return torch.nn.functional.interpolate(a, {size}, mode="{mode}"{corners})'], own=own)


@family
def attention(rng):
    batch, heads, width = rng.choice([1, 2, 4]), rng.choice([2, 4, 8]), rng.choice([16, 32, 64, 80, 128])
    length, keys = log_int(rng, 64, 512), log_int(rng, 64, 512)
    few = rng.choice([heads, heads, heads, heads // 2])
    kind = rng.choice(["none", "causal", "bool", "float"])
    if kind == "causal":
        keys = length
    tensors = [Input((batch, heads, length, width)), Input((batch, few, keys, width)), Input((batch, few, keys, width))]
    lines = []
    if rng.random() < 0.4:  # as a model makes them
        tensors = [Input((t.shape[0], t.shape[2], t.shape[1], t.shape[3])) for t in tensors]
        lines = ["a, b, c = a.transpose(1, 2), b.transpose(1, 2), c.transpose(1, 2)"]
    arguments = ", is_causal=True" if kind == "causal" else ""
    if kind in ("bool", "float"):
        tensors.append(Input((length, keys), *(("bool", "bool") if kind == "bool" else ())))
        arguments += ", attn_mask=d"
    if few != heads:
        arguments += ", enable_gqa=True"
    if rng.random() < 0.25:  # by hand
        start = [*lines, "s = a @ b.transpose(-1, -2) * 0.1"] if few == heads else None
        if start:
            mask = {"bool": ["s = s.masked_fill(d.logical_not(), -1e9)"], "float": ["s = s + d"]}.get(kind, [])
            return same(tensors, [*start, *mask, "return s.softmax(-1) @ c"])
    return Case("", tensors, [*lines, f"return torch.nn.functional.scaled_dot_product_attention(a, b, c{arguments})"],
                own=[*lines, f"return a.scaled_dot_product_attention(b, c{arguments})"])


# ---- copies and elements

@family
def movement(rng):
    rank = rng.choice([1, 2, 3, 4])
    shape = shape_of(rng, rank, elements(rng, 3e5, 6e6))
    axis = rng.randrange(rank)
    memory, lines = viewed(rng, "a", shape, 0.25)
    kind = rng.choice(["pad", "cat", "roll", "stack", "repeat", "flip", "copy", "repeat_interleave", "tril", "reflect", "permute"])
    x, own = Input(memory), None
    if kind == "pad":
        sizes = [rng.randint(0, 5) for _ in range(2 * rank)]
        body, own = [f"return torch.nn.functional.pad(a, {sizes})"], [f"return a.pad({sizes})"]
    elif kind == "reflect" and rank == 3:
        body, own = ['return torch.nn.functional.pad(a, (1, 1), mode="reflect")'], ['return a.pad((1, 1), "reflect")']
    elif kind == "cat":
        other = list(shape)
        other[axis] = max(1, other[axis] // 2)
        parts = rng.choice(["a, b", "b, a", "a, b, a", f"{unary(rng, 'a')}, b"])
        return Case("", [x, Input(tuple(other))], [*lines, f"return torch.cat(({parts}), {axis})"],
                    own=[*lines, f"x, *y = {parts}", f"return x.cat(*y, dim={axis})"])
    elif kind == "roll":
        body = [f"return {maybe(rng, 'a', 0.3)}.roll({rng.randint(1, shape[axis])}, {axis})"]
    elif kind == "stack":
        body, own = [f"return torch.stack((a, a * 2, a + 1), {axis})"], [f"return a.stack(a * 2, a + 1, dim={axis})"]
    elif kind == "repeat":
        body = [f"return a.repeat({', '.join(str(rng.choice([1, 1, 2])) for _ in shape)})"]
    elif kind == "flip":
        body = [f"return a.flip({axis}) * 2"]
    elif kind == "repeat_interleave":
        body = [f"return a.repeat_interleave(2, {axis})"]
    elif kind == "tril" and rank > 1:
        body = ["return a.tril()"]
    elif kind == "permute" and rank > 1:
        order = list(range(rank))
        rng.shuffle(order)
        body = [f"return {maybe(rng, 'a', 0.3)}.permute({', '.join(map(str, order))}).contiguous()"]
    else:
        body = ["return a.contiguous() + 0"]
    return Case("", [x], lines + body, own=lines + (own or body))


@family
def pointwise(rng):
    rank = rng.choice([1, 2, 3, 4])
    shape = shape_of(rng, rank, elements(rng, 3e5, 6e6))
    inputs, lines = [], []
    dtype = narrow_dtype(rng, 0.15)
    for name in "abc"[:rng.choice([1, 2, 2, 3])]:
        memory, made = viewed(rng, name, shape, 0.5)
        inputs.append(Input(memory, dtype))
        lines += made
    names = list("abc"[:len(inputs)])
    body = [f"x = {' + '.join(names)}"]
    for _ in range(rng.randint(1, 6)):
        other = rng.choice(names)
        body.append(rng.choice([f"x = {unary(rng, 'x')}", f"x = x * {other}", f"x = x - {other}", f"x = x.maximum({other})"]))
    return same(inputs, [*lines, *body, "return x"])


@family
def mask(rng):
    shape = shape_of(rng, rng.choice([1, 2, 3]), elements(rng))
    kind = rng.choice(["fill", "where", "select", "count", "nonzero", "assign"])
    a, b = Input(shape), Input(shape, "bool", "bool")
    if kind == "fill":
        return same([a, b], [f"return a.masked_fill(b, -1){maybe(rng, '.exp()', 0) if rng.random() < 0.5 else ''}"])
    if kind == "where":
        return Case("", [a, b, Input(shape)], ["return torch.where(b, a * 2, c.exp())"], own=["return b.where(a * 2, c.exp())"])
    if kind == "select":
        return Case("", [a, b], ["return a.masked_select(b)"])
    if kind == "count":
        return same([a, b], ["return ((a > 0.5) & b).sum(0)"])
    if kind == "nonzero":
        return Case("", [a], ["return (a > 1).nonzero()"])
    return Case("", [a, b], ["x = a + 1", "x[b] = 0", "return x"])


# ---- steps

@family
def optimiser(rng):
    kind = rng.choice(["sgd", "momentum", "adam", "rms"])
    shapes = [shape_of(rng, rng.choice([1, 2]), elements(rng, 5e4, 1e6)) for _ in range(rng.randint(1, 4))]
    n, state = len(shapes), {"sgd": 0, "momentum": 1, "rms": 1, "adam": 2}[kind]
    inputs = [Input(s) for s in shapes] * 2 + [Input(s, kind="positive") for s in shapes] * state
    body = []
    for i in range(n):
        p, g, m, v = ("abcdefghijklmnop"[i + k * n] for k in range(4))
        body += {"sgd": [f"{p}.sub_({g}, alpha=1e-3)"],
                 "momentum": [f"{m}.mul_(0.9).add_({g})", f"{p}.sub_({m}, alpha=1e-3)"],
                 "rms": [f"{m}.mul_(0.99).addcmul_({g}, {g}, value=0.01)", f"{p}.addcdiv_({g}, {m}.sqrt().add_(1e-8), value=-1e-3)"],
                 "adam": [f"{m}.mul_(0.9).add_({g}, alpha=0.1)", f"{v}.mul_(0.999).addcmul_({g}, {g}, value=0.001)",
                          f"{p}.addcdiv_({m}, {v}.sqrt().add_(1e-8), value=-1e-3)"]}[kind]
    names = ", ".join("abcdefghijklmnop"[:n])
    return Case("", inputs, [*body, f"return ({names},)"])


@family
def training(rng):
    batch, width, hidden = log_int(rng, 32, 256), log_int(rng, 64, 768), log_int(rng, 64, 768)
    kind = rng.choice(["mlp", "norm", "classifier", "convolution"])
    start = [f"{n}.requires_grad_(True)" for n in "bc"]
    end, own_end = "return torch.autograd.grad(loss, (b, c))", "return tuple(loss.gradient(b, c))"
    if kind == "convolution":
        inputs = [Input((min(batch, 16), 3, 24, 24)), Input((16, 3, 3, 3)), Input((16,))]
        body = [*start, "x = torch.nn.functional.conv2d(a, b, c, padding=1).relu()",
                "loss = torch.nn.functional.max_pool2d(x, 2).square().mean()"]
        own = [*start, "x = a.conv2d(b, c, padding=1).relu()", "loss = x.max_pool2d(2).square().mean()"]
    else:
        inputs = [Input((batch, width)), Input((hidden, width)), Input((width, hidden))]
        middle = {"mlp": "x = (a @ b.T).relu() @ c.T", "norm": "x = (a @ b.T).tanh().softmax(-1) @ c.T",
                  "classifier": "x = (a @ b.T).sigmoid() @ c.T"}[kind]
        last = "loss = -x.log_softmax(1)[:, 0].mean()" if kind == "classifier" else "loss = (x - a).square().mean()"
        body = own = [*start, middle, last]
    return Case("", inputs, [*body, end], own=[*own, own_end], is_training=True)


@family
def writes(rng):
    n, width = log_int(rng, 8, 60), log_int(rng, 256, 20000)
    kind = rng.choice(["rows", "recurrence", "slices", "columns"])
    body = {"rows": [f"for i in range({n}):", "    x[i] = x[i] * 2 + b[i]"],
            "recurrence": [f"for i in range(1, {n}):", "    x[i] = x[i - 1] * 0.5 + b[i]"],
            "slices": [f"for i in range({n}):", "    x[:, i::7] += b[:, i::7]"],
            "columns": [f"for i in range({n}):", "    x[:, i] = b[:, i].exp()"]}[kind]
    return same([Input((n, max(width, n))), Input((n, max(width, n)))], ["x = a + 0", *body, "return x"])
