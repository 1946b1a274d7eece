// From the leaves up: where the memories under a node are too many, its largest source is stored.
#include "schedule/rangeify/fit_buffers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/origins.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "schedule/rangeify/stored_values.h"

namespace weft {
namespace {

using Memories = std::vector<uint32_t>;  // ids, in order

class Fitting {
 public:
  Fitting(Arena& arena, size_t most)
      : arena_(arena), most_(std::max<size_t>(most, 3)), sets_(arena) {}

  UOp run(UOp sink) {
    return rebuild(sink,
                   [&](UOp n, std::vector<UOp>& srcs) { return followed(n, rebuilt(n, srcs)); });
  }

 private:
  UOp rebuilt(UOp n, std::vector<UOp>& srcs) {
    if (n.dtype().is_index()) return rebuilt_index(n, srcs);
    if (is_read(n)) {
      const UOp result = arena_.with_srcs(n, srcs);
      Memories all = memories_of(std::span(srcs).subspan(1));
      const auto at = std::ranges::lower_bound(all, result.src(0).id());
      if (at == all.end() || *at != result.src(0).id()) all.insert(at, result.src(0).id());
      keep(result, std::move(all));
      return result;
    }
    if (n.is(Op::STORE) && n.dtype().is_void()) {
      std::vector<UOp> read(srcs[0].srcs().begin() + 1, srcs[0].srcs().end());
      read.insert(read.end(), srcs.begin() + 1, srcs.end());
      const bool is_too_much = memories_of(read).size() > most_;
      if (is_too_much && can_store(srcs[1])) srcs[1] = stored(srcs[1]);
      return arena_.with_srcs(n, srcs);
    }
    const bool computes = is_elementwise(n.op()) || n.is(Op::REDUCE) || n.is(Op::CONTIGUOUS);
    if (!computes) return arena_.with_srcs(n, srcs);  // memory, writes, registers
    Memories all = memories_of(srcs);
    while (all.size() > most_) {
      const auto largest = std::ranges::max_element(
          srcs, {}, [&](UOp s) { return can_store(s) ? memories(s).size() : 0; });
      if (!can_store(*largest) || memories(*largest).size() < 2) break;
      *largest = stored(*largest);
      all = memories_of(srcs);
    }
    const UOp result = arena_.with_srcs(n, srcs);
    keep(result, std::move(all));
    return result;
  }

  // Integers that are an index leave room for what they are an index of.
  UOp rebuilt_index(UOp n, std::vector<UOp>& srcs) {
    const size_t most = std::max<size_t>(most_ / 4, 1);
    const bool is_integer = n.is(Op::CAST) && !n.src(0).dtype().is_index();
    if (is_integer && can_store(srcs[0]) && memories(srcs[0]).size() > most) {
      srcs[0] = stored(srcs[0]);
    }
    const UOp result = arena_.with_srcs(n, srcs);
    Memories all = memories_of(srcs);
    if (!all.empty()) keep(result, std::move(all));
    return result;
  }

  bool can_store(UOp n) const { return sets_.has(n) && !n.is(Op::CONTIGUOUS); }

  UOp stored(UOp value) {
    const std::span<const UOp> ranges = ranges_of(value);
    const UOp marked = arena_.make(Op::CONTIGUOUS, value.dtype(), {value});
    const UOp memory = bufferize(marked, ranges, AddrSpace::kGlobal);
    const UOp read = index(memory, ranges);
    keep(read, {memory.id()});
    return read;
  }

  void keep(UOp n, Memories set) {
    list_.push_back(std::move(set));
    sets_.put_number(n, list_.size());
  }
  const Memories& memories(UOp n) const {
    static const Memories kNone;
    return sets_.has(n) ? list_[sets_.number(n) - 1] : kNone;
  }
  Memories memories_of(std::span<const UOp> srcs) const {
    Memories all;
    for (UOp s : srcs) {
      Memories both;
      std::ranges::set_union(all, memories(s), std::back_inserter(both));
      all = std::move(both);
    }
    return all;
  }

  Arena& arena_;
  size_t most_;
  NodeMap sets_;
  std::vector<Memories> list_;
};

}  // namespace

UOp fit_buffers(UOp sink, size_t most) {
  // Only a value that reads too much needs it.
  for (const StoredValue& v : stored_values(sink)) {
    std::vector<UOp> memories;
    visit_computation(v.roots(), [&](UOp n) {
      if (is_read(n) && std::ranges::find(memories, n.src(0)) == memories.end() &&
          memories.size() <= most) {
        memories.push_back(n.src(0));
      }
    });
    if (memories.size() > most) return Fitting(sink.arena(), most).run(sink);
  }
  return sink;
}

}  // namespace weft
