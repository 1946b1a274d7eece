// The core transform: every node once, sources first, at the indices that phase 1 gave it.
#include "schedule/rangeify/transform.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/origins.h"
#include "ir/place.h"
#include "ir/print.h"
#include "ir/reads.h"
#include "ir/scalar.h"
#include "ir/scope.h"
#include "ir/shape.h"
#include "schedule/rangeify/index_math.h"
#include "schedule/rangeify/indexing.h"
#include "schedule/rangeify/movement.h"
#include "schedule/rangeify/stored_values.h"

namespace weft {
namespace {

class Transform {
 public:
  explicit Transform(const IndexingContext& context)
      : c_(context), arena_(context.arena()), lowered_(arena_), written_(arena_) {}

  UOp run(UOp sink) {
    const std::vector<UOp>& order = c_.order;
    for (UOp n : order) {
      if (n.is(Op::AFTER) && n.src(0).is(Op::CONTIGUOUS)) written_.put_number(n.src(0), 1);
      has_scans_ = has_scans_ || n.is(Op::SCAN);
    }
    for (UOp n : order) {
      const Lower rule = kLower[size_t(n.op())];
      if (UOp result = rule != nullptr ? (this->*rule)(n) : lower_value(n)) {
        lowered_.put(n, followed(n, result));
      }
    }
    return lowered_.get(sink);
  }

 private:
  using Lower = UOp (Transform::*)(UOp);

  // What is no tensor stays as it is; so does memory.
  UOp keep(UOp n) { return n; }
  UOp skip(UOp) { return {}; }  // movement ops: their users have followed them

  UOp lower_value(UOp n) {
    if (!c_.has(n)) return n.dtype().is_index() || n.src_count() == 0 ? n : UOp();
    UOp srcs[3];  // elementwise ops have no more
    for (size_t i = 0; i < n.src_count(); i++) srcs[i] = read(c_.edge(n, i));
    return stored(n, arena_.with_srcs(n, std::span(srcs, n.src_count())));
  }

  UOp lower_iota(UOp n) {
    if (!c_.has(n)) return {};
    return stored(n, arena_.make(Op::CAST, n.dtype(), {c_.tuple(c_[n].at)[0]}));
  }

  // Elements that integers name: each index is held within its axis, and 0 stands for what was out
  // of it. What is read is memory, or a value of its own ranges: they become the indices.
  UOp lower_gather(UOp n) {
    if (!is_gather(n)) return n;  // of a table, by a loop
    if (!c_.has(n)) return {};    // the target of a write
    const UOp zero = constant_bits(arena_, n.dtype(), 0);
    if (has_no_elements(n.src(0))) return stored(n, zero);
    const Chosen chosen = chosen_elements(n, n, 1);
    Access access = follow_views(n.src(0), chosen.at);
    const UOp value = element_of(access.base, access.at, access.flat);
    const UOp gate = index_and(arena_, access.gate, chosen.gate);
    return stored(n, gate ? where(gate, value, zero) : value);
  }

  static bool has_no_elements(UOp n) {
    return std::ranges::any_of(shape_of(n), [](Dim d) { return d.is(0); });
  }

  struct Chosen {
    IndexList at;
    UOp gate{};  // null: all of them are always in range
  };
  // The indices of an INDEX, which are the edges of `owner` from `first` on.
  Chosen chosen_elements(UOp index, UOp owner, size_t first) {
    Chosen out;
    const Shape shape = shape_of(index.src(0));
    const UOp zero = index_const(arena_, 0), minus = index_const(arena_, -1);
    for (size_t i = 0; i < shape.size(); i++) {
      UOp at = as_index(read(c_.edge(owner, first + i)));
      const UOp size = shape[i].as_uop(arena_);
      const UOp last = simplify_index(index_add(arena_, size, minus));
      const bool may_be_past = bounds(at).hi > bounds(last).lo, may_be_below = bounds(at).lo < 0;
      if (may_be_below) {
        out.gate = index_and(arena_, out.gate, arena_.make(Op::CMPLT, dtypes::bool_, {minus, at}));
      }
      if (may_be_past) {
        out.gate = index_and(arena_, out.gate, arena_.make(Op::CMPLT, dtypes::bool_, {at, size}));
        at = arena_.make(Op::MIN, dtypes::index, {at, last});
      }
      if (may_be_below) at = arena_.make(Op::MAX, dtypes::index, {at, zero});
      out.at.push_back(at);
    }
    return out;
  }

