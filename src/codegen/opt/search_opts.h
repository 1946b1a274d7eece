// Optimisations by measuring: a beam search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/node.h"

namespace weft {

struct SearchProgress {
  size_t round;                // from 1
  size_t done, count;          // candidates of this round
  std::optional<double> best;  // seconds
};

// What the search asks of whoever can run the kernel.
struct SearchCalls {
  // The seconds of one run; none when it does not compile or takes too long.
  std::function<std::optional<double>(const OptList&)> time;
  // Says which are timed next, one after the other: they may be compiled at once. May be empty, as
  // the ones below.
  std::function<void(std::span<const OptList>)> prepare{};
  std::function<void(const SearchProgress&)> progress{};
  // Whether to come to an end with what is known.
  std::function<bool()> is_over{};
};

struct SearchBounds {
  size_t rounds = 16;       // of each of the two starts
  size_t candidates = 320;  // that are timed in one round
  int64_t nodes = 6000;     // of a kernel, once copies for registers and without loops are made
  int64_t local_bytes = 8 << 20;
  double work = 2;      // that is done, of what it is without optimisations
  double gain = 0.03;   // of the best time: a round that brings less is the last
  double worth = 2e-6;  // seconds: what takes less is left to choose_opts
  // Seconds of what choose_opts says, past which the second start would take too long to time.
  double slow = 0.02;
};

struct SearchResult {
  OptList opts;                            // each applies to the kernel
  std::optional<double> seconds{};         // none when nothing could be timed
  std::optional<double> chosen_seconds{};  // of what choose_opts says: never less than `seconds`
  size_t timed = 0;                        // candidates
};

// Starts from what choose_opts says, then from no optimisation at all; each round takes the best
// `width` kernels so far of this start and tries every optimisation that could come next
// (opt_actions.h). Kernels that are equal but for the numbers of their loops are timed once. The
// best ones of all are timed again at the end. What it answers depends on the timings alone. The
// kernel's parallel loops are marked (loops.h).
SearchResult search_opts(UOp kernel, const Target& target, size_t width, const SearchCalls& calls,
                         const SearchBounds& bounds = {});

}  // namespace weft
