// Graphs of a million nodes in one chain are checked while built and verified afterwards, without
// recursion and in linear time.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/spec.h"

namespace weft {
namespace {

using Pairs = std::vector<std::pair<Dim, Dim>>;

TEST(SpecIsLinear, InAChainOfArithmetic) {
  Arena arena;
  UOp x = buffer(arena, dtypes::float32, 8, "CPU", 1);
  const UOp one = constant(arena, dtypes::float32, 1.0);
  for (int i = 0; i < 1'000'000; i++) x = x + one;
  EXPECT_NO_THROW(verify(sink(x), Stage::kTensor));
}

TEST(SpecIsLinear, InAChainOfVersions) {
  Arena arena;
  UOp version = buffer(arena, dtypes::float32, 8, "CPU", 1);
  const UOp one = constant(arena, dtypes::float32, 1.0);
  for (int64_t i = 0; i < 250'000; i++) {
    const UOp view = shrink(version, Pairs{{i % 8, i % 8 + 1}});
    version = after(version, view.assign(one));
  }
  EXPECT_NO_THROW(verify(sink(version), Stage::kTensor));
}

TEST(SpecIsLinear, InAChainOfViews) {
  Arena arena;
  UOp x = reshape(buffer(arena, dtypes::float32, 6, "CPU", 1), std::vector<Dim>{2, 3});
  const std::vector<int64_t> order{1, 0};
  std::vector<UOp> stores;
  const UOp one = constant(arena, dtypes::float32, 1.0);
  for (int i = 0; i < 250'000; i++) {
    x = permute(x, order);
    stores.push_back(x.assign(one));
  }
  EXPECT_NO_THROW(verify(sink(arena, stores), Stage::kTensor));
}

TEST(SpecIsLinear, InAChainOfRegisterWrites) {
  Arena arena;
  const UOp r = range(arena, 4, 1);
  const UOp data = define_global(arena, dtypes::int32, 4, 0);
  UOp reg = after(define_reg(arena, dtypes::int32, 2), r);
  for (int i = 0; i < 250'000; i++) reg = after(reg, reg.assign(cast(r, dtypes::int32)));
  EXPECT_NO_THROW(verify(sink(end(index(data, r).assign(reg), r)), Stage::kKernel));
}

TEST(SpecIsLinear, InALongList) {
  Arena arena;
  const UOp one = constant(arena, dtypes::int32, 1);
  std::vector<UOp> list{one};
  for (int i = 0; i < 1'000'000; i++) list.push_back(list.back() + one);
  EXPECT_NO_THROW(verify(arena.make(Op::LINEAR, dtypes::void_, list), Stage::kProgram));
}

}  // namespace
}  // namespace weft
