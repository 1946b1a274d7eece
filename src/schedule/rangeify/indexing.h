// Phase 1: gives every node of a tensor graph the indices at which it is computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/huge_vector.h"
#include "ir/arena.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "rewrite/trace.h"
#include "schedule/rangeify/index_math.h"
#include "schedule/rangeify/movement.h"
#include "schedule/schedule.h"

namespace weft {

// Whether a value is to exist in memory.
enum class Storing : uint8_t {
  kNever,  // it is computed where it is used
  kMay,    // its users disagree on indices, or use it more than once: phase 3 weighs it
  kMust,   // the graph says so, or a kernel would grow past its limits
};

// What decided it.
enum class StoringCause : uint8_t {
  kOneUse,           // nothing asks for it to be stored
  kAsked,            // the graph says so: CONTIGUOUS or COPY
  kOtherIndices,     // its users disagree on indices, or use it more than once
  kKernelIsFull,     // statements or buffers of the kernel that would compute it
  kReductions,       // more reductions than one kernel runs
  kNestedReduction,  // a reduction in the loop of another one
  kScanned,          // its elements exist one after the other
};
std::string_view text_of(StoringCause cause);

// A list of indices, kept once: equal lists have equal numbers.
using TupleId = uint32_t;

// What phase 1 found out about a node that computes. The indices of an INDEX by integers are
// sources like any other; of what it reads the base is known, and phase 2 says which element.
struct Assigned {
  TupleId at = 0;       // its output indices: RANGEs of its own where it is stored, else its user's
  TupleId reduced = 0;  // of a REDUCE_AXIS: the RANGEs that it runs over
  uint32_t first_edge = 0;  // one Edge per source
  Storing storing = Storing::kNever;
  StoringCause cause = StoringCause::kOneUse;
};

// Which element of which value a source of a node is: an Access with its indices kept once.
struct Edge {
  UOp base;
  UOp gate;
  UOp flat;
  TupleId at = 0;
};

class IndexingContext {
 public:
  // Memory that is made is on `device`.
  IndexingContext(Arena& arena, const KernelLimits& limits, std::string device)
      : arena_(arena), limits_(limits), device_(std::move(device)), slots_(arena) {
    keep({});  // number 0 is the empty one
  }

  const std::string& device() const { return device_; }

  Arena& arena() const { return arena_; }
  const KernelLimits& limits() const { return limits_; }

  bool has(UOp n) const { return slots_.has(n); }
  const Assigned& operator[](UOp n) const { return assigned_[slots_.number(n) - 1]; }
  Assigned& at(UOp n);  // made at first use
  Edge edge(UOp n, size_t source) const {
    const KeptEdge& e = edges_[(*this)[n].first_edge + source];
    if (e.detour == 0) return {e.base, {}, {}, e.at};
    const auto [gate, flat] = detours_[e.detour - 1];
    return {e.base, gate, flat, e.at};
  }
  void add_edge(const Edge& edge) {
    if (edge.gate || edge.flat) detours_.push_back({edge.gate, edge.flat});
    edges_.push_back({edge.base, edge.at, edge.gate || edge.flat ? uint32_t(detours_.size()) : 0});
  }
  void expect(size_t nodes) {
    assigned_.reserve(nodes);
    edges_.reserve(2 * nodes);
  }
  uint32_t edge_count() const { return uint32_t(edges_.size()); }

  // All nodes, sources first: made by run_rangeify if it is empty.
  std::vector<UOp> order;

  TupleId keep(IndexList indices);
  const IndexList& tuple(TupleId id) const { return *tuples_[id]; }

  // The RANGE of an axis of a stored value: values of one shape have the same ones, so that those
  // who agree in shape agree in indices. An axis of size 1 has the index 0.
  UOp range_of_axis(size_t axis, Dim size);
  IndexList ranges_of_shape(Shape shape);
  UOp new_reduce_range(Dim size);

 private:
  Arena& arena_;
  KernelLimits limits_;
  std::string device_;
  NodeMap slots_;
  HugeVector<Assigned> assigned_;
  // Edges of a large graph are many: few have a gate or a flat index.
  struct KeptEdge {
    UOp base;
    TupleId at;
    uint32_t detour;  // 0: none; else 1 + its place in detours_
  };
  struct Detour {
    UOp gate, flat;
  };
  HugeVector<KeptEdge> edges_;
  std::vector<Detour> detours_;
  struct TupleHash {
    size_t operator()(const IndexList& t) const {
      size_t h = t.size();
      for (UOp i : t) h = mix(h, i.hash());
      return h;
    }
  };
  std::unordered_map<IndexList, TupleId, TupleHash> tuple_ids_;
  std::vector<const IndexList*> tuples_;
  std::map<std::pair<size_t, UOp>, UOp,
           bool (*)(const std::pair<size_t, UOp>&, const std::pair<size_t, UOp>&)>
      axes_{[](const auto& a, const auto& b) {
        return std::pair(a.first, a.second.id()) < std::pair(b.first, b.second.id());
      }};
};

// Walks the graph from its SINK to its leaves: a node's indices are those that its users ask for.
// Where they ask for different ones, the node gets ranges of its own and may be stored.
void run_rangeify(UOp sink, IndexingContext& context);

// A line for each node that computes: its indices, and whether and why it is stored.
std::string text_of(const IndexingContext& context);
// What may, and what must be stored, and why.
std::vector<Decision> decisions_of(const IndexingContext& context);

}  // namespace weft
