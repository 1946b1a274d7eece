// The beam search, with times that a function makes up.
#include "codegen/opt/search_opts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/hash.h"
#include "codegen/gate_loads.h"
#include "codegen/opt/choose_opts.h"
#include "codegen/opt/loops.h"
#include "codegen/opt/opt.h"
#include "codegen/opt/opt_actions.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/parse.h"
#include "ir/spec.h"
#include "schedule/schedule_cache.h"
#include "tests/unit/tensor_helpers.h"
#include "weft/tensor.h"

namespace weft {
namespace {

// The one kernel of a tensor, its parallel loops marked. Sizes that differ from those of an earlier
// one would become variables.
UOp kernel_of(Arena& arena, const Tensor& tensor) {
  clear_schedule_cache();
  return mark_parallel_loops(gate_loads(parse(arena, tensor.schedule().at(0).graph)));
}
Tensor matmul() { return test::counted({64, 64}).matmul(test::counted({64, 64})); }

std::string sorted_text(OptList opts) {
  std::ranges::sort(opts, {}, [](const Opt& o) { return print({&o, 1}); });
  return print(opts);
}

// Each of the planted ones makes it faster, everything else a little slower.
double planted_cost(const OptList& opts, const OptList& planted) {
  double seconds = 1e-3;
  std::set<std::string> met;
  for (const Opt& o : opts) {
    const bool is_planted = std::ranges::find(planted, o) != planted.end();
    seconds *= is_planted && met.insert(print({&o, 1})).second ? 0.7 : 1.05;
  }
  return seconds;
}

// A number that looks random, from 1 to 2 ms.
double hashed_cost(const OptList& opts, uint64_t seed) {
  return 1e-3 * (1 + double(mix(hash_bytes(print(opts)), seed) % 1000) / 1000);
}

TEST(SearchOpts, finds_a_planted_list) {
  Arena arena;
  const UOp kernel = kernel_of(arena, matmul());
  const Target target{.name = "test"};
  for (const char* text : {"UNROLL(2, 8) UPCAST(0, 4) VECTOR(1, 32)", "GROUP(2, 4) TILE(0, 16)",
                           "STAGE(1, 0) THREAD(1, 4)"}) {
    const OptList planted = parse_opts(text);
    const SearchCalls calls{.time = [&](const OptList& opts) -> std::optional<double> {
      return planted_cost(opts, planted);
    }};
    const SearchResult found = search_opts(kernel, target, 4, calls);
    EXPECT_EQ(sorted_text(found.opts), text);
    EXPECT_EQ(found.seconds, planted_cost(planted, planted));
    EXPECT_EQ(found.chosen_seconds, planted_cost(choose_opts(kernel, target), planted));
  }
}

TEST(SearchOpts, changes_amounts_of_what_was_chosen) {
  Arena arena;
  const UOp kernel = kernel_of(arena, matmul());
  const Target target{.name = "test"};
  const OptList chosen = choose_opts(kernel, target);
  ASSERT_GT(chosen.size(), 2U);
  OptList better = chosen;
  const auto at = std::ranges::find(better, OptKind::kUpcast, &Opt::kind);
  ASSERT_NE(at, better.end());
  at->amount = 2;
  const SearchCalls calls{.time = [&](const OptList& opts) -> std::optional<double> {
    return opts == better ? 1e-3 : 2e-3;
  }};
  EXPECT_EQ(search_opts(kernel, target, 1, calls).opts, better);
}

TEST(SearchOpts, times_only_what_applies) {
  Arena arena;
  const Tensor x = test::counted({40, 72});
  const Target target{.name = "test", .cores = 4};
  for (const Tensor& tensor : {matmul(), x + 1, x.permute({1, 0}).clone(), x.sum({{0}}),
                               x / x.sum({{1}}, true), x.at({Slice{0, 39}}) * 2}) {
    const UOp kernel = kernel_of(arena, tensor);
    for (uint64_t seed = 0; seed < 3; seed++) {
      std::map<std::string, size_t> timed;
      const SearchCalls calls{.time = [&](const OptList& opts) -> std::optional<double> {
        UOp at = kernel;
        for (const Opt& opt : opts) at = apply_opt(at, opt);  // throws where it does not
        verify(at, Stage::kKernel);
        timed[print(opts)]++;
        if (hashed_cost(opts, seed + 7) < 1.1e-3) return std::nullopt;  // does not compile
        return hashed_cost(opts, seed);
      }};
      const SearchResult found = search_opts(kernel, target, 2, calls, {.rounds = 3});
      EXPECT_TRUE(timed.contains(print(found.opts)));
      EXPECT_GT(timed.size(), 20U);
      ASSERT_TRUE(found.seconds);
      EXPECT_LE(*found.seconds, found.chosen_seconds.value_or(1));
      size_t total = 0;
      for (const auto& [text, times] : timed) total += times;
      EXPECT_EQ(found.timed, total);
    }
  }
}

TEST(SearchOpts, answers_the_same_for_the_same_times) {
  std::set<std::string> answers;
  for (int i = 0; i < 3; i++) {
    Arena arena;
    const UOp kernel = kernel_of(arena, matmul());
    const SearchCalls calls{
        .time = [](const OptList& opts) -> std::optional<double> { return hashed_cost(opts, 5); }};
    answers.insert(print(search_opts(kernel, Target{.name = "test"}, 3, calls).opts));
  }
  EXPECT_EQ(answers.size(), 1U);
}

TEST(SearchOpts, times_equal_kernels_once) {
  Arena arena;
  const UOp kernel = kernel_of(arena, test::counted({64, 64}).permute({1, 0}).clone());
  std::set<std::string> timed;
  const SearchCalls calls{.time = [&](const OptList& opts) -> std::optional<double> {
    timed.insert(print(opts));
    return 1e-3 / double(1 + std::ranges::count(opts, OptKind::kUpcast, &Opt::kind));
  }};
  search_opts(kernel, Target{.name = "test"}, 8, calls, {.rounds = 2});
  const std::string_view one = "UPCAST(0, 2) UPCAST(1, 2)", other = "UPCAST(1, 2) UPCAST(0, 2)";
  EXPECT_EQ(timed.count(std::string(one)) + timed.count(std::string(other)), 1U);
}

TEST(SearchOpts, keeps_what_was_chosen_unless_it_is_beaten) {
  Arena arena;
  const UOp kernel = kernel_of(arena, matmul());
  const Target target{.name = "test"};
  const OptList chosen = choose_opts(kernel, target);
  const SearchCalls calls{.time = [&](const OptList& opts) -> std::optional<double> {
    return opts == chosen ? 1e-3 : 0.99e-3;
  }};
  EXPECT_EQ(search_opts(kernel, target, 2, calls).opts, chosen);
}

TEST(SearchOpts, keeps_its_bounds) {
  Arena arena;
  const UOp kernel = kernel_of(arena, matmul());
  const Target target{.name = "test"};
  size_t timed = 0;
  SearchCalls calls{.time = [&](const OptList&) -> std::optional<double> {
    return 1e-3 / double(++timed);  // always better
  }};
  std::map<size_t, size_t> most;
  calls.progress = [&](const SearchProgress& at) {
    most[at.round] = std::max(most[at.round], at.count);
  };
  search_opts(kernel, target, 2, calls, {.rounds = 2, .candidates = 10, .worth = 0});
  for (const auto& [round, count] : most) EXPECT_LE(count, 10U);
  EXPECT_EQ(most.size(), 2U * (1 + 2) + 1);  // what was chosen is looked at first
  timed = 0;
  search_opts(kernel, target, 2, calls, {.nodes = 1, .worth = 0});
  EXPECT_EQ(timed, 14U);  // the two starts, and again
  timed = 0;
  search_opts(kernel, target, 2, calls, {.worth = 1});
  EXPECT_EQ(timed, 1U);  // too short to be worth it
}

TEST(SearchOpts, ends_when_it_is_told_to) {
  Arena arena;
  const UOp kernel = kernel_of(arena, matmul());
  const Target target{.name = "test"};
  size_t timed = 0;
  const SearchCalls calls{
      .time = [&](const OptList&) -> std::optional<double> { return 1e-3 / double(++timed); },
      .is_over = [&] { return timed >= 5; },
  };
  search_opts(kernel, target, 2, calls);
  EXPECT_LE(timed, 5U + 4 * 3);  // and the best again
  const SearchCalls none{
      .time = [](const OptList&) -> std::optional<double> { return 1e-3; },
      .is_over = [] { return true; },
  };
  const SearchResult found = search_opts(kernel, target, 2, none);
  EXPECT_EQ(found.opts, choose_opts(kernel, target));
  EXPECT_FALSE(found.seconds);
}

TEST(SearchOpts, prepares_what_it_times) {
  Arena arena;
  const UOp kernel = kernel_of(arena, matmul());
  std::set<std::string> prepared;
  size_t alone = 0;
  const SearchCalls calls{
      .time = [&](const OptList& opts) -> std::optional<double> {
        alone += prepared.contains(print(opts)) ? 0 : 1;
        return hashed_cost(opts, 1);
      },
      .prepare =
          [&](std::span<const OptList> lists) {
            prepared.clear();
            for (const OptList& opts : lists) prepared.insert(print(opts));
          },
  };
  search_opts(kernel, Target{.name = "test"}, 2, calls);
  EXPECT_LE(alone, 8U);  // batches of one
}

TEST(NextOpts, all_apply) {
  Arena arena;
  UOp kernel = kernel_of(arena, matmul());
  for (int step = 0; step < 4; step++) {
    const std::vector<Opt> opts = next_opts(kernel, Target{.name = "test", .cores = 4});
    ASSERT_FALSE(opts.empty());
    std::set<std::string> texts;
    for (const Opt& opt : opts) {
      EXPECT_EQ(why_not(kernel, opt), "");
      EXPECT_TRUE(texts.insert(print({&opt, 1})).second);
    }
    kernel = apply_opt(kernel, opts[opts.size() / 2]);
  }
}

}  // namespace
}  // namespace weft
