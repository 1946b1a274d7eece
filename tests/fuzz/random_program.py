"""Random programs of tensors: views of views, writes through them, expressions, realisations.

NumPy runs every statement as it is chosen, so the choice knows shapes, dtypes and values; what NumPy
or a guard refuses is not part of the program.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import random_fancy
from program_model import (
    Program,
    Statement,
    is_expanded,
    is_plainly_distinct,
    is_the_same_view,
    memory,
    numpy_names,
    overlaps,
)
from random_sweep import sweep
from random_tensor_expression import (
    ARITHMETIC,
    BITWISE,
    FLOAT64,
    REFUSALS,
    Expression,
    Unfit,
    fitted_expression,
    numpy_type,
    promoted,
    random_expression,
)

SIZES = [2, 3, 3, 4, 4, 5, 6, 8, 1]
RARE_SIZES = [0, 1, 7, 9]
RANKS = [0, 1, 1, 1, 2, 2, 2, 3, 3, 4]
DTYPES = ["float32"] * 6 + ["int32"] * 4 + ["int64", "uint8", "bool", FLOAT64, "int16"]
MOST_ELEMENTS = 40
MOST_TENSORS = 9


class Generator:
    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.names = numpy_names()
        self.program: Program = []
        self.live: list[str] = []
        self.shapes: dict[str, tuple[Any, Any]] = {}  # and dtypes, also of names that are gone
        self.counts = {"v": 0, "n": 0, "s": 0}

    # ---- a program

    def run(self) -> Program:
        r = self.random
        length = r.choice([4, 8, 12, 18, 26, 40])
        for _ in range(r.randint(1, 2)):
            self.attempt(self.create)
        steps = [(self.create, 5), (self.view, 26), (self.write, 26), (self.update, 10), (self.assign, 6),
                 (self.express, 22), (self.loop, 6), (self.realize, 8), (self.read, 4), (self.copy, 4),
                 (self.delete, 4), (self.refuse, 2), (self.fancy_read, 8), (self.fancy_write, 10),
                 (self.fancy_add, 3)]
        kinds, weights = zip(*steps)
        while len(self.program) < length:
            if r.random() < 0.05:
                self.repeat()
            if r.random() < 0.04:
                self.vary()
            if r.random() < 0.04:
                sweep(self)
            self.attempt(r.choices(kinds, weights)[0])
        if r.random() < 0.25:
            self.attempt(lambda: self.realize(together=True))
        order = list(self.live)
        r.shuffle(order)
        for name in order:
            self.add(self.snapshot(name))
        return self.program

    def attempt(self, make: Callable[[], Statement]) -> bool:
        for _ in range(20):
            live = list(self.live)
            try:
                if self.add(make()):
                    return True
            except (Unfit, *REFUSALS):
                pass
            self.live = live
        return False

    def add(self, statement: Statement) -> bool:
        """Runs it on NumPy; false when that, or a guard, refuses."""
        try:
            with np.errstate(all="ignore"):
                if not all(eval(g, self.names) for g in statement.guards):
                    return False
                exec(statement.numpy, self.names)
        except REFUSALS:
            return False
        self.program.append(statement)
        self.shapes.update({n: (self.names[n].shape, self.names[n].dtype) for n in self.live})
        return True

    def vary(self) -> None:
        """The last statements a few times more, realised each time, with other numbers in their indices."""
        window = self.program[-self.random.randint(1, 4):]
        for shift in self.random.choice([(1, 2, 3), (1, 1, 2, 2), (-1, 1, -2, 2)]):
            known = len(self.program)
            self.repeat(window, shift)
            if len(self.program) == known:
                return
            self.attempt(self.realize)

    def repeat(self, window: Program | None = None, shift: int = 0) -> None:
        """The last statements once more, with the results of the first time where their names are gone, and with
        `shift` added to the numbers of indices."""
        window = self.program[-self.random.randint(1, 5):] if window is None else window
        renamed: dict[str, str] = {}

        def shifted(text: str) -> str:
            def index(match: re.Match[str]) -> str:
                return re.sub(r"(?<=[\[: ])\d+(?=[\]:,])", lambda m: str(max(0, int(m[0]) + shift)), match[0])
            return re.sub(r"(?<=[\w)\]])\[[^\[\]]*\]", index, text)

        def name_now(match: re.Match[str]) -> str:
            name = match[0]
            if renamed.get(name) not in self.live:
                a = self.shapes.get(name)
                like = [n for n in self.live if (self.array(n).shape, self.array(n).dtype) == a]
                if name not in self.live and not like:
                    raise Unfit
                renamed[name] = name if name in self.live else self.random.choice(like)
            return renamed[name]

        for step in window:
            if re.search(r"refused|strided|\b[ns]\d+ =|^del", step.weft):
                continue
            if shift and re.search(r"\(\d|:-?\d*:|for i|unfold|diagonal", step.weft):
                continue
            live = list(self.live)
            try:
                head = re.match(r"(v\d+) = ", step.weft)
                texts = [t.removeprefix(head[0] if head else "").split("; del")[0] for t in step[:2]]
                weft, ours, *guards = (re.sub(r"\bv\d+\b", name_now, shifted(t)) for t in (*texts, *step.guards))
                again = self.bound(weft, ours, tuple(guards))._replace(runs=step.runs) if head else step._replace(
                    weft=weft, numpy=ours, guards=tuple(guards))
            except Unfit:
                return
            if not self.add(again):
                self.live = live
                return
            if head:
                renamed[head[1]] = self.live[-1]

    # ---- names

    def fresh(self, kind: str = "v") -> str:
        self.counts[kind] += 1
        return f"{kind}{self.counts[kind] - 1}"

    def bound(self, weft: str, ours: str, guards: tuple[str, ...] = (), retire: float = 0.0) -> Statement:
        """name = expression, under a new name: a name is never used again, so statements mean the same when
        others are left out. With the chance `retire` an older name goes at once, as in `x = x + 1`."""
        name = self.fresh()
        rest = ""
        if self.live and (self.random.random() < retire or len(self.live) >= MOST_TENSORS):
            used = [n for n in self.live if re.search(rf"\b{n}\b", weft)]
            old = self.random.choice(used or self.live)
            self.live.remove(old)
            rest = f"; del {old}"
        self.live.append(name)
        return Statement(f"{name} = {weft}{rest}", f"{name} = {ours}{rest}", guards)

    def pick(self) -> str:
        if not self.live:
            raise Unfit
        return self.random.choice(self.live[-3:] if self.random.random() < 0.4 else self.live)

    def array(self, name: str) -> Any:
        return self.names[name]

    # ---- creation

    def shape(self, most: int = MOST_ELEMENTS) -> tuple[int, ...]:
        r = self.random
        while True:
            sizes = [r.choice([*SIZES, r.choice(RARE_SIZES)]) for _ in range(r.choice(RANKS))]
            if np.prod(sizes, dtype=np.int64) <= most:
                return tuple(sizes)

    def number(self, dtype: str) -> Any:
        r = self.random
        if dtype == "bool":
            return r.random() < 0.5
        if dtype.startswith("float") and r.random() < 0.1:
            return r.choice([0.5, -1.5, 2.25])
        return r.randint(0, 9) if dtype.startswith("uint") else r.randint(-5, 9)

    def create(self) -> Statement:
        r = self.random
        shape, dtype = self.shape(), r.choice(DTYPES)
        size = int(np.prod(shape, dtype=np.int64))
        how = r.choice(["array", "array", "list", "arange", "full", "zeros", "ones", "empty"])
        if how == "arange" and dtype == "bool":
            raise Unfit
        value = f"np.array({[self.number(dtype) for _ in range(size)]}, {numpy_type(dtype)}).reshape({shape})"
        if how == "array":
            return self.bound(f"Tensor({value})", f"new({value}, {numpy_type(dtype)})")
        if how == "list" and size > 0:
            nested = np.array([self.number(dtype) for _ in range(size)], dtype).reshape(shape).tolist()
            return self.bound(f"Tensor({nested}, dtype=dtypes.{dtype})", f"new({nested}, {numpy_type(dtype)})")
        if how == "arange":
            return self.bound(f"Tensor.arange({size}, dtype=dtypes.{dtype}).reshape({shape})",
                              f"new(np.arange({size}).reshape({shape}), {numpy_type(dtype)})")
        if how == "full":
            number = self.number(dtype)
            return self.bound(f"Tensor.full({shape}, {number}, dtype=dtypes.{dtype})",
                              f"new(np.full({shape}, {number}), {numpy_type(dtype)})")
        if how == "empty":
            return self.bound(f"Tensor.empty({shape}, dtype=dtypes.{dtype}).assign(Tensor({value}))",
                              f"new({value}, {numpy_type(dtype)})")
        ones = how == "ones"
        return self.bound(f"Tensor.{'ones' if ones else 'zeros'}({shape}, dtype=dtypes.{dtype})",
                          f"new(np.full({shape}, {int(ones)}), {numpy_type(dtype)})")

    # ---- views: (text after the name for weft, expression for NumPy with {} for the name)

    def index(self, shape: tuple[int, ...]) -> str:
        r = self.random
        parts = []
        for n in shape[: r.randint(min(1, len(shape)), len(shape))]:
            kind = r.random()
            if kind < 0.25 and n > 0:
                parts.append(str(r.randint(-n, n - 1)))
            elif kind < 0.4:
                parts.append(":")
            else:
                parts.append(self.slice(n))
        if r.random() < 0.1:
            parts.insert(r.randint(0, len(parts)), "None")
        if r.random() < 0.15 or not parts:
            parts.insert(r.randint(0, len(parts)) if len(parts) == len(shape) else len(parts), "...")
        return ", ".join(parts)

    def slice(self, n: int) -> str:
        r = self.random
        step = r.choice([1, 1, 1, 1, 2, 2, 3, -1, -1, -2])
        first, last = sorted([r.randint(0, n), r.randint(0, n)])
        if step < 0:
            first, last = last, first
        begin = "" if r.random() < 0.3 else str(first - n if r.random() < 0.2 and first < n else first)
        end = "" if r.random() < 0.3 else str(last - n if r.random() < 0.2 and last < n else last)
        return f"{begin}:{end}" + (f":{step}" if step != 1 else "")

    def view_text(self, a: Any, indexing: float = 0.45) -> tuple[str, str]:
        r = self.random
        shape, ndim = a.shape, a.ndim
        if r.random() < indexing and ndim:
            index = self.index(shape)
            return f"[{index}]", "{}[" + (index if "..." in index else index + ", ...") + "]"
        kind = r.choice(["reshape", "reshape", "permute", "transpose", "T", "flip", "expand", "shrink", "unfold", "diagonal",
                         "as_strided", "flatten", "squeeze", "unsqueeze", "detach", "contiguous", "cast", "bitcast"])
        method = getattr(self, f"view_{kind}")
        text: tuple[str, str] = method(a)
        return text

    def view_reshape(self, a: Any) -> tuple[str, str]:
        shape = self.factored(a.size)
        if a.size and shape and self.random.random() < 0.2:
            i = self.random.randrange(len(shape))
            shape = (*shape[:i], -1, *shape[i + 1:])
        return f".reshape({shape})", f"{{}}.reshape({shape})"

    def factored(self, size: int) -> tuple[int, ...]:
        r = self.random
        if size == 0:
            return r.choice([(0,), (0, 3), (2, 0)])
        sizes = []
        while size > 1 and len(sizes) < 4:
            divisors = [d for d in range(2, size + 1) if size % d == 0]
            sizes.append(r.choice(divisors))
            size //= sizes[-1]
        if size > 1:
            sizes.append(size)
        if r.random() < 0.2:
            sizes.insert(r.randint(0, len(sizes)), 1)
        return tuple(sizes)

    def view_permute(self, a: Any) -> tuple[str, str]:
        order = self.random.sample(range(a.ndim), a.ndim)
        return f".permute({tuple(order)})", f"np.transpose({{}}, {tuple(order)})"

    def view_transpose(self, a: Any) -> tuple[str, str]:
        x, y = self.axis(a), self.axis(a)
        return f".transpose({x}, {y})", f"np.swapaxes({{}}, {x}, {y})"

    def view_T(self, a: Any) -> tuple[str, str]:
        if a.ndim != 2:
            raise Unfit
        return ".T", "{}.T"

    def view_flip(self, a: Any) -> tuple[str, str]:
        x = self.axis(a)
        return f".flip({x})", f"np.flip({{}}, {x})"

    def view_expand(self, a: Any) -> tuple[str, str]:
        r = self.random
        shape = [r.randint(2, 3) if n == 1 and r.random() < 0.7 else n for n in a.shape]
        if r.random() < 0.5:
            shape.insert(0, r.randint(1, 3))
        if np.prod(shape, dtype=np.int64) > MOST_ELEMENTS:
            raise Unfit
        return f".expand({tuple(shape)})", f"expanded({{}}, {tuple(shape)})"

    def view_shrink(self, a: Any) -> tuple[str, str]:
        r = self.random
        box = tuple(tuple(sorted([r.randint(0, n), r.randint(0, n)])) for n in a.shape)
        index = ", ".join([f"{x}:{y}" for x, y in box] + ["..."])
        return f".shrink({box})", f"{{}}[{index}]"

    def view_unfold(self, a: Any) -> tuple[str, str]:
        r = self.random
        axis = abs(self.axis(a)) % a.ndim
        if a.size == 0:
            raise Unfit
        size, step = r.randint(1, a.shape[axis]), r.randint(1, 3)
        windows = (a.shape[axis] - size) // step + 1
        if windows * size * a.size // a.shape[axis] > 3 * MOST_ELEMENTS:
            raise Unfit
        return f".unfold({axis}, {size}, {step})", f"unfolded({{}}, {axis}, {size}, {step})"

    def view_diagonal(self, a: Any) -> tuple[str, str]:
        if a.ndim < 2:
            raise Unfit
        x, y = self.random.sample(range(a.ndim), 2)
        offset = self.random.choice([0, 0, 1, -1])
        if not -a.shape[x] < offset < a.shape[y]:
            raise Unfit
        return f".diagonal({offset}, {x}, {y})", f"diagonal_of({{}}, {offset}, {x}, {y})"

    def view_as_strided(self, a: Any) -> tuple[str, str]:
        r = self.random
        total = memory(a).size
        if a.size != total or not a.flags.c_contiguous:  # realising a part that nobody else sees forgets the rest
            raise Unfit
        shape = tuple(r.randint(1, 4) for _ in range(r.randint(1, 3)))
        strides = tuple(r.choice([1, 1, 2, 3, 4, 5, 0]) for _ in shape)
        span = sum((n - 1) * s for n, s in zip(shape, strides)) + 1
        if span > total:
            raise Unfit
        offset = r.randint(0, total - span)
        return f".as_strided({shape}, {strides}, {offset})", f"strided(memory({{}})[{offset}:], {shape}, {strides})"

    def view_flatten(self, a: Any) -> tuple[str, str]:
        return ".flatten()", "{}.reshape(-1)" if a.size else "{}.reshape(0)"

    def view_squeeze(self, a: Any) -> tuple[str, str]:
        ones = [i for i, n in enumerate(a.shape) if n == 1]
        if ones and self.random.random() < 0.5:
            axis = self.random.choice(ones)
            return f".squeeze({axis})", f"np.squeeze({{}}, {axis})"
        return ".squeeze()", "np.squeeze({})"

    def view_unsqueeze(self, a: Any) -> tuple[str, str]:
        axis = self.random.randint(-a.ndim - 1, a.ndim)
        return f".unsqueeze({axis})", f"np.expand_dims({{}}, {axis})"

    def view_detach(self, a: Any) -> tuple[str, str]:
        return ".detach()", "{}[...]"

    def view_cast(self, a: Any) -> tuple[str, str]:
        return f".cast(dtypes.{a.dtype})", "{}"

    def view_bitcast(self, a: Any) -> tuple[str, str]:
        pairs = [("int32", "uint32"), ("int64", "uint64"), ("int8", "uint8"), ("int16", "uint16")]
        found = [x if y == str(a.dtype) else y for x, y in pairs if str(a.dtype) in (x, y)]
        if not found:
            raise Unfit
        return f".bitcast(dtypes.{found[0]})", f"{{}}.view(np.{found[0]})"

    def view_contiguous(self, a: Any) -> tuple[str, str]:
        return ".contiguous()", "contiguous_of({})"

    def axis(self, a: Any) -> int:
        if a.ndim == 0:
            raise Unfit
        return self.random.randint(-a.ndim, a.ndim - 1)

    def view(self) -> Statement:
        source = self.pick()
        weft, ours = self.view_text(self.array(source))
        if self.random.random() < 0.15:  # a view of the view at once
            inner = eval(ours.format(source), self.names)
            weft2, ours2 = self.view_text(inner)
            weft, ours = weft + weft2, ours2.format(ours)
        return self.bound(source + weft, ours.format(source), retire=0.1)

    # ---- expressions

    def made(self, weft: str, ours: str, guards: tuple[str, ...] = ()) -> Expression:
        try:
            with np.errstate(all="ignore"):
                if not all(eval(g, self.names) for g in guards):
                    raise Unfit
                value = np.asarray(eval(ours, self.names))
        except REFUSALS as error:
            raise Unfit from error
        if value.size > 4 * MOST_ELEMENTS:
            raise Unfit
        return Expression(weft, ours, value, guards)

    def fitted(self, shape: tuple[int, ...], dtype: str) -> Expression:
        """An expression that can be written to a region of this shape and dtype."""
        e = fitted_expression(self, shape)
        return e._replace(guards=(*e.guards, f"castable({e.numpy}, {numpy_type(dtype)})"))

    def express(self) -> Statement:
        e = random_expression(self, self.random.choice([1, 1, 2, 2, 3]))
        if e.value.size > MOST_ELEMENTS or e.value.ndim > 6:
            raise Unfit
        return self.bound(e.weft, f"new({e.numpy}, {numpy_type(e.dtype)})", e.guards, retire=0.3)

    # ---- writes

    def write(self) -> Statement:
        """v0[index] = value"""
        target = self.pick()
        a = self.array(target)
        index = self.index(a.shape)
        region = eval(f"a[{index}{'' if '...' in index else ', ...'}]", {"a": a})
        return self.store(f"{target}[{index}] = {{}}", f"{target}[{index if '...' in index else index + ', ...'}]", region)

    def assign(self) -> Statement:
        """v0.assign(value), or through a view that has no name"""
        target = self.pick()
        a = self.array(target)
        weft, ours = target, target
        if self.random.random() < 0.5:
            after, ours = self.view_text(a, indexing=0.2)
            weft, ours = target + after, ours.format(target)
            a = eval(ours, self.names)
        result = self.store(f"{weft}.assign({{}})", ours, a, only_tensors=self.random.random() < 0.8)
        return result

    def store(self, weft: str, ours: str, region: Any, only_tensors: bool = False) -> Statement:
        dtype = str(region.dtype)
        if not only_tensors and self.random.random() < 0.3:
            value = self.number(dtype)
            return Statement(weft.format(value), f"{ours}[...] = {value}")
        e = self.fitted(region.shape, dtype)
        if is_expanded(region):
            if "= " in weft or is_the_same_view(e.value, region):  # which does nothing
                raise Unfit
            return Statement(f"refused(weft.ShapeError, lambda: {weft.format(e.weft)})", "pass")
        guards = (*e.guards, f"not is_expanded({ours})")
        if overlaps(region):
            return Statement(weft.format(e.weft), f"put({ours}, {e.numpy})", guards)
        return Statement(weft.format(e.weft), f"{ours}[...] = np.array({e.numpy})", (*guards, f"not overlaps({ours})"))

    def update(self) -> Statement:
        """v0 += value, v0[index] += value"""
        r = self.random
        target = self.pick()
        a = self.array(target)
        place = target
        if a.ndim and r.random() < 0.5:
            index = self.index(a.shape)
            place = f"{target}[{index}]"
            ours = f"{target}[{index if '...' in index else index + ', ...'}]"
            a = eval(ours, self.names)
        else:
            ours = f"{target}[...]"
        dtype = str(a.dtype)
        symbol, function = r.choice(ARITHMETIC if dtype != "bool" else BITWISE)
        if r.random() < 0.4:
            value = self.number(dtype)
            weft_value, numpy_value, guards = str(value), f"np.{dtype}({value})" if dtype != "bool" else str(value), ()
        else:
            e = self.fitted(a.shape, dtype)
            if promoted(e.dtype, dtype) != dtype:
                raise Unfit
            weft_value, numpy_value, guards = e.weft, f"new({e.numpy}, {numpy_type(dtype)})", e.guards
        if overlaps(a) and symbol == "+":
            return Statement(f"refused(weft.ShapeError, lambda: {place}.__iadd__({weft_value}))", "pass",
                             (f"overlaps({ours})", *guards))
        if not is_plainly_distinct(a):
            raise Unfit
        return Statement(f"{place} {symbol}= {weft_value}", f"{ours} = np.{function}({ours}, {numpy_value})",
                         (*guards, f"is_plainly_distinct({ours})"))

    def loop(self) -> Statement:
        """A loop of writes, which reads the same for NumPy."""
        r = self.random
        v = self.pick()
        a = self.array(v)
        if a.ndim == 0 or a.shape[0] < 2 or a.dtype == bool or not is_plainly_distinct(a):
            raise Unfit
        n, k = a.shape[0], r.randint(1, 3)
        w = next((x for x in r.sample(self.live, len(self.live)) if self.array(x).dtype == a.dtype
                  and self.array(x).shape == a.shape and is_plainly_distinct(self.array(x))), v)
        table = [self.number(str(a.dtype)) for _ in range(n)]
        order = r.choice([f"range({n})", f"range({n})", f"range({n - 1}, -1, -1)", f"range(0, {n}, 2)", f"range(1, {n})"])
        body = r.choice([
            f"{v}[i] = i", f"{v}[i] = i * {k} + 1", f"{v}[i] = i % {k + 1}", f"{v}[i] = {n} - i", f"{v}[i] = {table}[i]",
            f"{v}[i] = {k}", f"{v}[i] = i * 0.5", f"{v}[i] = {v}[i - 1] + {k}", f"{v}[i] = {v}[i - 1] * {k} - 1",
            f"{v}[0] += {k}", f"{v}[i] += {k}", f"{v}[i] = {v}[0] + i", f"{v}[i] = {v}[(i + 1) % {n}]",
            f"{v}[i] += {v}[{n - 1} - i]", f"{v}[i] = {w}[i] + {k}", f"{v}[i] = {w}[{n - 1} - i]", f"{v}[i // 2] = i",
            f"{v}[i] = {v}[i // 2] + 1", f"{v}[i:i + 2] = i", f"{v}[i:] = {k} - i", f"{v}[0] += {w}[i]",
            f"{v}[i] = i; {w}[{n - 1} - i] = {k}", f"{v}[i] = {w}[i - 1]; {w}[i] = {v}[i - 1] + 1",
            f"{v}[..., 0] = i", f"{v}[i, ..., -1] = i", f"{v}[i, ..., :1] = i + {k}", f"{v}[i] = {v}[i] * {w}[i] + i",
        ])
        return Statement(f"for i in {order}: {body}", f"for i in {order}: {body}",
                         (f"is_plainly_distinct({v})", f"is_plainly_distinct({w})"))

    def fancy_read(self) -> Statement:
        return random_fancy.fancy_read(self)

    def fancy_write(self) -> Statement:
        return random_fancy.fancy_write(self)

    def fancy_add(self) -> Statement:
        return random_fancy.fancy_add(self)

    # ---- values, copies, deletions, refusals

    def realize(self, together: bool = False) -> Statement:
        first = self.pick()
        most = len(self.live) if together else self.random.choice([0, 0, 0, 1, 2])
        others = self.random.sample(self.live, min(most, len(self.live)))
        kind = self.random.random()
        if kind < 0.1:
            return Statement(f"{first}.kernel_count()", "pass")
        realised = f"{first}.realize({', '.join(others)})"
        return Statement(f"assert {realised}.kernel_count() == 0" if kind < 0.3 else realised, "pass", runs=True)

    def snapshot(self, name: str) -> Statement:
        n = self.fresh("n")
        return Statement(f"{n} = {name}.numpy()", f"{n} = {name}.copy()", runs=True)

    def read(self) -> Statement:
        name = self.pick()
        a = self.array(name)
        if a.size and self.random.random() < 0.4:
            index = ", ".join([str(self.random.randrange(n)) for n in a.shape] or ["..."])
            s = self.fresh("s")
            return Statement(f"{s} = {name}[{index}].item()", f"{s} = {name}[{index}].item()", runs=True)
        return self.snapshot(name)

    def copy(self) -> Statement:
        source = self.pick()
        return self.bound(f"{source}.clone()", f"new({source}, {source}.dtype)", retire=0.1)

    def delete(self) -> Statement:
        if len(self.live) < 2:
            raise Unfit
        name = self.pick()
        self.live.remove(name)
        return Statement(f"del {name}", f"del {name}")

    def refuse(self) -> Statement:
        """A mistake leaves everything as it was."""
        name = self.pick()
        a = self.array(name)
        n = a.shape[0] if a.ndim else 0
        wrong = [f"refused(weft.ShapeError, lambda: {name}.reshape({a.size + 1}))"]
        if a.ndim:
            wrong.append(f"refused(weft.IndexError, lambda: {name}[{n}])")
            wrong.append(f"refused(weft.IndexError, lambda: {name}.__setitem__({n}, 3))")
            wrong.append(f"refused(weft.ShapeError, lambda: {name}.assign(Tensor.zeros({n + 2})))"
                         if a.shape[-1] != n + 2 else wrong[0])
            wrong.append(f"refused(weft.ShapeError, lambda: {name} + Tensor.zeros({a.shape[-1] + 2}))"
                         if a.shape[-1] != 1 else wrong[0])
        return Statement(self.random.choice(wrong), "pass")


def random_program(seed: str) -> Program:
    return Generator(seed).run()

