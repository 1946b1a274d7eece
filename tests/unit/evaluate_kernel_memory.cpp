// Kernel graphs: pointers, gates, vectors, threads, and what becomes of bad accesses.
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "tests/unit/evaluate_helpers.h"

namespace weft::test {
namespace {

class EvaluateKernelMemory : public testing::Test {
 protected:
  UOp pointer(int64_t id, int64_t size) { return define_global(arena_, dtypes::int32, size, id); }
  UOp loop(Dim size, int64_t id) { return range(arena_, size, id); }
  UOp number(int64_t value) { return constant(arena_, dtypes::int32, value); }
  UOp at(int64_t i) { return index_const(arena_, i); }
  static UOp read(UOp p, UOp i) { return load(index(p, i)); }
  static UOp write(UOp p, UOp i, UOp value) { return index(p, i).assign(value); }
  void run(const std::vector<UOp>& effects) { evaluate(weft::sink(arena_, effects), bindings_); }
  std::vector<int64_t> buffer(int64_t id) { return bindings_.buffers.at(id).ints(); }

  Arena arena_;
  Bindings bindings_;
};

using Numbers = std::vector<int64_t>;

TEST_F(EvaluateKernelMemory, GatesHoldAccessesBack) {
  bindings_.buffers[0] = ints({9, 9, 9, 9});
  bindings_.buffers[1] = ints({1, 2});
  const UOp in = pointer(1, 2), out = pointer(0, 4), i = loop(6, 0);
  const UOp value = load(index(in, i - 1), (at(0) < i) & (i < 3), number(0));
  run({end(index(out, i).assign(value, i < 4), {i})});
  EXPECT_EQ(buffer(0), (Numbers{0, 1, 2, 0}));
}

TEST_F(EvaluateKernelMemory, WhereUsesTheChosenArmOnly) {
  bindings_.buffers[1] = ints({1, 2});
  const UOp in = pointer(1, 2), out = pointer(0, 4), i = loop(4, 0);
  run({end(write(out, i, where(i < 2, read(in, i), number(7))), {i})});
  EXPECT_EQ(buffer(0), (Numbers{1, 2, 7, 7}));
}

TEST_F(EvaluateKernelMemory, AccessesOutOfBoundsAreIndexErrors) {
  bindings_.buffers[1] = ints({1, 2});
  const UOp in = pointer(1, 2), out = pointer(0, 4), i = loop(4, 0);
  const std::string reading =
      error_of<IndexError>([&] { run({end(write(out, i, read(in, i)), {i})}); });
  EXPECT_NE(reading.find("LOAD: element 2 of 2, at r0 = 2"), std::string::npos) << reading;
  const std::string writing =
      error_of<IndexError>([&] { run({end(write(in, i - 1, number(0)), {i})}); });
  EXPECT_NE(writing.find("STORE: element -1 of 2, at r0 = 0"), std::string::npos) << writing;
}

TEST_F(EvaluateKernelMemory, IndexOverflowIsAnErrorWhereItIsUsed) {
  bindings_.buffers[1] = ints({1, 2});
  const UOp big = at(std::numeric_limits<int64_t>::max()), i = loop(2, 0);
  const UOp far = (i + big) - big, out = pointer(0, 2);
  const UOp guarded = where(i < 1, i, far);
  EXPECT_NE(error_of<Error>([&] {
              run({end(write(out, guarded, number(1)), {i})});
            }).find("ADD: the index does not fit into 64 bits, at r0 = 1"),
            std::string::npos);
  run({end(write(out, where(i < 1, far, i), number(1)), {i})});
  EXPECT_EQ(buffer(0), (Numbers{1, 1}));
}

TEST_F(EvaluateKernelMemory, ReadingBeforeWritingIsAnError) {
  const UOp out = pointer(0, 1), reg = define_reg(arena_, dtypes::int32, 0);
  const UOp scratch = define_local(arena_, dtypes::int32, 2, 0);
  const UOp unwritten = after(reg, {loop(1, 0)});
  const std::string of_register =
      error_of<Error>([&] { run({end(write(out, at(0), unwritten), {loop(1, 0)})}); });
  EXPECT_NE(of_register.find("read before it is written"), std::string::npos);
  const UOp half = after(scratch, {write(scratch, at(0), number(3))});
  run({write(out, at(0), read(half, at(0)))});
  EXPECT_EQ(buffer(0), (Numbers{3}));
  EXPECT_NE(error_of<Error>([&] {
              run({write(out, at(0), read(half, at(1)))});
            }).find("element 1 of 2 is read before it is written"),
            std::string::npos);
}

TEST_F(EvaluateKernelMemory, ScratchMemoryStagesALoop) {
  bindings_.buffers[1] = ints({1, 2, 3});
  const UOp in = pointer(1, 3), out = pointer(0, 3), i = loop(3, 0), j = loop(3, 1);
  const UOp scratch = define_local(arena_, dtypes::int32, 3, 0);
  const UOp filled = after(scratch, {end(write(scratch, i, read(in, i) * number(2)), {i})});
  run({end(write(out, j, read(filled, at(2) - j)), {j})});
  EXPECT_EQ(buffer(0), (Numbers{6, 4, 2}));
}

TEST_F(EvaluateKernelMemory, VectorsMoveSeveralElements) {
  bindings_.buffers[1] = ints({0, 1, 2, 3, 4, 5, 6, 7});
  const UOp in = pointer(1, 8), out = pointer(0, 8), i = loop(2, 0);
  const DType int4 = dtypes::int32.vec(4), pointer4 = int4.ptr(AddrSpace::kGlobal);
  const UOp v = load(cast(index(in, i * 4), pointer4));
  const std::array<int64_t, 4> reversed{3, 2, 1, 0};
  const UOp scaled = gep(v, reversed) * constant(arena_, int4, 10);
  const std::array<UOp, 4> lanes{cast(i, dtypes::int32), number(1), number(2), number(3)};
  const UOp sum = scaled + vectorize(lanes);
  run({end(cast(index(out, i * 4), pointer4).assign(sum), {i})});
  EXPECT_EQ(buffer(0), (Numbers{30, 21, 12, 3, 71, 61, 52, 43}));
}

TEST_F(EvaluateKernelMemory, VectorsAreCheckedToTheirLastLane) {
  bindings_.buffers[1] = ints({0, 1, 2, 3, 4, 5});
  const DType pointer4 = dtypes::int32.vec(4).ptr(AddrSpace::kGlobal);
  const UOp v = load(cast(index(pointer(1, 6), at(4)), pointer4));
  const UOp out = pointer(0, 1);
  const std::array<int64_t, 1> second{1}, third{2};
  run({write(out, at(0), gep(v, second))});
  EXPECT_EQ(buffer(0), (Numbers{5}));
  EXPECT_NE(error_of<IndexError>([&] {
              run({write(out, at(0), gep(v, third))});
            }).find("LOAD: element 6 of 6"),
            std::string::npos);
}

TEST_F(EvaluateKernelMemory, APlainGlobalIsOneElement) {
  bindings_.buffers[0] = ints({5});
  const UOp count = define_global(arena_, dtypes::int32, 0), i = loop(4, 0);
  const UOp inside = after(count, {i});
  run({end(inside.assign(inside + 2), {i})});
  EXPECT_EQ(buffer(0), (Numbers{13}));
}

TEST_F(EvaluateKernelMemory, BindingsMustFit) {
  bindings_.buffers[0] = floats({1, 2});
  const std::string message =
      error_of<Error>([&] { run({write(pointer(0, 2), at(0), number(1))}); });
  EXPECT_NE(message.find("data0 is bound to float32 (2), the graph says int32 (2)"),
            std::string::npos)
      << message;
}

TEST_F(EvaluateKernelMemory, SpecialsAreTheOutermostLoops) {
  const UOp g = special(arena_, "gidx0", 3), h = special(arena_, "gidx1", 2);
  const UOp out = pointer(0, 6), r = loop(2, 0), reg = define_reg(arena_, dtypes::int32, 0);
  const UOp inside = after(reg, {reg.assign(number(0)), r});
  const UOp sum = after(reg, {end(inside.assign(inside + cast(g * 10 + h, dtypes::int32)), {r})});
  run({write(out, g * 2 + h, sum)});
  EXPECT_EQ(buffer(0), (Numbers{0, 2, 20, 22, 40, 42}));
}

TEST_F(EvaluateKernelMemory, ThreadsOfAWorkgroupMeetAtBarriers) {
  bindings_.buffers[1] = ints({1, 2, 3, 4, 5, 6});
  const UOp g = special(arena_, "gidx0", 2), l = special(arena_, "lidx0", 3);
  const UOp in = pointer(1, 6), out = pointer(0, 6);
  const UOp shared = define_local(arena_, dtypes::int32, 3, 0);
  const UOp fill = write(shared, l, read(in, g * 3 + l));
  const UOp ready = after(shared, {barrier({&fill, 1})});
  run({write(out, g * 3 + l, read(ready, at(2) - l))});
  EXPECT_EQ(buffer(0), (Numbers{3, 2, 1, 6, 5, 4}));
}

TEST_F(EvaluateKernelMemory, ThreadsMeetInEveryIteration) {
  // Each thread adds its neighbour's number, tile by tile: one barrier after the fill, one before
  // the next fill.
  bindings_.buffers[1] = ints({1, 2, 10, 20, 100, 200});
  const UOp l = special(arena_, "lidx0", 2), k = loop(3, 0);
  const UOp in = pointer(1, 6), out = pointer(0, 2);
  const UOp shared = define_local(arena_, dtypes::int32, 2, 0);
  const UOp reg = define_reg(arena_, dtypes::int32, 1);
  const UOp fill = write(after(shared, {k}), l, read(in, k * 2 + l));
  const UOp ready = after(shared, {barrier({&fill, 1})});
  const UOp inside = after(reg, {reg.assign(number(0)), k});
  const UOp step = inside.assign(inside + read(ready, at(1) - l));
  const UOp done = end(barrier({&step, 1}), {k});
  run({write(out, l, after(reg, {done}))});
  EXPECT_EQ(buffer(0), (Numbers{222, 111}));
}

}  // namespace
}  // namespace weft::test
