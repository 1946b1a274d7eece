// What a realise has to look at: the Values beneath its roots, down to those in memory, with what
// is to be stored, what must survive, and which chains of writes are one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/huge_vector.h"
#include "base/ref.h"
#include "ir/op.h"
#include "value/value.h"

namespace weft {

class Closure {
 public:
  // What decisions read of a Value is copied: in a large graph each look at a Value is one at
  // memory that no cache has.
  struct Node {
    Value* value;
    uint32_t owners = 0;  // of the Value, for decisions
    uint32_t edges = 0;   // sources of Values of the closure that name it
    uint32_t nexts = 0;   // of these, writes to it
    uint32_t roots = 0;   // how often it is a root
    uint32_t chain = 0;   // of a needed AFTER: 1 + its place in chains()
    std::array<uint32_t, Value::kMostSources> places{};  // of its sources, in nodes()
    uint8_t source_count = 0;  // none of what is in memory, or is memory here
    Op op{};
    bool is_filled = false;
    bool is_version = false;    // of a Storage
    bool is_tracked = false;    // as the Value is
    bool is_step = false;       // as the Value is
    bool is_free = false;       // made of constants alone: nothing is gained by storing it
    bool reduces = false;       // a REDUCE_AXIS or a SCAN lies beneath it, none of it stored
    bool is_candidate = false;  // is stored, if it is needed
    bool is_check = false;      // stored because it is the check of a guard, and for nothing else
    bool is_needed = false;     // must be computed
    bool is_kept = false;       // is read after this schedule: its memory must not change
    bool is_taped = false;      // a gradient may come by after this schedule
    bool is(Op o) const { return op == o; }
    bool is_staged() const { return is(Op::COPY) || is(Op::KERNEL); }  // as the Value is
    bool is_stored() const { return is_candidate && is_needed; }
    std::span<const uint32_t> sources() const { return {places.data(), source_count}; }
  };

  // A needed AFTER with the writes beneath it that nothing else reads:
  // AFTER(base, writes...), oldest first, without those that later ones cover.
  struct Chain {
    uint32_t base;
    std::vector<uint32_t> writes;  // AFTERs
    bool hides_base;               // every element is written
  };

  // The calls beneath these that wait (call.h), sources first. The lock of the graph is held.
  static std::vector<Ref<Value>> waiting_beneath(std::span<Value* const> roots);
  // Opens them, in this order. The lock of realise is held, that of the graph is not.
  static void open_calls(std::span<const Ref<Value>> waiting);
  // Both, with the lock of realise alone held.
  static void open_calls_beneath(std::span<Value* const> roots);

  // `roots` are not filled, and nothing beneath them waits; each holds one reference for the time
  // of the closure. Both locks are held: of realise, so that nothing is filled meanwhile, and of
  // the graph. What is read here of owners stays true without the second.
  explicit Closure(std::span<Value* const> roots);
  Closure(const Closure&) = delete;
  Closure& operator=(const Closure&) = delete;
  ~Closure();

  // Sources before users; the order depends on the program alone.
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Chain> chains() const { return chains_; }
  // Staged Values that are not filled: memory here, whose sources are no part of the closure.
  std::span<Value* const> copies() const { return copies_; }
  uint32_t index_of(const Value& value) const { return uint32_t(value.mark_ - first_mark_); }
  const Node& node_of(const Value& value) const { return nodes_[index_of(value)]; }

  // Forgets the pending stores of all Storages whose version is in the closure.
  void drop_pending();
  // Decides everything above but edges; pending stores have been dropped (they count as owners).
  void decide();

 private:
  void visit(Value* root);
  void close(Value* value, std::span<const Ref<Value>> sources);
  void make_room();
  static void note_holders(Node& n);
  // Marks only grow: one that is older than this closure says nothing.
  bool has(const Value& value) const { return value.mark_ >= first_mark_; }
  static bool may_be_read_through(const Node& n);
  void keep_for_gradients(const Node& n);
  void find_candidates();
  static void note_check(Node& check);
  void need_sources(uint32_t index);
  Chain chain_of(uint32_t top);
  void drop_covered(Chain& chain, int64_t numel);

  uint64_t first_mark_;  // of nodes_[0]; they go on from there
  HugeVector<Node> nodes_;
  std::vector<Chain> chains_;
  std::vector<Value*> copies_;
  std::vector<Value*> pending_;  // pending stores of a Storage end there
};

}  // namespace weft
