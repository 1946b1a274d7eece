// Writes whose order matters, shared out among owners of elements, leave what they leave in order.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/lower.h"
#include "codegen/opt/choose_opts.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "render/render.h"
#include "runtime/cuda/compile_cuda.h"

namespace weft {
namespace {

constexpr int64_t kRows = 40, kWrites = 500;

struct Case {
  const char* name;
  int64_t columns;
  enum class How : uint8_t { kAdd, kMax, kLast } how;
  int64_t stride = 0;  // of rows, where they overlap; 0: as many as there are columns
  int64_t row() const { return stride == 0 ? columns : stride; }
};

using How = Case::How;
constexpr Case kCases[] = {
    {"one_column", 1, How::kAdd},      {"columns", 16, How::kAdd},
    {"odd_columns", 7, How::kAdd},     {"last_wins", 12, How::kLast},
    {"largest", 32, How::kMax},        {"rows_that_overlap", 8, How::kAdd, 3},
    {"all_in_one", 24, How::kLast, 1},
};

// out[place[r]*row + c] = out[...] + in[r, c], for the r whose place is one.
UOp kernel(Arena& arena, const Case& c) {
  const UOp r = range(arena, kWrites, 0), column = range(arena, c.columns, 1);
  const int64_t size = (kRows - 1) * c.row() + c.columns;
  const UOp out = define_global(arena, dtypes::float32, size, 0),
            place = define_global(arena, dtypes::int32, kWrites, 1),
            in = define_global(arena, dtypes::float32, kWrites * c.columns, 2);
  const UOp told = cast(load(index(place, r)), dtypes::index);
  const UOp clamped = max(min(told, index_const(arena, kRows - 1)), index_const(arena, 0));
  const UOp at = clamped * c.row() + column;
  const UOp old = load(index(after(out, std::vector{r, column}), at));
  const UOp read = load(index(in, r * c.columns + column));
  const UOp value = c.how == How::kAdd ? old + read : c.how == How::kMax ? max(old, read) : read;
  const UOp gate = (index_const(arena, -1) < told) & (told < kRows);
  return sink(end(index(out, at).assign(value, gate), std::vector{r, column}));
}

Bindings bindings_of(const Case& c) {
  std::vector<int64_t> places;
  std::vector<double> in;
  for (int64_t i = 0; i < kWrites; i++) places.push_back((i * i * 7 + i / 3) % (kRows + 4) - 2);
  for (int64_t i = 0; i < kWrites * c.columns; i++)
    in.push_back(double((i * 37) % 101 - 50) *
                 (i % 3 == 0 ? 1e-4 : 1.3));  // sums tell orders apart
  Bindings out;
  out.buffers[0] = Array::zeros(dtypes::float32, {(kRows - 1) * c.row() + c.columns});
  out.buffers[1] = Array::of_ints(dtypes::int32, {kWrites}, places);
  out.buffers[2] = Array::of_doubles(dtypes::float32, {kWrites * c.columns}, in);
  return out;
}

Target target_with(size_t groups) {
  Target out = cuda_target();
  out.groups.threads = 1024;
  out.groups.together = groups;
  out.narrow_indices = true;
  return out;
}

std::vector<uint64_t> run(UOp ast, const Target& target, const OptList& opts, const Case& c) {
  Bindings b = bindings_of(c);
  evaluate(lower(ast, target, opts), b);
  return b.buffers[0].data;
}

class ShardedWrites : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, ShardedWrites, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(ShardedWrites, AsInOrder) {
  const Case& c = GetParam();
  Arena arena;
  const UOp ast = kernel(arena, c);
  const std::vector<uint64_t> wanted = run(ast, target_with(1), {}, c);
  for (const char* opts : {"SHARD(0, 2)", "SHARD(0, 16)", "SHARD(0, 31)", "SHARD(0, 8) LOCAL(2, 4)",
                           "SHARD(0, 8) TILE(2, 4)", "SHARD(0, 8) THREAD(2, 1)"}) {
    const Target target = std::string(opts).ends_with("THREAD(2, 1)") ? c_target() : target_with(1);
    EXPECT_EQ(run(ast, target, parse_opts(opts), c), wanted) << opts;
  }
  for (const size_t groups : {2, 16, 1024}) {
    const OptList opts = choose_opts(ast, target_with(groups));
    ASSERT_FALSE(opts.empty());
    EXPECT_EQ(opts[0].kind, OptKind::kShard) << print(opts);
    EXPECT_EQ(run(ast, target_with(groups), opts, c), wanted) << print(opts);
  }
}

TEST(ShardedWritesOfRows, HaveOneOwner) {
  Arena arena;
  const Case c{"", 16, How::kAdd};
  const UOp linear =
      lower(kernel(arena, c), target_with(16), parse_opts("SHARD(0, 16) VECTOR(1, 4)"));
  // A row is in one piece: vectors of it stay vectors.
  EXPECT_NE(render_cuda(linear, "kernel").find("f32x4"), std::string::npos);
}

TEST(ShardedWritesOf, SayWhyNot) {
  Arena arena;
  const auto reason = [](UOp sink, const char* opt) {
    return why_not(apply_opts(sink, {}), parse_opts(opt)[0]);
  };
  const UOp ast = kernel(arena, {"", 16, How::kAdd});
  EXPECT_EQ(reason(ast, "SHARD(0, 4)"), "");
  EXPECT_EQ(reason(ast, "SHARD(0, 1)"), "there are 2 to 65536 owners");
  EXPECT_EQ(reason(ast, "SHARD(1, 4)"), "its iterations do not depend on their order");
  const UOp sharded = apply_opts(ast, parse_opts("SHARD(0, 4)"));
  EXPECT_EQ(why_not(sharded, parse_opts("LOCAL(2, 4)")[0]), "");
  EXPECT_EQ(why_not(sharded, parse_opts("VECTOR(2, 4)")[0]), "its places share what they write to");
  EXPECT_EQ(why_not(sharded, parse_opts("UPCAST(2, 4)")[0]), "its places share what they write to");

  // a[i + 1] = a[i]: another owner's
  const UOp r = range(arena, 8, 0), memory = define_global(arena, dtypes::float32, 9, 0);
  const UOp shifted = load(index(after(memory, std::vector{r}), r));
  EXPECT_EQ(reason(sink(end(index(memory, r + 1).assign(shifted), r)), "SHARD(0, 4)"),
            "it reads other elements of what it writes");
}

class ShardedWritesCompile : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(All, ShardedWritesCompile, testing::Values(80, 90),
                         [](const auto& test) { return fmt::format("sm_{}", test.param); });

TEST_P(ShardedWritesCompile, EveryCase) {
  if (!cuda_compiler_missing().empty()) GTEST_SKIP() << cuda_compiler_missing();
  std::string text;
  for (const Case& c : kCases) {
    Arena arena;
    const UOp ast = kernel(arena, c);
    const UOp linear = lower(ast, target_with(1024), choose_opts(ast, target_with(1024)));
    text += fmt::format("namespace {0} {{\n{1}}}\n", c.name, render_cuda(linear, c.name));
  }
  EXPECT_FALSE(compile_cuda(text, "shards", GetParam()).empty());
}

}  // namespace
}  // namespace weft
