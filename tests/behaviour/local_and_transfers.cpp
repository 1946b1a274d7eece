// Local memory and transfers between devices, from the graph to the kernels that do them.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "codegen/lower.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "render/render.h"
#include "schedule/rangeify/pipeline.h"
#include "schedule/rangeify/split_kernel.h"
#include "schedule/schedule.h"
#include "tests/fuzz/run_schedule.h"

namespace weft {
namespace {

Target group_target() {
  Target target{.name = "groups"};
  target.groups.threads = 64;
  target.groups.most_threads = {64, 64, 64};
  target.groups.most_groups = {64, 64, 64};
  target.vector_arithmetic = false;
  target.limits.sequences = false;
  return target;
}

class LocalMemory : public testing::Test {
 protected:
  UOp loop(int64_t size, int64_t id) { return range(arena_, size, id); }
  UOp at(UOp x, std::vector<UOp> indices) { return index(x, indices); }
  UOp stored(UOp x, std::vector<UOp> loops, AddrSpace space = AddrSpace::kGlobal) {
    return bufferize(x, loops, space);
  }

  // One kernel with local memory and a barrier, and the graph's value on every target.
  void expect_one_kernel(UOp root, size_t locals = 1) {
    verify(root, Stage::kRangeified);
    std::map<int64_t, Array> inputs = {{1, numbers_}};
    Bindings before{inputs, {}};
    const std::vector<Array> expected = evaluate(root, before);
    const KernelGraph kernels = run_kernel_split_pipeline(root, {}, "REF", nullptr);
    verify(with_asts(kernels), Stage::kRangeified);
    ASSERT_EQ(kernels.asts.size(), 1u);
    const UOp ast = kernels.asts.ast(0);
    size_t barriers = 0, memories = 0;
    for (UOp n : toposort(ast)) {
      barriers += n.is(Op::BARRIER) ? 1 : 0;
      memories += n.is(Op::DEFINE_LOCAL) ? 1 : 0;
    }
    EXPECT_EQ(barriers, locals);
    EXPECT_EQ(memories, locals);
    for (const UOp program : {ast, lower(ast, c_target()), lower(ast, group_target())}) {
      Array out = expected[0];
      out.data.assign(out.data.size(), 0);
      out.shape = {int64_t(out.data.size())};
      Bindings memory{{{0, out}, {1, numbers_}}, {}};
      evaluate(program, memory);
      EXPECT_EQ(memory.buffers.at(0).data, expected[0].data);
    }
  }

  Arena arena_;
  Array numbers_ = Array::of_ints(dtypes::int32, {12}, {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8});
  UOp x_ = buffer(arena_, dtypes::int32, 12, "REF", 1);
};

TEST_F(LocalMemory, IsReadByOneKernel) {
  const UOp r = loop(12, 1), s = loop(12, 2);
  const UOp local = stored(at(x_, {r}) + 1, {r}, AddrSpace::kLocal);
  expect_one_kernel(sink(stored(at(local, {s}) * 2, {s})));
}

TEST_F(LocalMemory, IsReadInAnotherOrder) {
  const UOp r = loop(12, 1), s = loop(12, 2);
  const UOp local = stored(at(x_, {r}) * at(x_, {r}), {r}, AddrSpace::kLocal);
  expect_one_kernel(sink(stored(at(local, {s * -1 + 11}) + at(local, {s}), {s})));
}

TEST_F(LocalMemory, HasAxes) {
  const UOp i = loop(3, 1), j = loop(4, 2), k = loop(4, 3), l = loop(3, 4);
  const UOp local = stored(at(x_, {i * 4 + j}), {i, j}, AddrSpace::kLocal);
  expect_one_kernel(sink(stored(at(local, {l, k}), {k, l})));
}

TEST_F(LocalMemory, IsFilledInALoopOfItsReader) {
  const UOp i = loop(3, 1), j = loop(4, 2), k = loop(4, 3);
  const UOp local = stored(at(x_, {i * 4 + j}) + 7, {j}, AddrSpace::kLocal);
  expect_one_kernel(sink(stored(at(local, {k * -1 + 3}), {i, k})));
}

TEST_F(LocalMemory, HoldsASumThatEveryReaderNeeds) {
  const UOp i = loop(3, 1), j = range(arena_, 4, 2, AxisType::kReduce), k = loop(12, 3);
  const std::vector<UOp> over{j};
  const UOp sums = stored(reduce(Op::ADD, at(x_, {i * 4 + j}), over), {i}, AddrSpace::kLocal);
  expect_one_kernel(sink(stored(at(x_, {k}) - at(sums, {k / 4}), {k})));
}

TEST_F(LocalMemory, IsMadeOfOtherLocalMemory) {
  const UOp r = loop(12, 1), s = loop(12, 2), t = loop(12, 3);
  const UOp one = stored(at(x_, {r}) + 1, {r}, AddrSpace::kLocal);
  const UOp two = stored(at(one, {s * -1 + 11}) * 3, {s}, AddrSpace::kLocal);
  expect_one_kernel(sink(stored(at(two, {t}) + at(one, {t}), {t})), 2);
}

// ------------------------------------------------------------------------------------- transfers

class Transfers : public testing::Test {
 protected:
  Schedule expect_right(UOp root) {
    const std::map<int64_t, Array> inputs = {{1, numbers_}};
    Bindings bindings{inputs, {}};
    const std::vector<Array> expected = evaluate(root, bindings);
    const Schedule s = make_schedule(root);
    const std::vector<Array> got = test::run_schedule(s, inputs);
    for (size_t i = 0; i < got.size(); i++) EXPECT_EQ(expected[i].data, got[i].data) << i;
    for (const KernelCall& call : s.calls) expect_one_device_or_transfer(s, call);
    return s;
  }

