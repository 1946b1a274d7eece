// Checks each optimisation, then cuts, retypes and reorders loops.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "codegen/opt/block_rows.h"
#include "codegen/opt/loops.h"
#include "codegen/opt/merge_ranges.h"
#include "codegen/opt/merged_tiles.h"
#include "codegen/opt/opt.h"
#include "codegen/opt/shard_writes.h"
#include "codegen/opt/share_loads.h"
#include "codegen/opt/split_range.h"
#include "codegen/opt/stage_loads.h"
#include "codegen/opt/tensor_tiles.h"
#include "codegen/opt/tile_factors.h"
#include "codegen/replace_ranges.h"
#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

constexpr int64_t kMostCopies = 256, kMostThreads = 1024;

bool is_cut_into_loops(AxisType axis) {
  return axis == AxisType::kLoop || axis == AxisType::kGlobal || axis == AxisType::kReduce;
}

// What gives whole places of a loop to somebody, or puts it in order.
bool is_done_by_owners(OptKind kind) {
  return kind == OptKind::kTile || kind == OptKind::kLocal || kind == OptKind::kThread ||
         kind == OptKind::kSerial;
}

TileCopies copies_of(OptKind kind) {
  return kind == OptKind::kBulk ? TileCopies::kBoxes : TileCopies::kVectors;
}

// A node that would stand in two lane ranges, or a reduction over both: its register does. So would
// one that has lanes of its own.
bool meets_lanes(UOp sink, UOp range) {
  const auto has_lanes = [](std::span<const UOp> ranges) {
    return std::ranges::any_of(
        ranges, [](UOp r) { return r.is(Op::RANGE) && r.axis() == AxisType::kLane; });
  };
  constexpr OpSet k_of_threads = {Op::BARRIER, Op::FETCH, Op::FETCH_BOX, Op::COMMIT, Op::WAIT};
  const std::vector<UOp> order = toposort(sink), closers = closers_of(sink, range);
  return std::ranges::any_of(order,
                             [&](UOp n) {
                               return is_in_scope(range, n) &&
                                      (n.dtype().lanes > 1 || k_of_threads.has(n.op()) ||
                                       has_lanes(ranges_of(n)) ||
                                       (n.is(Op::REDUCE) && has_lanes(n.srcs())));
                             }) ||
         std::ranges::any_of(closers, [&](UOp n) { return has_lanes(n.srcs().subspan(1)); });
}

bool decides_sizes(UOp sink, UOp range) {
  const std::vector<UOp> order = toposort(sink);
  return std::ranges::any_of(
      order, [&](UOp n) { return n.is(Op::RANGE) && n != range && is_in_scope(range, n); });
}

bool is_multiple_of(UOp size, int64_t amount) {
  const UOp rest = simplify(size % amount);
  return rest.is_const() && rest.const_int() == 0;
}

// Local memory that each of its iterations fills: copies and lanes would share it.
bool fills_local_memory(UOp sink, UOp range) {
  const std::vector<UOp> order = toposort(sink);
  return std::ranges::any_of(order, [&](UOp n) {
    return n.is(Op::AFTER) && n.src(0).is(Op::DEFINE_LOCAL) && is_in_scope(range, n);
  });
}

// Whether one loop of the range waits for another.
bool has_several_loops(UOp sink, UOp range) {
  const std::vector<UOp> closers = closers_of(sink, range);
  return std::ranges::any_of(closers, [&](UOp closer) {
    const std::vector<UOp> below = toposort(closer.src(0));
    return std::ranges::any_of(below, [&](UOp n) {
      return n.is(Op::END) && std::ranges::find(closers, n) != closers.end();
    });
  });
}

