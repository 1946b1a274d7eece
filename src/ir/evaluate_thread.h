// One thread of the evaluator's machine. Private to ir/evaluate*.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/array.h"
#include "ir/dtype.h"
#include "ir/evaluate_memory.h"
#include "ir/evaluate_parts.h"
#include "ir/evaluate_plan.h"
#include "ir/node.h"

namespace weft::evaluator {

// What a slot holds.
struct Value {
  enum Kind : uint8_t {
    kUnset,
    kPlain,    // lanes
    kCell,     // lanes, and the place that they were read from: a register, an element
    kPointer,  // a place
    kArray,    // a place, the first of its memory
  } kind = kUnset;
  std::vector<Lane> lanes;
  Place place;
};

// The same bits in every lane.
inline Value plain(DType dtype, uint64_t bits) {
  return {Value::kPlain, std::vector<Lane>(dtype.lanes, Lane{bits}), {}};
}

// The operand of a lane: a scalar serves every lane.
inline const Lane& lane_of(const Value& v, size_t lane) {
  return v.lanes[v.lanes.size() == 1 ? 0 : lane];
}

class Thread;

// What all threads of a workgroup share.
struct Workgroup {
  const Plan& plan;
  Heap& heap;
  const Variables& variables;
  const std::map<int64_t, Memory*>* arguments;  // of a kernel, else null
  std::unordered_map<UOp, Memory> locals;
  std::vector<const Thread*> threads;  // by number, the first dimension fastest
  // Runs a KERNEL on the values of its sources.
  std::function<void(UOp kernel, const std::vector<const Value*>& sources)> run_kernel;
};

class Thread {
 public:
  Thread(Workgroup& group, std::vector<std::pair<UOp, int64_t>> specials, size_t number)
      : group_(group),
        specials_(std::move(specials)),
        number_(number),
        values_(group.plan.slot_count) {}

  // Runs up to and past the next BARRIER, or up to a product whose factor the threads hold
  // together, which it returns; none at the end.
  UOp run_to_barrier();

  // The value of root i once the thread is at its end.
  Array result(size_t i) const;

 private:
  struct Loop {
    UOp range;
    int64_t at, size;
  };
  // A copy that is under way.
  struct Fetch {
    UOp node;
    Place to;
    std::vector<Lane> lanes;
  };

  void run_step(const Step& step);
  void run_node(const Step& step);
  void begin(const Step& step);
  void add_to_body(const Step& step);

  Value elementwise(const Step& step);
  Value select_lanes(const Step& step);

  // ---- evaluate_access.cpp
  Value define(UOp n);
  Value index(const Step& step);
  Value load(const Step& step);
  Value store(const Step& step);
  Value after(const Step& step);
  Value copy(const Step& step);

  // ---- evaluate_tiles.cpp
  Value lane(const Step& step);
  Value product(const Step& step);
  std::array<uint64_t, 2> held_factor(const Step& step, int64_t k) const;
  void fetch(const Step& step);
  void fetch_box(const Step& step);
  void commit();
  void wait(size_t left);

  // The value of a source; the one with lanes is read anew where the plan says so.
  const Value& source(const Step& step, size_t i) const;
  const Value& operand(const Step& step, size_t i);
  Value all_lanes(const Step& step, size_t i);     // of an operand, or of a whole array
  const Lane& number(const Step& step, size_t i);  // of a scalar source
  int64_t size(const Step& step, size_t i);        // a source that must not be a fault
  Value cell(const Place& place, UOp node) const;  // what node reads there
  void reread(Value& value, UOp node) const;       // a cell's lanes
  Array to_array(const Value& value, UOp node) const;
  [[noreturn]] void raise(const Fault& fault) const;
  std::string where() const;

  Workgroup& group_;
  std::vector<std::pair<UOp, int64_t>> specials_;
  size_t number_;
  std::vector<Value> values_;
  // What it holds of a product's factor, for the others: of the last one, and the one before.
  std::array<std::vector<Lane>, 2> held_;
  size_t held_count_ = 0;
  bool has_met_ = false;  // the others, for the product that is next
  std::vector<Loop> loops_;
  std::vector<std::vector<Fetch>> fetches_{1};  // by group; the last one is not committed yet
  size_t next_ = 0;                             // step
  std::unordered_map<UOp, std::unique_ptr<Memory>> memories_;  // registers, arrays
  std::unordered_map<uint32_t, Array> snapshots_;              // of roots that are memory, by slot
};

}  // namespace weft::evaluator
