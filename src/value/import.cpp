// Closures to UOps, node after node.
#include "value/import.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/huge_vector.h"
#include "base/phases.h"
#include "base/ref.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/origins.h"
#include "ir/shape.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "value/closure.h"
#include "value/factor.h"
#include "value/sites.h"
#include "value/value.h"
#include "weft/view.h"

namespace weft {
namespace {

// Of the graph and of what a scheduler makes beside it.
constexpr size_t kNodesPerValue = 3;
constexpr size_t kAhead = 8;  // Values that are on their way from memory while one is imported
// That are outputs each: more are elements of one.
constexpr size_t kMostChecks = 4;

class Importer {
 public:
  Importer(const Closure& closure, Sharing sharing)
      : closure_(closure),
        sharing_(sharing),
        arena_(std::make_shared<Arena>()),
        made_(closure.nodes().size()) {
    arena_->expect(kNodesPerValue * made_.size());
    if (sites_are_noted()) result_.origins = std::make_shared<Origins>();
  }

  Imported run() {
    const std::span<const Closure::Node> nodes = closure_.nodes();
    const auto is_check = [](const Closure::Node& n) { return n.is_check && n.is_stored(); };
    are_checks_merged_ = sharing_ == Sharing::kRespected &&
                         size_t(std::ranges::count_if(nodes, is_check)) > kMostChecks;
    for (uint32_t i = 0; i < made_.size(); i++) {
      if (i + 2 * kAhead < made_.size()) prefetch(*nodes[i + 2 * kAhead].value);
      if (i + kAhead < made_.size()) prefetch_place(nodes[i + kAhead]);
      if (nodes[i].is_needed) import(i);
      if (result_.origins && nodes[i].is_needed && !is_memory(nodes[i])) {
        note(*nodes[i].value, made_[i].shaped);
        note(*nodes[i].value, made_[i].memory);
      }
    }
    if (!result_.checks.empty()) outputs_.push_back(import_checks());
    result_.sink = sink(*arena_, outputs_);
    for (const UOp buffer : dying_) result_.dying.push_back(buffer.number());
    std::sort(result_.dying.begin(), result_.dying.end());
    result_.arena = std::move(arena_);
    return std::move(result_);
  }

 private:
  struct Made {
    UOp shaped;  // the Value, in its shape
    UOp memory;  // of an AFTER, or of what is in memory: what a write stands AFTER
  };

  void note(const Value& value, UOp node) {
    if (node) result_.origins->add(node, site_of_value(value));
  }

  static void prefetch(const Value& value) {
    __builtin_prefetch(&value);
    __builtin_prefetch(&value + 1);  // its shape and numbers
  }

  void prefetch_place(const Closure::Node& n) const {
    if (!n.is(Op::CONST) || n.is_filled) return;
    arena_->prefetch_constant(n.value->dtype(), uint64_t(n.value->numbers()[0]));
  }

  void import(uint32_t i) {
    const Closure::Node& n = closure_.nodes()[i];
    if (is_memory(n)) {
      import_memory(i);
      return;
    }
    Made& made = made_[i];
    if (n.chain != 0) {
      made.memory = import_chain(closure_.chains()[n.chain - 1], *n.value);
      made.shaped = reshaped(made.memory, *n.value);
    } else {
      made.shaped = import_op(n);
    }
    if (!n.is_stored()) return;
    if (n.is_check && are_checks_merged_) {
      result_.checks.push_back(n.value);
      return;
    }
    if (n.chain == 0) {
      do made.shaped = make(Op::CONTIGUOUS, made.shaped);
      while (written_.contains(made.shaped));
      made.memory = made.shaped;
    }
    outputs_.push_back(made.memory);
    stored_.insert(made.memory);
    result_.outputs.push_back(n.value);
  }

  // ---- memory

  static bool is_memory(const Closure::Node& n) {
    return n.is_filled || n.is(Op::BUFFER) || n.is_staged();
  }

  void import_memory(uint32_t i) {
    Made& made = made_[i];
    if (made.shaped) return;
    const Closure::Node& n = closure_.nodes()[i];
    Value& value = *n.value;
    Ref<Buffer> memory = n.is_filled ? value.buffer() : Ref<Buffer>();
    // One owner is the Value itself, another this.
    const bool is_shared = sharing_ == Sharing::kRespected && memory &&
                           (memory->owners() > 2 || memory->is_borrowed());
    const bool is_dying = !n.is_kept && !is_shared;
    made.memory = add_buffer(value, value.numel(), std::move(memory), &value,
                             n.is_filled || is_dying ? nullptr : &value);
    made.shaped = reshaped(made.memory, value);
    if (is_dying) dying_.insert(made.memory);
  }

