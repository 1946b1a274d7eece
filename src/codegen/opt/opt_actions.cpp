// A table of amounts per kind, tried on every loop.
#include "codegen/opt/opt_actions.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <span>
#include <vector>

#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/bounds.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"

namespace weft {
namespace {

constexpr int64_t kAll = -1;  // stands for the size of the loop
constexpr int64_t kTiles[] = {4, 8, 16, 32, 64, 128, 256, kAll};
constexpr int64_t kUpcasts[] = {2, 3, 4, 6, 8, 12};
constexpr int64_t kUnrolls[] = {2, 4, 8, 16};
constexpr int64_t kGroups[] = {2, 4, 8};
constexpr int64_t kThreads[] = {8, 16, 32, 64, 128, 256, 512};
constexpr int64_t kOnce[] = {1};
constexpr int64_t kOwners[] = {16, 128, 1024};
constexpr int64_t kPieces[] = {0, 4, 16, 64, 1024, 4096, 16384, 65536};  // of a thread

// Elements of the widest dtype that is computed with: half a vector, one, two.
std::vector<int64_t> lane_counts(size_t widest, const Target& target) {
  std::vector<int64_t> out;
  const size_t bytes = target.vector_arithmetic ? target.vector_bytes : target.memory_vector_bytes;
  const int64_t lanes = int64_t(bytes / widest);
  for (const int64_t n : {lanes / 2, lanes, lanes * 2}) {
    if (n >= 2) out.push_back(n);
  }
  return out;
}

size_t widest_computed(std::span<const UOp> order) {
  size_t bytes = 1;
  for (UOp n : order) {
    const DType type = n.dtype();
    if (type.is_pointer() || type.is_void() || type.is_index()) continue;
    // Narrow floats are computed in float32.
    const size_t item = size_t(type.item_bytes());
    bytes = std::max(bytes, type.is_float() ? std::max<size_t>(item, 4) : item);
  }
  return bytes;
}

// Of kinds whose amounts do not depend on the dtypes.
std::span<const int64_t> fixed_amounts(OptKind kind) {
  switch (kind) {
    case OptKind::kTile: return kTiles;
    case OptKind::kUpcast: return kUpcasts;
    case OptKind::kUnroll: return kUnrolls;
    case OptKind::kGroup: return kGroups;
    case OptKind::kThread: return kPieces;
    case OptKind::kLocal: return kThreads;
    case OptKind::kSerial: return kOnce;
    case OptKind::kShard: return kOwners;
    default: return {};
  }
}

bool is_cut(UOp n) {
  return n.is(Op::RANGE) && (n.axis() == AxisType::kGlobal || n.axis() == AxisType::kReduce);
}

// Some apply and do nothing.
bool is_idle(const Opt& opt, UOp range) {
  const UOp size = range.src(0);
  if (opt.kind == OptKind::kPad) {  // what is added must be little
    return !size.is_const() || size.const_int() < 2 * opt.amount ||
           size.const_int() % opt.amount == 0;
  }
  if (opt.kind == OptKind::kSerial) return false;
  if (opt.kind == OptKind::kTile && range.axis() == AxisType::kReduce)
    return opt.amount == bounds(size).hi;
  return opt.amount == 1;
}

}  // namespace

std::vector<Opt> next_opts(UOp kernel, const Target& target) {
  static const std::vector<OptKind> kOfThreads{OptKind::kThread},
      kOfGroups{OptKind::kLocal, OptKind::kSerial};
  const bool has_groups = target.groups.threads > 0;
  const std::vector<UOp> order = toposort(kernel);
  const std::vector<int64_t> lanes = lane_counts(widest_computed(order), target);
  std::set<int64_t> arguments;
  std::vector<UOp> loops;
  for (UOp n : order) {
    if (n.is(Op::DEFINE_GLOBAL) && n.dtype().is_pointer()) arguments.insert(n.number());
    if (is_cut(n)) loops.push_back(n);
  }
  std::ranges::sort(loops, {}, [](UOp r) { return r.range_id(); });
  std::vector<Opt> out;
  const auto attempt = [&](const Opt& opt) {
    if (why_not(kernel, opt).empty()) out.push_back(opt);
  };
  for (UOp n : order) {
    if (!has_groups || !n.is(Op::RANGE) || n.axis() != AxisType::kLoop) continue;
    for (const int64_t owners : kOwners) attempt({OptKind::kShard, n.range_id(), owners});
  }
  for (UOp r : loops) {
    const int64_t id = r.range_id();
    const auto attempt_all = [&](OptKind kind, std::span<const int64_t> amounts) {
      std::set<int64_t> tried;
      for (int64_t amount : amounts) {
        if (amount == kAll) amount = r.src(0).is_const() ? r.src(0).const_int() : 1;
        const Opt opt{kind, id, amount};
        if (tried.insert(amount).second && !is_idle(opt, r)) attempt(opt);
      }
    };
    for (const OptKind kind :
         {OptKind::kTile, OptKind::kUpcast, OptKind::kUnroll, OptKind::kGroup}) {
      attempt_all(kind, fixed_amounts(kind));
    }
    for (const OptKind kind : has_groups ? kOfGroups : kOfThreads) {
      attempt_all(kind, fixed_amounts(kind));
    }
    attempt_all(OptKind::kVector, lanes);
    attempt_all(OptKind::kPad, has_groups
                                   ? std::vector<int64_t>(std::begin(kThreads), std::end(kThreads))
                                   : lanes);
    const OptKind stage = has_groups ? OptKind::kShare : OptKind::kStage;
    for (const int64_t argument : arguments) attempt({stage, argument, id});
    for (UOp inner : loops) attempt({OptKind::kMerge, id, inner.range_id()});
  }
  return out;
}

std::vector<OptList> with_other_amounts(const OptList& opts, const Target& target) {
  std::vector<OptList> out;
  for (size_t i = 0; i < opts.size(); i++) {
    const bool is_vector = opts[i].kind == OptKind::kVector;
    const std::vector<int64_t> lanes = is_vector ? lane_counts(4, target) : std::vector<int64_t>();
    for (const int64_t amount : is_vector ? lanes : fixed_amounts(opts[i].kind)) {
      if (amount == kAll || amount == opts[i].amount) continue;
      out.push_back(opts);
      out.back()[i].amount = amount;
    }
  }
  return out;
}

}  // namespace weft