  // An integer as an index: sums and products of loop indices are the indices themselves, where
  // they do not wrap.
  UOp as_index(UOp n) {
    constexpr OpSet k_sums = {Op::ADD, Op::SUB, Op::MUL};
    if (n.dtype().is_index()) return n;
    if (n.is_const()) return index_const(arena_, n.const_int());
    if (n.is(Op::CAST) && n.src(0).dtype().is_index() && fits(n.src(0), n.dtype())) return n.src(0);
    const bool widens = n.is(Op::CAST) && n.src(0).dtype().is_int() && fits(n.src(0), n.dtype());
    if (widens) return as_index(n.src(0));
    if (k_sums.has(n.op())) {
      const UOp sum = arena_.make(n.op(), dtypes::index, {as_index(n.src(0)), as_index(n.src(1))});
      if (fits(sum, n.dtype())) return simplify_index(sum);
    }
    return cast(n, dtypes::index);
  }
  static bool fits(UOp n, DType type) {
    const Interval own = bounds(n), all = bounds_of(type);
    return own.lo >= all.lo && own.hi <= all.hi && own.lo != Interval::kLow &&
           own.hi != Interval::kHigh;
  }

  UOp lower_reduce(UOp n) {
    if (!c_.has(n)) return {};
    const UOp value = read(c_.edge(n, 0));
    const IndexList& ranges = c_.tuple(c_[n].reduced);
    return stored(n, ranges.empty() ? reduced_once(n, value) : reduce(n.arg_op(), value, ranges));
  }
  // A reduction of one element: identity op x is x, but for 0.0 + -0.0.
  UOp reduced_once(UOp n, UOp value) {
    const bool is_sum_of_floats = n.arg_op() == Op::ADD && n.dtype().is_float();
    return is_sum_of_floats ? value + constant(arena_, n.dtype(), 0.0) : value;
  }

  // What a register holds in the iteration of the axis' loop, which runs innermost and in order
  // (bufferize_to_store); it is started for every line.
  UOp lower_scan(UOp n) {
    if (!c_.has(n)) return {};
    const UOp value = read(c_.edge(n, 0));
    const IndexList& at = c_.tuple(c_[n].at);
    const UOp along = at[size_t(n.ints()[0])];
    if (!along.is(Op::RANGE)) return stored(n, value);
    const Op op = n.arg_op();
    const DType wide = scan_dtype(op, n.dtype());
    const bool is_choice = (op == Op::MAX || op == Op::MIN) && wide.is_float();
    const auto taken_in = [&](UOp x) {
      if (x.dtype() != wide) x = cast(x, wide);
      return is_choice ? order_of_float(x, op) : x;
    };
    const UOp taken = taken_in(value),
              identity = taken_in(constant_bits(arena_, wide, *identity_bits(op, wide)));
    const DType type = taken.dtype();
    const UOp reg = define_reg(arena_, type, arena_.fresh_id());
    std::vector<UOp> line{reg};
    for (UOp r : outer_loops(n)) line.push_back(r);
    for (UOp r : at) {
      if (r.is(Op::RANGE) && r != along) line.push_back(r);
    }
    const UOp fresh = line.size() == 1 ? reg : arena_.make(Op::AFTER, type, line);
    const UOp start = arena_.make(Op::STORE, type, {fresh, identity});
    const UOp before = arena_.make(Op::AFTER, type, {reg, start, along});
    UOp held = before;
    if (n.src_count() > 1) held = held * taken_in(read(c_.edge(n, 1)));
    held = arena_.make(op, type, {held, taken});
    const UOp step = arena_.make(Op::STORE, type, {before, held});
    UOp result = arena_.make(Op::AFTER, type, {reg, step});
    if (is_choice) result = bitcast(with_sign_last(result), wide);
    return stored(n, wide == n.dtype() ? result : cast(result, n.dtype()));
  }

