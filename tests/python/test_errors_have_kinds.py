"""Every error is a weft.Error and one of Python's own kinds."""

import builtins
import pickle

import numpy as np
import pytest

import weft
from weft.ir import Ops, Pat, RuleSet, Stage, UOp, dtypes, parse, rule

KINDS = [(weft.ShapeError, ValueError), (weft.DTypeError, TypeError), (weft.IndexError, builtins.IndexError),
         (weft.ParseError, ValueError), (weft.SpecError, ValueError), (weft.InternalError, RuntimeError),
         (weft.RewriteLoopError, RuntimeError)]


@pytest.mark.parametrize(("error", "base"), KINDS)
def test_kinds(error: type, base: type) -> None:
    assert issubclass(error, weft.Error) and issubclass(error, base)
    assert error.__module__ == "weft.errors" and error.__doc__


def test_shape_error() -> None:
    with pytest.raises(weft.ShapeError, match=r"\[reshape\] cannot view \(6\) as \(4\)"):
        UOp.buffer(dtypes.int32, 6, "CPU", 0).reshape(4)


def test_dtype_error() -> None:
    with pytest.raises(weft.DTypeError, match=r"\[const\] 300 is not a value of int8"):
        UOp.const(dtypes.int8, 300)


def test_index_error() -> None:
    out, r = UOp.define_global(dtypes.int32, 4, 0), UOp.range(5, 0)
    with pytest.raises(weft.IndexError):
        UOp.sink(out.index(r).assign(1).end(r)).evaluate({0: np.zeros(4, np.int32)})


def test_spec_error_has_the_node() -> None:
    u = UOp.buffer(dtypes.int32, 6, "CPU", 0).reshape(2, 3)
    with pytest.raises(weft.SpecError, match="not legal in the kernel stage") as error:
        UOp.sink(u).verify(Stage.KERNEL, after_pass="rangeify")
    assert error.value.node is not None and error.value.node.op in (Ops.BUFFER, Ops.DEVICE, Ops.RESHAPE)
    assert "after pass rangeify" in str(error.value)


def test_parse_error() -> None:
    with pytest.raises(weft.ParseError, match="line 1"):
        parse("%0 = ?")


def test_evaluation_of_what_has_no_value() -> None:
    with pytest.raises(weft.Error, match="n has no value"):
        (UOp.variable("n", 0, 9) + 1).evaluate()
    with pytest.raises(weft.SpecError, match="number of sources"):
        UOp.new(Ops.ADD, dtypes.int32).evaluate()
    with pytest.raises(weft.SpecError, match="number of sources"):
        UOp.new(Ops.ADD, dtypes.int32).simplify()


def test_loop_errors_pickle() -> None:
    x, y = Pat.var("x"), Pat.var("y")
    with pytest.raises(weft.RewriteLoopError) as error:
        (UOp.range(4, 0) + 1).rewrite(RuleSet([rule(x + y, lambda x, y: y + x, name="swap")]))
    again = pickle.loads(pickle.dumps(error.value))
    assert again.steps == error.value.steps and str(again) == str(error.value)


def test_names_that_are_no_text_do_not_hide_the_error() -> None:
    odd = UOp.new(Ops.VARIABLE, dtypes.index, (), "\udcff")
    with pytest.raises(weft.SpecError):
        odd.verify(Stage.KERNEL)