  UOp add_buffer(const Value& like, int64_t count, Ref<Buffer> memory, const Value* of,
                 Value* to_fill) {
    const int64_t id = int64_t(result_.buffers.size());
    result_.buffers.push_back({std::move(memory), of, to_fill, like.dtype(), count});
    return buffer(*arena_, like.dtype(), count, like.device().name(), id);
  }

  // ---- chains of writes

  UOp import_chain(const Closure::Chain& chain, const Value& top) {
    const UOp base = base_of(chain, top);
    const UOp shaped = reshaped(base, top);
    std::vector<UOp> srcs{base};
    for (const uint32_t write : chain.writes) {
      const Closure::Node& after = closure_.nodes()[write];
      UOp target = shaped;
      for (const Movement& step : factor(after.value->written(), top.shape())) {
        target = move(target, step.op, step.shape, step.numbers);
      }
      srcs.push_back(import_store(after, target));
    }
    return arena_->make(Op::AFTER, base.dtype(), srcs);
  }

  // Each check to an element of new memory: writes like those of a loop.
  UOp import_checks() {
    const auto count = int64_t(result_.checks.size());
    const Value& like = *result_.checks[0];
    const UOp memory = add_buffer(like, count, nullptr, nullptr, nullptr);
    dying_.insert(memory);
    std::vector<UOp> srcs{memory};
    for (int64_t i = 0; i < count; i++) {
      const UOp check = made_[closure_.index_of(*result_.checks[size_t(i)])].shaped;
      const Sizes box{i, i + 1};
      const UOp target = move(memory, Op::SHRINK, {1}, box);
      const UOp value = move(check, Op::RESHAPE, {1}, {});
      srcs.push_back(arena_->make(Op::STORE, dtypes::void_, {target, value}, Arg{}));
    }
    return arena_->make(Op::AFTER, memory.dtype(), srcs);
  }

  UOp import_store(const Closure::Node& after, UOp target) {
    const std::optional<Value::Scatter> how = after.value->scatter();
    UOp value = source(after, 1);
    if (how && after.source_count > 2) {
      const Named named =
          named_by(after.value->written().shape, how->first, how->past, source(after, 2));
      target = index(move(target, Op::RESHAPE, named.from, {}), named.indices);
      if (!shape_of(value).empty()) value = move(value, Op::RESHAPE, named.to, {});
    }
    const Arg arg = how && how->combines() ? Arg::op(how->op) : Arg{};
    const UOp store = arena_->make(Op::STORE, dtypes::void_, {target, value}, arg);
    if (result_.origins) note(*after.value, store);
    return store;
  }

  // Axes [first, past) of a shape as one that integers name, with what lies before and behind them
  // as one axis each: INDEX(x in shape `from`, indices...) has the shape `to`.
  struct Named {
    Sizes from, to;
    std::vector<UOp> indices;
  };
  Named named_by(Ints shape, int64_t first, int64_t past, UOp index) {
    int64_t sizes[] = {1, 1, 1};
    for (size_t i = 0; i < shape.size(); i++) {
      sizes[int64_t(i) < first ? 0 : int64_t(i) < past ? 1 : 2] *= shape[i];
    }
    int64_t count = 1;
    for (const Dim d : shape_of(index)) count *= d.value();
    Named named;
    for (const size_t part : {0, 1, 2}) {
      if (part != 1 && sizes[part] == 1) continue;
      named.from.push_back(sizes[part]);
      named.to.push_back(part == 1 ? count : sizes[part]);
    }
    for (const size_t part : {0, 1, 2}) {
      if (part != 1 && sizes[part] == 1) continue;
      UOp i = index;
      if (part != 1) {
        const bool is_wide = sizes[part] > std::numeric_limits<int32_t>::max();
        i = iota(*arena_, is_wide ? dtypes::int64 : dtypes::int32, sizes[part]);
      }
      Sizes own(named.to.size(), 1);
      own[named.indices.size()] = named.to[named.indices.size()];
      i = move(i, Op::RESHAPE, own, {});
      if (own != named.to) i = move(i, Op::EXPAND, named.to, {});
      named.indices.push_back(i);
    }
    return named;
  }

