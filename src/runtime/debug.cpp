// Lines of WEFT_DEBUG.
#include "runtime/debug.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "codegen/gate_loads.h"
#include "codegen/opt/choose_opts.h"
#include "codegen/opt/opt.h"
#include "ir/print.h"
#include "rewrite/trace.h"

namespace weft {
namespace {

std::string time_text(uint64_t nanoseconds) {
  const auto t = double(nanoseconds);
  if (t < 1e6) return fmt::format("{:8.2f} us", t / 1e3);
  return t < 1e9 ? fmt::format("{:8.2f} ms", t / 1e6) : fmt::format("{:8.2f} s ", t / 1e9);
}

// Of the machine's peak; on a terminal green where it is near, red where it is far.
std::string share_text(double share) {
  static const bool kIsTerminal = isatty(STDERR_FILENO) != 0;
  std::string text = fmt::format("{:3.0f}%", 100 * share);
  if (!kIsTerminal) return text;
  return fmt::format("\x1b[{}m{}\x1b[0m", share >= 0.5 ? 32 : share >= 0.15 ? 33 : 31, text);
}

// Of each pass the graph after it, if it is another one, what it decided and what else it made.
std::string text_of_passes(const Trace& trace) {
  std::string out;
  for (const TracePass& pass : trace.passes) {
    const bool is_same = pass.after == pass.before && &pass != &trace.passes.front();
    out += fmt::format("after {}:\n{}", pass.name, is_same ? "  the same\n" : print(pass.after));
    for (const Decision& d : pass.decisions) out += fmt::format("  {}\n", d.text());
    out += pass.notes;
  }
  return out;
}

// Of all that was shown, for the end of the process.
struct Totals {
  std::mutex mutex;
  uint64_t kernels = 0, nanoseconds = 0, bytes = 0, compiled = 0, compile_nanoseconds = 0,
           found = 0;
};
void show_totals();
Totals& totals() {
  static auto& instance = *[] {
    std::atexit(show_totals);
    return new Totals;
  }();
  return instance;
}
void show_totals() {
  Totals& t = totals();
  const std::lock_guard lock(t.mutex);
  show(fmt::format("total   {} {} kernels run, {:.1f} MB; {} compiled in {}, {} found in a cache",
                   time_text(t.nanoseconds), t.kernels, double(t.bytes) / 1e6, t.compiled,
                   time_text(t.compile_nanoseconds), t.found));
}

}  // namespace

void show(std::string_view text) {
  std::string out = fmt::format("weft: {}", text);
  if (out.back() != '\n') out += '\n';
  std::fwrite(out.data(), 1, out.size(), stderr);
}

void show_device(std::string_view name, std::string_view description) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> shown;
  const std::lock_guard lock(mutex);
  if (!shown.emplace(name).second) return;
  show(fmt::format("device {}{}{}", name, description.empty() ? "" : ": ", description));
}

void show_run(const KernelRun& run) {
  {
    Totals& t = totals();
    const std::lock_guard lock(t.mutex);
    t.kernels++;
    t.nanoseconds += run.nanoseconds;
    t.bytes += run.bytes;
  }
  const double ns = run.nanoseconds == 0 ? 1 : double(run.nanoseconds);
  show(fmt::format("run     {} {:8.2f} GFLOPS {:8.2f} GB/s {}  {} on {}: {}",
                   time_text(run.nanoseconds), double(run.flops) / ns, double(run.bytes) / ns,
                   share_text(run.least_nanoseconds / ns), run.name,
                   std::string(run.device) + (run.lines.empty() ? "" : " from " + run.lines),
                   run.operations));
}

void show_loaded(std::string_view name, std::string_view from, uint64_t nanoseconds) {
  {
    Totals& t = totals();
    const std::lock_guard lock(t.mutex);
    if (from == "loaded already" || from == "from the cache on disk" || from == "disk") {
      t.found++;
    } else {
      t.compiled++;
      t.compile_nanoseconds += nanoseconds;
    }
  }
  show(fmt::format("compile {}  {}: {}", time_text(nanoseconds), name, from));
}

void show_lowered(const LoweredKernel& k) {
  std::string out =
      fmt::format("kernel {} for {}\n{}\n", k.name, k.target.name, short_form(k.ast, 4000));
  const std::string opts =
      print(k.opts != nullptr ? *k.opts : choose_opts(gate_loads(k.ast), k.target));
  out += fmt::format("optimisations: {}\n", opts.empty() ? "none" : opts);
  if (shows(6)) out += text_of_passes(k.trace);
  if (shows(5)) out += fmt::format("list:\n{}", print(k.linear));
  if (shows(4)) out += fmt::format("source:\n{}", k.source);
  show(out);
}

void show_passes(const Trace& trace) {
  if (!trace.passes.empty()) show(text_of_passes(trace));
}

}  // namespace weft
