// A walk over a kernel that looks at elementwise ops and reductions.
#include "runtime/kernel_operations.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"

namespace weft {
namespace {

constexpr std::array kReductions = {
    std::pair{Op::ADD, std::string_view("sum")},
    std::pair{Op::MUL, std::string_view("prod")},
    std::pair{Op::AND, std::string_view("all")},
    std::pair{Op::OR, std::string_view("any")},
};

std::string lower_case(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(),
                         [](char c) { return char(std::tolower(static_cast<unsigned char>(c))); });
  return text;
}

std::string reduction_name(Op op) {
  const auto* const found =
      std::ranges::find(kReductions, op, &decltype(kReductions)::value_type::first);
  return found != kReductions.end() ? std::string(found->second) : lower_case(name_of(op));
}

// Reads memory: what is computed from loops and constants alone is an address or a gate.
bool reads_memory(UOp n, const std::vector<bool>& reads) {
  return n.is(Op::LOAD) ||
         std::ranges::any_of(n.srcs(), [&](UOp s) { return bool(reads[s.id()]); });
}

}  // namespace

std::string kernel_operations(UOp ast) {
  std::vector<std::string> names;
  std::vector<bool> reads;
  for (const UOp n : toposort(ast)) {
    if (n.id() >= reads.size()) reads.resize(n.id() + 1);
    reads[n.id()] = reads_memory(n, reads);
    std::string name;
    if (n.is(Op::REDUCE)) name = reduction_name(n.arg_op());
    if (is_elementwise(n.op()) && reads[n.id()]) name = lower_case(name_of(n.op()));
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names.empty() ? "store" : fmt::format("{}", fmt::join(names, " "));
}

}  // namespace weft
