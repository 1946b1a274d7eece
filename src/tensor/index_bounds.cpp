// One element of each Value, as a scalar node: the bounds of nodes are then those of elements.
#include "tensor/index_bounds.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "value/storage.h"
#include "value/value.h"

namespace weft {
namespace {

constexpr size_t kMostValues = 256;

bool is_extreme(const Value& v) {
  if (!v.is(Op::REDUCE_AXIS)) return false;
  return Op(v.numbers()[0]) == Op::MAX || Op(v.numbers()[0]) == Op::MIN;
}

// Sources that decide about an element.
size_t deciding_sources(const Value& v) {
  if (v.is_filled() || v.is_staged() || v.dtype().is_float() || v.is_waiting()) return 0;
  if (is_elementwise(v.op())) return v.sources().size();
  const bool is_copy = is_movement(v.op()) || kSameElements.has(v.op()) || v.is(Op::CONTIGUOUS) ||
                       v.is(Op::INDEX) || is_extreme(v);
  return std::min(is_copy ? size_t(1) : size_t(0), v.sources().size());
}

class Elements {
 public:
  UOp of(const Value& root) {
    std::vector<const Value*> stack{&root};
    while (!stack.empty()) {
      const Value& v = *stack.back();
      const size_t count = nodes_.size() + stack.size() < kMostValues ? deciding_sources(v) : 0;
      bool is_ready = true;
      for (size_t i = 0; i < count; i++) {
        const Value* source = v.sources()[i].get();
        if (nodes_.contains(source)) continue;
        stack.push_back(source);
        is_ready = false;
      }
      if (!is_ready) continue;
      stack.pop_back();
      if (!nodes_.contains(&v)) nodes_.emplace(&v, element_of(v, count));
    }
    return nodes_.at(&root);
  }

 private:
  UOp anything(DType dtype) { return arena_->make(Op::LOAD, dtype, std::span<const UOp>()); }

  UOp element_of(const Value& v, size_t count) {
    if (!v.is_filled() && v.is(Op::CONST) && !v.dtype().is_float()) {
      return constant_bits(*arena_, v.dtype(), uint64_t(v.numbers()[0]));
    }
    if (!v.is_filled() && v.is(Op::IOTA) && !v.dtype().is_float()) {
      return arena_->make(Op::CAST, v.dtype(), {range(*arena_, v.shape()[0], 0)});
    }
    if (count == 0) return anything(v.dtype());
    std::vector<UOp> srcs;
    srcs.reserve(count);
    for (size_t i = 0; i < count; i++) srcs.push_back(nodes_.at(v.sources()[i].get()));
    if (is_elementwise(v.op())) return arena_->make(v.op(), v.dtype(), srcs);
    if (!v.is(Op::PAD) && !v.is(Op::INDEX)) return srcs[0];
    const UOp zero = constant_bits(*arena_, v.dtype(), 0);  // around it, or out of range
    return arena_->make(Op::WHERE, v.dtype(), {anything(dtypes::bool_), srcs[0], zero});
  }

  std::shared_ptr<Arena> arena_ = std::make_shared<Arena>();
  std::unordered_map<const Value*, UOp> nodes_;
};

}  // namespace

Interval element_bounds(const Value& value) {
  const std::lock_guard lock(graph_mutex());
  const bool is_known = value.is(Op::CONST) || value.is(Op::IOTA) || deciding_sources(value) > 0;
  if (!is_known) return bounds_of(value.dtype());
  Elements elements;
  return bounds(elements.of(value));
}

}  // namespace weft
