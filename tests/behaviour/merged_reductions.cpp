// Reductions that depend on each other are one pass where what lies between them is not near; what
// is between them is then never stored in full.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "codegen/gate_loads.h"
#include "codegen/opt/choose_opts.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/shape.h"
#include "ir/walk.h"
#include "schedule/schedule.h"

namespace weft {
namespace {

using Sizes = std::vector<Dim>;

UOp input(Arena& arena, const Sizes& shape, int64_t id) {
  int64_t size = 1;
  for (const Dim d : shape) size *= d.value();
  return reshape(buffer(arena, dtypes::float32, size, "CPU", id), shape);
}

UOp product(UOp a, UOp b) {  // of (n, e) and (m, e)
  const Dim n = shape_of(a)[0], m = shape_of(b)[0], e = shape_of(a)[1];
  const UOp left = expand(reshape(a, Sizes{n, 1, e}), Sizes{n, m, e});
  const UOp right = expand(reshape(b, Sizes{1, m, e}), Sizes{n, m, e});
  const int64_t last[] = {2};
  return reshape(reduce_axis(Op::ADD, left * right, last), Sizes{n, m});
}

UOp weights_of(UOp scores) {
  const Shape shape = shape_of(scores);
  const int64_t last[] = {1};
  const UOp most = expand(reduce_axis(Op::MAX, scores, last), shape);
  const UOp powers = unary(Op::EXP, scores - most);
  return powers / expand(reduce_axis(Op::ADD, powers, last), shape);
}

// softmax(q k^T) v
UOp weighted(Arena& arena, int64_t rows, int64_t along, bool is_causal = false) {
  const int64_t wide = 64, turned[] = {1, 0};
  UOp scores = product(input(arena, {rows, wide}, 1), input(arena, {along, wide}, 2));
  if (is_causal) {
    const Sizes shape{rows, along};
    const UOp i = expand(reshape(iota(arena, dtypes::int32, rows), Sizes{rows, 1}), shape);
    const UOp j = expand(reshape(iota(arena, dtypes::int32, along), Sizes{1, along}), shape);
    const double never = -std::numeric_limits<double>::infinity();
    scores = where(i < j, constant(arena, dtypes::float32, never), scores);
  }
  const UOp values = permute(input(arena, {along, wide}, 3), turned);
  return sink(contiguous(product(weights_of(scores), values)));
}

TEST(MergedReductions, memory_is_linear_in_length) {
  for (const int64_t length : {1024, 4096, 16384}) {
    Arena arena;
    const Schedule s = make_schedule(weighted(arena, length, length));
    EXPECT_EQ(s.calls.size(), 1U) << length;
    EXPECT_EQ(s.peak_bytes, 0U) << length;  // no temporary at all
    EXPECT_LE(s.temp_bytes, size_t(length) * 64 * 4) << length;
  }
}

TEST(MergedReductions, local_memory_does_not_grow_with_the_length) {
  size_t bytes[2] = {0, 0};
  for (const int64_t length : {2048, 8192}) {
    Arena arena;
    const Schedule s = make_schedule(weighted(arena, length, length));
    for (UOp n : toposort(s.calls.at(0).ast)) {
      if (!n.is(Op::DEFINE_LOCAL)) continue;
      bytes[length == 2048 ? 0 : 1] +=
          size_t(n.src(0).const_int()) * size_t(n.dtype().pointee().item_bytes());
    }
  }
  EXPECT_GT(bytes[0], 0U);
  EXPECT_EQ(bytes[0], bytes[1]);
}

TEST(MergedReductions, short_rows_are_left_alone) {
  Arena arena;
  const Schedule s = make_schedule(weighted(arena, 128, 128));
  for (const KernelCall& call : s.calls) {
    for (UOp n : toposort(call.ast)) EXPECT_FALSE(n.is(Op::DEFINE_LOCAL));
  }
}

TEST(MergedReductions, places_that_a_mask_never_shows_are_not_visited) {
  Arena arena;
  const Schedule s = make_schedule(weighted(arena, 2048, 2048, true));
  ASSERT_EQ(s.calls.size(), 1U);
  size_t growing = 0;  // loops over blocks whose number depends on the row
  for (UOp n : toposort(s.calls[0].ast)) growing += n.is(Op::RANGE) && !n.src(0).is_const();
  EXPECT_EQ(growing, 1U);
}

TEST(MergedReductions, rows_run_together_and_share_what_they_read) {
  Arena arena;
  const Schedule s = make_schedule(weighted(arena, 1024, 2048));
  const Target target{.name = "test", .cores = 2};
  const std::string opts = print(choose_opts(gate_loads(s.calls.at(0).ast), target));
  EXPECT_TRUE(opts.starts_with("BLOCK(0, ")) << opts;
  EXPECT_NE(opts.find("STAGE"), std::string::npos) << opts;  // the packed panel of a product
  EXPECT_NE(opts.find("THREAD(0, 0)"), std::string::npos) << opts;
}

// A kernel that goes through blocks, with fewer rows in the last block of rows.
TEST(MergedReductions, blocks_of_rows_give_what_rows_give) {
  for (const bool is_causal : {false, true}) {
    Arena arena;
    const Schedule s = make_schedule(weighted(arena, 19, 512, is_causal));
    ASSERT_EQ(s.calls.size(), 1U);
    const auto run = [&](const char* opts) {
      Bindings bindings;
      for (int64_t k = 0; k < 4; k++) {
        const int64_t size = int64_t(k == 0 || k == 1 ? 19 : 512) * 64;
        std::vector<double> numbers;
        for (int64_t i = 0; i < size; i++) numbers.push_back(double((i * 7 + k) % 19 - 9) / 16);
        bindings.buffers[k] = Array::of_doubles(dtypes::float32, {size}, numbers);
      }
      evaluate(apply_opts(s.calls[0].ast, parse_opts(opts)), bindings);
      return bindings.buffers[0].data;
    };
    const auto alone = run("");
    EXPECT_EQ(run("BLOCK(0, 19)"), alone);
    if (is_causal) continue;  // its blocks are those of all rows
    EXPECT_EQ(run("BLOCK(0, 6)"), alone);
    EXPECT_EQ(run("BLOCK(0, 7)"), alone);
  }
}

}  // namespace
}  // namespace weft
