// What a schedule that serves many sizes has done for one of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace weft {

// Runs of programs with the same sizes, on a schedule in which sizes are variables. A kernel whose
// loops are cut to measure is faster, and has to be compiled: it pays after a few runs that did
// much work together, or before the first that does very much. Thread-safe.
class SizeUse {
 public:
  // Work is counted in elements, of one run and of what a compilation is worth: all sizes of a
  // family of programs have one price.
  SizeUse(double work_of_run, std::shared_ptr<const std::atomic<double>> price)
      : work_of_run_(work_of_run), price_(std::move(price)) {}

  // One more run. What is_spent() says then.
  bool count_run() {
    runs_.fetch_add(1, std::memory_order_relaxed);
    return is_spent();
  }
  // A schedule for these sizes alone pays: cached_schedule gives one from now on.
  bool is_spent() const {
    const size_t runs = runs_.load(std::memory_order_relaxed);
    const double price = price_->load(std::memory_order_relaxed);
    return (runs >= kFewRuns && double(runs) * work_of_run_ >= price) ||
           work_of_run_ >= kVeryMuch * price;
  }

 private:
  static constexpr size_t kFewRuns = 3;
  static constexpr double kVeryMuch = 64;

  const double work_of_run_;
  const std::shared_ptr<const std::atomic<double>> price_;
  std::atomic<size_t> runs_ = 0;
};

}  // namespace weft
