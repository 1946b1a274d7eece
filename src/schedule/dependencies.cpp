// Kahn's algorithm, with writers that step back for readers.
#include "schedule/dependencies.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/origins.h"
#include "ir/place.h"
#include "ir/walk.h"
#include "schedule/kernel_table.h"
#include "schedule/rangeify/split_kernel.h"

namespace weft {
namespace {

struct Node {
  UOp kernel;
  std::vector<UOp> memories{};  // of its arguments: BUFFER, or AFTER
  std::vector<UOp> variables{};
  size_t written = 0;
  uint32_t needed = 0;   // kernels left to run before it
  uint32_t awaited = 0;  // readers left of what it overwrites
  std::vector<uint32_t> users{};
  bool is_done = false;
};

class Ordering {
 public:
  explicit Ordering(KernelGraph& graph)
      : graph_(graph.sink),
        asts_(graph.asts),
        arena_(graph_.arena()),
        kernels_(arena_),
        buffers_(arena_),
        readers_(arena_),
        snapshots_(arena_) {}

  OrderedKernels run() {
    gather();
    schedule();
    for (UOp s : graph_.srcs()) out_.outputs.push_back(buffer_number(s));
    find_waits();
    return std::move(out_);
  }

 private:
  static UOp base_of(UOp memory) { return place_of(memory).base; }
  static uint32_t number_of(UOp kernel) { return uint32_t(kernel.src(0).const_int()); }

  void gather() {
    for (UOp n : toposort(graph_)) {
      if (!n.is(Op::KERNEL)) continue;
      Node node{.kernel = n};
      for (UOp s : n.srcs().subspan(1)) {
        (base_of(s).is(Op::BUFFER) ? node.memories : node.variables).push_back(s);
      }
      node.written = asts_.facts(number_of(n)).written;
      kernels_.put_number(n, nodes_.size() + 1);
      nodes_.push_back(std::move(node));
    }
    for (uint32_t k = 0; k < nodes_.size(); k++) {
      std::vector<uint32_t> needs;
      for (size_t i = 0; i < nodes_[k].memories.size(); i++) {
        const UOp memory = nodes_[k].memories[i];
        // What lies deeper, the kernels of this AFTER wait for.
        if (memory.is(Op::AFTER)) {
          for (UOp kernel : memory.srcs().subspan(1)) {
            const uint32_t need = uint32_t(kernels_.number(kernel) - 1);
            if (std::find(needs.begin(), needs.end(), need) == needs.end()) needs.push_back(need);
          }
        }
        if (i >= nodes_[k].written) readers_of(memory).push_back(k);
      }
      nodes_[k].needed = uint32_t(needs.size());
      for (uint32_t n : needs) nodes_[n].users.push_back(k);
    }
    for (Node& node : nodes_) {
      for (size_t i = 0; i < node.written; i++) {
        node.awaited += uint32_t(readers_of(node.memories[i]).size());
      }
    }
  }

  std::vector<uint32_t>& readers_of(UOp memory) {
    if (!readers_.has(memory)) {
      reader_lists_.emplace_back();
      readers_.put_number(memory, reader_lists_.size());
    }
    return reader_lists_[readers_.number(memory) - 1];
  }

  void schedule() {
    std::vector<std::vector<uint32_t>> writers_waiting(nodes_.size());
    for (uint32_t w = 0; w < nodes_.size(); w++) {
      for (size_t i = 0; i < nodes_[w].written; i++) {
        for (uint32_t r : readers_of(nodes_[w].memories[i])) writers_waiting[r].push_back(w);
      }
    }
    using Queue = std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>>;
    Queue ready, blocked;
    const auto offer = [&](uint32_t k) { (nodes_[k].awaited == 0 ? ready : blocked).push(k); };
    for (uint32_t k = 0; k < nodes_.size(); k++) {
      if (nodes_[k].needed == 0) offer(k);
    }
    size_t done = 0;
    while (!ready.empty() || !blocked.empty()) {
      const bool is_stuck = ready.empty();
      Queue& queue = is_stuck ? blocked : ready;
      const uint32_t k = queue.top();
      queue.pop();
      if (nodes_[k].is_done) continue;
      if (is_stuck) keep_for_readers(k);
      emit(k);
      done++;
      for (uint32_t w : writers_waiting[k]) {
        if (--nodes_[w].awaited == 0 && nodes_[w].needed == 0 && !nodes_[w].is_done) ready.push(w);
      }
      for (uint32_t u : nodes_[k].users) {
        if (--nodes_[u].needed == 0) offer(u);
      }
    }
    if (done != nodes_.size()) throw InternalError("[schedule] kernels wait for each other");
  }

