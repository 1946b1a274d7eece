// Each statement as a list of items, found by its hash.
#include "schedule/roll/loop_bodies.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "ir/arena.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/shape.h"
#include "schedule/roll/loop_events.h"
#include "schedule/roll/loop_statements.h"
#include "schedule/roll/region.h"

namespace weft {
namespace {

using Kind = LoopItem::Kind;

struct HashOfHash {
  size_t operator()(const Hash128& h) const { return size_t(h.low); }
};

std::vector<int64_t> sizes_of(UOp n) {
  std::vector<int64_t> sizes;
  for (const Dim d : shape_of(n)) sizes.push_back(d.value());
  return sizes;
}

double numel_of(UOp n) {
  double count = 1;
  for (const Dim d : shape_of(n)) count *= double(d.value());
  return count;
}

// Sizes and strides: a body for each of so many, one for all of more.
constexpr size_t kMostSizes = 3;

class Describer {
 public:
  explicit Describer(const LoopStatements& statements) : statements_(statements) {}

  LoopProgram run() {
    const std::span<const LoopStatement> all = statements_.statements();
    for (uint32_t i = 0; i < all.size(); i++) describe(i, all[i]);
    join_sizes();
    return std::move(program_);
  }

 private:
  void describe(uint32_t number, const LoopStatement& s) {
    statement_ = &s;
    items_.clear();
    places_.clear();
    types_.clear();
    const size_t first = program_.parameters.size();
    sizes_.clear();
    strides_.clear();
    hash_ = loose_ = {};
    LoopBody body;
    set_target(s, body);
    body.value = item_of(statements_.root_of(s));
    for (UOp i : indices_) body.indices.push_back(item_of(i));
    mix_in(body.value);
    body.first_varying = types_.size();
    for (const int64_t size : sizes_) program_.parameters.push_back(uint64_t(size));
    for (const int64_t stride : strides_) program_.parameters.push_back(uint64_t(stride));
    const auto [at, is_new] = numbers_.try_emplace(hash_, uint32_t(program_.bodies.size()));
    program_.steps.push_back({at->second, first, number});
    if (!is_new) return;
    body.items = std::move(items_);
    body.parameters = types_;
    for (const LoopItem& item : body.items) {
      const bool is_reduction = item.node.is(Op::REDUCE_AXIS);
      const bool computes = item.kind == Kind::kOp || item.kind == Kind::kGather;
      if (computes) body.work += numel_of(is_reduction ? item.node.src(0) : item.node);
      body.reductions += is_reduction ? 1 : 0;
      body.statements += 1 + (item.kind == Kind::kMove ? 2 : 0);
    }
    double writes = 1;
    for (const int64_t size : body.sizes) writes *= double(size);
    body.work += writes;
    body.varying_sizes = sizes_;
    body.varying_strides = strides_;
    loose_hashes_.push_back(loose_);
    program_.bodies.push_back(std::move(body));
  }

  // Bodies that differ in sizes alone become one whose sizes are parameters, where they are many.
  void join_sizes() {
    std::unordered_map<Hash128, std::vector<uint32_t>, HashOfHash> groups;
    for (uint32_t b = 0; b < program_.bodies.size(); b++) {
      if (program_.bodies[b].work <= kMostWork) groups[loose_hashes_[b]].push_back(b);
    }
    std::vector<uint32_t> first(program_.bodies.size()), place(first.size());
    for (uint32_t b = 0; b < first.size(); b++) {
      const auto group = groups.find(loose_hashes_[b]);
      const bool joins = program_.bodies[b].work <= kMostWork && group->second.size() > kMostSizes;
      first[b] = joins ? group->second[0] : b;
      LoopBody& body = program_.bodies[first[b]];
      if (first[b] != b) {
        body.work = std::max(body.work, program_.bodies[b].work);
      } else if (joins) {
        const size_t varying = body.varying_sizes.size() + body.varying_strides.size();
        body.parameters.insert(body.parameters.end(), varying, dtypes::index);
      } else {
        body.varying_sizes.clear();
        body.varying_strides.clear();
      }
    }
    std::vector<LoopBody> kept;
    for (uint32_t b = 0; b < first.size(); b++) {
      place[b] = first[b] == b ? uint32_t(kept.size()) : place[first[b]];
      if (first[b] == b) kept.push_back(std::move(program_.bodies[b]));
    }
    program_.bodies = std::move(kept);
    for (LoopStep& s : program_.steps) s.body = place[s.body];
  }

