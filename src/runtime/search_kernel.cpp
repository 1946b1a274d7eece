// A key, an entry on disk, and when there is none a search.
#include "runtime/search_kernel.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "base/hash.h"
#include "codegen/gate_loads.h"
#include "codegen/opt/choose_opts.h"
#include "codegen/opt/loops.h"
#include "codegen/opt/opt.h"
#include "codegen/opt/search_opts.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/walk.h"
#include "rewrite/user_passes.h"
#include "runtime/kernel_cache.h"
#include "runtime/search_progress.h"
#include "runtime/time_candidates.h"

namespace weft {
namespace {

// Raised when what was found before is not worth knowing any more: part of every key.
constexpr uint64_t kFormat = 1;
constexpr std::string_view kHeader = "weft beam\n";
constexpr int64_t kMemoryShare = 8;  // at most this part of the machine's memory is used

Hash128 key_of(UOp ast, const KernelSearch& search) {
  Hash128 key = mix(graph_hash(ast), hash_bytes_128(kHeader));
  key = mix(key, kFormat);
  key = mix(key, search.width);
  key = mix(key, hash_bytes_128(search.target.name));
  key = mix(key, search.target.vector_bytes);
  key = mix(key, search.target.vector_registers);
  key = mix(key, search.target.cores);
  key = mix(key, search.target.cache_bytes);
  return mix_user_passes(mix(key, search.machine));
}

// None when it is not there, or is not a list that applies to the kernel.
std::optional<OptList> remembered(UOp kernel, const Hash128& key, KernelCache& cache) {
  const std::optional<std::vector<std::byte>> bytes = cache.get(key);
  if (!bytes) return {};
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  try {
    if (text.starts_with(kHeader)) {
      OptList opts = parse_opts(text.substr(kHeader.size()));
      for (const Opt& opt : opts) kernel = apply_opt(kernel, opt);
      return opts;
    }
  } catch (const Error&) {
    cache.remove(key);
    return {};
  }
  cache.remove(key);
  return {};
}

void remember(const Hash128& key, const OptList& opts, KernelCache& cache) {
  const std::string text = std::string(kHeader) + print(opts);
  cache.put(key, std::as_bytes(std::span(text)));
}

std::mutex& search_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}
SearchResult& last_result() {
  static auto& result = *new SearchResult;
  return result;
}

SearchResult run_search(UOp ast, UOp kernel, std::string_view name, const KernelSearch& search,
                        const KernelArguments& arguments) {
  CandidateTimer timer(ast, search.device, arguments, search.compile, search.compile_threads);
  SearchProgressBar bar(name, [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  });
  const bool is_terminal = isatty(STDERR_FILENO) != 0;
  const uint64_t begin = now_ns();
  SearchCalls calls{
      .time = [&](const OptList& opts) { return timer.time(opts); },
      .prepare = [&](std::span<const OptList> lists) { timer.prepare(lists); },
      .is_over = [&] { return double(now_ns() - begin) * 1e-9 > double(config().beam_seconds); },
  };
  if (is_terminal) calls.progress = [&](const SearchProgress& at) { bar.show(at); };
  SearchResult result = search_opts(kernel, search.target, search.width, calls);
  if (is_terminal || config().debug >= 2) bar.finish(result);
  return result;
}

}  // namespace

OptList searched_opts(UOp ast, std::string_view name, const KernelSearch& search,
                      KernelCache& cache) {
  const std::lock_guard lock(search_mutex());
  const Graph copy = own(ast);
  const UOp kernel = mark_parallel_loops(gate_loads(copy.root));
  const Hash128 key = key_of(ast, search);
  if (std::optional<OptList> found = remembered(kernel, key, cache)) return *found;
  const auto arguments = arguments_for(ast, memory_of_machine() / kMemoryShare);
  if (!arguments) return choose_opts(kernel, search.target);
  try {
    last_result() = run_search(ast, kernel, name, search, *arguments);
  } catch (const DeviceError&) {  // no memory
    return choose_opts(kernel, search.target);
  }
  if (last_result().seconds) remember(key, last_result().opts, cache);
  return last_result().opts;
}

SearchResult last_search() {
  const std::lock_guard lock(search_mutex());
  return last_result();
}

int set_beam(int width) {
  if (width < 0 || width > kMostBeam) {
    throw Error(fmt::format("[set_beam] {} is not from 0 to {}", width, kMostBeam));
  }
  return std::exchange(config().beam, width);
}

}  // namespace weft
