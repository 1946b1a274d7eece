"""The examples in docstrings run, everything public has a docstring, and types are there."""

import doctest
import enum
import importlib.util
import inspect
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import numpy
import pytest

import weft
from weft import array_api, ir, nn, viz

ROOTS = {"weft.ir": ir, "weft.dtypes": weft.dtypes, **{name: getattr(ir, name) for name in ir.__all__},
         "weft": weft, "weft.viz": viz, "recorded": viz.recorded, "Server": viz.Server, "weft.array_api": array_api, "Tensor": weft.Tensor, "Counters": type(weft.counters),
         **{f"{module.__name__}{name}": getattr(module, name[1:]) if name else module
            for module in (nn, nn.lr_scheduler, nn.optim, nn.state) for name in ("", *(f".{n}" for n in module.__all__))}}


def members(name: str, value: object) -> Iterator[tuple[str, object]]:
    yield name, value
    if inspect.isclass(value):
        for inner, member in vars(value).items():
            if not inner.startswith("_"):
                yield f"{name}.{inner}", getattr(member, "__func__", member)


DOCUMENTED = [(n, v) for root, value in ROOTS.items() for n, v in members(root, value)]
EXAMPLES = [(n, v.__doc__) for n, v in DOCUMENTED
            if isinstance(v.__doc__, str) and ">>>" in v.__doc__ and n != "symbolic"]


@pytest.mark.parametrize(("name", "doc"), EXAMPLES, ids=[n for n, _ in EXAMPLES])
def test_examples(name: str, doc: str) -> None:
    names = {**{n: getattr(m, n) for m in (ir, viz) for n in m.__all__}, "Tensor": weft.Tensor, "nn": weft.nn, "numpy": numpy}
    weft._core.clear_schedule_cache()  # names of kernels do not depend on what ran before
    test = doctest.DocTestParser().get_doctest(inspect.cleandoc(doc), names, name, name, 0)
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 25


def test_everything_has_a_docstring() -> None:
    obvious = ("is_", "line", "file", "name", "before", "after", "nanoseconds", "steps", "tried", "fired", "kind",
               "rule", "ops", "dtypes", "value", "srcs", "ends_in", "pass_name", "node")
    bare = [n for n, v in DOCUMENTED if not getattr(v, "__doc__", None) and not isinstance(v, enum.Enum)
            and not n.split(".")[-1].startswith(obvious)]
    assert bare == []


def test_the_version_is_that_of_the_project() -> None:
    project = (pathlib.Path(__file__).parents[2] / "CMakeLists.txt").read_text()
    assert f"project(weft VERSION {weft.__version__} " in project


def test_stubs_name_what_there_is() -> None:
    stub = (pathlib.Path(weft.__file__).parent / "_core.pyi").read_text()
    assert (pathlib.Path(weft.__file__).parent / "py.typed").exists()
    for name in dir(weft._core):
        assert name.startswith("_") or any(f"{kind}{name}" in stub for kind in ("class ", "def ", "\n")), name
    assert "Incomplete" not in stub and "def arg(self) -> Any" in stub


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_a_program_of_a_user_is_typed(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("""
from weft.ir import Ops, Pat, Rule, RuleSet, UOp, dtypes, rule

x = Pat.var("x", dtypes.floats)
drop: Rule = rule(x * 1, lambda x: x)

@rule(x + 0, name="add-zero")
def add_zero(x: UOp, ctx: object) -> UOp | None:
    return x if x.op is Ops.MUL else None

u: UOp = (UOp.range(4, 0) * 2 + 1).rewrite(RuleSet([drop, add_zero])).simplify()
reveal_type(u.src)
reveal_type(1 - u < 2)
reveal_type(u == u)
wrong: int = u.dtype
u.reshape("a")
""")
    environment = {**os.environ, "MYPYPATH": str(pathlib.Path(weft.__file__).parents[1])}
    out = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", program],
                         capture_output=True, text=True, env=environment, cwd=tmp_path).stdout
    lines = [line.split(": ", 2)[2] for line in out.splitlines() if "program.py" in line and "note: See" not in line]
    assert lines[0].startswith("Revealed type is ") and "tuple[weft._core.UOp, ...]" in lines[0]
    assert lines[1] == 'Revealed type is "weft._core.UOp"' and "bool" in lines[2]
    assert "Incompatible types in assignment" in lines[3] and "reshape" in lines[4] and len(lines) == 5, out


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_a_program_of_tensors_is_typed(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("""
from weft import Tensor, counters, dtypes

a = Tensor([1.0, 2.0]).float() + 1
a += 2 - a[0] * a[:, None, ..., ::2].T @ a
a[1:3] = (a == a).where(a, 0.5)
n: int = a.numel() + len(a) + counters.kernels
s: float = float(a.sum(axis=(0, 1), keepdim=True, dtype=dtypes.float64))
shape: tuple[int, ...] = a.reshape(2, -1).permute((1, 0)).shape
rows: list[Tensor] = [row.realize(a) for row in a]
reveal_type(a < 3)
reveal_type(1 / a)
reveal_type(a.numpy())
wrong: int = a.dtype
a["b"]
a + "c"
""")
    environment = {**os.environ, "MYPYPATH": str(pathlib.Path(weft.__file__).parents[1])}
    out = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", program],
                         capture_output=True, text=True, env=environment, cwd=tmp_path).stdout
    lines = [line.split(": ", 2)[2] for line in out.splitlines() if ": error:" in line or "Revealed" in line]
    assert lines[0] == lines[1] == 'Revealed type is "weft._core.Tensor"', out
    assert "ndarray" in lines[2] and len(lines) == 6, out
