// Terms sorted by a hash that takes all sizes for one, loops numbered by where they are closed.
#include "codegen/sort_sums.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/hash.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"

namespace weft {
namespace {

constexpr uint64_t kNumber = (uint64_t(1) << 48) - 1;  // what a NodeMap holds

bool is_sum(UOp n) {
  return (n.is(Op::ADD) && n.dtype().is_index()) || (n.is(Op::AND) && n.dtype().is_bool());
}

class Sorter {
 public:
  explicit Sorter(UOp ast)
      : order_(toposort(ast)), shapes_(ast.arena()), sums_(ast.arena()), loops_(ast.arena()) {}

  UOp run() {
    number_loops();
    for (UOp n : order_) note(n);
    find_wanted();
    if (std::ranges::all_of(order_, [&](UOp n) { return is_as_it_should_be(n); })) {
      return order_.back();
    }
    Arena& arena = order_.back().arena();
    NodeMap copies(arena);
    std::vector<UOp> srcs;
    for (UOp n : order_) {
      if (!wanted_.has(n)) continue;
      if (is_sum(n)) {
        UOp sum;
        for (UOp term : sorted_terms(n)) {
          const UOp copy = copies.get(term);
          sum = sum ? arena.make(n.op(), n.dtype(), {sum, copy}) : copy;
        }
        copies.put(n, sum);
        continue;
      }
      srcs.clear();
      for (UOp source : n.srcs()) srcs.push_back(copies.get(source));
      const bool is_numbered = n.is(Op::RANGE) && loops_.has(n);
      copies.put(n, is_numbered ? arena.make(n.op(), n.dtype(), srcs, arg_of_loop(n))
                                : arena.with_srcs(n, srcs));
    }
    return copies.get(order_.back());
  }

 private:
  // By the place where a loop is closed: where it is used depends on the order of terms.
  void number_loops() {
    int64_t next = 0;
    for (UOp n : order_) {
      if (!n.is(Op::END) && !n.is(Op::REDUCE)) continue;
      for (UOp range : n.srcs().subspan(1)) {
        if (range.is(Op::RANGE) && !loops_.has(range)) loops_.put_number(range, uint64_t(++next));
      }
    }
  }
  int64_t number_of_loop(UOp range) const { return int64_t(loops_.number(range)) - 1; }
  Arg arg_of_loop(UOp range) const { return Arg::range(number_of_loop(range), range.axis()); }

  bool is_as_it_should_be(UOp n) const {
    if (n.is(Op::RANGE)) return !loops_.has(n) || n.range_id() == number_of_loop(n);
    return !is_wanted(n) || is_sorted(n);
  }

  // What n is, with all sizes the same.
  void note(UOp n) {
    Hash128 h{};
    h = mix(h, uint64_t(n.op()) | uint64_t(n.dtype().packed()) << 8 | n.src_count() << 40);
    if (n.is_const() && n.dtype().is_index()) {
      const int64_t value = n.const_int();
      h = mix(h, uint64_t(std::clamp<int64_t>(value, -1, 2)));
    } else if (is_sum(n)) {
      uint64_t sum = 0;
      for (UOp source : n.srcs()) {
        sum +=
            goes_on(n, source) ? sums_.number(source) : mix(Hash128{}, shapes_.number(source)).low;
      }
      sums_.put_number(n, sum & kNumber);
      h = mix(h, sum & kNumber);
    } else {
      const Arg arg = n.is(Op::RANGE) && loops_.has(n) ? arg_of_loop(n) : arg_of(n);
      if (arg.kind != ArgKind::None) {
        h = arg.bytes.empty() ? mix(h, arg.word) : mix(h, hash_bytes_128(arg.bytes));
      }
      for (UOp source : n.srcs()) h = mix(h, shapes_.number(source));
    }
    shapes_.put_number(n, h.low & kNumber);
  }

  static bool goes_on(UOp sum, UOp source) { return is_sum(source) && source.op() == sum.op(); }

  // All but the parts of sums that nothing else uses.
  void find_wanted() {
    wanted_.put_number(order_.back(), 1);
    for (size_t i = order_.size(); i-- > 0;) {
      const UOp n = order_[i];
      if (!wanted_.has(n)) continue;
      if (is_sum(n)) {
        for (UOp term : terms(n)) wanted_.put_number(term, 1);
      } else {
        for (UOp source : n.srcs()) wanted_.put_number(source, 1);
      }
    }
  }
  bool is_wanted(UOp n) const { return wanted_.has(n) && is_sum(n); }

  static std::vector<UOp> terms(UOp n) {
    std::vector<UOp> out, todo{n};
    while (!todo.empty()) {
      const UOp top = todo.back();
      todo.pop_back();
      if (!goes_on(n, top)) {
        out.push_back(top);
        continue;
      }
      todo.push_back(top.src(1));
      todo.push_back(top.src(0));
    }
    return out;
  }
  std::vector<UOp> sorted_terms(UOp n) const {
    std::vector<UOp> out = terms(n);
    std::ranges::stable_sort(out, [&](UOp a, UOp b) { return comes_before(a, b); });
    return out;
  }
  bool comes_before(UOp a, UOp b) const {  // the constant is the last
    if (a.is_const() != b.is_const()) return b.is_const();
    const uint64_t of_a = shapes_.number(a), of_b = shapes_.number(b);
    return of_a != of_b ? of_a < of_b : a.hash() < b.hash();
  }
  bool is_sorted(UOp n) const {
    for (UOp sum = n; sum.is(n.op()); sum = sum.src(0)) {
      if (goes_on(n, sum.src(1))) return false;
      if (!goes_on(n, sum.src(0))) return !comes_before(sum.src(1), sum.src(0));
      if (comes_before(sum.src(1), sum.src(0).src(1))) return false;
    }
    return true;
  }

  std::vector<UOp> order_;
  NodeMap shapes_, sums_;
  NodeMap loops_;  // RANGE -> 1 + its number
  NodeMap wanted_{order_.back().arena()};
};

}  // namespace

UOp sort_sums(UOp ast) { return Sorter(ast).run(); }

}  // namespace weft