std::string why_not_thread(UOp sink, UOp range, int64_t amount) {
  if (amount < 0) return "the amount is negative";
  if (bounds(range.src(0)).hi <= std::max<int64_t>(amount, 1))
    return "one thread would do all of it";
  const std::vector<UOp> order = toposort(sink);
  if (std::ranges::any_of(order,
                          [](UOp n) { return n.is(Op::RANGE) && n.axis() == AxisType::kThread; })) {
    return "there is a loop over threads already";
  }
  for (UOp effect : sink.srcs()) {
    const auto listed = effect.srcs().subspan(effect.is(Op::END) ? 1 : effect.src_count());
    if (std::ranges::find(listed, range) == listed.end())
      return "not all of the kernel is in this loop";
  }
  for (UOp n : order) {  // also what the last loop waits for
    const bool is_write =
        n.is(Op::STORE) && n.dtype().is_void() && place_of(n.src(0)).base.is(Op::DEFINE_GLOBAL);
    if (is_write && !is_in_scope(range, n)) return "not all of the kernel is in this loop";
  }
  if (!ranges_of(range).empty() && ranges_of(range).size() > 1) return "its size depends on a loop";
  return has_several_loops(sink, range) ? "one loop of it waits for another" : "";
}

std::string why_not_stage(UOp sink, const Opt& opt) {
  const UOp range = range_by_id(sink, opt.amount);
  if (!range) return fmt::format("there is no loop {}", opt.amount);
  for (UOp n : toposort(sink)) {
    if (n.is(Op::STORE) && !is_register(n.src(0)) &&
        place_of(n.src(0)).base.is(Op::DEFINE_GLOBAL) &&
        place_of(n.src(0)).base.number() == opt.axis) {
      return "the kernel writes this argument";
    }
  }
  if (range.axis() == AxisType::kLane || range.axis() == AxisType::kUpcast)
    return "the range is no loop";
  if (opt.kind == OptKind::kShare) {
    return loads_to_share(sink, opt.axis, range).empty()
               ? "no read of it in this loop is in loops of constant size, threads of a group "
                 "among "
                 "them, and in no reduction over threads"
               : "";
  }
  return loads_to_stage(sink, opt.axis, range).empty()
             ? "no read of it is in loops of constant size inside of this one alone: not in lanes, "
               "copies or threads outside of it, which would share the memory"
             : "";
}

// Whether its quotient is asked for, which may be one of its parts.
bool is_divided(UOp sink, UOp range) {
  const std::vector<UOp> order = toposort(sink);
  return std::ranges::any_of(order, [&](UOp n) { return n.is(Op::IDIV) && n.src(0) == range; });
}

// One product, or several with what depends on them.
std::string why_not_products(UOp sink, const Opt& opt) {
  const TileCopies copies = copies_of(opt.kind);
  const std::string why = why_not_tiles(sink, opt.axis, opt.amount, copies);
  return why.empty() || !why_not_merged_tiles(sink, opt.axis, opt.amount, copies).empty() ? why
                                                                                          : "";
}

UOp changed(UOp sink, const Opt& opt) {
  if (opt.kind == OptKind::kStage) {
    return stage_loads(sink, opt.axis, range_by_id(sink, opt.amount));
  }
  if (opt.kind == OptKind::kShare) {
    return share_loads(sink, opt.axis, range_by_id(sink, opt.amount));
  }
  const UOp range = range_by_id(sink, opt.axis);
  const int64_t id = free_range_id(sink);
  switch (opt.kind) {
    case OptKind::kTile: {
      const UOp split = split_range(sink, range, {opt.amount, range.axis(), id});
      return is_divided(sink, range) ? simplify(split, nullptr, Loads::kStay) : split;
    }
    case OptKind::kUpcast: return split_range(sink, range, {opt.amount, AxisType::kUpcast, id});
    case OptKind::kVector: return split_range(sink, range, {opt.amount, AxisType::kLane, id});
    case OptKind::kUnroll: return split_range(sink, range, {opt.amount, AxisType::kUnroll, id});
    case OptKind::kGroup: return split_range(sink, range, {opt.amount, AxisType::kGroupReduce, id});
    case OptKind::kThread: return make_thread_range(sink, range, opt.amount, id);
    case OptKind::kPad: return pad_range(sink, range, opt.amount);
    case OptKind::kMerge: return merge_ranges(sink, range, range_by_id(sink, opt.amount));
    case OptKind::kLocal: return split_range(sink, range, {opt.amount, AxisType::kLocal, id});
    case OptKind::kSerial: return make_serial_range(sink, range);
    case OptKind::kTensor:
    case OptKind::kBulk: {
      const TileCopies copies = copies_of(opt.kind);
      return why_not_tiles(sink, opt.axis, opt.amount, copies).empty()
                 ? tensor_tiles(sink, opt.axis, opt.amount, copies)
                 : merged_tiles(sink, opt.axis, opt.amount, copies);
    }
    case OptKind::kShard: return shard_writes(sink, range, opt.amount, id);
    case OptKind::kBlock: return block_rows(sink, range, opt.amount, id);
    case OptKind::kShare:
    case OptKind::kStage: break;
  }
  return sink;
}

}  // namespace

