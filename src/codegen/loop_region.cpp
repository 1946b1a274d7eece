// Items and what each needs, then a depth-first order from the effects.
#include "codegen/loop_region.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scope.h"

namespace weft {

bool Closing::is_loop() const {
  return level != kWhole && node.is(Op::END) && level + 1 < node.src_count();
}

UOp Closing::effect() const { return level == kWhole ? node : node.src(0); }

namespace {

// The memory that a node reads or writes, by number; 0 for all others. Arguments of a kernel may
// lie in one memory, so they are all one.
constexpr uint64_t kArguments = 1;
uint64_t memory_of(UOp pointer) {
  const UOp base = place_of(pointer).base;
  return base.is(Op::DEFINE_GLOBAL) ? kArguments : kArguments + 1 + base.id();
}
uint64_t memory_read(UOp n) {
  if (n.is(Op::LOAD)) return memory_of(n.src(0));
  return n.is(Op::AFTER) && is_register(n) ? memory_of(n) : 0;
}
uint64_t memory_written(UOp n) { return n.is(Op::STORE) ? memory_of(n.src(0)) : 0; }

// Whether a read of this memory may wait: what writes it, too, keeps its place.
bool writes(const std::vector<uint64_t>& memories, uint64_t memory) {
  return std::ranges::find(memories, memory) != memories.end();
}

struct Item {
  RegionItem what;
  std::vector<UOp> needs{};                 // nodes outside of it
  std::vector<uint64_t> reads{}, writes{};  // memory
  std::vector<size_t> before{};             // items that come first
};

class Region {
 public:
  Region(UOp range, std::span<const Closing> wanted, Arena& arena)
      : range_(range), item_of_(arena), arena_(arena) {
    std::vector<UOp> todo;
    for (const Closing& c : wanted) {
      if (c.is_loop()) {
        wanted_.push_back(add_loop(c, todo));
      } else {
        todo.push_back(c.effect());
      }
      while (!todo.empty()) {
        const UOp n = todo.back();
        todo.pop_back();
        if (is_inside(n) && !item_of_.has(n)) add_node(n, todo);
      }
      if (!c.is_loop() && item_of_.has(c.effect())) {
        wanted_.push_back(item_of_.number(c.effect()) - 1);
      }
    }
  }

  std::vector<RegionItem> in_order() {
    merge_loops(Merge::kAll);
    link();
    std::vector<size_t> order;
    if (!sort(order)) {
      merge_loops(Merge::kNone);
      link();
      merge_where_possible();
      if (!sort(order)) throw InternalError("[linearize] loops wait for each other");
    }
    gather_blocks(order);
    std::vector<RegionItem> out;
    out.reserve(order.size());
    for (const size_t i : order) out.push_back(std::move(items_[i].what));
    return out;
  }

 private:
  enum class Merge : uint8_t { kAll, kNone };
  static constexpr size_t kAtOnce = 64;  // writers, one for each bit of a word

  bool is_inside(UOp n) const {
    return n != range_ && (!range_ || is_in_scope(range_, n)) && !n.is(Op::RANGE);
  }

  void add_node(UOp n, std::vector<UOp>& todo) {
    const Closing whole{n, 0};
    if (whole.is_loop()) {
      item_of_.put_number(n, add_loop(whole, todo) + 1);
      return;
    }
    Item item{{n}, {n.srcs().begin(), n.srcs().end()}};
    if (const uint64_t m = memory_read(n)) item.reads.push_back(m);
    if (const uint64_t m = memory_written(n)) item.writes.push_back(m);
    // The first one first: loops of one range then run their parts as a reader expects, and memory
    // is read upwards.
    todo.insert(todo.end(), item.needs.rbegin(), item.needs.rend());
    items_.push_back(std::move(item));
    item_of_.put_number(n, items_.size());
  }

  // A loop needs what stands in its body, but not in its ranges.
  size_t add_loop(const Closing& c, std::vector<UOp>& todo) {
    Item item{{{}, {c}}, {}};
    std::unordered_set<UOp> bound;
    std::vector<UOp> walk;
    const auto close = [&](UOp end, size_t from) {
      for (UOp r : end.srcs().subspan(from + 1)) {
        bound.insert(r);
        walk.push_back(r.src(0));
      }
      walk.push_back(end.src(0));
    };
    close(c.node, c.level);
    NodeMap seen(arena_);
    std::unordered_set<uint64_t> reads, writes;
    while (!walk.empty()) {
      const UOp n = walk.back();
      walk.pop_back();
      if (bound.contains(n) || seen.has(n)) continue;
      seen.put_number(n, 1);
      const std::span<const UOp> scope = ranges_of(n);
      const bool inside = std::ranges::any_of(scope, [&](UOp r) { return bound.contains(r); });
      if (!inside || n.is(Op::RANGE)) {
        item.needs.push_back(n);
        continue;
      }
      if (const uint64_t m = memory_read(n)) reads.insert(m);
      if (const uint64_t m = memory_written(n)) writes.insert(m);
      if (n.is(Op::END)) {
        close(n, 0);
      } else {
        walk.insert(walk.end(), n.srcs().begin(), n.srcs().end());
      }
    }
    item.reads.assign(reads.begin(), reads.end());
    item.writes.assign(writes.begin(), writes.end());
    todo.insert(todo.end(), item.needs.begin(), item.needs.end());
    items_.push_back(std::move(item));
    return items_.size() - 1;
  }

