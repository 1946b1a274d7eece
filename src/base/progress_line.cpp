// A bar that is drawn a few times a second.
#include "base/progress_line.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"

namespace weft {
namespace {

constexpr uint64_t kFirst = 1'000'000'000, kEvery = 200'000'000;  // ns
constexpr size_t kBarWidth = 24;

}  // namespace

ProgressLine::ProgressLine(std::string_view what, size_t count)
    : what_(what),
      count_(count),
      is_shown_(count > 1 && isatty(STDERR_FILENO) != 0),
      begin_(is_shown_ ? now_ns() : 0) {}

ProgressLine::~ProgressLine() {
  if (last_ == 0) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
}

void ProgressLine::done_one() {
  const size_t done = ++done_;
  if (!is_shown_) return;
  const uint64_t now = now_ns();
  const std::lock_guard lock(mutex_);
  if (now - begin_ < kFirst || now - last_ < kEvery) return;
  last_ = now;
  const size_t filled = kBarWidth * done / count_;
  const std::string line =
      fmt::format("\r\x1b[Kweft: {} [{}{}] {}/{}, {} s", what_, std::string(filled, '#'),
                  std::string(kBarWidth - filled, '.'), done, count_, (now - begin_) / kFirst);
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace weft
