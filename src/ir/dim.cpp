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

}  // namespace

UOp Dim::as_uop(Arena& arena) const {
  return is_int() ? arena.make(Op::CONST, dtypes::index, {}, Arg::bits(uint64_t(value()))) : node();
}

std::string Dim::text() const { return is_int() ? std::to_string(value()) : short_form(node()); }

Dim add(Arena& arena, Dim a, Dim b) {
  if (a.is_int() && b.is_int()) return a.value() + b.value();
  if (a.is_int()) std::swap(a, b);  // constants stand last, and there is one of them
  if (b.is(0)) return a;
  const bool has_constant = b.is_int() && a.node().is(Op::ADD) && a.node().src(1).is_const();
  if (has_constant) {
    return add(arena, a.node().src(0), a.node().src(1).const_int() + b.value());
  }
  return combine(arena, Op::ADD, a, b);
}

Dim sub(Arena& arena, Dim a, Dim b) {
  if (a.is_int() && b.is_int()) return a.value() - b.value();
  if (a == b) return 0;
  if (!a.is_int() && a.node().is(Op::ADD)) {  // (x + y) - x is y
    const UOp x = a.node().src(0), y = a.node().src(1);
    if (Dim(x) == b) return y;
    if (Dim(y) == b) return x;
  }
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
