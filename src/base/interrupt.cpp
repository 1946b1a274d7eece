// One flag for requests, and for each thread what it listens to.
#include "base/interrupt.h"

#include <atomic>
#include <cstdint>
#include <utility>

#include <time.h>

namespace weft {
namespace {

constexpr uint64_t kRefreshEvery = 50'000'000;  // nanoseconds

std::atomic<bool> is_requested = false;
static_assert(std::atomic<bool>::is_always_lock_free);

InterruptFront front{
    .serves_thread = []() noexcept { return true; },
    .refresh = []() noexcept {},
    .ask = [] { throw Interrupted(); },
};

thread_local InterruptScope::State of_thread;

// Looks for requests that the front has not been told of.
void refresh_sometimes(uint64_t now) {
  thread_local uint64_t last = 0;
  if (now - last < kRefreshEvery) return;
  last = now;
  front.refresh();
}

}  // namespace

void request_interrupt() noexcept { is_requested.store(true); }

void set_interrupt_front(const InterruptFront& made) { front = made; }

InterruptScope::InterruptScope(Kind kind, uint64_t not_before, const std::atomic<bool>* stop)
    : outer_(std::exchange(of_thread, {.kind = kind, .not_before = not_before, .stop = stop})) {}

InterruptScope::~InterruptScope() { of_thread = outer_; }

bool InterruptScope::is_within_one() { return of_thread.kind != Kind::kOutside; }

uint64_t interrupt_clock() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}

void check_interrupt() {
  using Kind = InterruptScope::Kind;
  const InterruptScope::State& state = of_thread;
  if (state.kind == Kind::kHelper && state.stop->load(std::memory_order_relaxed)) throw Stopped();
  if (state.kind != Kind::kCall) return;
  const uint64_t now = interrupt_clock();
  refresh_sometimes(now);
  if (is_requested.load(std::memory_order_relaxed) && now >= state.not_before) throw Stopped();
}

bool begin_interruptible() {
  if (!front.serves_thread()) return false;
  refresh_sometimes(interrupt_clock());
  if (is_requested.load(std::memory_order_relaxed)) ask_after_stop();
  return true;
}

void ask_after_stop() {
  if (is_requested.exchange(false)) front.ask();
}

}  // namespace weft
