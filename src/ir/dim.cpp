// Sizes: integers where possible.
#include "ir/dim.h"

#include <cstdint>
#include <string>
#include <utility>

#include "ir/arena.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/print.h"

namespace weft {
namespace {

Dim combine(Arena& arena, Op op, Dim a, Dim b) {
  return arena.make(op, dtypes::index, {a.as_uop(arena), b.as_uop(arena)});
}

// symbols + constant: of an integer the symbols are 0.
struct Parts {
  Dim symbols;
  int64_t constant;
};
Parts parts_of(Dim d) {
  if (d.is_int()) return {0, d.value()};
  const UOp n = d.node();
  if (n.is(Op::ADD) && n.src(1).is_const()) return {n.src(0), n.src(1).const_int()};
  return {d, 0};
}

}  // namespace

UOp Dim::as_uop(Arena& arena) const {
  return is_int() ? arena.make(Op::CONST, dtypes::index, {}, Arg::bits(uint64_t(value()))) : node();
}

std::string Dim::text() const { return is_int() ? std::to_string(value()) : short_form(node()); }

Dim add(Arena& arena, Dim a, Dim b) {
  if (a.is_int() && b.is_int()) return a.value() + b.value();
  if (a.is_int()) std::swap(a, b);  // constants stand last, and there is one of them
  if (b.is(0)) return a;
  const Parts p = parts_of(a);
  if (b.is_int() && p.constant != 0) return add(arena, p.symbols, p.constant + b.value());
  return combine(arena, Op::ADD, a, b);
}

Dim sub(Arena& arena, Dim a, Dim b) {
  const Parts p = parts_of(a), q = parts_of(b);
  if (p.symbols == q.symbols) return p.constant - q.constant;
  if (!p.symbols.is_int() && p.symbols.node().is(Op::ADD)) {  // (x + y) - x is y
    const Dim x = p.symbols.node().src(0), y = p.symbols.node().src(1);
    if (x == q.symbols) return add(arena, y, p.constant - q.constant);
    if (y == q.symbols) return add(arena, x, p.constant - q.constant);
  }
  if (b.is_int() && p.constant != 0) return add(arena, p.symbols, p.constant - b.value());
  return b.is(0) ? a : combine(arena, Op::SUB, a, b);
}

Dim mul(Arena& arena, Dim a, Dim b) {
  if (a.is_int() && b.is_int()) return a.value() * b.value();
  if (a.is(0) || b.is(0)) return 0;
  if (a.is_int()) std::swap(a, b);
  return b.is(1) ? a : combine(arena, Op::MUL, a, b);
}

std::string text_of(Shape shape) {
  std::string out = "(";
  for (const Dim& d : shape) {
    if (out.size() > 1) out += ",";
    out += d.text();
  }
  return out + ")";
}

}  // namespace weft
