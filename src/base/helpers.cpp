// Threads for the time of one call.
#include "base/helpers.h"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/address_room.h"
#include "base/interrupt.h"

namespace weft {
namespace {

class Helpers {
 public:
  Helpers(size_t count, const std::function<void(size_t)>& work) : work_(work) {
    if (count == 0 || !has_room_for_threads(count)) return;
    threads_.reserve(count);
    for (size_t i = 1; i <= count; i++) {
      running_++;
      try {
        threads_.emplace_back([this, i] { help(i); });
      } catch (const std::exception&) {  // no thread, or no memory for one: the others do it
        running_--;
        return;
      }
    }
  }
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;
  ~Helpers() {
    for (std::thread& thread : threads_) thread.join();
  }

  void run() {
    try {
      work_(0);
      std::unique_lock lock(mutex_);
      const auto is_done = [&] { return running_ == 0; };
      while (!changed_.wait_for(lock, kInterruptEvery, is_done)) check_interrupt();
    } catch (...) {
      stop_ = true;
      throw;
    }
  }

 private:
  void help(size_t i) {
    const InterruptScope scope(InterruptScope::Kind::kHelper, 0, &stop_);
    try {
      work_(i);
    } catch (const Stopped&) {  // NOLINT(bugprone-empty-catch): as it was told to
    }
    const std::lock_guard lock(mutex_);
    running_--;
    changed_.notify_all();
  }

  const std::function<void(size_t)>& work_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<size_t> running_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace

void run_with_helpers(size_t threads, const std::function<void(size_t)>& work) {
  Helpers(threads > 1 ? threads - 1 : 0, work).run();
}

}  // namespace weft
