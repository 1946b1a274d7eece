// Axes by name: "b (h w) c -> b c h w". Axes are split, permuted and merged.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "tensor/operand.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

using Group = std::vector<std::string>;  // the names that are one axis together
using Side = std::vector<Group>;

constexpr std::string_view kEllipsis = "...";

[[noreturn]] void refuse(std::string_view formula, std::string_view why) {
  throw ShapeError(fmt::format("[rearrange] '{}': {}", formula, why));
}

bool is_name_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// One side of a formula; `1` is an axis of size 1, as is `()`.
Side parse_side(std::string_view formula, std::string_view text) {
  Side side;
  bool is_open = false;
  const auto add = [&](std::string name) {
    if (is_open) {
      side.back().push_back(std::move(name));
    } else {
      side.push_back({std::move(name)});
    }
  };
  for (size_t i = 0; i < text.size();) {
    if (text[i] == ' ') {
      i++;
    } else if (text[i] == '(' || text[i] == ')') {
      if (is_open == (text[i] == '(')) refuse(formula, "parentheses do not match");
      is_open = text[i++] == '(';
      if (is_open) side.emplace_back();
    } else if (text.substr(i, 3) == kEllipsis) {
      add(std::string(kEllipsis));
      i += 3;
    } else {
      const size_t begin = i;
      while (i < text.size() && is_name_part(text[i])) i++;
      if (i == begin) refuse(formula, fmt::format("'{}' is no name of an axis", text[i]));
      const std::string_view name = text.substr(begin, i - begin);
      if (name != "1") {
        add(std::string(name));
      } else if (!is_open) {
        side.emplace_back();
      }
    }
  }
  if (is_open) refuse(formula, "parentheses do not match");
  return side;
}

// "...": as many groups of one name each, or names in its group, as axes are left.
Side with_ellipsis(Side side, size_t count) {
  Side result;
  for (Group& group : side) {
    Group wide;
    const bool is_alone = group.size() == 1 && group[0] == kEllipsis;
    for (std::string& name : group) {
      if (name != kEllipsis) {
        wide.push_back(std::move(name));
        continue;
      }
      for (size_t i = 0; i < count; i++) {
        std::string axis = fmt::format(".{}", i);
        if (is_alone) {
          result.push_back({std::move(axis)});
        } else {
          wide.push_back(std::move(axis));
        }
      }
    }
    if (!is_alone) result.push_back(std::move(wide));
  }
  return result;
}

Group names_of(const Side& side) {
  Group names;
  for (const Group& group : side) names.insert(names.end(), group.begin(), group.end());
  return names;
}

void check_names(std::string_view formula, Group left, Group right) {
  std::ranges::sort(left);
  std::ranges::sort(right);
  if (std::ranges::adjacent_find(left) != left.end()) refuse(formula, "a name occurs twice");
  if (left != right) refuse(formula, "both sides have the same names, each once");
}

// The size of every name on the left.
Sizes solve_sizes(std::string_view formula, const Side& left, Ints shape,
                  Tensor::NamedSizes given) {
  Sizes sizes;
  for (size_t i = 0; i < left.size(); i++) {
    int64_t known = 1, open = -1;
    for (const std::string& name : left[i]) {
      const auto at = std::ranges::find(given, name, &std::pair<std::string, int64_t>::first);
      if (at != given.end()) {
        sizes.push_back(at->second);
        known *= at->second;
      } else if (open < 0) {
        open = int64_t(sizes.size());
        sizes.push_back(-1);
      } else {
        refuse(formula,
               fmt::format("the sizes of '{}' and another of its axis are not given", name));
      }
    }
    if (open >= 0 && known > 0 && shape[i] % known == 0) {
      sizes[size_t(open)] = shape[i] / known;
      known = shape[i];
    }
    if (known != shape[i]) {
      refuse(formula,
             fmt::format("axis {} of {} is not of the sizes given", i, text_of_shape(shape)));
    }
  }
  return sizes;
}

}  // namespace

Tensor Tensor::rearrange(std::string_view formula, NamedSizes given) const {
  const size_t arrow = formula.find("->");
  if (arrow == std::string_view::npos) refuse(formula, "there is no '->'");
  Side left = parse_side(formula, formula.substr(0, arrow));
  Side right = parse_side(formula, formula.substr(arrow + 2));
  const bool has_ellipsis = std::ranges::count(left, Group{std::string(kEllipsis)}) > 0;
  const size_t axes = left.size() - (has_ellipsis ? 1 : 0);
  if (has_ellipsis ? axes > view_.rank() : axes != view_.rank()) {
    refuse(formula, fmt::format("{} axes on the left for {}", left.size(), text_of_shape(shape())));
  }
  left = with_ellipsis(std::move(left), view_.rank() - axes);
  right = with_ellipsis(std::move(right), view_.rank() - axes);
  const Group from = names_of(left), to = names_of(right);
  check_names(formula, from, to);
  for (const auto& [name, size] : given) {
    if (std::ranges::count(from, name) == 0) refuse(formula, fmt::format("there is no '{}'", name));
  }
  const Sizes sizes = solve_sizes(formula, left, shape(), given);
  std::vector<int64_t> order;
  for (const std::string& name : to) order.push_back(std::ranges::find(from, name) - from.begin());
  Sizes result;
  size_t next = 0;
  for (const Group& group : right) {
    result.push_back(1);
    for (size_t i = 0; i < group.size(); i++) result.back() *= sizes[size_t(order[next++])];
  }
  return reshape(sizes).permute(order).reshape(result);
}

}  // namespace weft
