// Numbers to a line.
#include "runtime/search_progress.h"

#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "codegen/opt/opt.h"
#include "codegen/opt/search_opts.h"

namespace weft {
namespace {

constexpr size_t kBarWidth = 20, kNameWidth = 32;
constexpr std::string_view kClearLine = "\r\x1b[K";

}  // namespace

std::string duration_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  return seconds < 1 ? fmt::format("{:.2f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
}

void SearchProgressBar::show(const SearchProgress& progress) {
  const size_t filled =
      progress.count == 0 ? kBarWidth : kBarWidth * progress.done / progress.count;
  write_(fmt::format("{}beam {} round {} [{}{}] {}/{} best {}", kClearLine,
                     kernel_.substr(0, kNameWidth), progress.round, std::string(filled, '#'),
                     std::string(kBarWidth - filled, '.'), progress.done, progress.count,
                     progress.best ? duration_text(*progress.best) : "none"));
}

void SearchProgressBar::finish(const SearchResult& result) {
  std::string times = "nothing could be timed";
  if (result.seconds) {
    times = duration_text(*result.seconds);
    if (result.chosen_seconds) {
      times = fmt::format("{} -> {} ({:.2f}x)", duration_text(*result.chosen_seconds), times,
                          *result.chosen_seconds / *result.seconds);
    }
  }
  write_(fmt::format("{}beam {}: {}, {} timed: {}\n", kClearLine, kernel_, times, result.timed,
                     result.opts.empty() ? "no optimisations" : print(result.opts)));
}

}  // namespace weft
