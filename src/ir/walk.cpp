// Orders, imports, substitution, hashes and counts.
#include "ir/walk.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/interrupt.h"
#include "ir/arena.h"
#include "ir/node.h"

namespace weft {
namespace {

constexpr size_t kNodesPerCheck = 4096;  // whether the call is to end

}  // namespace

Arg arg_of(UOp n) {
  switch (info(n.op()).arg) {
    case ArgKind::Name: return Arg::name(n.name());
    case ArgKind::Ints: return Arg::ints(n.ints());
    case ArgKind::OpInts: {
      const std::span<const int64_t> tail = n.ints();
      return Arg::op_ints({tail.data() - 1, tail.size() + 1});  // the op lies before the list
    }
    default: return {info(n.op()).arg, n.arg_word(), {}};
  }
}

std::vector<UOp> toposort(UOp root) {
  NodeMap seen(root.arena());
  std::vector<UOp> order;
  visit_missing(
      root, [&](UOp n) { return seen.has(n); },
      [&](UOp n) {
        if (order.size() % kNodesPerCheck == kNodesPerCheck - 1) check_interrupt();
        seen.put_number(n, 1);
        order.push_back(n);
      });
  return order;
}

UOp import_graph(Arena& into, UOp root) {
  if (&root.arena() == &into) return root;
  return rebuild(root, [&](UOp n, std::span<const UOp> srcs) {
    return into.make(n.op(), n.dtype(), srcs, arg_of(n));
  });
}

Graph own(UOp root) {
  auto arena = std::make_shared<Arena>();
  const UOp copy = import_graph(*arena, root);
  return {std::move(arena), copy};
}

UOp substitute(UOp root, std::span<const std::pair<UOp, UOp>> replacements) {
  Arena& arena = root.arena();
  NodeMap results(arena);
  for (const auto& [from, to] : replacements) results.put(from, to);
  std::vector<UOp> srcs;
  visit_missing(
      root, [&](UOp n) { return results.has(n); },
      [&](UOp n) {
        srcs.clear();
        for (UOp s : n.srcs()) srcs.push_back(results.get(s));
        const bool same = std::equal(srcs.begin(), srcs.end(), n.srcs().begin());
        results.put(n, same ? n : arena.with_srcs(n, srcs));
      });
  return results.get(root);
}

Hash128 graph_hash(UOp root) {
  NodeMap numbers(root.arena());
  std::vector<Hash128> hashes;
  visit_missing(
      root, [&](UOp n) { return numbers.has(n); },
      [&](UOp n) {
        // Names, not numbers: an op keeps its hash when the table of ops grows.
        Hash128 h = hash_bytes_128(name_of(n.op()));
        h = mix(mix(h, n.dtype().packed()), n.src_count());
        const Arg arg = arg_of(n);
        const bool has_op = arg.kind == ArgKind::MaybeOp && arg.word != 0;
        if (arg.kind == ArgKind::Op || has_op) {
          h = mix(h, hash_bytes_128(name_of(n.arg_op())));
        } else if (arg.kind == ArgKind::OpInts) {
          h = mix(h, hash_bytes_128(name_of(n.arg_op())));
          for (int64_t i : n.ints()) h = mix(h, uint64_t(i));
        } else {
          h = mix(mix(h, arg.word), hash_bytes_128(arg.bytes));
        }
        for (UOp s : n.srcs()) h = mix(h, hashes[numbers.number(s) - 1]);
        hashes.push_back(h);
        numbers.put_number(n, hashes.size());
      });
  return hashes.back();
}

Summary summarize(UOp root) {
  Summary s;
  NodeMap depths(root.arena());
  visit_missing(
      root, [&](UOp n) { return depths.has(n); },
      [&](UOp n) {
        uint64_t depth = 0;
        for (UOp k : n.srcs()) depth = std::max(depth, depths.number(k));
        depths.put_number(n, depth + 1);
        s.nodes++;
        s.edges += n.src_count();
        s.by_op[size_t(n.op())]++;
        s.depth = std::max<size_t>(s.depth, depth + 1);
      });
  return s;
}

std::string Summary::text() const {
  std::vector<size_t> ops(kOpCount);
  std::iota(ops.begin(), ops.end(), size_t(0));
  std::stable_sort(ops.begin(), ops.end(), [&](size_t a, size_t b) { return by_op[a] > by_op[b]; });
  std::string out = fmt::format("{} nodes, {} edges, depth {}:", nodes, edges, depth);
  std::string_view separator = " ";
  for (size_t op : ops) {
    if (by_op[op] == 0) break;
    out += fmt::format("{}{} {}", separator, name_of(Op(op)), by_op[op]);
    separator = ", ";
  }
  return out;
}

}  // namespace weft
