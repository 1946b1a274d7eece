// Golden tests: tests/golden/<pass>/<case>.txt holds a graph, a line `---`, and what the pass makes
// of it. WEFT_UPDATE_GOLDEN=1 writes the second part anew.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "codegen/decompose.h"
#include "codegen/devectorize.h"
#include "codegen/expand.h"
#include "codegen/gate_loads.h"
#include "codegen/gpudims.h"
#include "codegen/idle_loops.h"
#include "codegen/index_width.h"
#include "codegen/insert_barriers.h"
#include "codegen/linearize.h"
#include "codegen/opt/opt.h"
#include "codegen/reduce_to_registers.h"
#include "codegen/sum_in_blocks.h"
#include "codegen/target.h"
#include "codegen/vectorize.h"
#include "codegen/widen_loads.h"
#include "codegen/widen_stores.h"
#include "ir/arena.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "render/render.h"
#include "rewrite/graph_rewrite.h"
#include "rewrite/rule_set.h"
#include "schedule/rangeify/bufferize_to_store.h"
#include "schedule/rangeify/indexing.h"
#include "schedule/rangeify/inline_buffers.h"
#include "schedule/rangeify/kernel_units.h"
#include "schedule/rangeify/merge_reductions.h"
#include "schedule/rangeify/order_writes.h"
#include "schedule/rangeify/patterns.h"
#include "schedule/rangeify/separate_versions.h"
#include "schedule/rangeify/split_kernel.h"
#include "schedule/rangeify/split_patterns.h"
#include "schedule/rangeify/split_reductions.h"
#include "schedule/rangeify/stage_hazards.h"
#include "schedule/rangeify/transform.h"
#include "schedule/roll/loop_events.h"
#include "schedule/roll/roll_graph.h"
#include "schedule/roll/run_as_loops.h"
#include "schedule/roll/sums_of_parts.h"
#include "schedule/schedule.h"
#include "symbolic/simplify.h"
#include "tests/fuzz/run_schedule.h"
#include "tests/unit/decompose_helpers.h"

