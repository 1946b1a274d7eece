// GOMP_parallel, which the runtimes of GCC, LLVM and Intel all export, called as a compiler would.
#include "runtime/cpu/parallel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include "base/address_room.h"
#include "base/config.h"
#include "base/dynamic_library.h"

namespace weft {
namespace {

constexpr size_t kMostThreads = 256;
constexpr int64_t kPiecesPerThread = 4;  // so that a thread that is late has others to help it

struct OpenMp {
  void (*parallel)(void (*)(void*), void*, unsigned threads, unsigned flags) = nullptr;
  int (*max_threads)() = nullptr;
  int (*thread_number)() = nullptr;
  int (*thread_count)() = nullptr;
  int (*in_parallel)() = nullptr;
  std::string name = "none";

  bool load(const DynamicLibrary& library, std::string where) {
    const auto find = [&](const char* symbol) {
      return library ? library.symbol(symbol) : dlsym(RTLD_DEFAULT, symbol);
    };
    parallel = reinterpret_cast<decltype(parallel)>(find("GOMP_parallel"));
    max_threads = reinterpret_cast<decltype(max_threads)>(find("omp_get_max_threads"));
    thread_number = reinterpret_cast<decltype(thread_number)>(find("omp_get_thread_num"));
    thread_count = reinterpret_cast<decltype(thread_count)>(find("omp_get_num_threads"));
    in_parallel = reinterpret_cast<decltype(in_parallel)>(find("omp_in_parallel"));
    if (parallel != nullptr && max_threads != nullptr && thread_number != nullptr &&
        thread_count != nullptr && in_parallel != nullptr) {
      name = std::move(where);
      return true;
    }
    parallel = nullptr;
    return false;
  }
};

// The path of a library of the process that is an OpenMP runtime by its name, whatever a wheel has
// added to that.
std::string loaded_runtime() {
  std::string found;
  const auto look = [](dl_phdr_info* info, size_t, void* into) {
    const std::string_view path = info->dlpi_name;
    const std::string_view file = path.substr(path.rfind('/') + 1);
    for (const std::string_view start : {"libgomp", "libomp", "libiomp5"}) {
      if (!file.starts_with(start)) continue;
      *static_cast<std::string*>(into) = path;
      return 1;
    }
    return 0;
  };
  dl_iterate_phdr(look, &found);
  return found;
}

OpenMp find_openmp() {
  OpenMp openmp;
  if (const std::string path = loaded_runtime(); !path.empty()) {
    if (openmp.load(DynamicLibrary::loaded(path), path)) return openmp;
  }
  if (openmp.load(DynamicLibrary(), "in the process")) return openmp;
  // By default its threads wait spinning for milliseconds, at the end of which a busy machine takes
  // the core away from them when there is work: a loop then costs 10 ms. This is 0.1 ms.
  const EnvironmentDefault spin("GOMP_SPINCOUNT", "2000", "OMP_WAIT_POLICY");
  for (const char* name : {"libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so"}) {
    const DynamicLibrary library = DynamicLibrary::open(name);
    if (library && openmp.load(library, name)) return openmp;
  }
  return openmp;
}

// A child has none of its parent's threads, and a runtime that waits for them waits for ever.
std::atomic<bool> is_forked = false;

const OpenMp& openmp() {
  static const OpenMp& found = *[] {
    pthread_atfork(nullptr, nullptr, [] { is_forked = true; });
    return new OpenMp(find_openmp());
  }();
  return found;
}

// A runtime that cannot start a thread ends the process. Whether this thread can have a team of so
// many is tried when it is larger than the last one.
bool can_start(size_t threads) {
  thread_local size_t last = 1;
  if (threads > last && !has_room_for_threads(threads - 1)) return false;
  last = threads;
  return true;
}

// The pieces that a thread is to do; others take from it what it has not begun.
struct alignas(64) Share {
  std::atomic<int64_t> next;
  int64_t end;
};

struct Loop {
  LoopBody body;
  const void* context;
  int64_t count, pieces;
  size_t shares;
  std::array<Share, kMostThreads> of;

  int64_t start_of(int64_t piece) const {
    return count / pieces * piece + std::min(piece, count % pieces);
  }

  void work_on(Share& share) {
    for (int64_t piece = share.next++; piece < share.end; piece = share.next++) {
      body(context, start_of(piece), start_of(piece + 1));
    }
  }

  // Called by each thread of a team, however many there are.
  static void work(void* loop) {
    Loop& self = *static_cast<Loop*>(loop);
    const size_t own = size_t(openmp().thread_number()) % self.shares;
    for (size_t i = 0; i < self.shares; i++) self.work_on(self.of[(own + i) % self.shares]);
  }
};

}  // namespace

size_t parallel_threads() {
  const OpenMp& runtime = openmp();
  if (runtime.parallel == nullptr || is_forked || runtime.in_parallel() != 0) return 1;
  const int limit = config().threads;
  const int available = runtime.max_threads();
  return size_t(std::clamp(limit == 0 ? available : limit, 1, int(kMostThreads)));
}

void parallel_for(int64_t count, LoopBody body, const void* context) {
  if (count <= 0) return;
  const auto threads = int64_t(count == 1 ? 1 : parallel_threads());
  if (threads == 1) {
    body(context, 0, count);
    return;
  }
  if (!can_start(size_t(std::min(threads, count)))) {
    body(context, 0, count);
    return;
  }
  Loop loop;  // shares past the last are not touched
  loop.body = body;
  loop.context = context;
  loop.count = count;
  loop.pieces = std::min(count, threads * kPiecesPerThread);
  loop.shares = size_t(std::min(threads, loop.pieces));
  const auto shares = int64_t(loop.shares);
  for (int64_t i = 0; i < shares; i++) {
    loop.of[size_t(i)].next.store(loop.pieces * i / shares, std::memory_order_relaxed);
    loop.of[size_t(i)].end = loop.pieces * (i + 1) / shares;
  }
  openmp().parallel(&Loop::work, &loop, unsigned(loop.shares), 0);
}

const char* openmp_runtime() { return openmp().name.c_str(); }

}  // namespace weft
