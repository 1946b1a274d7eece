// Contractions by products of tiles give what the sums give, in the evaluator; their CUDA C goes
// through the compiler for the architectures that have tensor cores.
#include <algorithm>
#include <cstddef>
#include <cstdint>
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
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "render/render.h"
#include "runtime/cuda/compile_cuda.h"
#include "schedule/schedule_cache.h"

namespace weft {
namespace {

// out[batch, row, column] = max(sum of a * b + bias[column], 0) + residual[row, column]
struct Case {
  const char* name;
  int64_t batch, rows, columns, depth;
  bool a_transposed = false, b_transposed = false, has_epilogue = false;
  DType type = dtypes::bfloat16;
  DType out = dtypes::float32;
  bool is_computed = false;  // a is max(a, 0) * 2, computed where it is fetched
  bool has_more = false;     // a second output, twice the first

  bool has_boxes() const { return depth % 8 == 0 || (rows % 8 == 0 && a_transposed); }
};

constexpr Case kCases[] = {
    {"whole_tiles", 1, 128, 64, 128},
    {"transposed_a", 1, 128, 64, 128, true, false},
    {"transposed_b", 1, 128, 64, 192, false, true},
    {"both_transposed", 1, 128, 64, 128, true, true},
    {"batch", 2, 128, 64, 128},
    {"padded", 1, 72, 40, 88},
    {"padded_transposed", 1, 40, 72, 72, true, true},
    {"shallow", 1, 128, 64, 40},
    {"tiles", 1, 256, 128, 192},
    {"epilogue", 1, 136, 64, 128, false, false, true},
    {"half", 1, 128, 64, 128, false, true, false, dtypes::float16, dtypes::float16},
    {"odd", 1, 71, 43, 61},
    {"odd_transposed", 1, 71, 43, 61, true, true},
    {"computed", 1, 128, 64, 128, false, false, true, dtypes::bfloat16, dtypes::float32, true},
    {"computed_transposed", 2, 72, 64, 104, true, true, false, dtypes::bfloat16, dtypes::float32,
     true},
    {"two_outputs", 1, 128, 72, 128, true, false, true, dtypes::bfloat16, dtypes::bfloat16, false,
     true},
};

UOp kernel(Arena& arena, const Case& c) {
  const UOp z = range(arena, c.batch, 0), r = range(arena, c.rows, 1),
            n = range(arena, c.columns, 2), k = range(arena, c.depth, 3, AxisType::kReduce);
  const auto global = [&](DType type, int64_t size, int64_t id) {
    return define_global(arena, type, size, id);
  };
  UOp a = load(index(global(c.type, c.batch * c.rows * c.depth, 1),
                     z * (c.rows * c.depth) + (c.a_transposed ? k * c.rows + r : r * c.depth + k)));
  if (c.is_computed) {
    a = cast(max(cast(a, dtypes::float32), constant(arena, dtypes::float32, 0.0)) * 2.0, c.type);
  }
  const UOp b = load(
      index(global(c.type, c.batch * c.columns * c.depth, 2),
            z * (c.columns * c.depth) + (c.b_transposed ? n * c.depth + k : k * c.columns + n)));
  UOp x = reduce(Op::ADD, cast(a, dtypes::float32) * cast(b, dtypes::float32), std::vector{k});
  if (c.has_epilogue) {
    const UOp bias = load(index(global(dtypes::float32, c.columns, 3), n));
    const UOp residual =
        load(index(global(dtypes::float32, c.rows * c.columns, 4), r * c.columns + n));
    x = residual + max(x + bias, constant(arena, dtypes::float32, 0.0));
  }
  const UOp out = index(global(c.out, c.batch * c.rows * c.columns, 0),
                        z * (c.rows * c.columns) + r * c.columns + n);
  const UOp first = end(out.assign(cast(x, c.out)), std::vector{z, r, n});
  if (!c.has_more) return sink(first);
  const UOp more = index(global(c.out, c.batch * c.rows * c.columns, 5), out.src(1));
  return sink(first, end(more.assign(cast(x * 2.0, c.out)), std::vector{z, r, n}));
}

// Small integers: sums are exact in every order.
Array numbers(DType type, int64_t size, int64_t seed) {
  std::vector<double> out;
  for (int64_t i = 0; i < size; i++) out.push_back(double((i * 37 + i / 7 * 5 + seed) % 7 - 3));
  return Array::of_doubles(type, {size}, out);
}

Bindings bindings_of(const Case& c) {
  Bindings out;
  out.buffers[0] = Array::zeros(c.out, {c.batch * c.rows * c.columns});
  out.buffers[1] = numbers(c.type, c.batch * c.rows * c.depth, 1);
  out.buffers[2] = numbers(c.type, c.batch * c.columns * c.depth, 2);
  out.buffers[3] = numbers(dtypes::float32, c.columns, 3);
  out.buffers[4] = numbers(dtypes::float32, c.rows * c.columns, 4);
  out.buffers[5] = Array::zeros(c.out, {c.batch * c.rows * c.columns});
  return out;
}

std::vector<double> expected(const Case& c, Bindings& b) {
  const auto a = b.buffers[1].doubles(), w = b.buffers[2].doubles(), bias = b.buffers[3].doubles(),
             residual = b.buffers[4].doubles();
  std::vector<double> out;
  for (int64_t z = 0; z < c.batch; z++) {
    for (int64_t r = 0; r < c.rows; r++) {
      for (int64_t n = 0; n < c.columns; n++) {
        double sum = 0;
        for (int64_t k = 0; k < c.depth; k++) {
          const int64_t of_a = c.a_transposed ? k * c.rows + r : r * c.depth + k;
          const int64_t of_b = c.b_transposed ? n * c.depth + k : k * c.columns + n;
          const double factor = a[size_t(z * c.rows * c.depth + of_a)];
          sum += (c.is_computed ? std::max(factor, 0.0) * 2 : factor) *
                 w[size_t(z * c.columns * c.depth + of_b)];
        }
        if (c.has_epilogue) {
          sum = residual[size_t(r * c.columns + n)] + std::max(sum + bias[size_t(n)], 0.0);
        }
        out.push_back(sum);
      }
    }
  }
  return out;
}

enum class Boxes : bool { kNo, kYes };

Target tensor_target(Boxes boxes = Boxes::kNo) {
  Target out = cuda_target();
  out.groups.threads = 1024;
  out.groups.together = 8;
  out.narrow_indices = true;
  out.tensor.local_bytes = 227 << 10;
  out.tensor.most_columns = 256;
  out.tensor.has_boxes = boxes == Boxes::kYes;
  return out;
}

UOp tiled(UOp ast, Boxes boxes, bool has_boxes = true) {
  const Target target = tensor_target(boxes);
  const OptList opts = choose_opts(ast, target);
  const bool is_boxed = boxes == Boxes::kYes && has_boxes;
  const OptKind wanted = is_boxed ? OptKind::kBulk : OptKind::kTensor;
  EXPECT_TRUE(!opts.empty() && opts.back().kind == wanted) << print(opts);
  return lower(ast, target, opts);
}

class TensorTiles : public testing::TestWithParam<std::tuple<Case, Boxes>> {};
INSTANTIATE_TEST_SUITE_P(All, TensorTiles,
                         testing::Combine(testing::ValuesIn(kCases),
                                          testing::Values(Boxes::kNo, Boxes::kYes)),
                         [](const auto& test) {
                           const bool is_boxed = std::get<1>(test.param) == Boxes::kYes;
                           return fmt::format("{}{}", std::get<0>(test.param).name,
                                              is_boxed ? "_by_boxes" : "");
                         });

TEST_P(TensorTiles, LikeSums) {
  const auto& [c, boxes] = GetParam();
  Arena arena;
  const UOp linear = tiled(kernel(arena, c), boxes, c.has_boxes());
  Bindings b = bindings_of(c);
  std::vector<double> wanted = expected(c, b);
  evaluate(linear, b);
  EXPECT_EQ(b.buffers[0].doubles(), wanted);
  if (c.has_more) {
    for (double& x : wanted) x *= 2;
    EXPECT_EQ(b.buffers[5].doubles(), wanted);
  }
}

TEST(TensorTiles, OtherWidths) {
  const Case c{"", 1, 128, 256, 128};
  for (const char* kind : {"TENSOR", "BULK"}) {
    for (const int64_t columns : {64, 128, 256}) {
      Arena arena;
      const OptList opts = parse_opts(fmt::format("{}(3, {})", kind, columns));
      Bindings b = bindings_of(c);
      const std::vector<double> wanted = expected(c, b);
      evaluate(lower(kernel(arena, c), tensor_target(), opts), b);
      EXPECT_EQ(b.buffers[0].doubles(), wanted) << kind << columns;
    }
  }
}

// What a group fetches for its next tile must not meet what it multiplies of the one before.
TEST(TensorTiles, SeveralTilesOfOneGroup) {
  const Case c{"", 1, 256, 64, 320};
  Target target = tensor_target();
  target.groups.most_groups = {1, 1, 1};
  for (const char* opts : {"TENSOR(3, 64)", "BULK(3, 64)"}) {
    Arena arena;
    Bindings b = bindings_of(c);
    const std::vector<double> wanted = expected(c, b);
    evaluate(lower(kernel(arena, c), target, parse_opts(opts)), b);
    EXPECT_EQ(b.buffers[0].doubles(), wanted) << opts;
  }
}

constexpr int64_t kSliced = 28160, kOther = 12288, kResults = 8192;  // elements

// data0[r, n] = sum over j and k of data1[..] * data2[..], from the 512th element of data1 on,
// which is read up to a row.
UOp sliced_kernel(Arena& arena, UOp (*gate)(UOp row)) {
  const UOp r = range(arena, 128, 0), n = range(arena, 64, 1),
            j = range(arena, 3, 2, AxisType::kReduce), k = range(arena, 64, 3, AxisType::kReduce);
  const UOp at =
      index(define_global(arena, dtypes::bfloat16, kSliced, 1), (j * 128 + r) * 72 + k + 512);
  const UOp a = load(at, gate(r), constant(arena, dtypes::bfloat16, 0.0));
  const UOp b =
      load(index(define_global(arena, dtypes::bfloat16, kOther, 2), n * 192 + j * 64 + k));
  const UOp sum =
      reduce(Op::ADD, cast(a, dtypes::float32) * cast(b, dtypes::float32), std::vector{j, k});
  const UOp out = index(define_global(arena, dtypes::float32, kResults, 0), r * 64 + n);
  return sink(end(out.assign(sum), std::vector{r, n}));
}

size_t count_of(UOp linear, Op op) {
  return size_t(std::ranges::count_if(linear.srcs(), [&](UOp n) { return n.is(op); }));
}

TEST(TensorTiles, BoxesOfWhatIsAnArray) {
  struct Sliced {
    UOp (*gate)(UOp row);
    bool has_fetches;  // not all of it are boxes
  };
  for (const auto& [gate, has_fetches] : {
           Sliced{[](UOp row) { return row < 100; }, false},
           Sliced{[](UOp row) { return row % 8 < 5; }, true},
       }) {
    std::vector<std::vector<double>> results;
    for (const char* opts : {"", "TENSOR(3, 64)", "BULK(3, 64)"}) {
      Arena arena;
      const UOp linear = lower(sliced_kernel(arena, gate), tensor_target(), parse_opts(opts));
      Bindings b;
      b.buffers[0] = Array::zeros(dtypes::float32, {kResults});
      b.buffers[1] = numbers(dtypes::bfloat16, kSliced, 1);
      b.buffers[2] = numbers(dtypes::bfloat16, kOther, 2);
      evaluate(linear, b);
      results.push_back(b.buffers[0].doubles());
      if (opts[0] != 'B') continue;
      EXPECT_GT(count_of(linear, Op::FETCH_BOX), 0U);
      EXPECT_EQ(count_of(linear, Op::FETCH) > 0, has_fetches);
      if (cuda_compiler_missing().empty()) {
        EXPECT_FALSE(compile_cuda(render_cuda(linear, "tiles"), "tiles", 90).empty());
      }
    }
    EXPECT_EQ(results[1], results[0]);
    EXPECT_EQ(results[2], results[0]);
  }
}

// A window over a few channels: each of the three loops would leave most of a step empty.
UOp window_kernel(Arena& arena) {
  const UOp r = range(arena, 128, 0), n = range(arena, 64, 1),
            j = range(arena, 3, 2, AxisType::kReduce), h = range(arena, 5, 3, AxisType::kReduce),
            w = range(arena, 7, 4, AxisType::kReduce);
  const UOp a =
      load(index(define_global(arena, dtypes::bfloat16, kSliced, 1), (j * 200 + h * 11) + (r + w)));
  const UOp b = load(
      index(define_global(arena, dtypes::bfloat16, kOther, 2), n * 105 + ((j * 5 + h) * 7 + w)));
  const UOp sum =
      reduce(Op::ADD, cast(a, dtypes::float32) * cast(b, dtypes::float32), std::vector{j, h, w});
  const UOp out = index(define_global(arena, dtypes::float32, kResults, 0), r * 64 + n);
  return sink(end(out.assign(sum), std::vector{r, n}));
}

TEST(TensorTiles, ShortLoopsAreSummedAsOne) {
  std::vector<std::vector<double>> results;
  for (const bool is_tiled : {false, true}) {
    Arena arena;
    const UOp ast = window_kernel(arena);
    const OptList opts = is_tiled ? choose_opts(ast, tensor_target(Boxes::kYes)) : OptList();
    if (is_tiled) {
      EXPECT_EQ(print(opts), "TENSOR(4, 64)");
    }
    Bindings b;
    b.buffers[0] = Array::zeros(dtypes::float32, {kResults});
    b.buffers[1] = numbers(dtypes::bfloat16, kSliced, 1);
    b.buffers[2] = numbers(dtypes::bfloat16, kOther, 2);
    const UOp linear = lower(ast, tensor_target(), opts);
    EXPECT_EQ(count_of(linear, Op::WMMA) > 0, is_tiled);
    evaluate(linear, b);
    results.push_back(b.buffers[0].doubles());
  }
  EXPECT_EQ(results[1], results[0]);
}

TEST(TensorTiles, SaysWhyNot) {
  const auto reason = [](const Case& c, int64_t columns) {
    Arena arena;
    const UOp ast = kernel(arena, c);
    return why_not(apply_opts(ast, {}), {OptKind::kTensor, 3, columns});
  };
  EXPECT_EQ(reason({"", 1, 128, 64, 128}, 64), "");
  EXPECT_EQ(reason({"", 1, 128, 64, 128}, 96), "columns are 64, 128 or 256");
  EXPECT_EQ(reason({"", 1, 100, 64, 128}, 64), "the loops are not made of whole tiles");
  EXPECT_EQ(reason({"", 1, 128, 64, 64}, 64), "there is one step alone");
  EXPECT_EQ(reason({"", 1, 128, 64, 128, false, false, false, dtypes::float32}, 64),
            "the factors are not of one dtype, float16 or bfloat16");
  // Arrays that begin at a place that only the launch knows.
  Arena arena;
  const UOp r = range(arena, 128, 0), n = range(arena, 64, 1),
            k = range(arena, 128, 2, AxisType::kReduce);
  const auto factor = [&](int64_t id, UOp at) {
    const UOp far = variable(arena, fmt::format("far{}", id), 0, 8);
    const UOp memory = define_global(arena, dtypes::bfloat16, 1 << 20, id);
    return cast(load(index(memory, far * 1024 + at)), dtypes::float32);
  };
  const UOp sum = reduce(Op::ADD, factor(1, r * 128 + k) * factor(2, n * 128 + k), std::vector{k});
  const UOp out = index(define_global(arena, dtypes::float32, kResults, 0), r * 64 + n);
  const UOp ast = apply_opts(sink(end(out.assign(sum), std::vector{r, n})), {});
  EXPECT_EQ(why_not(ast, {OptKind::kTensor, 2, 64}), "");
  EXPECT_EQ(why_not(ast, {OptKind::kBulk, 2, 64}), "no factor is an array of up to five axes");
}

// A tile of a few rows would be computed for nothing.
TEST(TensorTiles, FewRowsAreTiledOtherwise) {
  Arena arena;
  for (const Opt& opt : choose_opts(kernel(arena, {"", 1, 4, 64, 512}), tensor_target())) {
    EXPECT_NE(opt.kind, OptKind::kTensor);
  }
}

// Sizes in one process, one after the other: what is done often or is large is tiled.
TEST(TensorTiles, SizesAfterOthers) {
  clear_schedule_cache();
  const auto opts_of = [](int64_t n) {
    Arena arena;
    const std::vector<Dim> square{n, n}, cube{n, n, n}, rows{n, n, 1}, columns{1, n, n};
    const auto factor = [&](int64_t id, const std::vector<Dim>& shape) {
      const UOp memory = buffer(arena, dtypes::bfloat16, n * n, "REF", id);
      return cast(expand(reshape(reshape(memory, square), shape), cube), dtypes::float32);
    };
    const UOp sums =
        reduce_axis(Op::ADD, factor(1, rows) * factor(2, columns), std::vector<int64_t>{1});
    const auto s = cached_schedule(sink(contiguous(cast(sums, dtypes::bfloat16))));
    EXPECT_EQ(s->calls.size(), 1U);
    return choose_opts(s->calls[0].ast, tensor_target());
  };
  const auto is_tiled = [](const OptList& opts) {
    return !opts.empty() && opts.back().kind == OptKind::kTensor;
  };
  for (const int64_t n : {1024, 2048, 4096, 8192}) {
    for (int i = 0; i < 2 && n < 4096; i++) opts_of(n);
    EXPECT_TRUE(is_tiled(opts_of(n))) << n;
  }
}

class TensorTilesCompile : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(All, TensorTilesCompile, testing::Values(80, 90),
                         [](const auto& test) { return fmt::format("sm_{}", test.param); });

TEST_P(TensorTilesCompile, EveryCase) {
  if (!cuda_compiler_missing().empty()) GTEST_SKIP() << cuda_compiler_missing();
  std::string text;
  size_t count = 0;
  for (const Boxes boxes : {Boxes::kNo, Boxes::kYes}) {
    for (const Case& c : kCases) {
      if (boxes == Boxes::kYes && GetParam() < 90) continue;
      Arena arena;
      text += fmt::format("namespace n{0} {{\n{1}}}\n", count,
                          render_cuda(tiled(kernel(arena, c), boxes, c.has_boxes()),
                                      fmt::format("kernel{}", count)));
      count++;
    }
  }
  EXPECT_EQ(text.find("cp.async.bulk.tensor") != std::string::npos, GetParam() >= 90);
  EXPECT_NE(text.find("wgmma.mma_async"), std::string::npos);
  EXPECT_NE(text.find("mma.sync"), std::string::npos);
  EXPECT_FALSE(compile_cuda(text, "tiles", GetParam()).empty());
}

}  // namespace
}  // namespace weft