namespace weft {
namespace {

// What a pass makes of a graph, as text.
using PassFunction = std::function<std::string(UOp)>;

const KernelLimits kLimits{};

// Phase 1 changes no graph: it says at which indices every value is computed, and what is stored.
std::string indices_text(UOp sink) {
  IndexingContext context(sink.arena(), kLimits, "CPU");
  run_rangeify(sink, context);
  static constexpr const char* kStoring[] = {"", ", may be stored", ", is stored"};
  std::string out;
  const std::vector<UOp> order = toposort(sink);
  for (size_t k = 0; k < order.size(); k++) {
    const UOp n = order[k];
    if (!context.has(n)) continue;
    std::string at;
    for (UOp i : context.tuple(context[n].at)) at += (at.empty() ? "" : ", ") + short_form(i);
    out += fmt::format("%{} {} at ({})", k, name_of(n.op()), at);
    for (UOp r : context.tuple(context[n].reduced)) out += ", over " + short_form(r);
    out += std::string(kStoring[size_t(context[n].storing)]) + "\n";
  }
  return out;
}

UOp transformed(UOp sink) {
  IndexingContext context(sink.arena(), kLimits, "CPU");
  run_rangeify(sink, context);
  return transform_to_ranges(sink, context);
}

UOp checked(UOp sink, Stage stage) {
  verify(sink, stage);
  return sink;
}

// Of a machine with a cache of 64 bytes and slow memory: blocks have 4 places.
KernelLimits small_limits() {
  KernelLimits limits;
  limits.machine.level_count = 2;
  limits.machine.levels = {{{64, 100, 100, false}, {1e15, 0.1, 0.1, true}}};
  limits.machine.launch_ns = 100;
  return limits;
}

// For the passes that ask what the target can do: no functions, a fused multiply-add.
const Target& target() {
  static const Target kTarget = test::with_fused_multiply_add(test::bare_target());
  return kTarget;
}

// For those that ask for workgroups.
const Target& group_target() {
  static const Target kTarget = [] {
    Target out{.name = "groups"};
    out.groups.threads = 64;
    out.vector_arithmetic = false;
    return out;
  }();
  return kTarget;
}

std::string rewritten(UOp n, const RuleSet& rules) { return print(graph_rewrite(n, rules)); }

// The kernels of a loop program, or why a graph is none.
std::string loops_text(UOp sink) {
  LoopRefusal refusal;
  const std::optional<LoopSchedule> loops =
      run_as_loops(toposort(sink), kLimits, "CPU", OutputMemory::kShared, refusal);
  if (!loops) return refusal.reason + "\n";
  std::string out = print(with_asts(loops->graph));
  for (const auto& [id, table] : loops->tables) {
    out += fmt::format("table {}: {}\n", id, fmt::join(table, " "));
  }
  return out;
}

const std::map<std::string, PassFunction>& passes() {
  constexpr Stage ranges = Stage::kRangeified, kernel = Stage::kKernel;
  static const std::map<std::string, PassFunction> all = {
      {"simplify", [](UOp n) { return print(simplify(n)); }},
      {"early", [](UOp n) { return rewritten(n, early_rules()); }},
      {"roll", [](UOp n) { return print(roll_graph(n, toposort(n), "CPU").sink); }},
      {"sums_of_parts", [](UOp n) { return print(write_sums_of_parts(toposort(n), "CPU")); }},
      {"loops", loops_text},
      {"separate_versions", [](UOp n) { return print(separate_versions(n, kLimits.writes)); }},
      {"indexing", indices_text},
      {"transform", [](UOp n) { return print(checked(transformed(n), ranges)); }},
      {"bufferize", [](UOp n) { return rewritten(n, bufferize_rules()); }},
      {"inline_buffers", [](UOp n) { return print(checked(inline_buffers(n, kLimits), ranges)); }},
      {"merge_reductions",
       [](UOp n) { return print(checked(merge_reductions(n, small_limits()), ranges)); }},
      {"order_writes", [](UOp n) { return print(checked(order_writes(n, kLimits), ranges)); }},
      {"stage_hazards", [](UOp n) { return print(checked(stage_hazards(n), ranges)); }},
      {"before_split", [](UOp n) { return rewritten(n, before_split_rules()); }},
      {"bufferize_to_store", [](UOp n) { return print(checked(bufferize_to_store(n), ranges)); }},
      {"split_kernels",
       [](UOp n) {
         return print(
             checked(with_asts(split_kernels(n, form_kernels(n, kLimits), "CPU")), ranges));
       }},
      {"gate_loads", [](UOp n) { return print(checked(gate_loads(n), kernel)); }},
      {"expand", [](UOp n) { return print(checked(expand(n), kernel)); }},
      {"sum_in_blocks", [](UOp n) { return print(checked(sum_in_blocks(n, target()), kernel)); }},
      {"reduce_to_registers",
       [](UOp n) { return print(checked(reduce_to_registers(n, target()), kernel)); }},
      {"vectorize", [](UOp n) { return print(checked(vectorize(n), kernel)); }},
      {"widen_loads",
       [](UOp n) {
         return print(checked(widen_loads(vectorize(simplify(expand(n))), target()), kernel));
       }},
      {"widen_stores",
       [](UOp n) {
         return print(checked(widen_stores(vectorize(simplify(expand(n))), target()), kernel));
       }},
      {"split_reductions", [](UOp n) { return print(split_reductions(n, 2, 4096)); }},
      {"gpudims",
       [](UOp n) {
         return print(checked(
             simplify(gpudims(reduce_to_registers(expand(n), group_target()), group_target())),
             kernel));
       }},
      {"devectorize",
       [](UOp n) {
         return print(checked(devectorize(vectorize(simplify(expand(n))), group_target()), kernel));
       }},
      {"insert_barriers",
       [](UOp n) { return print(checked(insert_barriers(n, group_target()), Stage::kProgram)); }},
      {"index_width", [](UOp n) { return print(checked(index_width(n), kernel)); }},
      {"decompose", [](UOp n) { return print(checked(decompose(n, target()), kernel)); }},
      {"idle_loops", [](UOp n) { return print(checked(settle_idle_loops(n), kernel)); }},
      {"linearize", [](UOp n) { return print(checked(linearize(n), Stage::kProgram)); }},
      {"render_c", [](UOp n) { return render_c(n, "kernel"); }},
      {"render_llvm", [](UOp n) { return render_llvm(n, "kernel"); }},
      {"render_ptx", [](UOp n) { return render_ptx(n, "kernel"); }},
      {"render_triton", [](UOp n) { return render_triton(n, "kernel"); }},
      {"render_opencl", [](UOp n) { return render_opencl(n, "program"); }},
      {"render_wgsl", [](UOp n) { return render_wgsl(n, "kernel"); }},
      {"render_cuda", [](UOp n) { return render_cuda(n, "kernel"); }},
      {"render_metal", [](UOp n) { return render_metal(n, "program"); }},
      {"render_hip", [](UOp n) { return render_hip(n, "kernel"); }},
      {"apply_opts", [](UOp n) { return print(checked(n, kernel)); }},  // after its optimisations
      {"schedule", [](UOp n) { return test::describe(make_schedule(n)); }},
  };
  return all;
}

std::vector<std::filesystem::path> cases() {
  std::vector<std::filesystem::path> out;
  for (const auto& [name, pass] : passes()) {
    const auto folder = std::filesystem::path(WEFT_SOURCE_DIR) / "tests/golden" / name;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      out.push_back(entry.path());
  }
  return out;
}

std::string read(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// A first line `# opts: VECTOR(0, 16)` asks for optimisations before the pass.
OptList opts_of(std::string_view input) {
  constexpr std::string_view start = "# opts: ";
  if (!input.starts_with(start)) return {};
  return parse_opts(input.substr(start.size(), input.find('\n') - start.size()));
}

class Golden : public testing::TestWithParam<std::filesystem::path> {};
INSTANTIATE_TEST_SUITE_P(All, Golden, testing::ValuesIn(cases()), [](const auto& test) {
  return test.param.parent_path().filename().string() + "_" + test.param.stem().string();
});

TEST_P(Golden, Output) {
  const std::string text = read(GetParam());
  const size_t cut = text.find("---\n");
  ASSERT_NE(cut, std::string::npos) << "no line ---";
  const std::string input = text.substr(0, cut);
  Arena arena;
  const PassFunction& pass = passes().at(GetParam().parent_path().filename().string());
  const UOp graph = parse(arena, input);
  const OptList opts = opts_of(input);
  const std::string output = pass(opts.empty() ? graph : apply_opts(graph, opts));
  if (std::getenv("WEFT_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(GetParam()) << input << "---\n" << output;
    return;
  }
  EXPECT_EQ(output, text.substr(cut + 4));
}

}  // namespace
}  // namespace weft