  static void expect_one_device_or_transfer(const Schedule& s, const KernelCall& call) {
    bool is_transfer = false;
    for (uint32_t b : call.arguments) {
      is_transfer |= s.buffers[b].device != s.buffers[call.arguments[0]].device;
    }
    if (!is_transfer) return;
    ASSERT_EQ(call.arguments.size(), 2u);
    for (UOp n : toposort(call.ast)) {  // as it lies
      const bool computes = is_elementwise(n.op()) || n.is(Op::REDUCE);
      EXPECT_TRUE(!computes || n.dtype().is_index()) << name_of(n.op());
    }
  }

  Arena arena_;
  Array numbers_ = Array::of_ints(dtypes::float32, {6}, {3, 1, 4, 1, 5, 9});
  UOp x_ = buffer(arena_, dtypes::float32, 6, "REF", 1);
};

TEST_F(Transfers, ComeBeforeWhatReadsThem) {
  const Schedule s = expect_right(sink(contiguous(copy_to(x_, "REF") + copy_to(x_, "REF"))));
  EXPECT_EQ(s.calls.size(), 2u);
}

TEST_F(Transfers, AreToTheDeviceThatTheyName) {
  const UOp there = copy_to(x_, "CPU");
  const Schedule s = expect_right(sink(contiguous(there + there), contiguous(x_ * x_)));
  ASSERT_EQ(s.calls.size(), 3u);
  EXPECT_EQ(s.buffers[s.outputs[0]].device, "CPU");
  EXPECT_EQ(s.buffers[s.outputs[1]].device, "REF");
}

TEST_F(Transfers, AreOfMemory) {  // what is computed is computed where it is
  const std::vector<Dim> shape{2, 3};
  const std::vector<int64_t> order{1, 0}, axes{0};
  const UOp turned = permute(reshape(x_, shape), order);
  const Schedule s = expect_right(
      sink(copy_to(turned, "CPU"), copy_to(reduce_axis(Op::ADD, turned + turned, axes), "CPU")));
  for (uint32_t o : s.outputs) EXPECT_EQ(s.buffers[o].device, "CPU");
}

TEST_F(Transfers, ThereAndBack) {
  const UOp there = copy_to(x_ + x_, "CPU");
  const UOp back = copy_to(there * there, "REF");
  expect_right(sink(contiguous(back + x_)));
}

TEST_F(Transfers, AreWrittenTo) {
  const std::vector<std::pair<Dim, Dim>> box{{1, 3}};
  const UOp there = copy_to(x_, "CPU");
  const UOp next = after(there, shrink(there, box).assign(constant(arena_, dtypes::float32, 0.0)));
  expect_right(sink(next, contiguous(there + there)));
}

TEST_F(Transfers, OfValuesThatAreNoMemoryAsTheyLie) {  // sources of a SINK are stored, too
  const std::vector<Dim> shape{2, 3};
  const std::vector<int64_t> order{1, 0};
  expect_right(sink(permute(reshape(x_, shape), order), x_ + x_));
}

TEST(TransfersOfRanges, AreKernelsOfTheirOwn) {
  Arena arena;
  const UOp x = buffer(arena, dtypes::int32, 6, "REF", 1);
  const UOp r = range(arena, 6, 1), s = range(arena, 6, 2);
  const std::vector<UOp> in{r}, out{s};
  const UOp made = bufferize(index(x, in) + 1, in, AddrSpace::kGlobal);
  const UOp root = sink(bufferize(index(copy_to(made, "CPU"), out) * 2, out, AddrSpace::kGlobal));
  verify(root, Stage::kRangeified);
  const KernelGraph kernels = run_kernel_split_pipeline(root, {}, "REF", nullptr);
  Bindings before{{{1, Array::of_ints(dtypes::int32, {6}, {3, 1, 4, 1, 5, 9})}}, {}},
      after = before;
  const UOp split = with_asts(kernels);
  verify(split, Stage::kRangeified);
  EXPECT_EQ(evaluate(split, after)[0].data, evaluate(root, before)[0].data);
  EXPECT_EQ(kernels.asts.size(), 3u);
}

}  // namespace
}  // namespace weft
