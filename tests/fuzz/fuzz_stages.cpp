// What the spec allows at a stage, every later pass takes, or refuses as a user's error: not with
// an internal error, not with a crash or without end, and not by handing on what the spec forbids.
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "codegen/lower.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "render/render.h"
#include "schedule/rangeify/pipeline.h"
#include "schedule/rangeify/split_kernel.h"
#include "schedule/schedule.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/driver.h"
#include "tests/fuzz/random_exact_graph.h"
#include "tests/fuzz/random_stage_graph.h"
#include "tests/fuzz/random_tensor_graph.h"

using namespace weft;

namespace {

constexpr unsigned kMostSeconds = 20;  // of a case

// A device with workgroups.
Target group_target() {
  Target target{.name = "groups"};
  target.groups.threads = 64;
  target.groups.most_threads = {64, 64, 64};
  target.groups.most_groups = {64, 64, 64};
  target.vector_arithmetic = false;
  target.limits.sequences = false;
  return target;
}

const Target& any_target(fuzz::Choices& choices) {
  static const Target kTargets[] = {c_target(), group_target()};
  return kTargets[choices.below(2)];
}

// What the passes say of a legal graph. Errors of a user's kind are answers, but for those of a
// pass that has made an illegal graph itself.
template <class Run>
void expect_an_answer(const std::string& text, Run&& run) {
  const auto fail = [&](const char* kind, const std::exception& e) {
    throw std::runtime_error(fmt::format("{}: {}\n{}", kind, e.what(), text));
  };
  try {
    run();
  } catch (const InternalError& e) {
    fail("internal error", e);
  } catch (const SpecError& e) {
    if (std::string_view(e.what()).find(", after pass ") != std::string_view::npos) {
      fail("a pass breaks the spec", e);
    }
  } catch (const Error&) {
  } catch (const std::exception& e) {
    fail("an error of no kind of weft's", e);
  }
}

// ------------------------------------------------------------------------- from a stage to the end

void run_program(UOp linear) { render_c(linear, "kernel"); }

void run_kernel(UOp ast, const Target& target) {
  const UOp linear = lower(ast, target);
  if (target.groups.threads == 0) run_program(linear);
}

void run_kernels(const KernelGraph& kernels, const Target& target) {
  verify(with_asts(kernels), Stage::kRangeified, "split");
  for (uint32_t k = 0; k < kernels.asts.size(); k++) run_kernel(kernels.asts.ast(k), target);
}

void run_rangeified(UOp sink, const Target& target) {
  run_kernels(run_kernel_split_pipeline(sink, target.limits, "REF", nullptr), target);
}

void run_tensor(UOp sink, const Target& target) {
  const Schedule schedule = make_schedule(sink, {.limits = target.limits});
  for (const Graph& kernel : schedule.kernels) run_kernel(kernel.root, target);
}

// ------------------------------------------------------------------------------- to a stage

UOp tensor_graph(Arena& arena, fuzz::Choices& choices) {
  return choices.one_in(2) ? fuzz::RandomExactGraph(arena, choices).make().sink
                           : fuzz::RandomTensorGraph(arena, choices).make().sink;
}

UOp rangeified_graph(UOp sink, const Target& target) {
  return run_rangeify_pipeline(toposort(sink), target.limits, "REF", nullptr);
}

UOp kernel_of(UOp sink, const Target& target, Arena& arena, fuzz::Choices& choices) {
  const Schedule s = make_schedule(sink, {.limits = target.limits});
  if (s.kernels.empty()) return {};
  return import_graph(arena, s.kernels[choices.below(s.kernels.size())].root);
}

std::string running;  // the graph, for a crash

void on_signal(int signal) {
  const std::string_view what = signal == SIGALRM ? "a case ran without end\n" : "a case crashed\n";
  for (const std::string_view text : {what, std::string_view(running)}) {
    if (write(2, text.data(), text.size()) < 0) break;
  }
  std::_Exit(1);
}

}  // namespace

void fuzz_one(weft::fuzz::Choices& choices) {
  for (const int signal : {SIGALRM, SIGSEGV, SIGFPE, SIGABRT}) std::signal(signal, on_signal);
  alarm(kMostSeconds);
  Arena arena;
  const Stage stage = kStages[choices.below(kStages.size())];
  const Target& target = any_target(choices);
  UOp graph = tensor_graph(arena, choices);
  if (stage == Stage::kRangeified) graph = rangeified_graph(graph, target);
  if (stage >= Stage::kKernel) graph = kernel_of(graph, target, arena, choices);
  if (!graph) return;
  if (stage == Stage::kProgram) graph = lower(graph, c_target());
  graph = fuzz::RandomStageGraph(choices, stage).changed(graph);
  if (find_violation(graph, stage)) return;
  const std::string text = fmt::format("in the {} stage\n{}", name_of(stage), print(graph));
  running = text;
  expect_an_answer(text, [&] {
    switch (stage) {
      case Stage::kTensor: return run_tensor(graph, target);
      case Stage::kRangeified: return run_rangeified(graph, target);
      case Stage::kKernel: return run_kernel(graph, target);
      case Stage::kProgram: return run_program(graph);
    }
  });
  alarm(0);
}
