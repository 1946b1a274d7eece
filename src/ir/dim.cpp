// Sizes: integers where possible.
#include "ir/dim.h"

#include <cstdint>
#include <string>

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
  if (a.is(0)) return b;
  return b.is(0) ? a : combine(arena, Op::ADD, a, b);
}

Dim sub(Arena& arena, Dim a, Dim b) {
  if (a.is_int() && b.is_int()) return a.value() - b.value();
  if (a == b) return 0;
  return b.is(0) ? a : combine(arena, Op::SUB, a, b);
}

Dim mul(Arena& arena, Dim a, Dim b) {
  if (a.is_int() && b.is_int()) return a.value() * b.value();
  if (a.is(0) || b.is(0)) return 0;
  if (a.is(1)) return b;
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
