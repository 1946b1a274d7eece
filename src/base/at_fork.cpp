// One handler of the system for all of weft's: its own order is that of registration.
#include "base/at_fork.h"

#include <array>
#include <atomic>
#include <cstddef>

#include <fmt/format.h>
#include <pthread.h>

#include "base/error.h"

namespace weft {
namespace {

struct Handlers {
  std::atomic<void (*)()> before, after;
};

std::array<Handlers, size_t(ForkOrder::kCount)> handlers;
// Those whose `before` has run: others may be added meanwhile.
std::array<void (*)(), size_t(ForkOrder::kCount)> owed;

void prepare() {
  for (size_t i = 0; i < handlers.size(); i++) {
    owed[i] = nullptr;
    const auto before = handlers[i].before.load();
    if (before == nullptr) continue;
    before();
    owed[i] = handlers[i].after.load();
  }
}

void resume() {
  for (size_t i = handlers.size(); i-- > 0;) {
    if (owed[i] != nullptr) owed[i]();
  }
}

}  // namespace

void at_fork(ForkOrder order, void (*before)(), void (*after)()) {
  static const int kRegistered [[maybe_unused]] = pthread_atfork(&prepare, &resume, &resume);
  void (*none)() = nullptr;
  if (!handlers[size_t(order)].after.compare_exchange_strong(none, after)) {
    throw InternalError(fmt::format("[at_fork] place {} is taken", int(order)));
  }
  handlers[size_t(order)].before = before;
}

}  // namespace weft
