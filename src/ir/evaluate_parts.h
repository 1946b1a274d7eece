// What the files of the evaluator share. Private to ir/evaluate*.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/array.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/walk.h"

namespace weft::evaluator {

using Variables = std::map<std::string, int64_t>;

// ---- evaluate.cpp

// Throws InternalError: what is wrong with n, and n.
[[noreturn]] void fail(UOp n, std::string_view what);
// The value of a VARIABLE, checked against its bounds.
int64_t value_of_variable(UOp variable, const Variables& variables);
// The value of an integer expression over variables: a size.
int64_t evaluate_size(UOp size, const Variables& variables);
// Throws the error of an elementwise op that has no result: an index past 64 bits, or an op that is
// not defined on its operands.
[[noreturn]] void fail_without_result(UOp n);
// What a reduction starts from; none when there is no such reduction.
std::optional<uint64_t> identity_of(UOp reduction);
// The dtype that evaluate_scalar() asks for.
DType operand_type(UOp n);

// ---- evaluate_tensor.cpp

std::vector<Array> evaluate_tensors(std::span<const UOp> roots,
                                    const std::map<int64_t, Array>& buffers,
                                    const Variables& variables);

// ---- evaluate_movement.cpp

// Where the elements of an array come from: element i of the result is element from[i] of the
// source, or zero where from[i] is kZero.
struct ElementMap {
  static constexpr int64_t kZero = -1;
  std::vector<int64_t> shape;
  std::vector<int64_t> from;
};

// What movement op n does to an array of this shape. `numbers` holds the values of n's sources from
// the second on.
ElementMap map_elements(UOp n, const std::vector<int64_t>& shape, std::span<const int64_t> numbers);

// ---- orders

// Calls visit on the roots and all that they depend on, each once, dependencies first.
// dependencies(n, out) appends to `out`.
template <class Dependencies, class Visit>
void visit_dependencies_first(std::span<const UOp> roots, Dependencies&& dependencies,
                              Visit&& visit) {
  if (roots.empty()) return;
  enum State : uint64_t { kNew, kEntered, kVisited };
  NodeMap states(roots[0].arena());
  std::vector<UOp> stack(roots.rbegin(), roots.rend()), found;
  while (!stack.empty()) {
    const UOp n = stack.back();
    if (states.number(n) != kNew) {
      stack.pop_back();
      if (states.number(n) == kEntered) visit(n);
      states.put_number(n, kVisited);
      continue;
    }
    states.put_number(n, kEntered);
    found.clear();
    dependencies(n, found);
    for (size_t i = found.size(); i-- > 0;) {
      if (states.number(found[i]) == kNew) stack.push_back(found[i]);
    }
  }
}

}  // namespace weft::evaluator
