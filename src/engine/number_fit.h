// Numbers of several calls as formulas of what differs between the calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/small_vector.h"

namespace weft {

// A sum of products of at most two variables.
struct Polynomial {
  static constexpr uint32_t kOne = UINT32_MAX;  // in the place of a variable
  struct Term {
    int64_t factor;
    uint32_t a, b;
  };
  SmallVector<Term, 2> terms;

  std::optional<int64_t> value(std::span<const int64_t> variables) const;  // empty past 63 bits
  bool is_constant() const;
  // Of all variables between their bounds; empty where it is not known.
  std::optional<int64_t> least(std::span<const int64_t> lows, std::span<const int64_t> highs) const;
  Polynomial minus(const Polynomial& other) const;
};

// What the values of variables in some calls allow to say.
class NumberFit {
 public:
  // calls[i] are the values of all variables in call i.
  explicit NumberFit(std::vector<std::vector<int64_t>> calls);

  // There are enough calls for formulas with one variable at a time. One more than determine them:
  // a number that is no such formula is not taken for one.
  bool is_enough() const { return linear_.is_enough; }

  // A variable that follows from others in all calls: the formula is 0 there.
  const std::vector<Polynomial>& relations() const { return relations_; }

  // The formula, with whole factors, that gives these numbers, one per call. Of several that do
  // there is none.
  std::optional<Polynomial> formula(std::span<const int64_t> numbers) const;

 private:
  // Products whose multiples are added up.
  struct Products {
    std::vector<Polynomial::Term> terms;
    std::vector<std::vector<uint64_t>> rows;  // their values in each call
    bool is_enough = false;
  };
  Products products(bool with_squares) const;
  std::optional<Polynomial> solve(const Products& products, std::span<const int64_t> numbers) const;

  std::vector<std::vector<int64_t>> calls_;
  std::vector<uint32_t> free_;  // variables that do not follow from those before them
  std::vector<Polynomial> relations_;
  Products linear_, square_;
};

}  // namespace weft
