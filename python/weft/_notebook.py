"""How tensors, schedules and graphs show themselves in notebooks: values, and pictures."""

from __future__ import annotations

import html
from typing import Any

from weft import _core
from weft._core import Ops, Schedule, Tensor, UOp

MOST_CELLS = 512  # of a storage, drawn one by one
MOST_NODES = 300  # of a graph that is drawn
STYLE = ("<style>.weft text{font:11px monospace;fill:currentColor}.weft rect{stroke:#888}.weft path{stroke:#888;fill:none}"
         ".weft-values td{padding:0 .5em;text-align:right;font-family:monospace}</style>")


def tensor_html(x: Tensor) -> str:
    """Shape, dtype, the values at the corners, and which elements of its storage it sees."""
    shape, strides, offset, size = _core.view_of(x)
    dims = " × ".join(map(str, shape)) or "a scalar"
    head = f"<b>Tensor</b> {dims} {html.escape(str(x.dtype))} on {html.escape(x.device)}"
    return f"{STYLE}<div class='weft'>{head}{_values(x)}{_storage_svg(shape, strides, offset, size)}</div>"


def _values(x: Tensor, most: int = 8) -> str:
    if x.numel() == 0:
        return "<div>no elements</div>"
    flat = x.detach()
    while len(flat.shape) > 2:
        flat = flat[0]
    note = "" if len(x.shape) <= 2 else f"<div>the first of {x.numel() // max(flat.numel(), 1)} matrices</div>"
    rows = flat.reshape(1, -1) if len(flat.shape) < 2 else flat
    height, width = rows.shape
    lines = []
    for i, row in enumerate(rows[:most, :most].tolist()):
        cells = "".join(f"<td>{html.escape(f'{v:.5g}' if isinstance(v, float) else str(v))}</td>" for v in row)
        lines.append(f"<tr>{cells}{'<td>…</td>' if width > most else ''}</tr>")
        if i == most - 1 and height > most:
            lines.append("<tr><td>…</td></tr>")
    return f"{note}<table class='weft-values'>{''.join(lines)}</table>"


def _storage_svg(shape: list[int], strides: list[int], offset: int, size: int) -> str:
    """The storage as a strip of cells, those that the view sees coloured; nothing where it sees all, in order."""
    places = [offset]
    for n, stride in zip(shape, strides):
        if len(places) * n > MOST_CELLS:
            return f"<div>a view by strides {tuple(strides)} from {offset} of a storage of {size} elements</div>"
        places = [p + i * stride for p in places for i in range(n)]
    if places == list(range(size)):
        return ""
    first = {p: k for k, p in reversed(list(enumerate(places)))}
    text = f"{len(first)} of the {size} elements of its storage, by strides {tuple(strides)} from {offset}"
    if size > MOST_CELLS:
        return f"<div>sees {text}</div>"
    width = min(size, 32)
    cells = "".join(
        f"<rect x='{4 + 18 * (p % width)}' y='{4 + 18 * (p // width)}' width='16' height='16' "
        f"fill='{'#7fb38a' if p in first else 'none'}'><title>element {p}"
        f"{f', number {first[p]} of the view' if p in first else ''}</title></rect>" for p in range(size))
    return (f"<div>sees {text}:</div><svg width='{8 + 18 * width}' height='{8 + 18 * (-(-size // width))}' role='img' "
            f"aria-label='{text}'>{cells}</svg>")


def schedule_svg(schedule: Schedule) -> str:
    """Kernels in their order, with the memory that each reads and writes."""
    names = {i: f"{b.kind} {i}: {b.size} {b.dtype}" for i, b in enumerate(schedule.buffers)}
    nodes = [("buffer", text) for text in names.values()]
    edges = []
    state = {i: i for i in names}  # the newest node of each buffer: memory that is written again is a node again
    for call in schedule.calls:
        kernel = len(nodes)
        nodes.append(("kernel", call.name))
        edges += [(state[i], kernel) for i in call.arguments[call.written:]]
        for i in call.arguments[:call.written]:
            if any(user == state[i] for _, user in edges) or any(source == state[i] for source, _ in edges):
                nodes.append(("buffer", names[i]))
                state[i] = len(nodes) - 1
            edges.append((kernel, state[i]))
    return drawn(nodes, edges, f"a schedule of {len(schedule.calls)} kernels")


