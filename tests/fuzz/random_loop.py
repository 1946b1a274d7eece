"""Random loops of reads and writes, as text that means the same to NumPy, weft and PyTorch (loop_models.py).

A program is a list of steps: tensors, loops with the statements of their bodies, and what is read behind them. A tensor
of one axis has more than twice as many elements as a loop has iterations, so that every index below is within it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

MOST_STEPS = 300  # iterations of a loop
DTYPES = ["float32"] * 6 + ["float64"] * 2 + ["int32"] * 3 + ["int64", "uint8", "bool", "float16"]
FLOATS = ("float16", "float32", "float64")
SPARE = 8  # elements past those that i, 2*i and i + 4 reach
FIRST = 3  # where loops begin: i - 3 is within


class Step(NamedTuple):
    """`loop` numbers the loop whose head (`for ...`) or statement this is; 0 for what stands before and behind them."""

    loop: int
    text: str


Program = list[Step]


def text_of(program: Program) -> str:
    lines, heads = [], set()
    for step in program:
        if step.loop == 0 or step.text.startswith("for "):
            lines.append(step.text)
            heads.add(step.loop)
        elif step.loop in heads:  # a statement whose head is left out goes with it
            lines.append(f"    {step.text}")
    text = ""
    for i, line in enumerate(lines):
        text += line + "\n"
        if line.startswith("for ") and not (i + 1 < len(lines) and lines[i + 1].startswith("    ")):
            text += "    pass\n"
    return text


class Tensor(NamedTuple):
    name: str
    dtype: str
    rank: int
    is_input: bool = False  # nothing writes to it


class Generator:
    """`gradients`: sums, products by numbers and choices of float64 alone, which have gradients everywhere. `plain`: only
    what PyTorch spells in the same way."""

    def __init__(self, seed: str, *, gradients: bool = False, plain: bool = False) -> None:
        self.r = random.Random(seed)
        self.gradients, self.plain = gradients, plain
        r = self.r
        self.end = FIRST + r.choice([2, 3, r.randint(4, 40), r.randint(20, 120), r.randint(60, MOST_STEPS)])
        self.length = 2 * self.end + SPARE
        self.columns = r.randint(4, 8)
        # PyTorch does not round a number to float16 before it computes with it.
        self.dtype = "float64" if gradients else r.choice([d for d in DTYPES if not plain or d != "float16"])
        self.is_float = self.dtype in FLOATS
        # Sines differ in their last bits: what is computed with them is compared with a tolerance, and nothing else in
        # the program makes a difference larger.
        self.rough = self.dtype in ("float32", "float64") and not gradients and r.random() < 0.08
        self.steps: Program = []
        self.tensors: list[Tensor] = []
        self.carried: list[str] = []
        self.numbers: list[str] = []  # Python's own, which the body changes

    # ---- what is there

    def choice(self, *options: str) -> str:
        return self.r.choice(options)

    def begin(self) -> None:
        r = self.r
        has_rows = r.random() < 0.3
        for k in range(r.randint(1, 3)):
            rank = 2 if has_rows and (k == 0 or r.random() < 0.4) else 1
            self.tensor(f"{'abd'[k]}", rank, is_input=False)
        self.tensor("c", 1, is_input=True)
        if has_rows:
            self.tensor("w", 0, is_input=True)  # as long as a row
        if r.random() < 0.3:
            table = self.choice("permutation", "permutation", "places")
            self.say(f"p = {table}({self.length}, {r.randrange(99)})")
            self.has_table = True
        else:
            self.has_table = False
        self.has_tensor = not self.gradients and r.random() < 0.15
        if self.has_tensor:  # of indices
            self.say(f"t = data('int32', {self.length}, {r.randrange(99)}) % {self.length}")
            if r.random() < 0.5:
                self.say("now(t)")
        self.views()

    has_table = has_tensor = False

    def tensor(self, name: str, rank: int, is_input: bool) -> None:
        r = self.r
        shape = {0: f"{self.columns}", 1: f"{self.length}", 2: f"({self.end + SPARE}, {self.columns})"}[rank]
        kind = "data" if is_input else self.choice("data", "data", "lazy", "zeros")
        rank = max(rank, 1)
        leaf = ", leaf=True" if self.gradients and kind == "data" else ""
        seed = "" if kind == "zeros" else f", {r.randrange(99)}"
        self.say(f"{name} = {kind}('{self.dtype}', {shape}{seed}{leaf})")
        if name == "w":
            return
        self.tensors.append(Tensor(name, self.dtype, rank, is_input))

    def views(self) -> None:
        """Views that are made before the loops, through which these read and write."""
        long = [t for t in self.tensors if t.rank == 1 and not t.is_input]
        if long and self.r.random() < 0.15:
            t = self.r.choice(long)
            # As many elements as the indices of a loop need.
            forwards = self.plain or self.gradients or self.r.random() < 0.5
            self.say(f"v = view({t.name}, {1 if forwards else -1})")
            self.tensors.append(Tensor("v", self.dtype, 1))

    def say(self, text: str, loop: int = 0) -> None:
        self.steps.append(Step(loop, text))

    # ---- numbers and indices

    def number(self) -> str:
        r = self.r
        if self.dtype == "bool":
            return self.choice("True", "False")
        if self.dtype == "uint8":
            return str(r.randint(0, 7))
        if not self.is_float:
            return str(r.randint(-5, 9))
        return self.choice("0.5", "0.25", "1.0", "-1.5", "3.0", "0.1", f"{r.randint(-9, 9)}.0")

    def changing(self) -> str:
        """A Python number that differs from step to step."""
        of_i = self.choice("i", "i % 5", "i * 2 + 1", "i // 3", *self.numbers)
        if self.dtype == "bool":
            return f"(({of_i}) % 2 == 0)"
        if self.dtype == "uint8":
            return f"({of_i}) % 50"
        return self.choice(of_i, f"{of_i} * 0.5", f"1 / ({of_i} + 1)") if self.is_float else of_i

    def index(self, near: bool = False) -> str:
        """Of an axis of `length` elements, by i."""
        options = ["i", "i", "i", "i - 1", "i - 1", "i - 2", "i - 3", "i + 1", "i + 2"]
        if not near:
            options += ["2 * i", "2 * i + 1", "-i - 1", f"{self.length - 1} - i", "0", str(self.r.randrange(self.length)),
                        "i // 2", "i % 4", f"(7 * i + 3) % {self.length}", "-1"]
            options += ["p[i]", "p[i]", "p[i + 1]"] if self.has_table else []
            options += ["t[i]"] if self.has_tensor else []
            options += [f"{n} % {self.length}" for n in self.numbers]
        return self.r.choice(options)

    def place(self, t: Tensor, near: bool = False) -> str:
        """One element of it."""
        if t.rank == 1:
            return f"{t.name}[{self.index(near)}]"
        row = self.choice("i", "i", "i - 1", "i - 2", "i + 1", "0", "i // 2")
        column = self.choice("j", "j - 1", "j + 1") if self.is_nested else \
            self.choice("0", "1", f"{self.columns - 1}", f"i % {self.columns}", "-1")
        return f"{t.name}[{row}, {column}]"

    is_nested = False

    # ---- expressions, of one element

    def readable(self, rank: int) -> list[Tensor]:
        if self.rough:
            return [t for t in self.tensors if t.is_input and t.rank == rank] or self.tensors
        return [t for t in self.tensors if t.rank == rank]

    def element(self) -> str:
        r = self.r
        if self.carried and r.random() < 0.3:
            return r.choice(self.carried)
        options = [t for t in self.tensors if not t.is_input or r.random() < 0.6]
        return self.place(r.choice(options), near=r.random() < 0.6)

    def combined(self, x: str, y: str) -> str:
        """Two operands, of which either may be a number."""
        if self.dtype == "bool":
            return self.choice(f"{x} & {y}", f"{x} | {y}", f"{x} ^ {y}")
        plain = [f"{x} + {y}", f"{x} + {y}", f"{x} - {y}", f"mn({x}, {y})", f"mx({x}, {y})"]
        if self.is_float:
            return self.r.choice([*plain, f"({x} + {y}) * 0.5", f"{x} * 0.5 + {y}", f"{x} - {y} * 0.25"])
        more = [f"{x} * 3 + {y}", f"{x} ^ {y}", f"{x} & {y}"]
        return self.r.choice([*plain, *more, f"{x} // 3 + {y}", f"{x} % 7 + {y}"])

    def expression(self, leaf: Callable[[], str], depth: int = 2) -> str:
        r = self.r
        x = leaf()
        kind = r.random()
        if depth == 0 or kind < 0.15:
            return str(x)
        if kind < 0.3:
            y = self.number() if r.random() < 0.6 else self.changing()
            symbol = self.choice("&", "|", "^") if self.dtype == "bool" else self.choice("+", "+", "-")
            return f"{x} {symbol} {y}" if r.random() < 0.8 else f"{y} {symbol} {x}"
        if kind < 0.4:
            if self.dtype == "bool":
                return f"~{x}"
            return f"{x} * {self.choice('0.5', '0.1', '-1.0') if self.is_float else self.choice('2', '3')}"
        if kind < 0.5 and self.dtype not in ("bool", "uint8"):
            return f"where({leaf()} > {self.number()}, {x}, {self.expression(leaf, depth - 1)})"
        if kind < 0.57 and self.dtype not in ("bool", "uint8"):
            return f"-{x}" if self.gradients or r.random() < 0.5 else f"absolute({x})"
        y = self.expression(leaf, depth - 1)
        if r.random() < 0.12:
            return f"({x} if {self.condition()} else {y})"
        return self.combined(str(x), y if y.isidentifier() or y.endswith("]") and " " not in y else f"({y})")

    def condition(self) -> str:
        half = FIRST + (self.end - FIRST) // 2
        return self.choice("i % 2", "i % 2 == 0", "i % 3 == 1", f"i > {half}", f"i < {half}", f"i == {half}", "i % 4 < 2",
                           "i & 5")

    # ---- statements

    def target(self, rank: int = 0) -> Tensor:
        return self.r.choice([t for t in self.tensors if not t.is_input and (rank == 0 or t.rank == rank)])

    def write(self) -> str:
        return f"{self.place(self.target(), near=self.r.random() < 0.5)} = {self.expression(self.element)}"

    def update(self) -> str:
        symbol = self.choice("&", "|", "^") if self.dtype == "bool" else self.choice("+", "+", "-")
        value = self.choice(self.number(), self.changing(), self.expression(self.element, 1))
        return f"{self.place(self.target())} {symbol}= {value}"

    def constant(self) -> str:
        return f"{self.place(self.target())} = {self.choice(self.number(), self.changing())}"

    def rough_write(self) -> str:
        x = "c[" + self.index(near=True) + "]"
        value = self.choice(f"sin({x})", f"cos({x})", f"sin({x}) if i % 2 else cos({x})", f"sin({x}) * 0.5 + {x}")
        return f"{self.place(self.target())} = {value}"

    def swap(self) -> str:
        t = self.target()
        x, y = self.place(t), self.place(t)
        return self.choice(f"{x}, {y} = copy({y}), copy({x})", f"old = copy({x}); {x} = {y}; {y} = old",
                           f"{x}, {y} = {x} + 0, copy({y})" if self.dtype != "bool" else f"{x}, {y} = copy({y}), ~{x}")

    def order(self) -> str:
        t = self.target()
        x, y = self.place(t, near=True), self.place(t, near=True)
        if self.dtype == "bool":
            return f"{x}, {y} = {x} & {y}, {x} | {y}"
        return f"{x}, {y} = mn({x}, {y}), mx({x}, {y})"

    def carry(self) -> str:
        """The next value of what Python holds."""
        s, x = self.r.choice(self.carried), self.place(self.r.choice(self.tensors), near=True)
        if self.dtype == "bool":
            return self.choice(f"{s} = {s} ^ {x}", f"{s} = {s} & {x} | True")
        if self.is_float:
            return self.choice(f"{s} = {s} * 0.5 + {x}", f"{s} = {s} + {x}", f"{s} = mx({s}, {x})", f"{s} = {x} - {s} * 0.25",
                               f"{s} += {x}" if not self.gradients else f"{s} = {s} + {x}")
        return self.choice(f"{s} = {s} + {x}", f"{s} = {s} * 3 + {x}", f"{s} = mx({s}, {x})", f"{s} += {x}")

    def count(self) -> str:
        n = self.r.choice(self.numbers)
        return self.choice(f"{n} = ({n} * 5 + 3) % 64", f"{n} = {n} + i % 3", f"{n} += 2", f"{n} = i - {n} % 3")

    def slices(self) -> str:
        """Several elements of one axis."""
        r = self.r
        w = r.randint(2, 5)
        t = self.target(1)

        def part() -> str:
            source = r.choice([x for x in self.tensors if x.rank == 1]).name
            if w <= self.columns and r.random() < 0.1 and any(x.rank == 2 for x in self.tensors):
                rows = r.choice([x for x in self.tensors if x.rank == 2])
                return f"{rows.name}[{self.choice('i', 'i - 1', '0')}, :{w}]"
            return f"{source}[{span()}]"

        def span() -> str:
            at = self.choice("i", "i", "i - 1", "i + 1", "i - 3", "i // 2", "2", str(self.end), f"i % {self.end}")
            kind = r.random()
            if kind < 0.75:
                return f"{at}:{at} + {w}"
            if kind < 0.9:
                return f"{at}:{at} + {2 * w}:2"
            return f"{at} + {w}:{at}:-1" if not self.plain and not self.gradients else f"{at}:{at} + {w}"

        kind = r.random()
        if kind < 0.25:
            return f"{t.name}[{span()}] = {self.choice(self.number(), self.changing())}"
        if kind < 0.45:
            symbol = "^" if self.dtype == "bool" else "+"
            return f"{t.name}[{span()}] {symbol}= {self.choice(self.number(), self.element())}"
        return f"{t.name}[{span()}] = {self.expression(lambda: f'copy({part()})', 1)}"

    def rows(self) -> str:
        """Rows and blocks of a matrix."""
        r = self.r
        t = self.target(2)

        def row() -> str:
            if r.random() < 0.2:
                return "copy(w)"
            source = r.choice([x for x in self.tensors if x.rank == 2]).name
            return f"copy({source}[{self.choice('i', 'i - 1', 'i - 1', 'i - 2', 'i + 1', '0', 'i // 2')}])"

        kind = r.random()
        if kind < 0.5:
            return f"{t.name}[{self.choice('i', 'i', 'i + 1', 'i // 2')}] = {self.expression(row, 1)}"
        if kind < 0.65:
            return f"{t.name}[:, i % {self.columns}] = {self.choice(self.number(), self.changing(), self.element())}"
        top, left = self.choice("i", "i - 2", "i // 2", "p[i] % 3" if self.has_table else "i % 5"), r.randint(0, 2)
        height, width = r.randint(1, 3), r.randint(1, 2)
        block = f"{t.name}[{top}:{top} + {height}, {left}:{left + width}]"
        symbol = "^=" if self.dtype == "bool" else "+="
        return f"{block} {self.choice('=', symbol)} {self.choice(self.number(), self.changing(), self.element())}"

    def stencil(self) -> str:
        """All of a tensor at once, from itself or another one: an iteration is a sweep."""
        t, u = self.target(1), self.r.choice([x for x in self.tensors if x.rank == 1])
        if self.dtype == "bool":
            return f"{t.name}[1:-1] = {u.name}[:-2] ^ {u.name}[2:]"
        if self.is_float:
            return self.choice(f"{t.name}[1:-1] = ({u.name}[:-2] + {u.name}[2:]) * 0.5",
                               f"{t.name}[1::2] = {u.name}[::2] * 0.5", f"{t.name}[::2] = {u.name}[1::2] + {self.number()}")
        return self.choice(f"{t.name}[1:-1] = {u.name}[:-2] + {u.name}[2:]", f"{t.name}[1::2] = {u.name}[::2] + 1")

    def read(self) -> str:
        """Of what is there in the middle of a loop, kept to be looked at behind it."""
        t = self.r.choice([x for x in self.tensors if not x.is_input])
        what = [f"total({t.name})", f"total({t.name})", f"copy({t.name})", f"copy({self.place(t)})", self.place(t, near=True) +
                (" ^ True" if self.dtype == "bool" else " + 1")]
        if t.rank == 1:
            what.append(f"total({t.name}[i:])")
            what.append(f"copy({t.name}[i - 2:i + 2])")
        every = self.choice("i % 7 == 0", "i % 7 == 0", "i % 20 == 0", f"i == {self.r.randrange(FIRST, self.end)}")
        if self.r.random() < 0.1:
            return f"if i == {self.r.randrange(FIRST, self.end)}: now({t.name})"
        return f"if {every}: keep({self.r.choice(what)})"

    def statement(self) -> str:
        r = self.r
        kinds = [self.write] * 6 + [self.update] * 3 + [self.constant, self.swap, self.order]
        if self.rough:
            kinds = [self.rough_write] * 3 + [self.constant]
        else:
            kinds += [self.carry] * (3 if self.carried else 0) + [self.count] * (1 if self.numbers else 0)
            if any(t.rank == 1 and not t.is_input for t in self.tensors):
                kinds += [self.slices] * 2
            if any(t.rank == 2 and not t.is_input for t in self.tensors) and not self.is_nested:
                kinds += [self.rows] * 4
        text = r.choice(kinds)()
        if r.random() < 0.2:
            condition = self.condition()
            return f"{text} if {condition} else {self.expression(self.element)}" if r.random() < 0.3 and self.is_plain(text) \
                else f"if {condition}: {text}"
        return text

    def is_plain(self, text: str) -> bool:
        """One write of one element."""
        return "] = " in text and text.count(" = ") == 1 and ";" not in text and "," not in text.split(" = ")[0] and " if " not in text and \
            ":" not in text.split(" = ")[0] and not self.rough

    # ---- loops

    def head(self) -> str:
        r, end = self.r, self.end
        self.is_nested = any(t.rank == 2 for t in self.tensors) and r.random() < 0.5
        if self.is_nested:
            rows = max(2, min(end - FIRST, MOST_STEPS // self.columns))
            return f"for i, j in product(range({FIRST}, {FIRST + rows}), range(1, {self.columns - 1})):"
        kind = r.random()
        if kind < 0.75:
            return f"for i in range({FIRST}, {end}):"
        if kind < 0.9:
            return f"for i in range({end - 1}, {FIRST - 1}, -1):"
        return f"for i in range({FIRST}, {end}, 2):"

    def loop(self, number: int) -> None:
        r = self.r
        self.carried, self.numbers = [], []
        if not self.rough and r.random() < 0.3:
            for k in range(r.choice([1, 1, 2, 3])):
                self.say(f"s{k} = copy(c[{k}])")
                self.carried.append(f"s{k}")
        if r.random() < 0.15:
            self.say(f"n0 = {r.randint(1, 9)}")
            self.numbers.append("n0")
        self.say(self.head(), number)
        if not self.is_nested and not self.rough and r.random() < 0.08 and any(
                t.rank == 1 and not t.is_input for t in self.tensors):
            self.say(self.stencil(), number)
        else:
            if self.carried:
                self.say(self.carry(), number)
            for _ in range(r.choice([1, 1, 1, 2, 2, 3, 4, 5])):
                self.say(self.statement(), number)
        for s in self.carried:
            if r.random() < 0.5:
                self.say(f"{self.place(self.target())} = {s}", number)
        if r.random() < 0.2 and not self.is_nested:
            self.say(self.read(), number)
        for s in self.carried:
            self.say(f"keep(copy({s}))")

    def run(self) -> Program:
        self.begin()
        for number in range(1, 3 if self.r.random() < 0.2 else 2):
            self.loop(number)
        return self.steps


def random_loop(seed: str, *, gradients: bool = False, plain: bool = False) -> Program:
    return Generator(seed, gradients=gradients, plain=plain).run()
