// Random graphs of a stage: valid ones with a few nodes changed, and nodes of random ops over what
// there is. Most changes are illegal at once; those that the rules of single nodes allow are kept.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/shape.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "tests/fuzz/choices.h"

namespace weft::fuzz {

class RandomStageGraph {
 public:
  RandomStageGraph(Choices& choices, Stage stage) : c_(choices), stage_(stage) {}

  // The graph with one to four changes. Not always legal.
  UOp changed(UOp root) {
    for (uint64_t i = 1 + c_.below(4); i > 0; i--) {
      for (int tries = 0; tries < 8; tries++) {
        const UOp next = once(root);
        if (next == root) continue;
        root = next;
        break;
      }
    }
    return root;
  }

 private:
  UOp once(UOp root) {
    Arena& arena = root.arena();
    const std::vector<UOp> order = toposort(root);
    nodes_ = order;
    for (uint64_t i = c_.below(5); i > 0; i--) {
      if (const UOp n = anew(arena)) nodes_.push_back(n);
    }
    const UOp from = order[c_.below(order.size())];
    UOp to;
    switch (c_.below(8)) {
      case 0:
      case 1: to = with_source(from); break;
      case 2: to = resourced(from); break;
      case 3: to = with_op(from); break;
      case 4: to = with_argument(from); break;
      case 5: to = with_dtype(from); break;
      case 6: to = replaced(from); break;
      default: to = wrapped(from); break;
    }
    if (!to || to == from || !is_legal(to)) return root;
    const std::vector<UOp> below = toposort(to);
    const bool is_above = std::ranges::find(below, root) != below.end();
    if (is_above && from != root) return root;
    const std::pair<UOp, UOp> pair{from, to};
    const UOp next = substitute(root, {&pair, 1});
    return size(next) <= 2 * order.size() + 50 ? next : root;
  }

  static size_t size(UOp n) { return toposort(n).size(); }

  // Whether the rules of the node allow it: what it stands on is legal on its own.
  bool is_legal(UOp n) const { return is_legal_in(n.op(), stage_) && !find_violation_at(n); }

  UOp any() { return nodes_[c_.below(nodes_.size())]; }
  // One that may stand where n stands, as far as the dtype says.
  UOp like(UOp n) {
    for (int tries = 0; tries < 12; tries++) {
      const UOp m = any();
      if (m != n && m.dtype() == n.dtype()) return m;
    }
    return any();
  }

  UOp with_source(UOp n) {
    if (n.src_count() == 0) return {};
    std::vector<UOp> srcs;
    for (UOp s : n.srcs()) srcs.push_back(s);
    const size_t i = c_.below(srcs.size());
    srcs[i] = c_.one_in(4) ? any() : like(srcs[i]);
    return n.arena().with_srcs(n, srcs);
  }

  UOp resourced(UOp n) {
    std::vector<UOp> srcs(n.srcs().begin(), n.srcs().end());
    switch (c_.below(3)) {
      case 0: srcs.push_back(any()); break;
      case 1:
        if (srcs.empty()) return {};
        srcs.erase(srcs.begin() + ptrdiff_t(c_.below(srcs.size())));
        break;
      default:
        if (srcs.size() < 2) return {};
        std::swap(srcs[c_.below(srcs.size())], srcs[c_.below(srcs.size())]);
    }
    return n.arena().with_srcs(n, srcs);
  }

  Op any_op() {
    for (;;) {
      const Op op = Op(c_.below(kOpCount));
      if (is_legal_in(op, stage_)) return op;
    }
  }

  DType any_dtype() {
    static constexpr DType kTypes[] = {dtypes::float32, dtypes::int32,   dtypes::bool_,
                                       dtypes::index,   dtypes::float16, dtypes::int64,
                                       dtypes::uint8,   dtypes::void_,   dtypes::float64};
    const DType type = kTypes[c_.below(std::size(kTypes))];
    return type.is_void() || !c_.one_in(8) ? type : type.vec(uint16_t(2 + 2 * c_.below(2)));
  }