  UOp import_gather(const Closure::Node& n) {
    const Value& v = *n.value;
    const UOp x = source(n, 0);
    const Sizes shape(v.sources()[0]->shape());
    const Named named = named_by(shape, v.numbers()[0], v.numbers()[1], source(n, 1));
    return move(index(move(x, Op::RESHAPE, named.from, {}), named.indices), Op::RESHAPE, v.shape(),
                {});
  }

  // Memory that this chain alone writes to.
  UOp base_of(const Closure::Chain& chain, const Value& top) {
    const Closure::Node& n = closure_.nodes()[chain.base];
    Made& made = made_[chain.base];
    if (is_memory(n)) {
      import_memory(chain.base);
      if (dying_.contains(made.memory) && written_.insert(made.memory).second) return made.memory;
    } else if (made.memory && !n.is_stored() && written_.insert(made.memory).second) {
      return made.memory;  // an AFTER that this one goes on from
    }
    if (chain.hides_base) {
      const UOp fresh = add_buffer(top, top.numel(), nullptr, nullptr, nullptr);
      dying_.insert(fresh);
      return fresh;
    }
    UOp copy = make(Op::CONTIGUOUS, made.shaped);
    while (stored_.contains(copy) || written_.contains(copy)) copy = make(Op::CONTIGUOUS, copy);
    written_.insert(copy);
    return copy;
  }

  // ---- operations

  UOp source(const Closure::Node& n, size_t i) const { return made_[n.places[i]].shaped; }

  UOp import_op(const Closure::Node& n) {
    const Value& v = *n.value;
    if (v.is(Op::CONST)) {
      return constant_bits(*arena_, v.dtype(), uint64_t(v.numbers()[0]));
    }
    if (v.is(Op::INDEX)) return import_gather(n);
    if (v.is(Op::DETACH)) return make(Op::DETACH, source(n, 0));  // a check stands beside it
    if (v.is(Value::Kind::kCall)) return source(n, 0);
    if (v.is(Op::IOTA)) return iota(*arena_, v.dtype(), v.shape()[0]);
    if (is_movement(v.op())) return move(source(n, 0), v.op(), v.shape(), v.numbers());
    std::array<UOp, Value::kMostSources> srcs;
    const size_t count = n.source_count;
    for (size_t i = 0; i < count; i++) srcs[i] = source(n, i);
    const bool has_axes = v.is(Op::REDUCE_AXIS) || v.is(Op::SCAN);
    const Arg arg = has_axes ? Arg::op_ints(v.numbers()) : Arg{};
    return arena_->make(v.op(), v.dtype(), std::span(srcs.data(), count), arg);
  }

  // Sizes are sources; those of RESHAPE, EXPAND and VIEW begin with the shape of the result.
  UOp move(UOp x, Op op, Ints shape, Ints numbers) {
    if (info(op).arg == ArgKind::Ints) {
      return arena_->make(op, x.dtype(), {x}, Arg::ints(numbers));
    }
    scratch_.assign(1, x);
    if (op != Op::PAD && op != Op::SHRINK) {
      for (const int64_t size : shape) scratch_.push_back(number(size));
    }
    for (const int64_t value : numbers) scratch_.push_back(number(value));
    return arena_->make(op, x.dtype(), scratch_);
  }

  UOp number(int64_t value) { return index_const(*arena_, value); }

  UOp make(Op op, UOp x) { return arena_->make(op, x.dtype(), {x}); }

  // x, which is in the Value's shape or flat, in the Value's shape.
  UOp reshaped(UOp x, const Value& value) {
    if (shape_of(x).size() == value.shape().size()) return x;
    return move(x, Op::RESHAPE, value.shape(), {});
  }

  const Closure& closure_;
  Sharing sharing_;
  bool are_checks_merged_ = false;
  std::shared_ptr<Arena> arena_;
  HugeVector<Made> made_;
  std::vector<UOp> outputs_, scratch_;
  std::unordered_set<UOp> stored_;   // outputs
  std::unordered_set<UOp> written_;  // bases of chains, one each
  std::unordered_set<UOp> dying_;    // BUFFERs
  Imported result_;
};

}  // namespace

Imported import_values(const Closure& closure, Sharing sharing) {
  const PhaseTimer timer(Phase::kImport);
  return Importer(closure, sharing).run();
}

}  // namespace weft
