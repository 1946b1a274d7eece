// Names of ops, axes and stages.
#include "ir/op.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace weft {
namespace {

constexpr std::array<std::string_view, 9> kAxisNames = {
    "loop", "global", "local", "reduce", "group_reduce", "upcast", "unroll", "thread", "lane"};
constexpr std::array<std::string_view, 4> kStageNames = {"tensor", "rangeified", "kernel",
                                                         "program"};
constexpr std::array<std::string_view, 9> kGroupNames = {
    "define", "movement", "tensor", "ranges", "memory", "unary", "binary", "ternary", "vector"};

template <class Enum, size_t n>
std::optional<Enum> find(const std::array<std::string_view, n>& names, std::string_view name) {
  const auto* at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return std::nullopt;
  return Enum(at - names.begin());
}

}  // namespace

std::optional<Op> parse_op(std::string_view name) {
  for (size_t i = 0; i < kOpCount; i++) {
    if (info(Op(i)).name == name) return Op(i);
  }
  return std::nullopt;
}

std::optional<AxisType> parse_axis_type(std::string_view name) {
  return find<AxisType>(kAxisNames, name);
}
std::optional<Stage> parse_stage(std::string_view name) { return find<Stage>(kStageNames, name); }

std::string_view name_of(AxisType axis) { return kAxisNames[size_t(axis)]; }
std::string_view name_of(Stage stage) { return kStageNames[size_t(stage)]; }
std::string_view name_of(OpGroup group) { return kGroupNames[size_t(group)]; }

}  // namespace weft
