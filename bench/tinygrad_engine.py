"""The benchmark's random graph and rules in tinygrad's engine; prints one JSON object.

    python tinygrad_engine.py RULES.json GROUPS REPEATS
"""
import gc
import json
import os
import sys
import time

os.environ.setdefault("REWRITE_STACK_LIMIT", "100000000")
os.environ.setdefault("DEV", "CPU")
from tinygrad.dtype import dtypes  # noqa: E402
from tinygrad.uop.ops import Ops, PatternMatcher, UOp, UPat, graph_rewrite  # noqa: E402

MASK = (1 << 64) - 1
INT, BOOL = dtypes.weakint, dtypes.bool
# weft's name of an op, and tinygrad's
OPS = {"const": Ops.CONST, "add": Ops.ADD, "mul": Ops.MUL, "idiv": Ops.FLOORDIV, "mod": Ops.FLOORMOD,
       "max": Ops.MAX, "cmplt": Ops.CMPLT, "where": Ops.WHERE, "sink": Ops.SINK}
NAMES = {v: k.upper() for k, v in OPS.items()}
COMMUTES = {"add", "mul", "max"}
PYTHON = {"add": "+", "sub": "-", "mul": "*", "idiv": "//", "mod": "%", "cmplt": "<", "cmpeq": "==", "and": "and"}


class RandomGraph:
  """The same numbers in the same order as random_graph.h."""
  def __init__(self, seed): self.state, self.calls = seed, 0
  def below(self, n):
    self.state = (self.state*6364136223846793005 + 1442695040888963407) & MASK
    return ((self.state >> 33) & 0xffffffff) % n
  def make(self, op, dtype, src, arg=None):
    self.calls += 1
    return UOp(op, dtype, src, arg)
  def constant(self, v): return self.make(Ops.CONST, INT, (), v)
  def binary(self, op, a, b): return self.make(op, BOOL if op is Ops.CMPLT else INT, (a, b))
  def expression(self, depth):
    if depth == 0 or self.below(8) == 0:
      if self.below(3) == 0: return self.constant(1 + self.below(8))
      return self.make(Ops.NOOP, INT, (), self.below(16))
    kind = self.below(9)
    a = self.expression(depth-1)
    if kind == 4: return self.binary(Ops.MUL, a, self.constant(self.below(8)))
    if kind == 5: return self.binary(Ops.FLOORDIV, a, self.constant(1 + self.below(8)))
    if kind == 6: return self.binary(Ops.FLOORMOD, a, self.constant(1 + self.below(8)))
    if kind == 8:
      condition = self.binary(Ops.CMPLT, a, self.constant(self.below(16)))
      t = self.expression(depth-1)
      return self.make(Ops.WHERE, INT, (condition, t, self.expression(depth-1)))
    b = self.expression(depth-1)
    return self.binary(Ops.MUL if kind == 3 else Ops.MAX if kind == 7 else Ops.ADD, a, b)
  def graph(self, groups):
    tops = []
    for _ in range(groups):
      tops.append(self.make(Ops.SINK, dtypes.void, tuple(self.expression(5) for _ in range(64))))
    return self.make(Ops.SINK, dtypes.void, tuple(tops))


def parse(text):
  """An s-expression to nested lists."""
  tokens = text.replace("(", " ( ").replace(")", " ) ").split()
  stack = [[]]
  for token in tokens:
    if token == "(": stack.append([])
    elif token == ")":
      done = stack.pop()
      stack[-1].append(done)
    else: stack[-1].append(token)
  return stack[0][0]

def is_number(e): return isinstance(e, str) and e.lstrip("-").isdigit()
def is_nonconst(e): return isinstance(e, list) and e[0] == "nonconst"

# ---- a rule as the Python that one would write for tinygrad by hand
def pattern(e):
  if is_nonconst(e): return pattern(e[1])
  if isinstance(e, list):
    src = ", ".join(pattern(x) for x in e[1:])
    return f"UPat(Ops.{OPS[e[0]].name}, src=" + (f"[{src}])" if e[0] in COMMUTES else f"({src},))")
  if is_number(e): return f"UPat(Ops.CONST, arg={e})"
  return f"UPat(Ops.CONST, name='{e}')" if e.startswith("c") else f"UPat(name='{e}')"
