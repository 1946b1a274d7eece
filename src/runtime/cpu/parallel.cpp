// The calling thread publishes its loop in a slot, does pieces of it until none is left, and waits
// for those that others have begun. Who joins late finds nothing to do and holds up nobody.
#include "runtime/cpu/parallel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>

#include <pthread.h>
#include <signal.h>

#include "base/address_room.h"
#include "base/config.h"
#include "runtime/cpu/host_cpu.h"

namespace weft {
namespace {

constexpr size_t kMostThreads = 256;
constexpr size_t kSlots = 4;             // loops of different threads that others help with at once
constexpr int64_t kPiecesPerThread = 4;  // so that a thread that is late has others to help it
// Kernels that follow each other do not wait for threads to wake up; others get the core soon.
constexpr std::chrono::microseconds kSpin(20);

// A child has none of its parent's threads.
std::atomic<bool> is_forked = false;
// Whether this thread does a piece of a loop.
thread_local bool is_inside = false;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The value once it is not `old`: spins for a short time, then sleeps.
uint32_t wait_for_change(const std::atomic<uint32_t>& value, uint32_t old) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 16; i++) {
      const uint32_t now = value.load(std::memory_order_acquire);
      if (now != old) return now;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < end);
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

// The pieces that a thread is to do; others take from it what it has not begun.
struct alignas(64) Share {
  std::atomic<int64_t> next;
  int64_t end;
};

// A loop that threads may join. All but the atomics change only while nobody can.
class Slot {
 public:
  bool try_take() { return !is_taken_.exchange(true, std::memory_order_acquire); }
  void give_back() { is_taken_.store(false, std::memory_order_release); }

  void publish(int64_t count, LoopBody body, const void* context, int64_t pieces, size_t shares) {
    body_ = body;
    context_ = context;
    count_ = count;
    pieces_ = pieces;
    shares_ = shares;
    for (size_t i = 0; i < shares; i++) {
      of_[i].next.store(pieces * int64_t(i) / int64_t(shares), std::memory_order_relaxed);
      of_[i].end = pieces * int64_t(i + 1) / int64_t(shares);
    }
    left_.store(0, std::memory_order_relaxed);
    round_++;
    open_.store(round_ << 32 | (shares - 1), std::memory_order_seq_cst);
  }

  // Nobody joins from here on; returns when all who have joined have left.
  void close() {
    const auto free = uint32_t(open_.exchange(round_ << 32, std::memory_order_acq_rel));
    const uint32_t joined = uint32_t(shares_) - 1 - free;
    uint32_t left = left_.load(std::memory_order_acquire);
    while (left != joined) left = wait_for_change(left_, left);
  }

  // Whether there was a place in the loop and so something to do.
  bool help(size_t thread) {
    uint64_t open = open_.load(std::memory_order_acquire);
    do {
      if (uint32_t(open) == 0) return false;
    } while (!open_.compare_exchange_weak(open, open - 1, std::memory_order_acq_rel));
    work(thread);
    left_.fetch_add(1, std::memory_order_acq_rel);
    left_.notify_one();
    return true;
  }

  void work(size_t thread) {
    is_inside = true;
    for (size_t i = 0; i < shares_; i++) {
      Share& share = of_[(thread + i) % shares_];
      for (int64_t piece = share.next++; piece < share.end; piece = share.next++) {
        body_(context_, start_of(piece), start_of(piece + 1));
      }
    }
    is_inside = false;
  }

 private:
  int64_t start_of(int64_t piece) const {
    return count_ / pieces_ * piece + std::min(piece, count_ % pieces_);
  }

  std::atomic<bool> is_taken_ = false;
  std::atomic<uint64_t> open_ = 0;  // the round, and in the lower half the places that are free
  std::atomic<uint32_t> left_ = 0;  // who has joined and is done
  uint64_t round_ = 0;
  LoopBody body_ = nullptr;
  const void* context_ = nullptr;
  int64_t count_ = 0, pieces_ = 0;
  size_t shares_ = 0;
  std::array<Share, kMostThreads> of_;
};

class Pool {
 public:
  Pool() {
    pthread_atfork(nullptr, nullptr, [] { is_forked = true; });
  }

  // Null: others are at work in all of them.
  Slot* take_slot() {
    for (Slot& slot : slots_) {
      if (slot.try_take()) return &slot;
    }
    return nullptr;
  }

  void wake(size_t helpers) {
    news_.fetch_add(1, std::memory_order_seq_cst);
    if (helpers >= count_.load(std::memory_order_relaxed)) return news_.notify_all();
    for (size_t i = 0; i < helpers; i++) news_.notify_one();
  }

  // Starts threads up to so many, as far as the system has them.
  void start(size_t threads) {
    if (threads <= count_.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(mutex_);
    const size_t count = count_.load(std::memory_order_relaxed);
    if (threads <= count || !has_room_for_threads(threads - count)) return;
    sigset_t all, before;  // signals are for the threads of the program
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (size_t i = count; i < threads; i++) {
        std::thread([this, i] { help(i + 1); }).detach();
        count_.store(i + 1, std::memory_order_relaxed);
      }
    } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): there are fewer then
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

 private:
  [[noreturn]] void help(size_t thread) {
    uint32_t seen = 0;
    for (;;) {
      bool was_useful = false;
      for (Slot& slot : slots_) was_useful |= slot.help(thread);
      const uint32_t now = news_.load(std::memory_order_seq_cst);
      if (was_useful || now != seen) {
        seen = now;
        continue;
      }
      seen = wait_for_change(news_, seen);
    }
  }

  std::array<Slot, kSlots> slots_;
  std::atomic<uint32_t> news_ = 0;  // changes with each loop
  std::atomic<size_t> count_ = 0;
  std::mutex mutex_;
};

// Its threads live until the process ends.
Pool& pool() {
  static Pool& instance = *new Pool;
  return instance;
}

}  // namespace

size_t parallel_threads() {
  static const size_t kCores = host_cores();
  if (is_inside || is_forked) return 1;
  const int limit = config().threads;
  return std::clamp<size_t>(limit == 0 ? kCores : size_t(limit), 1, kMostThreads);
}

void parallel_for(int64_t count, LoopBody body, const void* context) {
  if (count <= 0) return;
  const auto threads = int64_t(count == 1 ? 1 : parallel_threads());
  Slot* slot = threads == 1 ? nullptr : pool().take_slot();
  if (slot == nullptr) {
    body(context, 0, count);
    return;
  }
  const int64_t pieces = std::min(count, threads * kPiecesPerThread);
  const auto shares = size_t(std::min(threads, pieces));
  pool().start(shares - 1);
  slot->publish(count, body, context, pieces, shares);
  pool().wake(shares - 1);
  slot->work(0);
  slot->close();
  slot->give_back();
}

}  // namespace weft
