// bench_runtime REPEATS: what lies beneath a kernel on the CPU; prints one JSON object with medians
// in microseconds: LLVM loaded, a small kernel compiled by LLVM and by the C compiler, object code
// loaded from memory and from disk, an empty loop on all cores; and the least mean of a batch of
// warm realises of one small kernel.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/child_process.h"
#include "base/clock.h"
#include "base/hash.h"
#include "runtime/cpu/compile_c.h"
#include "runtime/cpu/llvm_library.h"
#include "runtime/cpu/object_code.h"
#include "runtime/cpu/parallel.h"
#include "runtime/kernel_cache.h"
#include "tests/unit/compile_helpers.h"
#include "weft/dtype.h"
#include "weft/tensor.h"

namespace {

using namespace weft;

template <class Call>
double median_us(int repeats, Call&& call) {
  std::vector<double> times;
  for (int i = 0; i < repeats; i++) {
    const uint64_t start = now_ns();
    call();
    times.push_back(double(now_ns() - start) * 1e-3);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

nlohmann::json measure_compilers(int repeats) {
  nlohmann::json out;
  const TempFolder folder;
  KernelCache cache(folder.path() + "/cache", int64_t(1) << 30);
  std::vector<std::byte> object;
  if (has_llvm()) {
    // The first one loads the library.
    const double first = median_us(1, [&] { object = compile_llvm(test::kDoubleInLlvm, "twice"); });
    out["llvm_compile"] =
        median_us(repeats, [&] { object = compile_llvm(test::kDoubleInLlvm, "twice"); });
    out["llvm_load"] = first - out["llvm_compile"].get<double>();
  }
  if (has_c_compiler()) {
    out["c_compile"] =
        median_us(std::min(repeats, 20), [&] { object = compile_c(test::kDoubleInC, "twice"); });
  }
  if (object.empty()) return out;
  cache.put(Hash128{1, 2}, object);
  out["object_bytes"] = object.size();
  out["object_load"] = median_us(repeats, [&] { const ObjectCode code(object); });
  out["object_load_from_disk"] =
      median_us(repeats, [&] { const ObjectCode code(*cache.get(Hash128{1, 2})); });
  return out;
}

nlohmann::json measure_loops(int repeats) {
  nlohmann::json out;
  out["threads"] = parallel_threads();
  const auto nothing = [](const void*, int64_t, int64_t) {};
  parallel_for(1000, nothing, nullptr);
  out["parallel_for"] = median_us(10 * repeats, [&] { parallel_for(1000, nothing, nullptr); });
  return out;
}

nlohmann::json measure_realize(const char* device, int repeats) {
  const Tensor a = Tensor::full({16}, 1.0, dtypes::float32, device).realize();
  const Tensor b = Tensor::full({16}, 2.0, dtypes::float32, device).realize();
  const auto run = [&] { (a + b).realize(); };
  run();
  constexpr int batch = 200;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeats; i++) {
    const uint64_t start = now_ns();
    for (int j = 0; j < batch; j++) run();
    least = std::min(least, double(now_ns() - start) * 1e-3 / batch);
  }
  return least;
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::stoi(argv[1]) : 50;
  nlohmann::json out = measure_compilers(repeats);
  out.update(measure_loops(repeats));
  for (const char* device : {"NULL", "CPU"}) {
    try {
      out[fmt::format("realize_{}", device)] = measure_realize(device, repeats);
    } catch (const std::exception& e) {
      fmt::print(stderr, "{}\n", e.what());
    }
  }
  fmt::print("{}\n", out.dump(2));
}