  // ---- blocks

  static bool has_block(UOp n) {
    return n && n.is(Op::STORE) && n.src_count() == 3 && is_register(n.src(0));
  }

  // Nodes whose only users are in the block of a gated write move into it.
  void gather_blocks(std::vector<size_t>& order) {
    if (std::ranges::none_of(order, [&](size_t i) { return has_block(items_[i].what.node); }))
      return;
    std::unordered_map<UOp, std::vector<size_t>> users;
    for (size_t i = 0; i < items_.size(); i++) {
      for (UOp n : items_[i].needs) users[n].push_back(i);
    }
    std::vector<size_t> block_of(items_.size(), SIZE_MAX);
    for (size_t at = order.size(); at-- > 0;) {  // users before sources
      const size_t i = order[at];
      const UOp n = items_[i].what.node;
      if (!n || is_effect(n.op()) || !can_move(n)) continue;
      size_t block = SIZE_MAX;
      bool is_one = true;
      for (const size_t u : users[n]) {
        const UOp user = items_[u].what.node;
        const bool is_value =
            has_block(user) && user.src(1) == n && user.src(0) != n && user.src(2) != n;
        const size_t b = is_value ? u : block_of[u];
        is_one &= b != SIZE_MAX && (block == SIZE_MAX || block == b);
        block = b;
      }
      if (is_one && block != SIZE_MAX) block_of[i] = block;
    }
    for (const size_t i : order) {
      if (block_of[i] != SIZE_MAX) items_[block_of[i]].what.block.push_back(items_[i].what.node);
    }
    std::erase_if(order, [&](size_t i) { return block_of[i] != SIZE_MAX; });
  }

  // Arithmetic can move; a read must keep its place among the writes.
  static bool can_move(UOp n) { return !n.is(Op::LOAD) && !n.is(Op::AFTER); }

  // ---- loops of one range

  void merge_loops(Merge merge) {
    if (merge == Merge::kNone) {
      for (size_t i = 0; i < items_.size(); i++) {
        into_[i] = i;
        if (items_[i].what.is_loop()) items_[i].what.closing.resize(1);
      }
      return;
    }
    into_.resize(items_.size());
    std::unordered_map<UOp, size_t> first;
    for (size_t i = 0; i < items_.size(); i++) {
      into_[i] = i;
      if (!items_[i].what.is_loop()) continue;
      const auto [at, is_new] = first.emplace(items_[i].what.range(), i);
      if (!is_new) merge_into(i, at->second);
    }
  }

  void merge_into(size_t i, size_t into) {
    into_[i] = into;
    items_[into].what.closing.push_back(items_[i].what.closing[0]);
  }

  // Pairs of loops of one range of which neither waits for the other, the first ones first.
  void merge_where_possible() {
    for (size_t i = 0; i < items_.size(); i++) {
      if (!items_[i].what.is_loop() || into_[i] != i) continue;
      for (size_t j = 0; j < i; j++) {
        if (into_[j] != j || !items_[j].what.is_loop() ||
            items_[j].what.range() != items_[i].what.range()) {
          continue;
        }
        if (waits_for(i, j) || waits_for(j, i)) continue;
        merge_into(i, j);
        link();
        break;
      }
    }
  }

  bool waits_for(size_t item, size_t other) const {
    std::unordered_set<size_t> seen;
    std::vector<size_t> todo{item};
    while (!todo.empty()) {
      const size_t at = todo.back();
      todo.pop_back();
      if (at == other) return true;
      if (!seen.insert(at).second) continue;
      todo.insert(todo.end(), items_[at].before.begin(), items_[at].before.end());
    }
    return false;
  }

  // ---- order

  void link() {
    waits_for_itself_ = false;
    for (Item& item : items_) item.before.clear();
    for (size_t i = 0; i < items_.size(); i++) {
      Item& to = items_[into_[i]];
      for (UOp n : items_[i].needs) {
        const uint64_t number = item_of_.number(n);
        if (number == 0 || !is_inside(n)) continue;
        const size_t from = into_[number - 1];
        if (from != into_[i]) to.before.push_back(from);
        if (from == into_[i] && number - 1 != i) waits_for_itself_ = true;  // a part for another
      }
    }
    link_memory();
  }

