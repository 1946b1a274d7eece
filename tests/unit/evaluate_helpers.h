// Short names for the evaluator's tests.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"

namespace weft::test {

inline Array floats(const std::vector<double>& numbers) {
  return Array::of_doubles(dtypes::float32, {int64_t(numbers.size())}, numbers);
}
inline Array ints(const std::vector<int64_t>& numbers) {
  return Array::of_ints(dtypes::int32, {int64_t(numbers.size())}, numbers);
}

inline Array evaluate_one(UOp root, Bindings bindings = {}) {
  return evaluate(root, bindings).at(0);
}

inline UOp after(UOp x, std::initializer_list<UOp> effects) {
  return weft::after(x, std::span(effects.begin(), effects.size()));
}
inline UOp end(UOp effect, std::initializer_list<UOp> ranges) {
  return weft::end(effect, std::span(ranges.begin(), ranges.size()));
}
inline UOp sink(std::initializer_list<UOp> effects) {
  return weft::sink(effects.begin()->arena(), std::span(effects.begin(), effects.size()));
}

// What a call throws, as text; empty when it throws nothing of this kind.
template <class Kind, class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Kind& e) {
    return e.what();
  }
  return "";
}

}  // namespace weft::test