  void set_target(const LoopStatement& s, LoopBody& body) {
    indices_.clear();
    if (s.kind == LoopStatement::Kind::kKept) {
      const LoopKept& k = statements_.kept()[s.number];
      body.target = statements_.place_of_kept(k);
      body.sizes = sizes_of(k.node);
      mix_in(1);
    } else {
      const LoopEvent& e = statements_.events().events()[s.number];
      const UOp memory = statements_.events().memories()[e.memory];
      body.target =
          statements_.place_of_memory(e.memory, e.region ? *e.region : *Region::whole(memory));
      body.store = e.store;
      mix_in(2 + (e.store ? e.store.arg_word() : 0));
      if (e.region) {
        for (const Region::Axis& axis : e.region->axes()) body.sizes.push_back(axis.size);
      } else {
        const UOp target = e.store.src(0);
        body.sizes = sizes_of(target);
        mix_move(target.src(0));
        for (UOp i : target.srcs().subspan(1)) indices_.push_back(i);
      }
      for (const int64_t size : body.sizes) mix_size(size);
    }
    mix_leaf(body.target);
    add_parameter(dtypes::index, uint64_t(body.target.region.offset()));
  }

  size_t add_parameter(DType type, uint64_t bits) {
    program_.parameters.push_back(bits);
    types_.push_back(type);
    return types_.size() - 1;
  }

  // The items of n and of all that it is computed from.
  uint32_t item_of(UOp root) {
    root = computed(root);
    std::vector<UOp> todo{root};
    while (!todo.empty()) {
      const UOp n = todo.back();
      if (find(n) != nullptr) {
        todo.pop_back();
        continue;
      }
      const std::optional<LoopLeaf> leaf = leaf_of(n);
      const size_t before = todo.size();
      if (!leaf) {
        for (UOp s : sources_of(n)) {
          if (find(s) == nullptr) todo.push_back(s);
        }
      }
      if (todo.size() > before) continue;
      add(n, leaf);
      todo.pop_back();
    }
    return *find(root);
  }

  std::optional<LoopLeaf> leaf_of(UOp n) const {
    if (n.is_const() || n.is(Op::IOTA)) return {};
    return statements_.leaf_of(n, *statement_);
  }

  std::span<const UOp> sources_of(UOp n) {
    scratch_.clear();
    if (n.is(Op::CONST) || n.is(Op::IOTA)) return {};
    const std::span<const UOp> all = n.srcs();
    const std::span<const UOp> srcs = is_movement(n.op()) ? all.first(1) : all;
    for (UOp s : srcs) scratch_.push_back(computed(s));
    if (n.is(Op::INDEX)) scratch_[0] = base_of(scratch_[0]);
    return scratch_;
  }
  // A CONTIGUOUS that is computed here has no memory here: it is its source. A view of a constant
  // is the constant.
  UOp computed(UOp n) const {
    while (n.is(Op::CONTIGUOUS) && !leaf_of(n)) n = n.src(0);
    UOp base = n;
    while (is_movement(base.op()) && !base.is(Op::PAD)) base = base.src(0);
    return base.is_const() ? base : n;
  }
  UOp base_of(UOp n) const {
    while (is_movement(n.op()) && statements_.kept_value(n) == nullptr) n = n.src(0);
    return n;
  }

  const uint32_t* find(UOp n) const {
    for (const auto& [node, item] : places_) {
      if (node == n) return &item;
    }
    return nullptr;
  }

  void add(UOp n, const std::optional<LoopLeaf>& leaf) {
    LoopItem item{Kind::kOp, n};
    if (leaf) {
      item.kind = Kind::kRead;
      item.leaf = leaf;
      item.parameter = add_parameter(dtypes::index, uint64_t(leaf->region.offset()));
      mix_in(3);
      mix_leaf(*leaf);
    } else if (n.is_const()) {
      item.kind = Kind::kScalar;
      item.parameter = add_parameter(n.dtype(), n.bits());
      mix_in(4);
      mix_type(n.dtype());
    } else if (n.is(Op::IOTA)) {
      item.kind = Kind::kIota;
      mix_in(5);
      mix_type(n.dtype());
      for (const int64_t size : sizes_of(n)) mix_size(size);
    } else {
      for (UOp s : sources_of(n)) item.sources.push_back(*find(s));
      mix_in(6 + (uint64_t(n.op()) << 8));
      mix_type(n.dtype());
      mix_in(n.arg_word());
      for (const uint32_t s : item.sources) mix_in(s);
      if (is_movement(n.op())) {
        item.kind = Kind::kMove;
        mix_step(n);
      } else if (n.is(Op::INDEX)) {
        item.kind = Kind::kGather;
        mix_move(n.src(0));
      } else if (n.is(Op::REDUCE_AXIS)) {
        for (const int64_t size : sizes_of(n.src(0))) mix_size(size);
      }
    }
    places_.emplace_back(n, uint32_t(items_.size()));
    items_.push_back(std::move(item));
  }

