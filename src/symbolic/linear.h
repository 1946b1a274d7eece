// Integer expressions as sums: a1*x1 + a2*x2 + ... + k.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/bounds.h"
#include "ir/node.h"

namespace weft {

struct Term {
  UOp base;  // not a constant, not a sum, not a product with a constant
  int64_t coefficient;
};

struct LinearSum {
  DType dtype;
  std::vector<Term> terms;  // in canonical order, no two of one base, no coefficient 0
  int64_t constant = 0;
};

// n as a sum, or empty when it is too long or its coefficients leave 64 bits. n is of dtype index.
std::optional<LinearSum> linear_sum(UOp n);

// The canonical node of a sum: ((t1 + t2) + t3) + constant, each term base*coefficient; 0 when
// empty.
UOp build_sum(Arena& arena, const LinearSum& sum);

// Values that the sum can take.
Interval bounds(const LinearSum& sum);

// a + b*scale; empty on overflow.
std::optional<LinearSum> add_scaled(const LinearSum& a, const LinearSum& b, int64_t scale);

// The order of terms and factors: ranges by id, variables by name, then the rest. The same in every
// process.
bool canonical_less(UOp a, UOp b);

int64_t floor_div(int64_t a, int64_t b);  // b > 0
int64_t floor_mod(int64_t a, int64_t b);  // b > 0

}  // namespace weft
