// Numbers of buffers and values of variables, kernel after kernel.
#include "schedule/list_calls.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/arena.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/walk.h"
#include "schedule/dependencies.h"
#include "schedule/kernel_table.h"
#include "schedule/schedule.h"

namespace weft {
namespace {

using Kind = ScheduledBuffer::Kind;

// The value of a size or of a bound variable in this call.
int64_t value_of(UOp n, const ScheduleOptions& options) {
  if (n.is_const()) return n.const_int();
  Bindings bindings;
  for (const BoundVariable& v : options.variables) bindings.variables[v.name] = v.value;
  return evaluate(n, bindings).at(0).ints().at(0);
}

// The variables without a BIND that a kernel reads.
std::vector<BoundVariable> free_variables(const KernelFacts& facts,
                                          const ScheduleOptions& options) {
  std::vector<BoundVariable> found;
  for (const BoundVariable& v : options.variables) {
    if (facts.variables.contains(v.name)) found.push_back(v);
  }
  return found;
}

ScheduledBuffer buffer_of(UOp b, Schedule& s, ListedKernels& listed,
                          const std::unordered_set<int64_t>& inputs,
                          const ScheduleOptions& options) {
  ScheduledBuffer buffer{.kind = Kind::kTemp,
                         .dtype = b.dtype(),
                         .size = value_of(b.src(0), options),
                         .device = std::string(b.src(1).name()),
                         .id = b.number()};
  if (!b.src(0).is_const()) {
    if (!s.formulas) s.formulas = std::make_shared<Arena>();
    buffer.formula = import_graph(*s.formulas, b.src(0));
  }
  if (inputs.contains(b.number())) buffer.kind = Kind::kInput;
  if (std::ranges::find(options.tables, b.number()) != options.tables.end()) {
    buffer.kind = Kind::kTable;
  }
  if (const auto table = listed.tables.find(b.number()); table != listed.tables.end()) {
    buffer.kind = Kind::kTable;
    buffer.data = std::move(table->second);
  }
  return buffer;
}

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::kInput: return "input";
    case Kind::kOutput: return "output";
    case Kind::kTemp: return "temporary";
    case Kind::kTable: return "table";
  }
  return "";
}

}  // namespace

Schedule list_calls(ListedKernels listed, KernelTable& asts,
                    const std::unordered_set<int64_t>& inputs, const ScheduleOptions& options) {
  Schedule s;
  for (UOp b : listed.ordered.buffers) {
    s.buffers.push_back(buffer_of(b, s, listed, inputs, options));
  }
  s.outputs = std::move(listed.ordered.outputs);
  s.output_firsts = std::move(listed.firsts);
  for (uint32_t b : s.outputs) {
    if (s.buffers[b].kind == Kind::kTemp) s.buffers[b].kind = Kind::kOutput;
  }
  s.kernels = asts.take();
  for (OrderedKernel& k : listed.ordered.kernels) {
    KernelCall call{
        k.kernel, s.kernels[k.kernel].root, std::move(k.name), std::move(k.arguments), k.written,
        {},       std::move(k.waits_for),   std::move(k.sites)};
    const KernelFacts& facts = asts.facts(k.kernel);
    for (UOp bind : k.variables) {
      const std::string name(bind.src(0).name());
      if (!facts.variables.contains(name)) continue;
      call.variables.push_back({name, value_of(bind.src(1), options)});
    }
    const std::vector<BoundVariable> free = free_variables(facts, options);
    call.variables.insert(call.variables.end(), free.begin(), free.end());
    std::ranges::sort(call.variables, {}, &BoundVariable::name);
    s.calls.push_back(std::move(call));
  }
  return s;
}

std::string text_of_calls(const Schedule& schedule) {
  std::string out;
  for (size_t i = 0; i < schedule.calls.size(); i++) {
    const KernelCall& call = schedule.calls[i];
    out += fmt::format("  call {}: {} writes", i, call.name);
    for (size_t a = 0; a < call.arguments.size(); a++) {
      if (a == call.written) out += ", reads";
      out += fmt::format(" {}", call.arguments[a]);
    }
    for (const BoundVariable& v : call.variables) out += fmt::format(", {} = {}", v.name, v.value);
    if (!call.waits_for.empty()) out += fmt::format(", after {}", fmt::join(call.waits_for, " "));
    out += "\n";
  }
  return out;
}

std::string text_of_memory(const Schedule& schedule) {
  std::string out;
  for (size_t i = 0; i < schedule.buffers.size(); i++) {
    const ScheduledBuffer& b = schedule.buffers[i];
    out += fmt::format("  buffer {}: {} of {} {} in slot {}\n", i, name_of(b.kind), b.size,
                       b.dtype.name(), b.slot);
  }
  return out + fmt::format("  temporaries: {} bytes, {} with shared slots\n", schedule.temp_bytes,
                           schedule.peak_bytes);
}

}  // namespace weft
