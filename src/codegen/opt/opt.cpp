// The text of optimisations.
#include "codegen/opt/opt.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"

namespace weft {
namespace {

constexpr std::array<std::string_view, 16> kNames = {
    "TILE",  "UPCAST", "VECTOR", "UNROLL", "GROUP",  "THREAD", "STAGE", "PAD",
    "MERGE", "LOCAL",  "SERIAL", "SHARE",  "TENSOR", "BULK",   "SHARD", "BLOCK"};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  OptList all() {
    OptList out;
    for (skip(); at_ < text_.size(); skip()) out.push_back(one());
    return out;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') at_++;
  }
  Opt one() {
    const size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) fail("an optimisation such as VECTOR(0, 16)");
    const std::string_view name = text_.substr(at_, open - at_);
    for (size_t kind = 0; kind < kNames.size(); kind++) {
      if (kNames[kind] != name) continue;
      at_ = open + 1;
      const int64_t axis = number(',');
      return {OptKind(kind), axis, number(')')};
    }
    fail(
        "one of TILE, UPCAST, VECTOR, UNROLL, GROUP, THREAD, STAGE, PAD, MERGE, LOCAL, SERIAL, "
        "SHARE, TENSOR, BULK, SHARD, BLOCK");
  }
  int64_t number(char end) {
    skip();
    int64_t value = 0;
    const auto [stop, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail("a number");
    at_ = size_t(stop - text_.data());
    if (at_ >= text_.size() || text_[at_] != end) fail(fmt::format("'{}'", end));
    at_++;
    return value;
  }
  [[noreturn]] void fail(std::string_view wanted) const {
    throw ParseError(
        fmt::format("[parse_opts] expected {} at position {} of \"{}\"", wanted, at_, text_));
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string print(std::span<const Opt> opts) {
  std::string out;
  for (const Opt& o : opts) {
    out += fmt::format("{}{}({}, {})", out.empty() ? "" : " ", kNames[size_t(o.kind)], o.axis,
                       o.amount);
  }
  return out;
}

OptList parse_opts(std::string_view text) { return Reader(text).all(); }

}  // namespace weft
