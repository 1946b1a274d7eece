// Calls that end early: see the public header.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "weft/interrupt.h"  // IWYU pragma: export

namespace weft {

// What a front does instead of throwing Interrupted at every request.
struct InterruptFront {
  // Whether calls of this thread can be ended. Cheap.
  bool (*serves_thread)() noexcept;
  // Called from time to time while such a call lasts, with locks held.
  void (*refresh)() noexcept;
  // Called after a request, without any lock: throws Interrupted, or returns, and the call goes on.
  void (*ask)();
};
void set_interrupt_front(const InterruptFront& front);

// How long anything may wait without a look whether it is to end.
constexpr std::chrono::milliseconds kInterruptEvery{20};

// Thrown by check_interrupt() to where interruptible() is.
class Stopped {};

// Of this thread, while a call is made that can be ended, or while it helps with one.
class InterruptScope {
 public:
  enum class Kind : uint8_t {
    kOutside,  // of every such call
    kNever,    // nothing ends it: what is half done would be seen
    kCall,     // requests do
    kHelper,   // another thread does, which waits for it
  };
  // `not_before`, of kCall, is when requests count, by interrupt_clock(); `stop`, of kHelper, is
  // set to end it.
  explicit InterruptScope(Kind kind, uint64_t not_before = 0,
                          const std::atomic<bool>* stop = nullptr);
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
  ~InterruptScope();

  static bool is_within_one();

  struct State {
    Kind kind = Kind::kOutside;
    uint64_t not_before = 0;
    const std::atomic<bool>* stop = nullptr;
  };

 private:
  State outer_;
};

// Throws Stopped where the call that this thread makes is to end. Does nothing outside of such a
// call. Costs a few nanoseconds.
void check_interrupt();

// Nanoseconds, to a few milliseconds.
uint64_t interrupt_clock();
// Whether calls of this thread can be ended; throws Interrupted for what was requested before.
bool begin_interruptible();
// After Stopped, without locks: throws Interrupted, or returns, and the call is to be made again.
void ask_after_stop();

// call(), which a request may end, and begin anew when those who were asked do not insist. It then
// does not listen for as long as it has taken so far, so that it comes to its end however often
// there are requests.
template <class Call>
auto interruptible(Call&& call) {
  if (InterruptScope::is_within_one() || !begin_interruptible()) return call();
  const uint64_t begin = interrupt_clock();
  for (uint64_t not_before = 0;;) {
    try {
      const InterruptScope scope(InterruptScope::Kind::kCall, not_before);
      return call();
    } catch (const Stopped&) {
      ask_after_stop();
    }
    const uint64_t now = interrupt_clock();
    not_before = now + (now - begin);
  }
}

// A mutex that is waited for in calls that can be ended.
class InterruptibleMutex {
 public:
  void lock() {
    if (mutex_.try_lock()) return;
    while (!mutex_.try_lock_for(kInterruptEvery)) check_interrupt();
  }
  void unlock() { mutex_.unlock(); }

 private:
  std::timed_mutex mutex_;
};

}  // namespace weft
