// Chains of additions from their tops down, then the graph anew with writes in their place.
#include "schedule/roll/sums_of_parts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/shape.h"
#include "schedule/roll/region.h"

namespace weft {
namespace {

constexpr size_t kLeastParts = 8;
constexpr size_t kMostCompared = 8;

struct Part {
  std::vector<UOp> ops;  // movement ops, one of them a PAD, from the outermost on
  UOp value;             // beneath them
};

std::optional<Part> part_of(UOp n) {
  constexpr OpSet k_invertible = {Op::PAD, Op::RESHAPE, Op::PERMUTE, Op::FLIP};
  Part part;
  bool is_padded = false;
  while (k_invertible.has(n.op())) {
    is_padded = is_padded || n.is(Op::PAD);
    part.ops.push_back(n);
    n = n.src(0);
  }
  if (!is_padded) return {};
  part.value = n;
  return part;
}

// The elements of `whole` that a movement op puts its source to.
UOp part_of_memory(UOp op, UOp whole) {
  const Shape shape = shape_of(op.src(0));
  if (op.is(Op::RESHAPE)) return reshape(whole, shape);
  if (op.is(Op::FLIP)) return flip(whole, op.ints());
  if (op.is(Op::PERMUTE)) {
    const auto order = op.ints();
    std::vector<int64_t> inverse(order.size());
    for (size_t i = 0; i < inverse.size(); i++) inverse[size_t(order[i])] = int64_t(i);
    return permute(whole, inverse);
  }
  std::vector<std::pair<Dim, Dim>> kept;
  for (size_t i = 0; i < shape.size(); i++) {
    const int64_t before = op.src(1 + i).const_int();
    kept.emplace_back(before, before + shape[i].value());
  }
  return shrink(whole, kept);
}

// The elements of a region, in order, each once.
std::vector<int64_t> elements_of(const Region& region) {
  std::vector<int64_t> all;
  region.for_rows([&](int64_t first, int64_t n, int64_t stride) {
    for (int64_t k = 0; k < n; k++) all.push_back(first + k * stride);
  });
  std::ranges::sort(all);
  return all;
}

std::vector<int64_t> in_both(std::span<const int64_t> a, std::span<const int64_t> b) {
  std::vector<int64_t> found;
  std::ranges::set_intersection(a, b, std::back_inserter(found));
  return found;
}

UOp target_of(const Part& part, UOp memory) {
  for (UOp op : part.ops) memory = part_of_memory(op, memory);
  return memory;
}

// Of the memory of `whole`; empty where strides do not say it.
std::optional<Region> region_of(const Part& part, UOp whole) {
  std::vector<UOp> views;
  for (UOp n = target_of(part, whole); n != whole; n = n.src(0)) views.push_back(n);
  std::optional<Region> region = Region::whole(whole);
  for (size_t i = views.size(); region && i-- > 0;) {
    if (!region->apply(views[i])) region.reset();
  }
  return region;
}

UOp without_reshapes(UOp n) {
  while (n.is(Op::RESHAPE)) n = n.src(0);
  return n;
}

struct Sum {
  UOp initial;              // null: zero
  std::vector<Part> parts;  // in the order in which they are added
};

class SumWriter {
 public:
  SumWriter(std::span<const UOp> order, const std::string& device)
      : order_(order),
        device_(device),
        arena_(order.back().arena()),
        uses_(arena_),
        inner_(arena_),
        made_(arena_),
        continued_(arena_),
        held_(arena_),
        written_(arena_) {}

  UOp run() {
    size_t additions = 0;
    for (UOp n : order_) {
      for (UOp s : n.srcs()) uses_.put_number(s, uses_.number(s) + 1);
      if (n.is(Op::AFTER))
        (n.src(0).is(Op::CONTIGUOUS) ? written_ : continued_).put_number(n.src(0), 1);
      if (is_addition(n) && (part_of(n.src(0)) || part_of(n.src(1)))) additions++;
    }
    if (additions < kLeastParts) return order_.back();
    for (UOp s : order_.back().srcs()) held_.put_number(without_reshapes(s), 1);
    for (size_t i = order_.size(); i-- > 0;) {
      if (is_addition(order_[i]) && !inner_.has(order_[i])) find_sum(order_[i]);
    }
    for (UOp n : order_) made_.put(n, made_of(n));
    return made_.get(order_.back());
  }

