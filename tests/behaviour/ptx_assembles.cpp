// What the PTX renderer writes, ptxas takes, for both machines: every op on every dtype, loops,
// gates, vectors and workgroups, and kernels of random graphs.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "codegen/lower.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "render/render.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/kernel_cases.h"
#include "tests/fuzz/random_exact_graph.h"
#include "tests/fuzz/random_opts.h"
#include "tests/fuzz/random_tensor_graph.h"
#include "tests/op_cases.h"
#include "tests/program_builder.h"
#include "tests/ptxas.h"

namespace weft {
namespace {

using test::ProgramBuilder;
using test::PtxBatch;

class PtxAssembles : public testing::TestWithParam<PtxLevel> {
 protected:
  void SetUp() override {
    ptxas_ = test::find_ptxas();
    if (ptxas_.empty()) GTEST_SKIP() << "there is no ptxas";
  }
  void expect_assembled() { EXPECT_EQ(batch_.fault(ptxas_), ""); }

  PtxBatch batch_{GetParam()};

 private:
  std::string ptxas_;
};
INSTANTIATE_TEST_SUITE_P(All, PtxAssembles, testing::Values(PtxLevel::kSm80, PtxLevel::kSm90),
                         [](const auto& test) {
                           return test.param == PtxLevel::kSm90 ? "sm_90" : "sm_80";
                         });

TEST_P(PtxAssembles, EveryOp) {
  const Target target = ptx_target();
  for (const DType type : test::kOpTypes) {
    for (const uint16_t lanes : {1, 4}) {
      test::OpCase c(type, target, std::array{lanes});
      batch_.add(c.builder.linear());
    }
  }
  expect_assembled();
}

// 32 x 4 threads of a group turn a tile over in local memory and sum it; `large` local memory is
// that of the launch.
void add_workgroup(ProgramBuilder& b, DType index, int64_t local_size) {
  const UOp n =
      b.add(Op::VARIABLE, index, {b.integer(1, index), b.integer(1000, index)}, Arg::name("n"));
  const UOp in = b.global(dtypes::float32, 4096, 0), out = b.global(dtypes::float32, 4096, 1);
  const UOp local = b.add(Op::DEFINE_LOCAL, dtypes::float32.ptr(AddrSpace::kLocal),
                          {b.integer(local_size)}, Arg::integer(0));
  const UOp group = b.add(Op::SPECIAL, index, {n}, Arg::name("gidx1"));
  const UOp x = b.add(Op::SPECIAL, index, {b.integer(32, index)}, Arg::name("lidx0"));
  const UOp y = b.add(Op::SPECIAL, index, {b.integer(4, index)}, Arg::name("lidx1"));
  const UOp at = b.binary(Op::ADD, b.binary(Op::MUL, y, b.integer(32, index)), x);
  const UOp place = b.binary(Op::ADD, b.binary(Op::MUL, group, b.integer(128, index)), at);
  const UOp gate = b.binary(Op::CMPLT, place, b.integer(4096, index));
  const UOp zero = b.constant(dtypes::float32, 0);
  const UOp value = b.add(Op::LOAD, dtypes::float32, {b.at(in, place), gate, zero});
  const UOp filled = b.store(b.at(local, at), value);
  const UOp barrier = b.add(Op::BARRIER, dtypes::void_, {filled});
  const UOp sum = b.reg(dtypes::float32, 0);
  const UOp begin = b.write(sum, zero);
  const UOp r = b.range(b.integer(4, index), 7, AxisType::kReduce);
  const UOp old = b.after(sum, {begin, r});
  const UOp there = b.binary(Op::ADD, b.binary(Op::MUL, x, b.integer(4, index)), r);
  const UOp read = b.load(b.at(b.after(local, {barrier}), there));
  const UOp done = b.end(b.write(old, b.binary(Op::ADD, old, read)), r);
  b.add(Op::STORE, dtypes::void_, {b.at(out, place), b.after(sum, {done}), gate});
}

TEST_P(PtxAssembles, Workgroups) {
  for (const DType index : {dtypes::int32, dtypes::int64}) {
    for (const int64_t local_size : {128, 20000}) {
      ProgramBuilder b;
      add_workgroup(b, index, local_size);
      batch_.add(b.linear());
    }
  }
  EXPECT_NE(batch_.text().find(".maxntid 32, 4, 1"), std::string::npos);
  EXPECT_NE(batch_.text().find(".extern .shared"), std::string::npos);
  expect_assembled();
}

// Vectors in memory of every dtype, with a gate for all lanes and one for each.
TEST_P(PtxAssembles, GatedVectors) {
  for (const DType type : test::kOpTypes) {
    for (const uint16_t lanes : {2, 3, 4, 8}) {
      ProgramBuilder b;
      const UOp from = b.global(type, 96, 0), to = b.global(type, 96, 1);
      const UOp gates = b.global(dtypes::bool_, 96, 2);
      const UOp r = b.range(b.integer(96 / lanes), 0);
      const UOp i = b.binary(Op::MUL, r, b.integer(lanes));
      const UOp otherwise = b.constant(type.vec(lanes), 1);
      const UOp each = b.load(b.at(gates, i, lanes));
      const UOp one = b.binary(Op::CMPLT, r, b.integer(3));
      const UOp x = b.add(Op::LOAD, type.vec(lanes), {b.at(from, i, lanes), one, otherwise});
      const UOp y = b.add(Op::LOAD, type.vec(lanes), {b.at(from, i, lanes), each, otherwise});
      b.add(Op::STORE, dtypes::void_, {b.at(to, i, lanes), x, one});
      const UOp last = b.add(Op::STORE, dtypes::void_, {b.at(to, i, lanes), y, each});
      b.end(last, r);
      batch_.add(b.linear());
    }
  }
  expect_assembled();
}

TEST_P(PtxAssembles, RandomKernels) {
  constexpr size_t kernels = 120;
  fuzz::Choices choices(7);
  const Target target = ptx_target();
  while (batch_.size() < kernels) {
    Arena arena;
    const bool is_exact = !choices.one_in(3);
    const auto [sink, buffers] = is_exact ? fuzz::RandomExactGraph(arena, choices).make()
                                          : fuzz::RandomTensorGraph(arena, choices).make();
    for (const test::KernelCase& kernel : test::kernel_cases(sink, buffers)) {
      const OptList opts = fuzz::random_opts(kernel.ast, choices, fuzz::Reductions::kLeft,
                                             {.copies = 32, .threads = 256});
      batch_.add(choices.one_in(2) ? lower(kernel.ast, target) : lower(kernel.ast, target, opts));
    }
  }
  expect_assembled();
}

}  // namespace
}  // namespace weft
