// The kernels of a tensor graph, with the memory that each finds and what it makes of it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "ir/arena.h"
#include "ir/array.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "schedule/schedule.h"
#include "tests/fuzz/run_schedule.h"

namespace weft::test {

struct KernelCase {
  std::shared_ptr<Arena> arena = std::make_shared<Arena>();
  UOp ast{};
  std::map<std::string, int64_t> variables{};
  std::map<int64_t, Array> before{}, after{};  // by the reference evaluator
};

inline std::vector<KernelCase> kernel_cases(UOp sink, const std::map<int64_t, Array>& inputs,
                                            const KernelLimits& limits = {}) {
  const Schedule s = make_schedule(sink, {.limits = limits});
  Slots slots = memory_of(s, inputs);
  std::vector<KernelCase> out;
  for (const KernelCall& call : s.calls) {
    KernelCase c;
    c.ast = with_shared_memory(*c.arena, s, call);
    Bindings bindings = bindings_of(s, call, slots);
    c.variables = bindings.variables;
    c.before = bindings.buffers;
    evaluate(c.ast, bindings);
    c.after = bindings.buffers;
    keep_written(s, call, bindings, slots);
    out.push_back(std::move(c));
  }
  return out;
}

// The first argument that differs, or "".
inline std::string difference(const std::map<int64_t, Array>& expected,
                              const std::map<int64_t, Array>& given) {
  for (const auto& [id, e] : expected) {
    const Array& g = given.at(id);
    if (is_same(e, g)) continue;
    return fmt::format("argument {} is\n  {}\nand not\n  {}", id, g.text(), e.text());
  }
  return "";
}

}  // namespace weft::test