  // Integers with the order of floats, for which one comparison chooses: a NaN is the one that wins
  // against all. with_sign_last() is its own inverse.
  UOp order_of_float(UOp x, Op op) {
    const bool is_wide = x.dtype().bits() == 64;
    const DType type = is_wide ? dtypes::int64 : dtypes::int32;
    const uint64_t nan = op == Op::MAX ? greatest_bits(type) : least_bits(type);
    return where(not_equal(x, x), constant_bits(arena_, type, nan),
                 with_sign_last(bitcast(x, type)));
  }
  // Negative floats grow as the rest of their bits gets smaller.
  UOp with_sign_last(UOp bits) {
    const DType type = bits.dtype();
    const UOp places = constant(arena_, type, int64_t(type.bits()) - 1);
    const UOp rest = constant_bits(arena_, type, greatest_bits(type));
    return binary(Op::XOR, bits, binary(Op::SHR, bits, places) & rest);
  }

  UOp lower_contiguous(UOp n) {
    const UOp value = read(c_.edge(n, 0));
    return written_.has(n) ? made(n, value, c_.device()) : stored(n, value);
  }

  // The COPY around the value says that the write is a transfer: a kernel of its own.
  UOp lower_copy(UOp n) {
    const UOp value = arena_.make(Op::COPY, n.dtype(), {read(c_.edge(n, 0)), n.src(1)});
    return made(n, value, n.src(1).name());
  }

  // Memory of its own, filled: equal values that are stored once must not share what is written.
  UOp made(UOp n, UOp value, std::string_view device) {
    UOp size = index_const(arena_, 1);
    for (const Dim d : shape_of(n)) size = index_mul(arena_, size, d.as_uop(arena_));
    const UOp memory = buffer(arena_, n.dtype(), size, device, arena_.fresh_id());
    if (size.is_const() && size.const_int() == 0) return memory;
    const UOp place = element(memory, n, c_.tuple(c_[n].at), {});
    return after(memory, close(arena_.make(Op::STORE, dtypes::void_, {place, value}),
                               c_.tuple(c_[n].at), {}));
  }

  // INDEX of one element of the memory of n: of a BUFFER by its flat offset.
  UOp element(UOp memory, UOp n, const IndexList& at, UOp flat) {
    if (!memory_of(memory).is(Op::BUFFER)) {
      return arena_.make(Op::INDEX, memory.dtype(), with_first(memory, at));
    }
    if (!flat) flat = simplify_index(flat_index(arena_, shape_of(n), at));
    return arena_.make(Op::INDEX, memory.dtype(), {memory, flat});
  }

  UOp lower_store(UOp n) {
    if (!c_.has(n)) return {};
    if (!n.dtype().is_void()) return lower_register_store(n);
    if (n.src(0).is(Op::INDEX)) return lower_scatter(n);
    const Edge& to = c_.edge(n, 0);
    const UOp target = element(lowered_.get(to.base), to.base, c_.tuple(to.at), to.flat);
    std::vector<UOp> srcs{target, read(c_.edge(n, 1))};
    if (n.src_count() > 2) srcs.push_back(read(c_.edge(n, 2)));
    return written(n, srcs);
  }

  UOp lower_scatter(UOp n) {
    const UOp view = n.src(0).src(0), memory = c_.edge(n, 0).base;
    const Chosen chosen = chosen_elements(n.src(0), n, 2);
    Access to = follow_views(view, chosen.at);
    while (to.base.is(Op::BITCAST)) to = follow_views(to.base.src(0), to.at);
    std::vector<UOp> srcs{element(lowered_.get(memory), memory, to.at, to.flat),
                          read(c_.edge(n, 1))};
    if (chosen.gate) srcs.push_back(chosen.gate);
    return written(n, srcs);
  }

