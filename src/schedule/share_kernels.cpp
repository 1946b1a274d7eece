// Kernels by their skeletons; scalars that differ go to a table.
#include "schedule/share_kernels.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "schedule/kernel_table.h"
#include "schedule/schedule.h"
#include "schedule/skeleton.h"

namespace weft {
namespace {

constexpr std::string_view kCallNumber = "weft_call";
constexpr size_t kMostScalars = 8;  // that differ, in one kernel
constexpr uint32_t kNone = ~uint32_t{0};

// Kernels with one skeleton, and the bits of the scalars of each.
struct Family {
  std::vector<uint32_t> kernels;
  std::vector<std::span<const uint64_t>> scalars;

  // The numbers of the scalars that are not the same in all of them.
  std::vector<size_t> differing() const {
    std::vector<size_t> out;
    for (size_t i = 0; i < scalars[0].size(); i++) {
      const auto is_other = [&](const auto& s) { return s[i] != scalars[0][i]; };
      if (std::ranges::any_of(scalars, is_other)) out.push_back(i);
    }
    return out;
  }
};

std::vector<Family> families_of(const KernelTable& table, size_t kernels) {
  std::map<std::pair<uint64_t, uint64_t>, size_t> by_hash;
  std::vector<Family> families;
  for (uint32_t k = 0; k < kernels; k++) {
    const KernelFacts& facts = table.facts(k);
    const auto [at, is_new] =
        by_hash.try_emplace({facts.skeleton.low, facts.skeleton.high}, families.size());
    if (is_new) families.emplace_back();
    Family& family = families[at->second];
    family.kernels.push_back(k);
    family.scalars.emplace_back(facts.scalars);
  }
  return families;
}

bool reads_variables(std::span<const UOp> order) {
  return std::ranges::any_of(order, [](UOp n) { return n.is(Op::VARIABLE); });
}

// The kernel with loads from a table, its argument `number`, in place of these scalars.
Graph with_table(UOp root, std::span<const UOp> scalars, size_t calls, int64_t number) {
  Graph out{std::make_shared<Arena>(), {}};
  Arena& arena = *out.arena;
  const int64_t width = int64_t(scalars.size());
  const UOp table = define_global(arena, scalars[0].dtype(), int64_t(calls) * width, number);
  const UOp call = variable(arena, kCallNumber, 0, int64_t(calls) - 1, dtypes::index);
  NodeMap copies(root.arena());
  for (size_t i = 0; i < scalars.size(); i++) {
    const UOp row = width == 1 ? call : call * index_const(arena, width);
    const UOp place = i == 0 ? row : row + index_const(arena, int64_t(i));
    copies.put(scalars[i], load(index(table, place)));
  }
  std::vector<UOp> srcs;
  for (UOp n : toposort(root)) {
    if (copies.has(n)) continue;
    srcs.clear();
    for (UOp source : n.srcs()) srcs.push_back(copies.get(source));
    copies.put(n, arena.make(n.op(), n.dtype(), srcs, arg_of(n)));
  }
  out.root = copies.get(root);
  verify(out.root, Stage::kKernel, "share");
  return out;
}

class Sharing {
 public:
  explicit Sharing(Schedule& schedule)
      : schedule_(schedule), same_(schedule.kernels.size(), Same{kNone, 0, 0}) {
    arguments_.resize(schedule.kernels.size());
    for (const KernelCall& call : schedule.calls) arguments_[call.kernel] = call.arguments.size();
  }

  void share(const Family& family) {
    const std::vector<size_t> differing = family.differing();
    const uint32_t first = family.kernels[0];
    const std::vector<UOp> order = toposort(schedule_.kernels[first].root);
    if (differing.empty() || differing.size() > kMostScalars || reads_variables(order)) return;
    const std::vector<UOp> all = skeleton_of(order, Scalars::kByNode).scalars;
    std::vector<UOp> scalars;
    scalars.reserve(differing.size());
    for (size_t i : differing) scalars.push_back(all[i]);
    const DType dtype = scalars[0].dtype();
    if (std::ranges::any_of(scalars, [&](UOp s) { return s.dtype() != dtype; })) return;

    const uint32_t table = uint32_t(schedule_.buffers.size());
    ScheduledBuffer buffer{.kind = ScheduledBuffer::Kind::kTable,
                           .dtype = dtype,
                           .size = int64_t(family.kernels.size() * scalars.size()),
                           .device = schedule_.buffers[0].device,
                           .id = -1 - int64_t(table)};
    for (size_t k = 0; k < family.kernels.size(); k++) {
      for (size_t i : differing) buffer.data.push_back(family.scalars[k][i]);
      same_[family.kernels[k]] = {first, table, int64_t(k)};
    }
    schedule_.buffers.push_back(std::move(buffer));
    schedule_.kernels[first] = with_table(schedule_.kernels[first].root, scalars,
                                          family.kernels.size(), int64_t(arguments_[first]));
  }

  // Calls what there is now, and lets go of the rest.
  void finish() {
    std::vector<uint32_t> numbers(schedule_.kernels.size(), kNone);
    std::vector<Graph> kept;
    for (uint32_t k = 0; k < numbers.size(); k++) {
      if (same_[k].kernel != kNone && same_[k].kernel != k) continue;
      numbers[k] = uint32_t(kept.size());
      kept.push_back(std::move(schedule_.kernels[k]));
    }
    schedule_.kernels = std::move(kept);
    for (KernelCall& call : schedule_.calls) {
      const Same& same = same_[call.kernel];
      if (same.kernel != kNone) {
        call.arguments.push_back(same.table);
        call.variables.push_back({std::string(kCallNumber), same.call});
        call.kernel = same.kernel;
      }
      call.kernel = numbers[call.kernel];
      call.ast = schedule_.kernels[call.kernel].root;
    }
  }

 private:
  struct Same {
    uint32_t kernel;  // kNone: itself
    uint32_t table;
    int64_t call;
  };

  Schedule& schedule_;
  std::vector<Same> same_;         // of every kernel
  std::vector<size_t> arguments_;  // their number, of every kernel
};

}  // namespace

void share_kernels(Schedule& schedule, const KernelTable& table) {
  if (schedule.kernels.size() < kFewestAlike) return;
  const auto is_elsewhere = [&](const ScheduledBuffer& b) {
    return b.device != schedule.buffers[0].device;
  };
  if (std::ranges::any_of(schedule.buffers, is_elsewhere)) return;  // a table lies on one device
  Sharing sharing(schedule);
  bool is_any = false;
  for (const Family& family : families_of(table, schedule.kernels.size())) {
    if (family.kernels.size() < kFewestAlike) continue;
    sharing.share(family);
    is_any = true;
  }
  if (is_any) sharing.finish();
}

bool is_call_number(const BoundVariable& variable) { return variable.name == kCallNumber; }

}  // namespace weft
