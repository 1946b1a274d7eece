// Calls opened, and rows as text.
#include "value/call.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/ref.h"
#include "ir/dtype.h"
#include "runtime/debug.h"
#include "value/number_watch.h"
#include "value/operation_watch.h"
#include "value/row.h"
#include "value/sites.h"
#include "value/storage_watch.h"
#include "value/value.h"
#include "weft/gradient.h"
#include "weft/view.h"

namespace weft {
namespace {

thread_local bool is_on = false;

struct Opening {
  Opening() { is_on = true; }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;
  ~Opening() { is_on = false; }
};

}  // namespace

bool is_opening_call() { return is_on; }

namespace detail {

bool are_opened_at_once() {
  return is_on || operation_watch() != nullptr || number_watch() != nullptr;
}

bool has_no_elements(Ints shape) {
  return std::ranges::any_of(shape, [](int64_t size) { return size == 0; });
}

void append_text(std::string& to, int64_t number) { to += fmt::format("{}", number); }
void append_text(std::string& to, double number) { to += fmt::format("{}", number); }
void append_text(std::string& to, DType dtype) { to += dtype.name(); }

}  // namespace detail

std::string text_of_call(const Value& call) {
  return std::string(call.row()->name) + call.row()->text(call.numbers());
}

void show_calls(std::span<const Ref<Value>> calls) {
  if (!shows(2) || calls.empty()) return;
  std::vector<std::pair<std::string, size_t>> counted;  // in the order of their first ones
  for (const Ref<Value>& call : calls) {
    std::string text = text_of_call(*call);
    const auto at = std::ranges::find(counted, text, &std::pair<std::string, size_t>::first);
    if (at != counted.end()) {
      at->second++;
    } else {
      counted.emplace_back(std::move(text), 1);
    }
  }
  std::string line;
  for (const auto& [text, count] : counted) {
    if (!line.empty()) line += ", ";
    line += count == 1 ? text : fmt::format("{} {}", count, text);
  }
  show(fmt::format("calls   {}", line));
}

Ref<Value> body_of(const Value& call) {
  const Opening opening;
  const SiteScope from(sites_are_noted() ? site_of_value(call) : 0);
  const StorageWatch::Pause unseen_by_captures;
  const OperationWatch::Scope unseen(nullptr);
  const NumberWatch::Scope not_noted(nullptr);  // of sizes that were there before
  const GradMode mode(!call.is_untaped());
  std::array<Ref<Value>, Value::kMostSources> sources;
  const std::span<const Ref<Value>> own = call.sources();
  std::ranges::copy(own, sources.begin());
  Ref<Value> body = call.row()->body(call.numbers(), call.dtype(), call.shape(),
                                     std::span(sources).first(own.size()));
  if (body->dtype() != call.dtype() || !std::ranges::equal(body->shape(), call.shape())) {
    throw InternalError(fmt::format("[value] the body of {} gives {} ({}), and not {} ({})",
                                    text_of_call(call), body->dtype().name(),
                                    fmt::join(body->shape(), ","), call.dtype().name(),
                                    fmt::join(call.shape(), ",")));
  }
  return body;
}

}  // namespace weft
