// Which loop of a kernel is shared among threads.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "codegen/opt/choose_opts.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"

namespace weft {
namespace {

// data0[i, j] = the sum over k of data1[i, k, j]; no vectors.
std::string chosen_for(int64_t rows, int64_t columns, int64_t terms, size_t cores) {
  Arena arena;
  const UOp i = range(arena, rows, 0), j = range(arena, columns, 1),
            k = range(arena, terms, 2, AxisType::kReduce);
  const UOp x = define_global(arena, dtypes::float32, rows * terms * columns, 1);
  const UOp sum =
      reduce(Op::ADD, load(index(x, (i * terms + k) * columns + j)), std::vector<UOp>{k});
  const UOp out = define_global(arena, dtypes::float32, rows * columns, 0);
  const UOp ast = sink(end(index(out, i * columns + j).assign(sum), std::vector<UOp>{i, j}));
  Target target{.name = "threads"};
  target.vector_bytes = 0;
  target.cores = cores;
  return print(choose_opts(ast, target));
}

TEST(ChooseThreads, ForTheOutermostLoopThatHasWorkForAll) {
  EXPECT_EQ(chosen_for(16, 32, 1000, 16), "THREAD(0, 0)");
  EXPECT_EQ(chosen_for(2, 32, 1000, 16), "THREAD(1, 0)");
}

TEST(ChooseThreads, ElseForOneThatHasWorkForSome) {
  EXPECT_EQ(chosen_for(12, 3, 10000, 16), "THREAD(0, 0)");
  EXPECT_EQ(chosen_for(3, 12, 10000, 16), "THREAD(1, 0)");
  EXPECT_EQ(chosen_for(3, 2, 10000, 16), "THREAD(0, 0)");
}

TEST(ChooseThreads, ForNoLoopOfLittleWork) {
  EXPECT_EQ(chosen_for(3, 2, 10, 16), "");
  EXPECT_EQ(chosen_for(1, 1, 100000, 16), "");
}

}  // namespace
}  // namespace weft
