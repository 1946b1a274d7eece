// Lists that grow.
#include "value/number_watch.h"

#include <atomic>
#include <cstdint>
#include <utility>

#include "weft/view.h"

namespace weft {
namespace {

std::atomic<uint32_t> watched_threads = 0;  // so that others need not look at their own variable
thread_local NumberWatch* the_watch = nullptr;

}  // namespace

NumberWatch::Scope::Scope(NumberWatch* watch) : before_(std::exchange(the_watch, watch)) {
  watched_threads++;
}
NumberWatch::Scope::~Scope() {
  the_watch = before_;
  watched_threads--;
}

NumberWatch* number_watch() {
  return watched_threads.load(std::memory_order_relaxed) == 0 ? nullptr : the_watch;
}

void assume_at_most(int64_t a, int64_t b) {
  if (NumberWatch* const watch = number_watch()) watch->at_most.emplace_back(a, b);
}

bool is_less(int64_t a, int64_t b) {
  assume_exact({int64_t(a < b)});
  if (a < b) {
    assume_at_most(a + 1, b);
  } else {
    assume_at_most(b, a);
  }
  return a < b;
}

void assume_quotient(int64_t number, int64_t by) {
  const int64_t quotient = number / by, least = quotient * by;
  assume_at_most(quotient, quotient);  // a whole number
  assume_at_most(least, number);
  assume_at_most(number, least + (by - 1));
}

void assume_exact(Ints numbers) {
  if (NumberWatch* const watch = number_watch()) {
    watch->exact.insert(watch->exact.end(), numbers.begin(), numbers.end());
  }
}

}  // namespace weft
