// bench_lazy COUNT REPEATS: what a lazy a.add(b) costs; prints one JSON object with the median CPU
// times of the repeats and the bytes of a live result. Nothing runs.
#include <algorithm>
#include <cstddef>
#include <ctime>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <malloc.h>
#include <nlohmann/json.hpp>
#include <time.h>

#include "weft/dtype.h"
#include "weft/tensor.h"

namespace {

using weft::Tensor;

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

size_t bytes_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

struct Times {
  std::vector<double> kept, freed, dropped, number, chain;
};

// Each in nanoseconds per op.
nlohmann::json measure(size_t count, int repeats) {
  const Tensor a = Tensor::empty({4}, weft::dtypes::float32, "NULL").realize();
  const Tensor b = Tensor::empty({4}, weft::dtypes::float32, "NULL").realize();
  Times times;
  size_t bytes = 0;
  const auto time = [&](std::vector<double>& to, auto&& f) {
    const double start = cpu_seconds();
    f();
    to.push_back((cpu_seconds() - start) / double(count) * 1e9);
  };
  std::vector<Tensor> live;
  live.reserve(count);  // the handles are not counted
  for (int i = 0; i < repeats; i++) {
    const size_t before = bytes_in_use();
    time(times.kept, [&] {
      for (size_t n = 0; n < count; n++) live.push_back(a.add(b));
    });
    bytes = bytes_in_use() - before;
    time(times.freed, [&] { live.clear(); });
    time(times.dropped, [&] {
      for (size_t n = 0; n < count; n++) a.add(b);
    });
    time(times.number, [&] {
      for (size_t n = 0; n < count; n++) a.add(1.0);
    });
    time(times.chain, [&] {
      Tensor x = a;
      for (size_t n = 0; n < count; n++) x = x.add(b);
      live.push_back(x);
    });
    live.clear();
  }
  return {{"count", count},
          {"kept_ns", median(times.kept)},
          {"free_ns", median(times.freed)},
          {"dropped_ns", median(times.dropped)},
          {"number_ns", median(times.number)},
          {"chain_ns", median(times.chain)},
          {"bytes", double(bytes) / double(count)},
          {"handle_bytes", sizeof(Tensor)}};
}

}  // namespace

int main(int argc, char** argv) {
  const size_t count = argc > 1 ? std::stoul(argv[1]) : 100'000;
  const int repeats = argc > 2 ? std::stoi(argv[2]) : 5;
  fmt::print("{}\n", measure(count, repeats).dump());
}