  // The STORE of n in its loops. One that combines runs for every place, whatever it depends on.
  UOp written(UOp n, std::vector<UOp>& srcs) {
    const IndexList& at = c_.tuple(c_[n].at);
    const DType type = srcs[0].dtype();
    if (!n.accumulates()) {
      if (srcs[1].dtype() != type) srcs[1] = bitcast(srcs[1], type);
      return close(arena_.make(Op::STORE, dtypes::void_, srcs), at, {});
    }
    if (srcs[1].dtype() != type) {
      throw InternalError("it combines elements of another dtype:\n" + neighbourhood(n));
    }
    IndexList ranges;
    for (UOp r : at) {
      if (r.is(Op::RANGE)) ranges.push_back(r);
    }
    const auto is_named = [&](UOp r) {
      return std::ranges::any_of(srcs, [&](UOp s) { return is_in_scope(r, s); });
    };
    if (!std::ranges::all_of(ranges, is_named)) srcs[1] = stored_over(srcs[1], ranges);
    const UOp store = arena_.make(Op::STORE, dtypes::void_, srcs, Arg::op(n.arg_op()));
    return ranges.empty() ? store : end(store, ranges);
  }
  UOp stored_over(UOp value, const IndexList& ranges) {
    const UOp marked = arena_.make(Op::CONTIGUOUS, value.dtype(), {value});
    return index(bufferize(marked, ranges, AddrSpace::kGlobal), ranges);
  }

  // A register is started anew for every element, also with a value that is the same for all.
  UOp lower_register_store(UOp n) {
    std::vector<UOp> place{lowered_.get(n.src(0))};
    if (place[0].is(Op::DEFINE_REG)) {
      for (UOp i : c_.tuple(c_[n].at)) {
        for (UOp r : ranges_of(i)) {
          if (std::find(place.begin(), place.end(), r) == place.end()) place.push_back(r);
        }
      }
    }
    const UOp target = place.size() == 1 ? place[0] : arena_.make(Op::AFTER, n.dtype(), place);
    return arena_.make(Op::STORE, n.dtype(), {target, read(c_.edge(n, 1))});
  }

  // Loops that the tensor graph has around a write: outermost, as they stand for writes one after
  // the other; innermost where a register lives through them.
  UOp lower_end(UOp n) {
    const UOp inner = lowered_.get(n.src(0));
    if (!inner) return {};
    const std::span<const UOp> loops = n.srcs().subspan(1);
    if (!inner.is(Op::END)) return close(inner, {}, loops);
    IndexList ranges(loops.begin(), loops.end());
    const bool is_carrying = is_register(n.src(0).src(1));
    ranges.insert(is_carrying ? ranges.begin() : ranges.end(), inner.srcs().begin() + 1,
                  inner.srcs().end());
    return end(inner.src(0), ranges);
  }

  UOp close(UOp effect, const IndexList& at, std::span<const UOp> loops) {
    IndexList ranges;
    for (UOp r : at) {
      if (r.is(Op::RANGE) && is_in_scope(r, effect)) ranges.push_back(r);  // else it is done once
    }
    if (has_scans_) put_carried_last(effect.src(1), ranges);
    ranges.insert(ranges.end(), loops.begin(), loops.end());
    return ranges.empty() ? effect : end(effect, ranges);
  }

  UOp lower_after(UOp n) {
    std::vector<UOp> srcs;
    for (UOp s : n.srcs()) {
      const UOp below = lowered_.get(s);
      if (!below) return {};  // a register that nobody reads
      srcs.push_back(below);
    }
    return arena_.with_srcs(n, srcs);
  }

