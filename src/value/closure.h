// What a realise has to look at: the Values beneath its roots, down to those in memory, with what
// is to be stored, what must survive, and which chains of writes are one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ref.h"
#include "value/value.h"

namespace weft {

class Closure {
 public:
  struct Node {
    Value* value;
    uint32_t edges = 0;  // sources of Values of the closure that name it
    uint32_t roots = 0;  // how often it is a root
    uint32_t chain = 0;  // of a needed AFTER: 1 + its place in chains()
    bool is_filled = false;
    bool is_free = false;       // made of constants alone: nothing is gained by storing it
    bool reduces = false;       // a REDUCE_AXIS lies beneath it, under nothing that is stored
    bool is_candidate = false;  // is stored, if it is needed
    bool is_needed = false;     // must be computed
    bool is_kept = false;       // is read after this schedule: its memory must not change
    bool is_taped = false;      // a gradient may come by after this schedule
    bool is_stored() const { return is_candidate && is_needed; }
  };

  // A needed AFTER with the writes beneath it that nothing else reads:
  // AFTER(base, writes...), oldest first, without those that later ones cover.
  struct Chain {
    uint32_t base;
    std::vector<uint32_t> writes;  // AFTERs
    bool hides_base;               // every element is written
  };

  // `roots` are not filled; each holds one reference for the time of the closure. Both locks are
  // held: of realise, so that nothing is filled meanwhile, and of the graph. What is read here of
  // owners stays true without the second.
  explicit Closure(std::span<Value* const> roots);
  Closure(const Closure&) = delete;
  Closure& operator=(const Closure&) = delete;
  ~Closure();

  // Sources before users; the order depends on the program alone.
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Chain> chains() const { return chains_; }
  // Staged Values that are not filled: memory here, whose sources are no part of the closure.
  std::span<Value* const> copies() const { return copies_; }
  uint32_t index_of(const Value& value) const { return value.mark_ - 1; }
  const Node& node_of(const Value& value) const { return nodes_[index_of(value)]; }

  // Decides everything above but edges; the pending stores of all Storages whose version is in the
  // closure have been dropped (they count as owners).
  void decide();

 private:
  Node& node(const Value& value) { return nodes_[index_of(value)]; }
  void visit(Value* root);
  void unmark() noexcept;
  static std::span<const Ref<Value>> sources_of(const Value& value);
  static bool may_be_read_through(const Node& n);
  void keep_for_gradients(const Node& n);
  void find_candidates();
  void need_sources(uint32_t index);
  Chain chain_of(const Value& top);
  void drop_covered(Chain& chain, int64_t numel);

  std::vector<Node> nodes_;
  std::vector<Chain> chains_;
  std::vector<Value*> copies_;
};

}  // namespace weft
