// What a loop program does, one statement after the other: the writes, the values that several of
// them use, and copies of what is overwritten before it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "schedule/roll/loop_events.h"
#include "schedule/roll/region.h"
#include "schedule/schedule.h"

namespace weft {

// A value with a place of its own: elements of slots, each written once, or what an event stores.
struct LoopKept {
  UOp node;
  bool is_output = false;  // a source of the SINK
  bool is_copy = false;    // of memory: a read that comes after the memory is overwritten
  uint32_t time = 0;
  std::optional<uint32_t> defined_by{};  // the event that stores it: read from there
  uint32_t slots = 0;                    // else: which slots,
  int64_t first = 0;                     // and its first element there
};

// Memory for kept values of one dtype, one after the other, or for memories that are made.
struct LoopSlots {
  DType dtype;
  bool is_output;
  bool is_full = false;  // of one large output
  bool is_of_memories = false;
  int64_t size = 0;  // elements
  size_t values = 0;
};

struct LoopStatement {
  enum class Kind : uint8_t { kKept, kEvent };
  Kind kind;
  uint32_t number;  // of a LoopKept or a LoopEvent
  uint32_t time;
  size_t place;
};

// Where the elements of a leaf lie.
struct LoopLeaf {
  enum class Kind : uint8_t { kMemory, kSlots };
  Kind kind;
  uint32_t memory;  // its number among those of its kind
  DType dtype;
  Region region;
};

// Where formulas are cut into statements.
enum class LoopCuts : uint8_t {
  kLong,   // where they are long
  kAlike,  // also at each part that has the form of something that is stored: the turns of a loop
           // whose writes later ones cover, so that values alone are left, nested at random depths
  kAll,    // at each operation
};

class LoopStatements {
 public:
  LoopStatements(std::span<const UOp> order, const LoopEvents& events, OutputMemory outputs,
                 LoopCuts cuts);
  LoopStatements(const LoopStatements&) = delete;
  LoopStatements& operator=(const LoopStatements&) = delete;

  const std::optional<LoopRefusal>& refusal() const { return refusal_; }
  std::span<const LoopStatement> statements() const { return statements_; }
  std::span<const LoopKept> kept() const { return kept_; }
  const LoopEvents& events() const { return events_; }

  // What the statement computes, through movement ops that lie around it.
  UOp root_of(const LoopStatement& s) const;
  // The elements that n names as a leaf of this statement; none where it is computed there.
  // Movement ops of n beyond what strides can say are not a leaf: `n` without them is.
  std::optional<LoopLeaf> leaf_of(UOp n, const LoopStatement& s) const;
  // Where a region of a memory lies: where many memories are made, they are parts of one.
  LoopLeaf place_of_memory(uint32_t memory, const Region& region) const;
  // Where a kept value lies.
  LoopLeaf place_of_kept(const LoopKept& k) const;
  // The copy that the statement reads in place of n; null: it reads n.
  const LoopKept* copy_for(UOp n, const LoopStatement& s) const;
  // Whether this statement computes the kept value n.
  bool computes(UOp n, const LoopStatement& s) const;
  // The value, if it is kept.
  const LoopKept* kept_value(UOp n) const;
  std::span<const LoopSlots> slots() const { return slots_; }

 private:
  struct Use {
    uint32_t time;
    std::optional<uint32_t> event;
  };
  struct Pending {  // of a kept value, until its time is decided
    std::vector<Use> uses;
    std::optional<uint32_t> stored_by;
  };

  bool refuse(UOp node, std::string reason);
  void find_kept();
  void find_cuts();
  void cut_alike();
  void own(UOp n, uint32_t owner);
  void pass_on(UOp n, uint32_t owner);
  LoopKept& keep(UOp n);
  bool find_times();
  bool note_outputs(UOp sink);
  void note_event(uint32_t event);
  void note_stored_by(UOp value, uint32_t event);
  void decide(uint32_t kept);
  bool is_there(const LoopKept& k, const Pending& p, uint32_t event) const;
  struct Step {
    UOp n;
    bool is_aligned;  // read at the element that is written
  };
  void push_sources(const Step& step, std::vector<Step>& todo) const;
  void visit(std::vector<Step> todo, uint32_t time, std::optional<uint32_t> event);
  void visit_read(UOp chain, UOp base, uint32_t time, std::optional<uint32_t> event, bool aligned);
  UOp base_of(UOp n) const;
  std::optional<Region> region_of(UOp chain, UOp base, const Region& whole) const;
  void copy_before(UOp read, uint32_t time);
  void order_statements();
  bool assign_slots();
  uint32_t slots_for(const LoopKept& k);
  int64_t gather_memories();

  std::span<const UOp> order_;
  Arena& arena_;
  const LoopEvents& events_;
  OutputMemory outputs_;
  LoopCuts cuts_;
  NodeMap kept_of_;  // 1 + number
  NodeMap copy_of_;  // of a read: 1 + number of its copy
  NodeMap owners_, is_simple_, is_repeated_, is_cut_;
  std::vector<LoopKept> kept_;
  std::vector<Pending> pending_;
  NodeMap seen_;  // by the statement that saw it last
  uint64_t stamp_ = 0;
  std::vector<LoopStatement> statements_;
  std::vector<LoopSlots> slots_;
  struct Part {  // of slots
    uint32_t slots;
    int64_t first;
  };
  std::vector<std::optional<Part>> parts_;  // of each memory
  std::optional<LoopRefusal> refusal_;
};

}  // namespace weft
