// A call watched while it runs: its inputs are proxies, what it leaves becomes a recipe.
#include "engine/jit.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/ref.h"
#include "engine/foreign_memory.h"
#include "engine/index_checks.h"
#include "engine/jit_capture.h"
#include "engine/jit_general.h"
#include "engine/jit_recipe.h"
#include "engine/realize.h"
#include "ir/op.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "schedule/size_use.h"
#include "value/number_watch.h"
#include "value/storage.h"
#include "value/storage_watch.h"
#include "value/training.h"
#include "value/value.h"
#include "value/view.h"
#include "weft/gradient.h"
#include "weft/tensor.h"
#include "weft/variable.h"
#include "weft/view.h"

namespace weft {
namespace {

constexpr uint32_t kNone = JitRecipe::kNone;

// What the function gave, as handles on the storages themselves.
void replace_proxies(JitWatch& watch, std::vector<StorageView>& outputs) {
  for (StorageView& output : outputs) {
    const uint32_t at = watch.find(*output.storage);
    if (at == kNone) continue;
    const JitWatch::Bound& b = watch.bound()[at];
    if (b.proxy) output = {b.storage, b.is_part ? placed(output.view, b.part) : output.view};
  }
}

void write_through(JitWatch& watch) {
  for (const JitWatch::Bound& b : watch.bound()) {
    if (b.is_written && b.memory->is_seen_outside()) write_through(*b.storage, b.before);
  }
}

void refuse_two_ways(JitWatch& watch) {
  std::vector<JitWatch::Bound>& bound = watch.bound();
  for (const JitWatch::Bound& a : bound) {
    for (const JitWatch::Bound& b : bound) {
      const bool is_twice = a.proxy && !b.proxy && a.storage == b.storage;
      if (!is_twice || (!a.is_written && !b.is_written)) continue;
      watch.undo();
      const auto inputs = watch.binding_of_input();
      const auto at = std::ranges::find(inputs, uint32_t(&a - bound.data())) - inputs.begin();
      throw JitError(
          fmt::format("[jit] argument {} shares memory with a tensor that the function uses by "
                      "another name, and one of them is written: give it as an argument or use it "
                      "by name, not both",
                      at));
    }
  }
}

void refuse_kept_inputs(JitWatch& watch, const std::function<void()>& before_giving_up) {
  const auto is_kept = [](const JitWatch::Bound& b) { return b.proxy && b.proxy->owners() > 1; };
  std::vector<JitWatch::Bound>& bound = watch.bound();
  if (std::ranges::none_of(bound, is_kept)) return;
  if (before_giving_up) before_giving_up();
  if (std::ranges::none_of(bound, is_kept)) return;
  throw JitError(
      "[jit] the function keeps an argument, or a view of it, after it has returned: replays "
      "could not; return it, or keep a clone()");
}

}  // namespace

CapturedCall capture_call(std::span<const SeenStorage> inputs, const CapturedFunction& function,
                          const std::function<void()>& before_giving_up,
                          std::span<const VariableValue> variables) {
  JitWatch watch(inputs);
  NumberWatch numbers;
  const NumberWatch::Scope watched(variables.empty() ? nullptr : &numbers);
  CapturedCall call;
  try {
    const StorageWatch::Scope scope(watch);
    call.outputs = function(watch.proxies());
    for (const StorageView& output : call.outputs) watch.touch(*output.storage);
  } catch (...) {
    watch.find_written();
    refuse_two_ways(watch);
    watch.settle();
    write_through(watch);
    throw;
  }
  watch.find_written();
  refuse_two_ways(watch);
  try {
    call.recipe = make_recipe(watch, call.outputs, variables);
  } catch (const Interrupted&) {  // what the function wrote stays written
    write_through(watch);
    throw;
  }
  write_through(watch);
  watch.drop_proxies();
  replace_proxies(watch, call.outputs);
  refuse_kept_inputs(watch, before_giving_up);
  if (call.recipe) {
    call.recipe->at_most = std::move(numbers.at_most);
    call.recipe->exact = std::move(numbers.exact);
  }
  return call;
}

bool is_capturing() { return storage_watch() != nullptr; }

}  // namespace weft