 private:
  static bool is_addition(UOp n) { return n.is(Op::ADD) && !n.dtype().is_index(); }

  UOp made_of(UOp n) {
    if (const auto sum = sums_.find(n); sum != sums_.end()) return written(n, sum->second);
    if (is_addition(n)) {
      if (const UOp version = added_in_place(n)) return version;
    }
    if (written_.has(n)) {  // a copy that is written: of a version that nothing else continues
      const UOp version = made_.get(n.src(0));
      if (can_continue(n.src(0), version)) {
        continued_.put_number(without_reshapes(version), 1);
        return version;
      }
    }
    if (n.is(Op::AFTER)) return next_version(n);
    const bool is_in_memory = n.is(Op::CONTIGUOUS) && sums_.contains(n.src(0));
    if (is_in_memory && uses_.number(n.src(0)) == 1 && !written_.has(n)) return made_.get(n.src(0));
    return rebuilt(n);
  }

  // ---- versions

  // Whether writes may go on from `version`, which stands for n.
  bool can_continue(UOp n, UOp version) const {
    const UOp base = without_reshapes(version);
    return base.is(Op::AFTER) && !continued_.has(base) && !continued_.has(without_reshapes(n)) &&
           !held_.has(without_reshapes(n));
  }

  UOp next_version(UOp n) {
    const UOp whole = made_.get(n.src(0)), base = without_reshapes(whole);
    if (whole == base || !base.is(Op::AFTER)) return rebuilt(n);
    std::vector<UOp> srcs{base};
    for (UOp effect : n.srcs().subspan(1)) srcs.push_back(made_.get(effect));
    return reshape(arena_.with_srcs(n, srcs), shape_of(n));
  }

  // x + pad(part) as a write to the memory of x; null where x is not memory that may be written.
  UOp added_in_place(UOp n) {
    std::optional<Part> part = part_of(n.src(1));
    const bool is_second = part.has_value();
    if (!is_second) part = part_of(n.src(0));
    if (!part) return {};
    const UOp from = n.src(is_second ? 0 : 1), x = made_.get(from);
    const std::optional<Region> region = region_of(*part, n);
    if (!region) return {};
    if (!can_continue(from, x) || has_minus_zero_outside(x, *region)) {
      const UOp sum = rebuilt(n);
      note_addition(x, sum, *region);
      return sum;
    }
    const UOp base = without_reshapes(x);
    const UOp store = arena_.make(Op::STORE, dtypes::void_,
                                  {target_of(*part, x), made_.get(part->value)}, Arg::op(Op::ADD));
    continued_.put_number(base, 1);
    const UOp version = arena_.make(Op::AFTER, n.dtype(), {base, store});
    return x == base ? version : reshape(version, shape_of(n));
  }

  // ---- zeros

  // Adding 0 to a float turns -0 into 0, which a write elsewhere does not: it is right only where
  // no -0 is elsewhere. Which elements may hold one: after the first addition those of its part,
  // after each further one those that were in its part, too.
  struct Zeros {
    bool may_be_anywhere = true;
    std::vector<int64_t> at{};
  };

  void note_addition(UOp x, UOp sum, const Region& part) {
    const Zeros before = *zeros_of(x);
    std::vector<int64_t> touched = elements_of(part);
    zeros_.insert_or_assign(
        sum,
        Zeros{false, before.may_be_anywhere ? std::move(touched) : in_both(before.at, touched)});
  }

  bool has_minus_zero_outside(UOp x, const Region& part) {
    if (!x.dtype().is_float()) return false;
    const Zeros* zeros = zeros_of(x);
    return zeros->may_be_anywhere || !std::ranges::includes(elements_of(part), zeros->at);
  }

  // Writes of 0, and additions, leave it as it is.
  const Zeros* zeros_of(UOp n) {
    std::vector<UOp> way;
    while (!zeros_.contains(n)) {
      way.push_back(n);
      const bool is_same =
          n.is(Op::RESHAPE) || n.is(Op::CONTIGUOUS) ||
          (n.is(Op::AFTER) && std::ranges::all_of(n.srcs().subspan(1), keeps_zeros));
      if (is_same) {
        n = n.src(0);
      } else {
        zeros_.emplace(n, Zeros{});
      }
    }
    const Zeros found = zeros_.at(n);
    for (UOp w : way) zeros_.insert_or_assign(w, found);
    return &zeros_.at(way.empty() ? n : way[0]);
  }
  static bool keeps_zeros(UOp effect) {
    if (!effect.is(Op::STORE)) return false;
    if (effect.accumulates()) return effect.arg_op() == Op::ADD;
    UOp value = effect.src(1);
    while (value.is(Op::RESHAPE) || value.is(Op::EXPAND)) value = value.src(0);
    return value.is_const() && value.bits() == 0;
  }