  // Copies what k overwrites, for readers that have not run.
  void keep_for_readers(uint32_t k) {
    for (size_t i = 0; i < nodes_[k].written; i++) {
      const UOp memory = nodes_[k].memories[i];
      const std::vector<uint32_t>& readers = readers_of(memory);
      const bool is_needed = std::any_of(readers.begin(), readers.end(),
                                         [&](uint32_t r) { return !nodes_[r].is_done && r != k; });
      if (!is_needed || snapshots_.has(memory)) continue;
      const UOp base = base_of(memory);
      const UOp copy =
          buffer(arena_, base.dtype(), base.src(0), base.src(1).name(), arena_.fresh_id());
      const uint32_t from = buffer_number(memory);
      out_.kernels.push_back(
          {asts_.number(copy_kernel(base)), "copy", {buffer_number(copy), from}, {}, 1, {}});
      snapshots_.put(memory, copy);
    }
  }

  UOp copy_kernel(UOp base) {
    const UOp size = base.src(0), r = range(arena_, size, 0);
    const UOp to = define_global(arena_, base.dtype(), size, 0);
    const UOp from = define_global(arena_, base.dtype(), size, 1);
    return sink(end(index(to, r).assign(load(index(from, r))), r));
  }

  void emit(uint32_t k) {
    Node& node = nodes_[k];
    node.is_done = true;
    OrderedKernel o{number_of(node.kernel),
                    std::string(node.kernel.name()),
                    {},
                    node.variables,
                    node.written,
                    {}};
    for (size_t i = 0; i < node.memories.size(); i++) {
      const UOp memory = node.memories[i];
      const bool is_copied = i >= node.written && snapshots_.has(memory);
      o.arguments.push_back(buffer_number(is_copied ? snapshots_.get(memory) : memory));
    }
    if (const Origins* const origins = origins_of_thread()) {
      const std::span<const uint32_t> sites = origins->of(node.kernel);
      o.sites.assign(sites.begin(), sites.end());
    }
    out_.kernels.push_back(std::move(o));
  }

  uint32_t buffer_number(UOp memory) {
    const UOp base = base_of(memory);
    if (!buffers_.has(base)) {
      out_.buffers.push_back(base);
      buffers_.put_number(base, out_.buffers.size());
    }
    return uint32_t(buffers_.number(base) - 1);
  }

  void find_waits() {
    constexpr uint32_t k_none = UINT32_MAX;
    std::vector<uint32_t> writer(out_.buffers.size(), k_none);
    std::vector<std::vector<uint32_t>> readers(out_.buffers.size());
    for (uint32_t k = 0; k < out_.kernels.size(); k++) {
      OrderedKernel& o = out_.kernels[k];
      for (size_t i = 0; i < o.arguments.size(); i++) {
        const uint32_t b = o.arguments[i];
        if (writer[b] != k_none) o.waits_for.push_back(writer[b]);
        if (i >= o.written) continue;
        o.waits_for.insert(o.waits_for.end(), readers[b].begin(), readers[b].end());
      }
      for (size_t i = 0; i < o.arguments.size(); i++) {
        const uint32_t b = o.arguments[i];
        if (i < o.written) {
          writer[b] = k;
          readers[b].clear();
        } else {
          readers[b].push_back(k);
        }
      }
      std::sort(o.waits_for.begin(), o.waits_for.end());
      o.waits_for.erase(std::unique(o.waits_for.begin(), o.waits_for.end()), o.waits_for.end());
    }
  }

  UOp graph_;
  KernelTable& asts_;
  Arena& arena_;
  NodeMap kernels_, buffers_, readers_, snapshots_;
  std::vector<std::vector<uint32_t>> reader_lists_;
  std::vector<Node> nodes_;
  OrderedKernels out_;
};

}  // namespace

OrderedKernels order_kernels(KernelGraph& graph) { return Ordering(graph).run(); }

}  // namespace weft