  Arg argument(Op op, DType dtype) {
    const ArgKind kind = info(op).arg;
    if (kind == ArgKind::Const) return Arg::bits(dtype.is_bool() ? c_.below(2) : bits(dtype));
    if (kind == ArgKind::Int) return Arg::integer(int64_t(c_.below(6)));
    if (kind == ArgKind::Name)
      return Arg::name(c_.one_in(2) ? "REF" : c_.one_in(2) ? "lidx0" : "n");
    if (kind == ArgKind::Range) return Arg::range(int64_t(c_.below(8)), AxisType(c_.below(9)));
    if (kind == ArgKind::Op) {
      return Arg::op(c_.one_in(2) ? Op::ADD : c_.one_in(2) ? Op::MAX : any_op());
    }
    if (kind == ArgKind::MaybeOp) return c_.one_in(2) ? Arg() : Arg::op(Op::ADD);
    if (kind == ArgKind::Space) {
      return Arg::space(c_.one_in(3) ? AddrSpace::kLocal : AddrSpace::kGlobal);
    }
    if (kind == ArgKind::Ints) return ints({});
    return kind == ArgKind::OpInts ? ints({int64_t(Op::ADD)}) : Arg();
  }
  Arg ints(std::vector<int64_t> list) {
    const bool has_op = !list.empty();
    for (uint64_t i = c_.below(4); i > 0; i--) list.push_back(c_.between(0, 3));
    return has_op ? Arg::op_ints(list) : Arg::ints(list);
  }
  uint64_t bits(DType dtype) {
    static constexpr int64_t kNumbers[] = {0, 1, 2, 3, 4, 7, -1, 8, 1000, INT64_MAX / 4, INT64_MIN};
    const auto v = kNumbers[c_.below(std::size(kNumbers))];
    if (dtype.is_index() || dtype.scalar == Scalar::kInt64) return uint64_t(v);
    return uint64_t(v) & 0x7f;
  }

  // A node of a random op over nodes that there are; null when none was legal.
  UOp anew(Arena& arena) {
    for (int tries = 0; tries < 30; tries++) {
      const Op op = any_op();
      const uint32_t least = info(op).least_sources,
                     most = std::min(info(op).most_sources, least + 3);
      std::vector<UOp> srcs;
      const UOp first = any();
      for (uint64_t i = least + c_.below(most - least + 1); i > 0; i--) {
        srcs.push_back(c_.one_in(3) ? any() : like(first));
      }
      DType dtype = srcs.empty() || c_.one_in(6) ? any_dtype() : srcs[0].dtype();
      if (yields_bool(op)) dtype = dtypes::bool_.vec(dtype.lanes);
      if (is_effect(op)) dtype = dtypes::void_;
      if (op == Op::LOAD && dtype.is_pointer()) dtype = dtype.pointee();
      const UOp n = arena.make(op, dtype, srcs, argument(op, dtype));
      if (is_legal(n)) return n;
    }
    return {};
  }

  UOp with_op(UOp n) {
    const Op op = any_op();
    if (info(op).arg != info(n.op()).arg && n.src_count() > 3) return {};
    const DType dtype =
        yields_bool(op) ? dtypes::bool_.vec(n.src_count() ? n.src(0).dtype().lanes : 1) : n.dtype();
    return n.arena().make(op, dtype, n.srcs(),
                          info(op).arg == info(n.op()).arg ? arg_of(n) : argument(op, dtype));
  }
  UOp with_argument(UOp n) {
    return n.arena().make(n.op(), n.dtype(), n.srcs(), argument(n.op(), n.dtype()));
  }
  UOp with_dtype(UOp n) {
    const DType dtype = any_dtype();
    if (n.is(Op::CONST)) return n.arena().make(n.op(), dtype, {}, argument(Op::CONST, dtype));
    return n.arena().make(n.op(), dtype, n.srcs(), arg_of(n));
  }
  UOp replaced(UOp n) {
    const UOp m = like(n);
    return m.dtype() == n.dtype() ? m : UOp();
  }
  // n below a new node of its dtype.
  UOp wrapped(UOp n) {
    const Op op = any_op();
    const uint32_t least = std::max(info(op).least_sources, 1u);
    std::vector<UOp> srcs{n};
    while (srcs.size() < least || (srcs.size() < info(op).most_sources && c_.one_in(3))) {
      srcs.push_back(c_.one_in(2) ? like(n) : any());
    }
    return n.arena().make(op, n.dtype(), srcs, argument(op, n.dtype()));
  }

  Choices& c_;
  Stage stage_;
  std::vector<UOp> nodes_;
};

}  // namespace weft::fuzz
