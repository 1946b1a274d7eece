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

void mark_spread_scalars(std::span<const UOp> order, NodeMap& spread) {
  for (UOp n : order) {
    const bool passes_on = kAfterFirst.has(n.op()) && spread.has(n.src(0)) && has_numbers(n);
    if (is_scalar(n) || passes_on) spread.put_number(n, 1);
  }
}

namespace {

class Builder {
 public:
  Builder(std::span<const UOp> order, Scalars scalars)
      : order_(order), places_(order.back().arena()), spread_(order.back().arena()) {
    if (scalars == Scalars::kByUse) mark_spread_scalars(order, spread_);
  }

  Skeleton run() {
    uint64_t place = 0;
    for (UOp n : order_) {
      if (is_index_const(n) || spread_.has(n)) continue;
      places_.put_number(n, ++place);
      add(n);
      if (is_scalar(n)) continue;
      const bool takes_numbers = has_numbers(n);
      for (UOp source : n.srcs()) {
        if (spread_.has(source)) {
          add_spread(source);
        } else if (!is_index_const(source)) {
          hash(places_.number(source));
        } else if (!takes_numbers) {
          hash(source.bits());
        }
      }
    }
    return std::move(out_);
  }

 private:
  void hash(uint64_t word) { out_.hash = mix(out_.hash, word); }

  // What n is, without its sources.
  void add(UOp n) {
    hash(uint64_t(n.op()) | uint64_t(n.dtype().packed()) << 8 | n.src_count() << 40);
    if (is_scalar(n)) {
      out_.scalars.push_back(n);
      return;
    }
    const Arg arg = arg_of(n);
    if (arg.kind != ArgKind::None) {
      out_.hash =
          arg.bytes.empty() ? mix(out_.hash, arg.word) : mix(out_.hash, hash_bytes_128(arg.bytes));
    }
    const size_t first = out_.numbers.size();
    if (has_numbers(n)) add_numbers(n, out_.numbers);
    for (size_t i = first; i < out_.numbers.size(); i++) hash(tag_of(out_.numbers[i]));
  }

  void add_spread(UOp n) {
    for (; !is_scalar(n); n = n.src(0)) add(n);
    add(n);
  }

  std::span<const UOp> order_;
  NodeMap places_, spread_;
  Skeleton out_{};
};

}  // namespace

Skeleton skeleton_of(std::span<const UOp> order, Scalars scalars) {
  return Builder(order, scalars).run();
}

}  // namespace weft