std::string why_not(UOp sink, const Opt& opt) {
  if (opt.kind == OptKind::kStage || opt.kind == OptKind::kShare) return why_not_stage(sink, opt);
  if (opt.kind == OptKind::kTensor || opt.kind == OptKind::kBulk)
    return why_not_products(sink, opt);
  const UOp range = range_by_id(sink, opt.axis);
  if (!range) return fmt::format("there is no loop {}", opt.axis);
  if (opt.kind == OptKind::kShard) return why_not_shard(sink, range, opt.amount);
  if (!is_cut_into_loops(range.axis()))
    return fmt::format("the range is of axis type {}", name_of(range.axis()));
  const bool is_reduce = range.axis() == AxisType::kReduce,
             is_free = range.axis() == AxisType::kGlobal;
  if (!is_reduce && !is_free) return "its iterations depend on their order";
  if (!is_done_by_owners(opt.kind) && is_loop_of_owners(sink, range))
    return "its places share what they write to";
  if (opt.kind == OptKind::kMerge) {
    const UOp inner = range_by_id(sink, opt.amount);
    return inner ? why_not_merge(sink, range, inner)
                 : fmt::format("there is no loop {}", opt.amount);
  }
  if (opt.kind == OptKind::kThread)
    return is_free ? why_not_thread(sink, range, opt.amount) : "it is a reduction";
  if (opt.amount < 1) return "the amount is not positive";
  if (opt.kind == OptKind::kSerial) return is_free ? "" : "it is a reduction";
  if (opt.kind == OptKind::kBlock && (!is_free || opt.amount <= bounds(range.src(0)).hi))
    return is_free ? why_not_block(sink, range, opt.amount) : "it is a reduction";
  if (opt.kind == OptKind::kPad) return "";
  if (opt.amount > bounds(range.src(0)).hi) return "the loop is shorter than that";
  const bool needs_reduce = opt.kind == OptKind::kUnroll || opt.kind == OptKind::kGroup;
  if (needs_reduce && !is_reduce) return "it is no reduction";
  if (opt.kind == OptKind::kUpcast && !is_free) return "it is a reduction";
  const int64_t most = opt.kind == OptKind::kLocal ? kMostThreads : kMostCopies;
  if (opt.amount > most && opt.kind != OptKind::kTile)
    return fmt::format("the amount is larger than {}", most);
  if (opt.kind != OptKind::kTile && fills_local_memory(sink, range))
    return "local memory is filled in it";
  if (opt.kind == OptKind::kVector && !std::has_single_bit(uint64_t(opt.amount)))
    return "lanes are a power of two";
  if (decides_sizes(sink, range)) {
    if (opt.kind != OptKind::kTile && opt.kind != OptKind::kLocal)
      return "the size of another loop depends on it";
    if (!is_multiple_of(range.src(0), opt.amount))
      return "the size of another loop depends on it, and there is a rest";
  }
  if (opt.kind == OptKind::kVector && meets_lanes(sink, range))
    return "what it computes has lanes already";
  return "";
}

UOp apply_opts(UOp sink, std::span<const Opt> opts) {
  sink = mark_parallel_loops(sink);
  for (const Opt& opt : opts) sink = apply_opt(sink, opt);
  return sink;
}

UOp apply_opt(UOp sink, const Opt& opt) {
  if (const std::string reason = why_not(sink, opt); !reason.empty()) {
    throw CompileError(fmt::format("[apply_opts] {} does not apply: {}", print({&opt, 1}), reason));
  }
  return with_simple_sizes(changed(sink, opt));
}

}  // namespace weft
