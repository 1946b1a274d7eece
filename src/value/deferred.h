// Deferred Values: recorded as one step, written out as their formulas when they are computed.
//
// A deferred Value holds a function and what it is a function of. Whoever walks the graph to
// compute it (or to differentiate by what lies beneath) has the formula written out first: from
// then on the Value is the same as the formula's result. Where a gradient passes, the formula is
// written out at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "base/ref.h"
#include "ir/dtype.h"
#include "runtime/device.h"
#include "value/value.h"
#include "weft/view.h"

namespace weft {

// What a formula gives, and about how many Values it is made of: they count as pending.
struct Outcome {
  DType dtype;
  Device& device;
  Ints shape;
  int64_t values;
};

namespace detail {

using WriteOut = Ref<Value> (*)(const Value& deferred, std::span<Ref<Value>> sources);

// `numbers` of a deferred Value: what it is, the WriteOut, how many Values, the bytes of the
// formula.
enum DeferredNumber : uint8_t { kState, kWriteOut, kValues, kFormula };
enum DeferredState : uint8_t { kWaiting = 3, kWrittenOut = 4 };

Ref<Value> make_deferred(const Outcome& outcome, Ints numbers,
                         std::span<Ref<Value>, Value::kMostSources> sources);
// Formulas are written out as they are met: somebody looks at each operation, or at what is taken
// for granted about sizes, or one is being written out.
bool are_written_at_once();

template <class Formula, size_t... i>
Ref<Value> write_out(const Value& deferred, std::span<Ref<Value>> sources) {
  alignas(Formula) std::array<std::byte, sizeof(Formula)> bytes;
  std::memcpy(bytes.data(), deferred.numbers().data() + kFormula, sizeof(Formula));
  const auto& formula = *std::launder(reinterpret_cast<const Formula*>(bytes.data()));
  return formula(deferred.shape(), std::move(sources[i])...);
}

}  // namespace detail

// formula(shape of the outcome, sources...), later. It makes a Value of the outcome's dtype and
// shape, reads no memory and does not throw.
template <class Formula, class... Sources>
Ref<Value> deferred(const Outcome& outcome, const Formula& formula, Sources... sources) {
  static_assert(std::is_trivially_copyable_v<Formula> && sizeof...(Sources) <= Value::kMostSources);
  bool is_empty = false;
  for (const int64_t size : outcome.shape) is_empty |= size == 0;
  if (is_empty || (sources->is_tracked() || ...) || detail::are_written_at_once()) {
    return formula(outcome.shape, std::move(sources)...);
  }
  constexpr size_t words = (sizeof(Formula) + sizeof(int64_t) - 1) / sizeof(int64_t);
  std::array<int64_t, detail::kFormula + words> numbers{};
  numbers[detail::kState] = detail::kWaiting;
  numbers[detail::kValues] = outcome.values;
  std::memcpy(numbers.data() + detail::kFormula, &formula, sizeof(Formula));
  return [&]<size_t... i>(std::index_sequence<i...>) {
    const detail::WriteOut write_out = &detail::write_out<Formula, i...>;
    numbers[detail::kWriteOut] = reinterpret_cast<int64_t>(write_out);
    std::array<Ref<Value>, Value::kMostSources> all{std::move(sources)...};
    return detail::make_deferred(outcome, std::span<const int64_t>(numbers), all);
  }(std::index_sequence_for<Sources...>());
}

// Made by deferred(), with its formula written out or not.
inline bool is_deferred(const Value& value) {
  return value.is(Op::CONTIGUOUS_BACKWARD) && value.numbers().size() > detail::kFormula;
}
// The formula has not been written out: its sources are those of the formula. Under the lock of the
// graph or of realise.
inline bool is_waiting(const Value& value) {
  return is_deferred(value) && value.numbers()[detail::kState] == detail::kWaiting;
}

// The formula of one that is waiting. No lock is held but that of realise.
Ref<Value> formula_of(const Value& deferred);
// This thread is in formula_of().
bool is_writing_out();

// Live Values that are waiting.
int64_t waiting_values();
// One less of them, which is still waiting (value.cpp).
void end_waiting(const Value& deferred);

}  // namespace weft