  // ---- hashes

  void mix_in(uint64_t word) {
    hash_ = mix(hash_, word);
    loose_ = mix(loose_, word);
  }
  // In the loose hash a size is which of the statement's sizes it is.
  void mix_size(int64_t size) { mix_number(size, size == 1, sizes_); }
  void mix_stride(int64_t stride) { mix_number(stride, stride >= -1 && stride <= 1, strides_); }
  void mix_number(int64_t number, bool is_plain, std::vector<int64_t>& known) {
    if (is_plain) return mix_in(uint64_t(number));
    const auto at = std::ranges::find(known, number);
    hash_ = mix(hash_, uint64_t(number));
    loose_ = mix(loose_, (uint64_t(1) << 32) + uint64_t(at - known.begin()));
    if (at == known.end()) known.push_back(number);
  }
  void mix_type(DType type) { mix_in(type.packed()); }
  void mix_leaf(const LoopLeaf& leaf) {
    mix_in(uint64_t(leaf.kind) | uint64_t(leaf.memory) << 8 |
           uint64_t(leaf.region.axes().size()) << 48);
    for (const Region::Axis& axis : leaf.region.axes()) {
      mix_size(axis.size);
      if (axis.size != 1) mix_stride(axis.stride);
    }
  }
  // One movement op on what the statement computes.
  void mix_step(UOp n) {
    const std::vector<int64_t> from = sizes_of(n.src(0)), to = sizes_of(n);
    const bool is_free = n.is(Op::EXPAND) || n.is(Op::PERMUTE) || n.is(Op::FLIP) ||
                         (n.is(Op::RESHAPE) && keeps_long_axes(from, to));
    const bool has_begins = n.is(Op::SHRINK) || n.is(Op::PAD);
    if (!is_free && !has_begins) {
      for (const int64_t size : from) mix_in(uint64_t(size));
      for (const int64_t size : to) mix_in(uint64_t(size));
      for (UOp number : n.srcs().subspan(1)) mix_in(number.id());
      return;
    }
    for (const int64_t size : from) mix_size(size);
    for (const int64_t size : to) mix_size(size);
    for (size_t i = 0; has_begins && i < from.size(); i++) mix_in(n.src(1 + i).id());
  }
  // Movement ops with all their numbers, down to what they move.
  void mix_move(UOp n) {
    while (true) {
      for (const int64_t size : sizes_of(n)) mix_in(uint64_t(size));
      if (!is_movement(n.op())) return;
      mix_in(uint64_t(n.op()));
      mix_in(n.arg_word());
      for (UOp number : n.srcs().subspan(1)) mix_in(number.id());
      n = n.src(0);
    }
  }

  const LoopStatements& statements_;
  const LoopStatement* statement_ = nullptr;
  LoopProgram program_;
  std::unordered_map<Hash128, uint32_t, HashOfHash> numbers_;
  std::vector<Hash128> loose_hashes_;  // of bodies
  Hash128 hash_, loose_;               // with sizes, and without
  std::vector<int64_t> sizes_, strides_;
  std::vector<LoopItem> items_;
  std::vector<std::pair<UOp, uint32_t>> places_;
  std::vector<DType> types_;
  std::vector<UOp> indices_, scratch_;
};

}  // namespace

bool keeps_long_axes(std::span<const int64_t> from, std::span<const int64_t> to) {
  const auto is_long = std::views::filter([](int64_t size) { return size != 1; });
  return std::ranges::equal(from | is_long, to | is_long);
}

LoopProgram loop_program(const LoopStatements& statements) { return Describer(statements).run(); }

}  // namespace weft