def value(e):
  if not isinstance(e, list): return f"{e}.arg" if e.startswith("c") else e
  if e[0] == "max": return f"max({value(e[1])}, {value(e[2])})"
  return f"({value(e[1])} {PYTHON[e[0]]} {value(e[2])})"
def build(e, dtype):
  if not isinstance(e, list): return f"UOp(Ops.CONST, {dtype}, (), {e})" if is_number(e) else e
  if e[0] == "fold": return f"UOp(Ops.CONST, {dtype}, (), {value(e[1])})"
  inner = "INT" if e[0] == "cmplt" else dtype
  return f"UOp(Ops.{OPS[e[0]].name}, {dtype}, (" + ", ".join(build(x, inner) for x in e[1:]) + ",))"
def leaves(e): return sum((leaves(x) for x in e[1:]), []) if isinstance(e, list) else [e]
def nonconsts(e):
  if is_nonconst(e): return [e[1]]
  return sum((nonconsts(x) for x in e[1:]), []) if isinstance(e, list) else []
def divisors(e):
  if not isinstance(e, list): return []
  own = [e[2]] if e[0] in ("idiv", "mod") and isinstance(e[2], str) and e[2].startswith("c") else []
  return own + sum((divisors(x) for x in e[1:]), [])

def matcher(path):
  rows = []
  for r in json.load(open(path)):
    lhs, rhs = parse(r["lhs"]), (parse(r["rhs"]) if "(" in r["rhs"] else r["rhs"])
    when = parse(r["when"]) if r["when"] else None
    guards = [f"{n}.op is not Ops.CONST" for n in nonconsts(lhs)]
    if when: guards.append(value(when))
    # weft's division is total: x // 0 is 0; Python's is not, and these folds never need it
    guards = [f"{d}.arg != 0" for d in dict.fromkeys(divisors(rhs) + divisors(when))] + guards
    names = sorted({n for n in leaves(lhs) if not is_number(n)})
    body = build(rhs, "BOOL" if lhs[0] == "cmplt" else "INT")
    rows.append(f"  ({pattern(lhs)}, lambda {', '.join(names)}: {body}"
                + (f" if {' and '.join(guards)} else None" if guards else "") + "),")
  scope = dict(globals())
  exec("PM = PatternMatcher([\n" + "\n".join(rows) + "\n])", scope)
  return scope["PM"]

def fingerprint(root):
  numbers, h = {}, 14695981039346656037
  for n in root.toposort():
    if n.op is Ops.NOOP: words = [ord("v"), n.arg]
    else: words = [ord(c) for c in NAMES[n.op]] + [int(n.arg) & MASK if n.op is Ops.CONST else 0]
    words += [numbers[s] for s in n.src]
    for w in words: h = ((h ^ w) * 1099511628211) & MASK
    numbers[n] = len(numbers)
  return len(numbers), f"{h:016x}"

def main():
  rules, groups = matcher(sys.argv[1]), int(sys.argv[2])
  gc.disable()  # the kinder setting for it
  generator = RandomGraph(42)
  start = time.thread_time()
  root = generator.graph(groups)
  make_s = time.thread_time() - start
  nodes_in = len(root.toposort())
  graph_rewrite(RandomGraph(1).graph(1), rules)  # compiles the matchers
  rewrite_s, out = float("inf"), None
  for _ in range(int(sys.argv[3])):
    out = None
    start = time.thread_time()
    out = graph_rewrite(root, rules)
    rewrite_s = min(rewrite_s, time.thread_time() - start)
  nodes_out, h = fingerprint(out)
  print(json.dumps({"nodes_in": nodes_in, "calls": generator.calls, "make_s": make_s, "rewrite_s": rewrite_s,
                    "nodes_out": nodes_out, "fingerprint": h}))

if __name__ == "__main__": main()