  // ---- sums that nothing reads on the way

  void find_sum(UOp top) {
    Sum sum;
    std::vector<UOp> spine;
    UOp n = top;
    while (n.is(Op::ADD) && (n == top || uses_.number(n) == 1)) {
      std::optional<Part> part = part_of(n.src(1));
      const bool is_second = part.has_value();
      if (!is_second) part = part_of(n.src(0));
      if (!part) break;
      sum.parts.push_back(std::move(*part));
      spine.push_back(n);
      n = n.src(is_second ? 0 : 1);
    }
    sum.initial = n;
    if (std::optional<Part> part = part_of(n)) {
      sum.parts.push_back(std::move(*part));
      sum.initial = {};
    }
    if (sum.parts.size() < kLeastParts || !Region::whole(top) || !is_exact(top, sum)) return;
    for (UOp s : spine) inner_.put_number(s, 1);
    std::ranges::reverse(sum.parts);
    sums_.emplace(top, std::move(sum));
  }

  // 0 is added at first, to all elements: right unless every part touches one element.
  static bool is_exact(UOp top, const Sum& sum) {
    std::vector<int64_t> in_all;
    const size_t count = std::min(sum.parts.size(), kMostCompared);
    for (size_t i = 0; i < count; i++) {
      const std::optional<Region> region = region_of(sum.parts[i], top);
      if (!region) return false;
      const std::vector<int64_t> touched = elements_of(*region);
      in_all = i == 0 ? touched : in_both(in_all, touched);
    }
    return in_all.empty() || !top.dtype().is_float();
  }

  UOp rebuilt(UOp n) {
    scratch_.clear();
    for (UOp s : n.srcs()) scratch_.push_back(made_.get(s));
    const UOp made = std::ranges::equal(scratch_, n.srcs()) ? n : arena_.with_srcs(n, scratch_);
    if (made.is(Op::AFTER)) continued_.put_number(made.src(0), 1);
    return made;
  }

  UOp written(UOp top, const Sum& sum) {
    const Shape shape = shape_of(top);
    int64_t numel = 1;
    for (const Dim d : shape) numel *= d.value();
    const auto shaped = [&](UOp m) { return shape.size() == 1 ? m : reshape(m, shape); };
    UOp version = buffer(arena_, top.dtype(), numel, device_, arena_.fresh_id());
    const UOp zero = constant_bits(arena_, top.dtype(), 0);
    const UOp first = sum.initial ? made_.get(sum.initial) + zero : zero;
    std::vector<UOp> srcs{version, arena_.make(Op::STORE, dtypes::void_, {shaped(version), first})};
    std::unordered_set<UOp> known;
    for (const Part& part : sum.parts) {
      const auto addition = [&] {
        return arena_.make(Op::STORE, dtypes::void_,
                           {target_of(part, shaped(version)), made_.get(part.value)},
                           Arg::op(Op::ADD));
      };
      UOp store = addition();
      if (!known.insert(store).second) {  // the same once more: of the next version
        version = arena_.make(Op::AFTER, top.dtype(), srcs);
        srcs = {version};
        store = addition();
      }
      srcs.push_back(store);
    }
    return shaped(arena_.make(Op::AFTER, top.dtype(), srcs));
  }

  std::span<const UOp> order_;
  const std::string& device_;
  Arena& arena_;
  NodeMap uses_, inner_, made_;
  NodeMap continued_;  // versions, old and new, that another one follows
  NodeMap held_;       // what the SINK holds
  NodeMap written_;    // CONTIGUOUS that writes begin on
  std::unordered_map<UOp, Zeros> zeros_;
  std::unordered_map<UOp, Sum> sums_;
  std::vector<UOp> scratch_;
};

}  // namespace

UOp write_sums_of_parts(std::span<const UOp> order, const std::string& device) {
  return SumWriter(order, device).run();
}

}  // namespace weft
