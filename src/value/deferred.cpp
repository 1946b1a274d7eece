// Deferred Values made, and their formulas written out.
#include "value/deferred.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/ref.h"
#include "ir/op.h"
#include "value/number_watch.h"
#include "value/operation_watch.h"
#include "value/sites.h"
#include "value/storage_watch.h"
#include "value/value.h"
#include "weft/gradient.h"
#include "weft/view.h"

namespace weft {
namespace {

thread_local bool is_on = false;

struct WritingOut {
  WritingOut() { is_on = true; }
  WritingOut(const WritingOut&) = delete;
  WritingOut& operator=(const WritingOut&) = delete;
  ~WritingOut() { is_on = false; }
};

}  // namespace

bool is_writing_out() { return is_on; }

namespace detail {

bool are_written_at_once() {
  return is_on || operation_watch() != nullptr || number_watch() != nullptr;
}

Ref<Value> make_deferred(const Outcome& outcome, Ints numbers,
                         std::span<Ref<Value>, Value::kMostSources> sources) {
  return Value::make(Op::CONTIGUOUS_BACKWARD, outcome.dtype, outcome.device, outcome.shape, numbers,
                     std::move(sources[0]), std::move(sources[1]), std::move(sources[2]));
}

}  // namespace detail

Ref<Value> formula_of(const Value& deferred) {
  const WritingOut writing_out;
  const SiteScope from(sites_are_noted() ? site_of_value(deferred) : 0);
  const StorageWatch::Pause unseen_by_captures;
  const OperationWatch::Scope unseen(nullptr);
  const NumberWatch::Scope not_noted(nullptr);  // of sizes that were there before
  const GradMode mode(!deferred.is_untaped());
  std::array<Ref<Value>, Value::kMostSources> sources;
  const std::span<const Ref<Value>> own = deferred.sources();
  std::copy(own.begin(), own.end(), sources.begin());
  const auto write_out = reinterpret_cast<detail::WriteOut>(deferred.numbers()[detail::kWriteOut]);
  return write_out(deferred, std::span(sources).first(own.size()));
}

}  // namespace weft
