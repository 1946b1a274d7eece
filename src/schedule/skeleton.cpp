// Hashing around scalars, sizes and offsets.
#include "schedule/skeleton.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"

namespace weft {
namespace {

using Kind = Number::Kind;

constexpr OpSet kAfterFirst = {Op::RESHAPE, Op::EXPAND, Op::SHRINK, Op::PAD, Op::VIEW};

bool is_index_const(UOp n) { return n.is_const() && n.dtype().is_index(); }
bool is_scalar(UOp n) { return n.is_const() && !n.dtype().is_index() && !n.dtype().is_bool(); }

std::span<const UOp> number_sources(UOp n) {
  if (kAfterFirst.has(n.op())) return n.srcs().subspan(1);
  if (n.is(Op::BUFFER) || n.is(Op::IOTA)) return n.srcs().first(1);
  return {};
}

// What of a number is structure.
uint64_t tag_of(const Number& number) {
  if (number.kind == Kind::kSize) return uint64_t(std::clamp<int64_t>(number.value, 0, 2));
  if (number.kind == Kind::kPlace) return 3 + uint64_t(number.value < 0);
  return 5;
}

}  // namespace

bool has_numbers(UOp n) {
  const std::span<const UOp> srcs = number_sources(n);
  return !srcs.empty() && std::ranges::all_of(srcs, is_index_const);
}

void add_numbers(UOp n, std::vector<Number>& to) {
  const std::span<const UOp> srcs = number_sources(n);
  const auto value = [&](size_t i) { return srcs[i].const_int(); };
  const size_t half = srcs.size() / 2;
  if (n.is(Op::SHRINK)) {
    for (size_t i = 0; i < half; i++) {
      to.push_back({value(i), Kind::kOffset});
      to.push_back({value(half + i) - value(i), Kind::kSize});
    }
    return;
  }
  for (size_t i = 0; i < srcs.size(); i++) {
    const bool is_place = n.is(Op::VIEW) && i >= half;
    const Kind other = n.is(Op::PAD) ? Kind::kOffset : Kind::kSize;
    to.push_back({value(i), is_place ? Kind::kPlace : other});
  }
}

Skeleton skeleton_of(std::span<const UOp> order) {
  Skeleton s;
  NodeMap places(order.back().arena());
  uint64_t place = 0;
  Hash128 h{};
  for (UOp n : order) {
    if (is_index_const(n)) continue;
    places.put_number(n, ++place);
    h = mix(h, uint64_t(n.op()) | uint64_t(n.dtype().packed()) << 8 | n.src_count() << 40);
    if (is_scalar(n)) {
      s.scalars.push_back(n);
      continue;
    }
    const Arg arg = arg_of(n);
    if (arg.kind != ArgKind::None) {
      h = arg.bytes.empty() ? mix(h, arg.word) : mix(h, hash_bytes_128(arg.bytes));
    }
    const bool takes_numbers = has_numbers(n);
    const size_t first = s.numbers.size();
    if (takes_numbers) add_numbers(n, s.numbers);
    for (size_t i = first; i < s.numbers.size(); i++) h = mix(h, tag_of(s.numbers[i]));
    for (UOp source : n.srcs()) {
      if (!is_index_const(source)) {
        h = mix(h, places.number(source));
      } else if (!takes_numbers) {
        h = mix(h, source.bits());
      }
    }
  }
  s.hash = h;
  return s;
}

}  // namespace weft
