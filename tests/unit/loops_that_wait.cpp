// A kernel whose last loop waits for one before it, through memory that both touch.
#include <vector>

#include <gtest/gtest.h>

#include "codegen/opt/loops.h"
#include "codegen/opt/opt.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"

namespace weft {
namespace {

TEST(LoopsThatWait, ThreadsDoNotRepeatWhatComesFirst) {
  Arena arena;
  const UOp a = define_global(arena, dtypes::float32, 100, 0);
  const UOp b = define_global(arena, dtypes::float32, 100, 1);
  const UOp r = range(arena, 99, 0), s = range(arena, 100, 1);
  const UOp now = after(a, r);
  const UOp first = end(index(now, r + 1).assign(load(index(now, r)) + load(index(now, r + 1))), r);
  const UOp second = end(index(b, s).assign(load(index(after(a, first), s))), s);
  const UOp kernel = mark_parallel_loops(sink(second));
  EXPECT_EQ(why_not(kernel, {OptKind::kThread, 1, 0}), "not all of the kernel is in this loop");
  const UOp alone = mark_parallel_loops(sink(end(index(b, s).assign(load(index(a, s))), s)));
  EXPECT_EQ(why_not(alone, {OptKind::kThread, 1, 0}), "");
}

}  // namespace
}  // namespace weft
