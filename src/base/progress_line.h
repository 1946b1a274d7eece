// What is done of something long, as one line on a terminal that is gone when it is done.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace weft {

// Shows nothing in its first second, nor where stderr is not a terminal. Any thread may tell.
class ProgressLine {
 public:
  ProgressLine(std::string_view what, size_t count);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  void done_one();

 private:
  const std::string what_;
  const size_t count_;
  const bool is_shown_;
  const uint64_t begin_;
  std::atomic<size_t> done_ = 0;
  std::mutex mutex_;
  uint64_t last_ = 0;  // when it was drawn; 0: never
};

}  // namespace weft
