// Walking graphs: orders, copies into other arenas, counts. Nothing here recurses.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/huge_vector.h"
#include "ir/arena.h"
#include "ir/node.h"

namespace weft {

// A graph is mostly walked in the order in which it was made: what lies behind a node in memory has
// its turn soon. In a large graph it is on its way from there while this one is looked at.
inline void prefetch_behind(UOp n) {
  constexpr size_t bytes = 1024;
  __builtin_prefetch(reinterpret_cast<const char*>(n.node()) + bytes);
}

// Calls visit(n) for root and all below it that are not `known`, sources before users, each once.
// visit must make known(n) true.
template <class Known, class Visit>
void visit_missing(UOp root, Known&& known, Visit&& visit) {
  if (known(root)) return;
  if (std::ranges::all_of(root.srcs(), known)) {  // no need for a stack
    visit(root);
    return;
  }
  HugeVector<std::pair<UOp, size_t>> stack{{root, 0}};
  while (!stack.empty()) {
    auto& [n, next] = stack.back();
    const std::span<const UOp> srcs = n.srcs();
    while (next < srcs.size() && known(srcs[next])) next++;
    if (next < srcs.size()) {
      const UOp child = srcs[next++];
      stack.emplace_back(child, 0);
      continue;
    }
    if (!known(n)) {
      prefetch_behind(n);
      visit(n);
    }
    stack.pop_back();
  }
}

// All nodes under root, root last, sources before users. The order depends on structure alone.
std::vector<UOp> toposort(UOp root);

// The argument of a node, to make another one with it.
Arg arg_of(UOp n);

// The same graph in another arena, in time linear in its size.
UOp import_graph(Arena& into, UOp root);

// A copy of the graph in an arena of its own.
Graph own(UOp root);

// root with every `from` replaced by its `to`, everywhere.
UOp substitute(UOp root, std::span<const std::pair<UOp, UOp>> replacements);

// The graph made anew, sources first: make(n, srcs) gives what stands for n, whose sources have
// become srcs, which it may change.
template <class Make>
UOp rebuild(UOp root, Make&& make) {
  NodeMap results(root.arena());
  std::vector<UOp> srcs;
  visit_missing(
      root, [&](UOp n) { return results.has(n); },
      [&](UOp n) {
        srcs.clear();
        for (UOp s : n.srcs()) srcs.push_back(results.get(s));
        results.put(n, make(n, srcs));
      });
  return results.get(root);
}

// The same for a part of the graph: nodes that are kept stand for themselves, with all below them.
template <class Kept, class Make>
UOp rebuild_part(UOp root, Kept&& is_kept, Make&& make) {
  NodeMap results(root.arena());
  const auto result_of = [&](UOp n) { return results.has(n) ? results.get(n) : n; };
  std::vector<UOp> srcs;
  visit_missing(
      root, [&](UOp n) { return results.has(n) || is_kept(n); },
      [&](UOp n) {
        srcs.clear();
        for (UOp s : n.srcs()) srcs.push_back(result_of(s));
        results.put(n, make(n, srcs));
      });
  return result_of(root);
}

// The identity of a graph across arenas and processes.
Hash128 graph_hash(UOp root);

// What a graph is made of, at a glance.
struct Summary {
  size_t nodes = 0;
  size_t edges = 0;
  size_t depth = 0;  // nodes on the longest path
  std::array<size_t, kOpCount> by_op{};

  std::string text() const;  // "5 nodes, 4 edges, depth 3: CONST 2, ADD 1, ..."
};
Summary summarize(UOp root);

}  // namespace weft
