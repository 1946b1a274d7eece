// Memory that reads as zeros, threads that compile, and a clock.
#include "runtime/time_candidates.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/address_room.h"
#include "base/clock.h"
#include "base/ref.h"
#include "codegen/gate_loads.h"
#include "codegen/opt/opt.h"
#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/walk.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "runtime/program.h"

namespace weft {
namespace {

// A candidate is run until so much time has passed, or so often.
constexpr double kSecondsEach = 0.008;
constexpr size_t kFewestRuns = 3, kMostRuns = 200;
// What takes so many times the best is not run again; short runs are too noisy to say.
constexpr double kHopeless = 2.5, kShortSeconds = 2e-4;

// ---- arguments

struct Variable {
  std::string name;
  UOp node;
};

std::vector<Variable> variables_of(UOp ast) {
  std::map<std::string, UOp> found;
  for (UOp n : toposort(ast)) {
    if (n.is(Op::VARIABLE)) found.emplace(n.name(), n);
  }
  std::vector<Variable> out;
  out.reserve(found.size());
  for (const auto& [name, node] : found) out.push_back({name, node});
  return out;
}

bool reads_memory(UOp index) {
  const std::vector<UOp> below = toposort(index);
  return std::ranges::any_of(below, [](UOp n) { return n.is(Op::LOAD); });
}

// Bytes of each argument of a kernel whose sizes are constant: as many as it says, and as many as
// its accesses without a gate reach. None when that has no bound.
std::optional<std::vector<size_t>> bytes_needed(UOp ast, int64_t most_bytes) {
  std::map<int64_t, double> bytes;
  for (UOp n : toposort(ast)) {
    if (n.is(Op::DEFINE_GLOBAL)) {
      const int64_t count = n.src_count() == 0 ? 1 : bounds(n.src(0)).hi;
      double& needed = bytes[n.number()];
      needed = std::max(needed, double(count) * double(n.dtype().item_bytes()));
    }
    const bool is_load = n.is(Op::LOAD), is_store = n.is(Op::STORE) && !is_register(n.src(0));
    if ((!is_load && !is_store) || n.src_count() > (is_load ? 1U : 2U)) continue;
    UOp pointer = n.src(0);
    while (!pointer.is(Op::INDEX) && pointer.src_count() > 0) pointer = pointer.src(0);
    const UOp base = place_of(n.src(0)).base;
    if (!pointer.is(Op::INDEX) || !base.is(Op::DEFINE_GLOBAL)) continue;
    // Whatever data may be, the index is in bounds: for zeros, too.
    if (reads_memory(pointer.src(1))) continue;
    const Interval at = bounds(pointer.src(1));
    if (at.lo < 0) return {};
    double& needed = bytes[base.number()];
    needed = std::max(needed, (double(at.hi) + 1) * double(base.dtype().item_bytes()));
  }
  double total = 0;
  std::vector<size_t> out;
  for (const auto& [number, needed] : bytes) {
    total += needed;
    if (total > double(most_bytes)) return {};
    out.resize(size_t(number) + 1);
    out[size_t(number)] = size_t(needed);
  }
  return out;
}

// ---- memory

Ref<Buffer> zeroed(Device& device, size_t bytes) {
  Ref<Buffer> buffer = Buffer::make(device, std::max<size_t>(bytes, 1));
  buffer->copy_in(std::vector<std::byte>(buffer->bytes()));
  return buffer;
}

}  // namespace

std::optional<KernelArguments> arguments_for(UOp ast, int64_t most_bytes) {
  const Graph copy = own(ast);
  const UOp kernel = gate_loads(copy.root);
  const std::vector<Variable> variables = variables_of(kernel);
  for (int shift = 0; shift < 63; shift++) {
    KernelArguments out;
    std::vector<std::pair<UOp, UOp>> values;
    bool is_least = true;
    for (const Variable& v : variables) {
      const Interval range = bounds(v.node);
      const int64_t value = std::max(range.lo, range.hi >> shift);
      is_least = is_least && value == range.lo;
      out.variables.push_back(value);
      const uint64_t bits = uint64_t(value);
      values.emplace_back(v.node, copy.arena->make(Op::CONST, v.node.dtype(), {}, Arg::bits(bits)));
    }
    const UOp bound = values.empty() ? kernel : substitute(kernel, values);
    if (const auto bytes = bytes_needed(bound, most_bytes)) {
      out.bytes = *bytes;
      return out;
    }
    if (is_least) break;
  }
  return {};
}

CandidateTimer::CandidateTimer(UOp ast, Device& device, const KernelArguments& arguments,
                               Compile compile, size_t compile_threads)
    : device_(device), compile_(std::move(compile)), variables_(arguments.variables) {
  for (size_t i = 0; i < std::max<size_t>(compile_threads, 1); i++) asts_.push_back(own(ast));
  for (const size_t bytes : arguments.bytes) {
    buffers_.push_back(zeroed(device, bytes));
    arguments_.push_back(buffers_.back().get());
  }
}

void CandidateTimer::prepare(std::span<const OptList> lists) {
  prepared_.clear();
  std::vector<std::shared_ptr<Program>> programs(lists.size());
  std::atomic<size_t> next = 0;
  const auto work = [&](size_t thread) {
    for (size_t i = next++; i < lists.size(); i = next++) {
      programs[i] = compiled(asts_[thread].root, lists[i]);
    }
  };
  std::vector<std::thread> helpers;
  const size_t threads = std::min(asts_.size(), lists.size());
  // When the system has no more threads, those that there are do it.
  bool can_start = threads < 2 || has_room_for_threads(threads - 1);
  for (size_t t = 1; can_start && t < threads; t++) {
    try {
      helpers.emplace_back(work, t);
    } catch (const std::exception&) {  // no thread, or no memory for one
      can_start = false;
    }
  }
  work(0);
  for (std::thread& helper : helpers) helper.join();
  for (size_t i = 0; i < lists.size(); i++) prepared_[print(lists[i])] = std::move(programs[i]);
}

std::shared_ptr<Program> CandidateTimer::compiled(UOp ast, const OptList& opts) const {
  try {
    return compile_(ast, opts);
  } catch (const std::exception&) {  // whatever it is: this list is not for this kernel
    return nullptr;
  }
}

std::optional<double> CandidateTimer::time(const OptList& opts) {
  const auto at = prepared_.find(print(opts));
  const std::shared_ptr<Program> program =
      at == prepared_.end() ? compiled(asts_[0].root, opts) : at->second;
  if (!program) return std::nullopt;
  double least = run(*program), total = least;
  for (size_t runs = 1; runs < kMostRuns && (runs < kFewestRuns || total < kSecondsEach); runs++) {
    if (best_ && least > kShortSeconds && least > kHopeless * *best_) break;
    const double seconds = run(*program);
    least = std::min(least, seconds);
    total += seconds;
  }
  if (!best_ || least < *best_) best_ = least;
  return least;
}

double CandidateTimer::run(Program& program) {
  device_.synchronize();
  const uint64_t begin = now_ns();
  program.run(arguments_, variables_);
  device_.synchronize();
  return double(now_ns() - begin) * 1e-9;
}

}  // namespace weft
