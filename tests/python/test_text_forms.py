"""Graphs as text: exact, short, drawn; and back."""

import copy
import pickle

import pytest

import weft
from weft.ir import AxisType, Ops, UOp, dtypes, parse


def kernel() -> UOp:
    r, out = UOp.range(16, 0, AxisType.GLOBAL), UOp.define_global(dtypes.float32, 16, 0)
    data = UOp.define_global(dtypes.float32, 16, 1)
    return UOp.sink(out.index(r).assign(data.index(r).load() * 2.0).end(r))


KERNEL = """\
%0 = CONST index 16
%1 = DEFINE_GLOBAL ptr<float32, global> (%0) 0
%2 = RANGE index (%0) 0:global
%3 = INDEX ptr<float32, global> (%1, %2)
%4 = DEFINE_GLOBAL ptr<float32, global> (%0) 1
%5 = INDEX ptr<float32, global> (%4, %2)
%6 = LOAD float32 (%5)
%7 = CONST float32 2.0
%8 = MUL float32 (%6, %7)
%9 = STORE void (%3, %8)
%10 = END void (%9, %2)
%11 = SINK void (%10)
"""


def test_exact_text() -> None:
    assert kernel().print() == KERNEL
    assert parse(KERNEL) == kernel()
    assert parse("# a comment\n\n" + KERNEL.replace("%1 ", "%out ").replace("%1,", "%out,")) == kernel()


def test_short_text() -> None:
    assert str(kernel()) == "sink(end(store(data0[r0], load(data1[r0])*2.0), r0))"
    assert repr(kernel().src[0].src[0]) == "STORE void (data0[r0], load(data1[r0])*2.0)"
    long = UOp.range(4, 0)
    for i in range(100):
        long = 1 - long
    assert len(str(long)) == 403 and str(long).endswith("...") and long.short(10) == "1 - (1 - (..."


def test_names_survive() -> None:
    for name in ['quo"te', "back\\slash", "new\nline", "größe", "\udcff", " ", "%0 = x"]:
        u = UOp.new(Ops.DEVICE, dtypes.void, (), name)
        assert u.arg == name and parse(u.print()) == u
        assert isinstance(str(u), str) and isinstance(repr(u), str)
    assert UOp.variable("ö" * 300, 0, 1).short(3).startswith("ö")


def test_parse_errors_name_the_place() -> None:
    for text, message in [
        ("", "no node"), ("%0 = FOO int32", "line 1, column 6: expected an op"),
        ("%0 = CONST int8 300", "a value of int8"), ("\n%0 = NEG int8 (%1)", "line 2, .*an earlier line"),
        ("%0 = CONST int33 1", "a dtype"), ("%0 = CONST int32 1 2", "the end of the line"),
    ]:
        with pytest.raises(weft.ParseError, match=message):
            parse(text)


def test_graphviz() -> None:
    dot = kernel().to_dot()
    assert dot.startswith("digraph") and "DEFINE_GLOBAL" in dot and dot.count("->") == 15


def test_summary() -> None:
    s = kernel().summary()
    assert (s.nodes, s.edges, s.depth) == (12, 15, 8)
    assert s.by_op[Ops.INDEX] == 2 and Ops.ADD not in s.by_op
    assert str(s) == repr(s) and str(s).startswith("12 nodes, 15 edges, depth 8: CONST 2")


def test_copies_and_pickles_are_equal() -> None:
    u = kernel()
    assert pickle.loads(pickle.dumps(u)) == u and copy.deepcopy(u) == u and copy.copy(u) == u
    assert pickle.loads(pickle.dumps([dtypes.float32.vec(2), Ops.ADD, AxisType.LOOP])) == [
        dtypes.float32.vec(2), Ops.ADD, AxisType.LOOP]


def test_keys_are_the_same_in_every_process() -> None:
    assert (UOp.range(4, 0) + 1).key == parse("%a = CONST index 4\n%b = RANGE index (%a) 0:loop\n"
                                              "%c = CONST index 1\n%d = ADD index (%b, %c)").key
