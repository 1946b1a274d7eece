// The search for a kernel's optimisations, on a terminal.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "codegen/opt/search_opts.h"

namespace weft {

// A line that is drawn anew for each candidate; in the end one that stays.
class SearchProgressBar {
 public:
  using Write = std::function<void(std::string_view)>;

  SearchProgressBar(std::string_view kernel, Write write) : kernel_(kernel), write_(write) {}

  void show(const SearchProgress& progress);
  void finish(const SearchResult& result);

 private:
  std::string kernel_;
  Write write_;
};

// "1.25 ms"
std::string duration_text(double seconds);

}  // namespace weft
