// What is taken for granted about sizes and offsets that would be others in another call: jit keeps
// it, while it captures a function of variables.
//
// A graph is made for the sizes at hand. It is made in the same way for others as long as what was
// asked about them has the same answers: which of two numbers is larger, what a quotient is. Equal
// ones need not be told: numbers that follow from variables by formulas and are equal in several
// calls are equal in all. Nor does what the graph itself needs to be legal, nor whether a size is
// 0.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "weft/view.h"

namespace weft {

struct NumberWatch {
  std::vector<std::pair<int64_t, int64_t>> at_most;  // the first is at most the second
  std::vector<int64_t> exact;  // numbers, and answers, that what follows is made for alone

  NumberWatch() = default;
  NumberWatch(const NumberWatch&) = delete;
  NumberWatch& operator=(const NumberWatch&) = delete;

  // Is told of this thread's while it lives; null: nobody is.
  class Scope {
   public:
    explicit Scope(NumberWatch* watch);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    NumberWatch* before_;
  };
};

// That of this thread; mostly null.
NumberWatch* number_watch();

// a <= b, and something was done because of it.
void assume_at_most(int64_t a, int64_t b);
// a < b, or not.
bool is_less(int64_t a, int64_t b);
// The quotient of two numbers that are not negative, the second at least 1, is what it is.
void assume_quotient(int64_t number, int64_t by);
// Something was done that is right for these numbers alone.
void assume_exact(Ints numbers);

}  // namespace weft