  UOp lower_sink(UOp n) {
    std::vector<UOp> srcs;
    for (UOp s : n.srcs()) {
      while (is_movement(s.op())) s = s.src(0);
      const UOp memory = lowered_.get(s);
      const UOp base = place_of(memory).base;
      if (!base.is(Op::BUFFER) && !base.is(Op::BUFFERIZE)) {
        throw InternalError("a source of the SINK is not in memory:\n" + neighbourhood(s));
      }
      srcs.push_back(memory);
    }
    return sink(arena_, srcs);
  }

  // n's value, in memory where it is stored. Loops around it are axes of the memory.
  UOp stored(UOp n, UOp value) {
    const Assigned& a = c_[n];
    followed(n, value);
    if (a.storing == Storing::kNever) return value;
    if (a.storing == Storing::kMust) value = arena_.make(Op::CONTIGUOUS, value.dtype(), {value});
    IndexList ranges = outer_loops(n);
    const IndexList& at = c_.tuple(a.at);
    ranges.insert(ranges.end(), at.begin(), at.end());
    return bufferize(value, ranges, AddrSpace::kGlobal);
  }
  static IndexList outer_loops(UOp n) {
    const std::span<const UOp> loops = ranges_of(n);
    return {loops.begin(), loops.end()};
  }

  // One element of a source.
  UOp read(const Edge& access) {
    const UOp value = element_of(access.base, c_.tuple(access.at), access.flat);
    if (!access.gate) return value;
    return where(access.gate, value, constant_bits(arena_, value.dtype(), 0));
  }

  // One element of a value: of memory where it is stored.
  UOp element_of(UOp base, const IndexList& own, UOp flat) {
    const UOp below = lowered_.get(base);
    if (!below) throw InternalError("used before it is lowered:\n" + neighbourhood(base));
    const bool is_memory = below.is(Op::BUFFER) || below.is(Op::BUFFERIZE) ||
                           (below.is(Op::AFTER) && !is_register(below));
    if (!is_memory) return below;
    IndexList at = below.is(Op::BUFFERIZE) ? outer_loops(base) : IndexList();
    // What is the same for all elements is asked for one of a register's, and has no axes.
    if (!shape_of(base).empty()) at.insert(at.end(), own.begin(), own.end());
    return element(below, base, at, flat);
  }

  static std::vector<UOp> with_first(UOp first, const IndexList& rest) {
    std::vector<UOp> all{first};
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  }

  static constexpr std::array<Lower, kOpCount> rules() {
    std::array<Lower, kOpCount> table{};
    for (size_t i = 0; i < kOpCount; i++) {
      if (is_movement(Op(i))) table[i] = &Transform::skip;
    }
    table[size_t(Op::DETACH)] = &Transform::skip;
    for (Op op :
         {Op::BUFFER, Op::DEVICE, Op::CONST, Op::VARIABLE, Op::BIND, Op::RANGE, Op::DEFINE_REG}) {
      table[size_t(op)] = &Transform::keep;
    }
    table[size_t(Op::INDEX)] = &Transform::lower_gather;
    table[size_t(Op::IOTA)] = &Transform::lower_iota;
    table[size_t(Op::REDUCE_AXIS)] = &Transform::lower_reduce;
    table[size_t(Op::SCAN)] = &Transform::lower_scan;
    table[size_t(Op::CONTIGUOUS)] = &Transform::lower_contiguous;
    table[size_t(Op::COPY)] = &Transform::lower_copy;
    table[size_t(Op::STORE)] = &Transform::lower_store;
    table[size_t(Op::END)] = &Transform::lower_end;
    table[size_t(Op::AFTER)] = &Transform::lower_after;
    table[size_t(Op::SINK)] = &Transform::lower_sink;
    return table;
  }
  static const std::array<Lower, kOpCount> kLower;

  const IndexingContext& c_;
  Arena& arena_;
  NodeMap lowered_;
  bool has_scans_ = false;
  NodeMap written_;  // values that are written to: their memory is nobody else's
};
constexpr std::array<Transform::Lower, kOpCount> Transform::kLower = Transform::rules();

}  // namespace

UOp transform_to_ranges(UOp sink, const IndexingContext& context) {
  return Transform(context).run(sink);
}

}  // namespace weft