  // A read comes before a write to the same memory unless it waits for it.
  void link_memory() {
    std::unordered_map<uint64_t, std::vector<size_t>> readers;
    for (size_t i = 0; i < items_.size(); i++) {
      for (const uint64_t m : items_[i].reads) readers[m].push_back(i);
    }
    std::vector<size_t> writers;
    for (size_t w = 0; w < items_.size(); w++) {
      const auto is_read = [&](uint64_t m) { return readers.contains(m); };
      if (std::ranges::any_of(items_[w].writes, is_read)) writers.push_back(w);
    }
    if (writers.empty()) return;
    std::vector<std::pair<size_t, size_t>> edges;
    const std::vector<size_t> order = sources_first();
    for (size_t first = 0; first < writers.size(); first += kAtOnce) {
      const std::span some =
          std::span(writers).subspan(first, std::min(kAtOnce, writers.size() - first));
      const std::vector<uint64_t> waiting = waiting_for(some, order);
      for (size_t bit = 0; bit < some.size(); bit++) {
        const size_t w = some[bit], writer = into_[w];
        for (const uint64_t m : items_[w].writes) {
          const auto at = readers.find(m);
          if (at == readers.end()) continue;
          for (const size_t r : at->second) {
            const size_t reader = into_[r];
            if (reader == writer || writes(items_[r].writes, m)) continue;
            if ((waiting[reader] >> bit & 1) == 0) edges.emplace_back(writer, reader);
          }
        }
      }
    }
    for (const auto& [writer, reader] : edges) items_[writer].before.push_back(reader);
  }

  // All items, each behind those before it where they do not wait for each other.
  std::vector<size_t> sources_first() const {
    std::vector<size_t> order;
    order.reserve(items_.size());
    std::vector<bool> is_seen(items_.size());
    std::vector<std::pair<size_t, size_t>> stack;
    for (size_t i = 0; i < items_.size(); i++) {
      if (is_seen[i]) continue;
      is_seen[i] = true;
      stack.emplace_back(i, 0);
      while (!stack.empty()) {
        auto& [at, next] = stack.back();
        if (next == items_[at].before.size()) {
          order.push_back(at);
          stack.pop_back();
          continue;
        }
        const size_t source = items_[at].before[next++];
        if (is_seen[source]) continue;
        is_seen[source] = true;
        stack.emplace_back(source, 0);
      }
    }
    return order;
  }

  // Of each item, which of at most kAtOnce writers it waits for: bit i is that of writers[i].
  std::vector<uint64_t> waiting_for(std::span<const size_t> writers,
                                    std::span<const size_t> order) const {
    std::vector<uint64_t> bits(items_.size());
    for (size_t i = 0; i < writers.size(); i++) bits[into_[writers[i]]] |= uint64_t(1) << i;
    for (bool is_new = true; is_new;) {  // once, and again where items wait for each other
      is_new = false;
      for (const size_t at : order) {
        uint64_t all = bits[at];
        for (const size_t source : items_[at].before) all |= bits[source];
        is_new = is_new || all != bits[at];
        bits[at] = all;
      }
    }
    return bits;
  }

  // False when items wait for each other.
  bool sort(std::vector<size_t>& order) const {
    enum : uint8_t { kNew, kOpen, kDone };
    order.clear();
    if (waits_for_itself_) return false;
    std::vector<uint8_t> state(items_.size(), kNew);
    std::vector<std::pair<size_t, size_t>> stack;
    for (const size_t wanted : wanted_) {
      if (state[into_[wanted]] == kNew) stack.emplace_back(into_[wanted], 0);
      while (!stack.empty()) {
        auto& [at, next] = stack.back();
        state[at] = kOpen;
        if (next == items_[at].before.size()) {
          state[at] = kDone;
          order.push_back(at);
          stack.pop_back();
          continue;
        }
        const size_t needed = items_[at].before[next++];
        if (state[needed] == kOpen) return false;
        if (state[needed] == kNew) stack.emplace_back(needed, 0);
      }
    }
    return true;
  }

  UOp range_;
  NodeMap item_of_;  // 1 + the item of a node
  Arena& arena_;
  std::vector<Item> items_;
  std::vector<size_t> wanted_;
  bool waits_for_itself_ = false;  // what is merged has a part that needs all of another
  std::vector<size_t> into_;       // the item that an item is merged into: itself for most
};

}  // namespace

std::vector<RegionItem> order_region(UOp range, std::span<const Closing> wanted, Arena& arena) {
  return Region(range, wanted, arena).in_order();
}

}  // namespace weft