def graph_svg(root: UOp) -> str:
    """A graph, constants in the labels of their users."""
    order = root.toposort()
    shown = [n for n in order if n is root or n.op not in (Ops.CONST, Ops.DEVICE)]
    if len(shown) > MOST_NODES:
        return (f"<svg xmlns='http://www.w3.org/2000/svg' class='weft' width='500' height='24'><text x='4' y='16'>a graph of "
                f"{len(order)} nodes: weft viz shows such</text></svg>")
    index = {n: i for i, n in enumerate(shown)}
    labels = []
    for n in shown:
        constants = [str(s.arg) for s in n.src if s not in index and s.op is Ops.CONST]
        argument = "" if n.arg is None else f" {n.arg}"
        labels.append((n.op.name, f"{n.op.name}{argument}{' with ' + ', '.join(constants) if constants else ''}"[:40]))
    edges = [(index[s], index[n]) for n in shown for s in dict.fromkeys(n.src) if s in index]
    return drawn(labels, edges, f"a graph of {len(order)} nodes")


COLOURS = {"buffer": "#f8dcc8", "kernel": "#d5efd9"}


def drawn(nodes: list[tuple[str, str]], edges: list[tuple[int, int]], title: str) -> str:
    """Nodes in layers, sources above: SVG that stands alone."""
    layer = _layers(len(nodes), edges)
    rows: list[list[int]] = [[] for _ in range(max(layer, default=0) + 1)]
    for i, at in enumerate(layer):
        rows[at].append(i)
    widths = [14 + 7 * len(text) for _, text in nodes]
    x = [0.0] * len(nodes)
    near: list[list[int]] = [[] for _ in nodes]
    for a, b in edges:
        near[b].append(a)
    for row in rows:
        row.sort(key=lambda i: sum(x[n] for n in near[i]) / len(near[i]) if near[i] else 0)
        left = 0.0
        for i in row:
            wanted = sum(x[n] for n in near[i]) / len(near[i]) if near[i] else left
            x[i] = max(left + widths[i] / 2, wanted)
            left = x[i] + widths[i] / 2 + 12
    total = max((x[i] + widths[i] / 2 for i in range(len(nodes))), default=0) + 12
    parts = []
    for a, b in edges:
        y0, y1 = 30 + 52 * layer[a], 8 + 52 * layer[b]
        parts.append(f"<path d='M{x[a] + 6:.0f},{y0}C{x[a] + 6:.0f},{(y0 + y1) / 2:.0f} {x[b] + 6:.0f},{(y0 + y1) / 2:.0f} "
                     f"{x[b] + 6:.0f},{y1}' stroke='#888' fill='none'/>")
    for i, (kind, text) in enumerate(nodes):
        parts.append(f"<rect x='{x[i] - widths[i] / 2 + 6:.0f}' y='{8 + 52 * layer[i]}' width='{widths[i]}' height='22' rx='4' "
                     f"stroke='#888' fill='{COLOURS.get(kind, '#e7e9ee')}'/><text x='{x[i] + 6:.0f}' y='{23 + 52 * layer[i]}' "
                     f"text-anchor='middle' font-family='monospace' font-size='11' fill='#111'>{html.escape(text)}</text>")
    return (f"<svg xmlns='http://www.w3.org/2000/svg' width='{total:.0f}' height='{52 * len(rows)}' role='img' "
            f"aria-label='{html.escape(title)}'>{''.join(parts)}</svg>")


def _layers(count: int, edges: list[tuple[int, int]]) -> list[int]:
    users: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for a, b in edges:
        users[a].append(b)
        waiting[b] += 1
    layer = [0] * count
    ready = [i for i in range(count) if waiting[i] == 0]
    for i in ready:
        for user in users[i]:
            layer[user] = max(layer[user], layer[i] + 1)
            waiting[user] -= 1
            if waiting[user] == 0:
                ready.append(user)
    for i in range(count):  # sources as near as they can be
        if users[i] and not any(b == i for _, b in edges):
            layer[i] = min(layer[u] for u in users[i]) - 1
    return layer


def show_in_notebooks() -> None:
    """Gives the classes the methods that Jupyter looks for."""
    classes: list[tuple[Any, str, Any]] = [(Tensor, "_repr_html_", tensor_html), (Schedule, "_repr_svg_", schedule_svg),
                                           (UOp, "_repr_svg_", graph_svg)]
    for owner, name, method in classes:
        setattr(owner, name, method)
