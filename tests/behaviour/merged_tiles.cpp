// Reductions that depend on each other, with products among them, in one loop over tiles: they give
// in the evaluator what they are, and their CUDA C goes through the compiler.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
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
#include "ir/op.h"
#include "render/render.h"
#include "runtime/cuda/compile_cuda.h"

namespace weft {
namespace {

// out[z, i, d] = sum over j of p[z, i, j] * v[z, j, d] / l[z, i], where
//   s = scale * sum over k of q[z, i, k] * key[z, j, k] (+ bias[i, j]), -inf past i if causal
//   p = exp(s - max over j of s), rounded;  l = sum over j of exp(s - max)
struct Case {
  const char* name;
  int64_t batch, rows, places, depth, columns;
  bool is_causal = false, has_bias = false, is_key_transposed = false;
  DType type = dtypes::bfloat16;
  bool is_computed = false;  // q is twice what is in memory
  bool has_more = false;     // a second output, twice the first
  bool are_heads = false;    // batches lie side by side in the rows of the output, in one loop
};

constexpr Case kCases[] = {
    {"deep", 1, 128, 64, 128, 64},
    {"wide", 1, 64, 192, 64, 128},
    {"batches", 2, 130, 64, 64, 64},
    {"causal", 1, 160, 192, 64, 64, true},
    {"edges_of_all", 1, 40, 72, 40, 24, true, true},
    {"transposed_keys", 1, 64, 128, 64, 64, false, false, true},
    {"half", 1, 64, 128, 64, 64, false, false, false, dtypes::float16},
    {"odd", 1, 37, 67, 33, 35, false, true},
    {"computed", 1, 64, 128, 64, 64, false, false, false, dtypes::bfloat16, true},
    {"two_outputs", 1, 64, 128, 64, 72, false, false, false, dtypes::bfloat16, false, true},
    {"heads", 2, 64, 128, 64, 64, true, false, false, dtypes::bfloat16, false, false, true},
};

constexpr double kScale = 0.125;

UOp kernel(Arena& arena, const Case& c) {
  const UOp all = range(arena, c.are_heads ? c.batch * c.columns : c.columns, 2);
  const UOp z = c.are_heads ? all / c.columns : range(arena, c.batch, 0),
            d = c.are_heads ? all % c.columns : all, i = range(arena, c.rows, 1);
  const auto global = [&](DType type, int64_t size, int64_t id) {
    return define_global(arena, type, size, id);
  };
  const UOp lowest = constant(arena, dtypes::float32, -std::numeric_limits<double>::infinity());
  const auto wide = [](UOp half) { return cast(half, dtypes::float32); };
  const auto scores = [&](UOp j, int64_t id) {
    const UOp k = range(arena, c.depth, id, AxisType::kReduce);
    UOp q =
        load(index(global(c.type, c.batch * c.rows * c.depth, 1), (z * c.rows + i) * c.depth + k));
    if (c.is_computed) q = cast(wide(q) * constant(arena, dtypes::float32, 2.0), c.type);
    const UOp at =
        c.is_key_transposed ? (z * c.depth + k) * c.places + j : (z * c.places + j) * c.depth + k;
    const UOp key = load(index(global(c.type, c.batch * c.places * c.depth, 2), at));
    UOp s = reduce(Op::ADD, wide(q) * wide(key), std::vector{k}) *
            constant(arena, dtypes::float32, kScale);
    if (c.has_bias)
      s = s + load(index(global(dtypes::float32, c.rows * c.places, 4), i * c.places + j));
    return c.is_causal ? where(i < j, lowest, s) : s;
  };
  const auto place = [&](int64_t id) { return range(arena, c.places, id, AxisType::kReduce); };
  const UOp j0 = place(3), j1 = place(4), j2 = place(5);
  const UOp most = reduce(Op::MAX, scores(j0, 6), std::vector{j0});
  const UOp total = reduce(Op::ADD, unary(Op::EXP, scores(j1, 7) - most), std::vector{j1});
  const UOp p = cast(unary(Op::EXP, scores(j2, 8) - most) / total, c.type);
  const UOp v = load(index(global(c.type, c.batch * c.places * c.columns, 3),
                           (z * c.places + j2) * c.columns + d));
  const UOp sum = reduce(Op::ADD, wide(p) * wide(v), std::vector{j2});
  const UOp at = c.are_heads ? i * (c.batch * c.columns) + all : (z * c.rows + i) * c.columns + d;
  const UOp out = index(global(dtypes::float32, c.batch * c.rows * c.columns, 0), at);
  const std::vector<UOp> loops = c.are_heads ? std::vector{i, all} : std::vector{z, i, d};
  const UOp first = end(out.assign(sum), loops);
  if (!c.has_more) return sink(first);
  const UOp more = index(global(dtypes::float32, c.batch * c.rows * c.columns, 5), out.src(1));
  return sink(first, end(more.assign(sum * 2.0), loops));
}

Array numbers(DType type, int64_t size, int64_t seed) {
  std::vector<double> out;
  for (int64_t i = 0; i < size; i++) {
    out.push_back(double((i * 37 + i / 7 * 5 + i / 64 * 3 + seed) % 11 - 5) / 4);
  }
  return Array::of_doubles(type, {size}, out);
}

Bindings bindings_of(const Case& c) {
  Bindings out;
  out.buffers[0] = Array::zeros(dtypes::float32, {c.batch * c.rows * c.columns});
  out.buffers[1] = numbers(c.type, c.batch * c.rows * c.depth, 1);
  out.buffers[2] = numbers(c.type, c.batch * c.places * c.depth, 2);
  out.buffers[3] = numbers(c.type, c.batch * c.places * c.columns, 3);
  out.buffers[4] = numbers(dtypes::float32, c.rows * c.places, 4);
  out.buffers[5] = Array::zeros(dtypes::float32, {c.batch * c.rows * c.columns});
  return out;
}

std::vector<double> expected(const Case& c, Bindings& b) {
  const auto q = b.buffers[1].doubles(), key = b.buffers[2].doubles(), v = b.buffers[3].doubles(),
             bias = b.buffers[4].doubles();
  std::vector<double> out(size_t(c.batch * c.rows * c.columns));
  for (int64_t row = 0; row < c.batch * c.rows; row++) {
    const int64_t z = row / c.rows, i = row % c.rows,
                  places = c.is_causal ? std::min(i + 1, c.places) : c.places;
    std::vector<double> p;
    for (int64_t j = 0; j < places; j++) {
      double s = 0;
      for (int64_t k = 0; k < c.depth; k++) {
        const int64_t at = c.is_key_transposed ? (z * c.depth + k) * c.places + j
                                               : (z * c.places + j) * c.depth + k;
        s += q[size_t(row * c.depth + k)] * key[size_t(at)] * (c.is_computed ? 2 : 1);
      }
      p.push_back(s * kScale + (c.has_bias ? bias[size_t(i * c.places + j)] : 0));
    }
    const double most = *std::ranges::max_element(p);
    double total = 0;
    for (double& x : p) total += x = std::exp(x - most);
    for (int64_t d = 0; d < c.columns; d++) {
      double sum = 0;
      for (int64_t j = 0; j < places; j++)
        sum += p[size_t(j)] * v[size_t((z * c.places + j) * c.columns + d)];
      out[size_t(c.are_heads ? (i * c.batch + z) * c.columns + d : row * c.columns + d)] =
          sum / total;
    }
  }
  return out;
}

enum class Boxes : bool { kNo, kYes };

Target tile_target(Boxes boxes) {
  Target out = cuda_target();
  out.groups.threads = 1024;
  out.groups.together = 8;
  out.narrow_indices = true;
  out.tensor.local_bytes = 227 << 10;
  out.tensor.most_columns = 256;
  out.tensor.has_boxes = boxes == Boxes::kYes;
  out.limits.tile_bytes = 227 << 10;
  return out;
}

UOp tiled(UOp ast, Boxes boxes) {
  const Target target = tile_target(boxes);
  const OptList opts = choose_opts(ast, target);
  const bool is_tiled =
      !opts.empty() && (opts.back().kind == OptKind::kTensor || opts.back().kind == OptKind::kBulk);
  EXPECT_TRUE(is_tiled) << print(opts);
  return lower(ast, target, opts);
}

class MergedTiles : public testing::TestWithParam<std::tuple<Case, Boxes>> {};
INSTANTIATE_TEST_SUITE_P(All, MergedTiles,
                         testing::Combine(testing::ValuesIn(kCases),
                                          testing::Values(Boxes::kNo, Boxes::kYes)),
                         [](const auto& test) {
                           const bool is_boxed = std::get<1>(test.param) == Boxes::kYes;
                           return fmt::format("{}{}", std::get<0>(test.param).name,
                                              is_boxed ? "_by_boxes" : "");
                         });

TEST_P(MergedTiles, LikeTheFormula) {
  const auto& [c, boxes] = GetParam();
  Arena arena;
  const UOp linear = tiled(kernel(arena, c), boxes);
  Bindings b = bindings_of(c);
  const std::vector<double> wanted = expected(c, b);
  evaluate(linear, b);
  const std::vector<double> found = b.buffers[0].doubles();
  for (size_t i = 0; i < wanted.size(); i++) ASSERT_NEAR(found[i], wanted[i], 0.02) << i;
  if (!c.has_more) return;
  const std::vector<double> more = b.buffers[5].doubles();
  for (size_t i = 0; i < wanted.size(); i++) ASSERT_EQ(more[i], 2 * found[i]) << i;
}

class MergedTilesCompile : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(All, MergedTilesCompile, testing::Values(80, 90),
                         [](const auto& test) { return fmt::format("sm_{}", test.param); });

TEST_P(MergedTilesCompile, SomeCases) {
  if (const std::string& missing = cuda_compiler_missing(); !missing.empty())
    GTEST_SKIP() << missing;
  std::string text;
  for (const size_t k : {1, 4}) {
    const Boxes boxes = GetParam() >= 90 ? Boxes::kYes : Boxes::kNo;
    Arena arena;
    text += fmt::format(
        "namespace n{0} {{\n{1}}}\n", k,
        render_cuda(tiled(kernel(arena, kCases[k]), boxes), fmt::format("kernel{}", k)));
  }
  EXPECT_FALSE(compile_cuda(text, "merged", GetParam()).empty());
}

// What has no tiles is reduced as it stands.
TEST(MergedTiles, SaysWhyNot) {
  const auto reason = [](const Case& c, int64_t axis) {
    Arena arena;
    return why_not(apply_opts(kernel(arena, c), {}), {OptKind::kBulk, axis, 64});
  };
  EXPECT_EQ(reason({"", 1, 64, 64, 64, 64}, 3), "");
  EXPECT_NE(reason({"", 1, 64, 64, 64, 64, false, false, false, dtypes::float32}, 3), "");
  EXPECT_NE(reason({"", 1, 64, 64, 64, 512}, 3), "");
  EXPECT_NE(reason({"", 1, 64, 64, 64, 64}, 6), "");
}

}  // namespace
}  // namespace weft
