// Rangeified graphs: BUFFERIZE, INDEX, REDUCE over ranges, and KERNELs on buffers.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "tests/unit/evaluate_helpers.h"

namespace weft::test {
namespace {

class EvaluateRangeified : public testing::Test {
 protected:
  UOp input(int64_t id, const Array& array) {
    bindings_.buffers[id] = array;
    return buffer(arena_, array.dtype, array.size(), "CPU", id);
  }
  UOp loop(Dim size, int64_t id) { return range(arena_, size, id); }
  Array run(UOp n) { return evaluate(n, bindings_).at(0); }
  static UOp stored(UOp x, const std::vector<UOp>& ranges) {
    return bufferize(x, ranges, AddrSpace::kGlobal);
  }
  static UOp at(UOp x, const std::vector<UOp>& indices) { return index(x, indices); }

  Arena arena_;
  Bindings bindings_;
};

TEST_F(EvaluateRangeified, BufferizeIsAnArrayOverItsRanges) {
  const UOp x = input(1, ints({1, 2, 3, 4, 5, 6})), i = loop(2, 0), j = loop(3, 1);
  const UOp b = stored(at(x, {j * 2 + i}), {i, index_const(arena_, 0), j});
  EXPECT_EQ(run(b), Array::of_ints(dtypes::int32, {2, 1, 3}, {1, 3, 5, 2, 4, 6}));
}

TEST_F(EvaluateRangeified, IndexReadsAnElement) {
  const UOp x = input(1, ints({1, 2, 3, 4, 5, 6})), i = loop(2, 0), j = loop(3, 1), k = loop(2, 2);
  const UOp b = stored(at(x, {i * 3 + j}), {i, j});
  const UOp transposed = stored(at(b, {k, index_const(arena_, 2)}), {k});
  EXPECT_EQ(run(transposed), ints({3, 6}));
  EXPECT_EQ(run(at(stored(constant(arena_, dtypes::int32, 5), {}), {})).ints()[0], 5);
}

TEST_F(EvaluateRangeified, ReduceFoldsWithTheLastRangeFastest) {
  const UOp x = input(1, floats({1e8, 1, -1e8, 1})), i = loop(2, 0), j = loop(2, 1);
  const std::vector<UOp> ij{i, j}, ji{j, i};
  EXPECT_EQ(run(reduce(Op::ADD, at(x, {i * 2 + j}), ij)).doubles()[0], 1);
  EXPECT_EQ(run(reduce(Op::ADD, at(x, {i * 2 + j}), ji)).doubles()[0], 2);
}

TEST_F(EvaluateRangeified, ReduceOfWhatIgnoresTheRangeStillCounts) {
  const UOp i = loop(4, 0), none = loop(0, 1);
  const UOp three = constant(arena_, dtypes::int32, 3);
  EXPECT_EQ(run(reduce(Op::ADD, three, {&i, 1})).ints()[0], 12);
  EXPECT_EQ(run(reduce(Op::MUL, three, {&none, 1})).ints()[0], 1);
}

TEST_F(EvaluateRangeified, ReductionsNest) {
  // softmax without exp: x[i] - max_j x[j], then the sum of it over i, which reads both again
  const UOp x = input(1, ints({3, 1, 7, 5})), i = loop(4, 0), j = loop(4, 1), k = loop(4, 2);
  const UOp most = reduce(Op::MAX, at(x, {j}), {&j, 1});
  const UOp sum = reduce(Op::ADD, at(x, {i}) - most, {&i, 1});
  EXPECT_EQ(run(stored((at(x, {k}) - most) * sum, {k})), ints({48, 72, 0, 24}));
}

TEST_F(EvaluateRangeified, OneRangeMayServeLoopsThatFollowEachOther) {
  const UOp x = input(1, ints({3, 1, 7, 5})), i = loop(4, 0);
  const UOp most = reduce(Op::MAX, at(x, {i}), {&i, 1});
  EXPECT_EQ(run(reduce(Op::ADD, at(x, {i}) - most, {&i, 1})).ints()[0], -12);
}

TEST_F(EvaluateRangeified, LoopsMayDependOnOuterLoops) {
  const UOp i = loop(4, 0), j = range(arena_, Dim(i), 1);
  const UOp triangle = reduce(Op::ADD, cast(j, dtypes::int32), {&j, 1});
  EXPECT_EQ(run(stored(triangle, {i})), ints({0, 0, 1, 3}));
}

TEST_F(EvaluateRangeified, SymbolicRangesComeFromVariables) {
  const UOp n = variable(arena_, "n", 1, 8), i = loop(n, 0);
  bindings_.variables["n"] = 3;
  EXPECT_EQ(run(stored(cast(i * n, dtypes::int32), {i})), ints({0, 3, 6}));
}

TEST_F(EvaluateRangeified, StoresToABufferChangeItsBinding) {
  const UOp x = input(1, ints({1, 2, 3, 4})), i = loop(2, 0), j = loop(4, 1);
  const UOp doubled = end(at(x, {i}).assign(at(x, {i}) * 2), {i});
  const UOp next = after(x, {doubled});
  EXPECT_EQ(run(next), ints({2, 4, 3, 4}));
  EXPECT_EQ(bindings_.buffers[1], ints({2, 4, 3, 4}));
  const UOp filled = after(next, {next.assign(constant(arena_, dtypes::int32, 9))});
  EXPECT_EQ(run(filled), ints({9, 9, 9, 9}));
  const UOp whole = after(x, {x.assign(stored(cast(j, dtypes::int32), {j}))});
  EXPECT_EQ(run(whole), ints({0, 1, 2, 3}));
}

TEST_F(EvaluateRangeified, EachRootSeesItsOwnVersion) {
  const UOp x = input(1, ints({1, 2}));
  const UOp zero = index_const(arena_, 0);
  const UOp once = after(x, {at(x, {zero}).assign(at(x, {zero}) + 10)});
  const UOp twice = after(once, {at(once, {zero}).assign(at(once, {zero}) + 100)});
  const std::vector<Array> got = evaluate(sink({twice, once, x}), bindings_);
  EXPECT_EQ(got[0], ints({111, 2}));
  EXPECT_EQ(got[1], ints({11, 2}));
  EXPECT_EQ(got[2], ints({1, 2}));
}

TEST_F(EvaluateRangeified, CopiesAreArraysToo) {
  const UOp x = input(1, ints({1, 2, 3})), i = loop(3, 0);
  EXPECT_EQ(run(stored(at(copy_to(x, "CUDA"), {i}) + 1, {i})), ints({2, 3, 4}));
}

class EvaluateKernels : public EvaluateRangeified {
 protected:
  // A kernel that adds: data0[i] = data1[i] + data2[i], all of this size.
  UOp add_ast(Dim size) {
    const UOp i = loop(size, 100);
    auto data = [&](int64_t id) {
      return index(define_global(arena_, dtypes::int32, size, id), i);
    };
    return sink({end(data(0).assign(load(data(1)) + load(data(2))), {i})});
  }
  UOp kernel(UOp ast, const std::vector<UOp>& arguments) {
    std::vector<UOp> srcs{ast};
    srcs.insert(srcs.end(), arguments.begin(), arguments.end());
    return arena_.make(Op::KERNEL, dtypes::void_, srcs, Arg::name("k"));
  }
};

TEST_F(EvaluateKernels, RunOnTheBuffersTheyAreGiven) {
  const UOp a = input(11, ints({1, 2, 3})), b = input(12, ints({10, 20, 30}));
  const UOp t = buffer(arena_, dtypes::int32, 3, "CPU", 13);
  const UOp out = buffer(arena_, dtypes::int32, 3, "CPU", 14);
  const UOp first = kernel(add_ast(3), {t, a, b});
  const UOp second = kernel(add_ast(3), {out, after(t, {first}), a});
  EXPECT_EQ(run(sink({after(out, {second})})), ints({12, 24, 36}));
  EXPECT_EQ(bindings_.buffers.at(13), ints({11, 22, 33}));
  EXPECT_EQ(bindings_.buffers.at(14), ints({12, 24, 36}));
}

TEST_F(EvaluateKernels, MayGetOneBufferTwice) {
  const UOp a = input(11, ints({1, 2, 3}));
  EXPECT_EQ(run(after(a, {kernel(add_ast(3), {a, a, a})})), ints({2, 4, 6}));
}

TEST_F(EvaluateKernels, GetVariablesAndScalars) {
  const UOp n = variable(arena_, "n", 1, 8), a = input(11, ints({1, 2, 3, 4}));
  EXPECT_EQ(run(after(a, {kernel(add_ast(n), {a, a, a, bind(n, index_const(arena_, 2))})})),
            ints({2, 4, 3, 4}));
  const UOp out = define_global(arena_, dtypes::int32, 1, 0);
  const UOp scalar = define_global(arena_, dtypes::int32, 1);
  const UOp ast = sink({index(out, index_const(arena_, 0)).assign(scalar + 1)});
  EXPECT_EQ(run(after(a, {kernel(ast, {a, constant(arena_, dtypes::int32, 41)})})),
            ints({42, 4, 3, 4}));
}

TEST_F(EvaluateKernels, RunInTheOrderOfTheGraph) {
  const UOp a = input(11, ints({1})), b = input(12, ints({5}));
  // a = a + b; b = a + a of the new a; a = b + b of the new b
  const UOp k1 = kernel(add_ast(1), {a, a, b});
  const UOp a1 = after(a, {k1});
  const UOp k2 = kernel(add_ast(1), {b, a1, a1});
  const UOp b1 = after(b, {k2});
  const UOp k3 = kernel(add_ast(1), {a1, b1, b1});
  EXPECT_EQ(run(after(a1, {k3})), ints({24}));
  EXPECT_EQ(bindings_.buffers.at(12), ints({12}));
}

TEST_F(EvaluateKernels, ReadingABufferThatNothingWroteIsAnError) {
  const UOp a = input(11, ints({1}));
  const UOp never = buffer(arena_, dtypes::int32, 1, "CPU", 12);
  EXPECT_NE(error_of<Error>([&] {
              run(after(a, {kernel(add_ast(1), {a, a, never})}));
            }).find("read before it is written"),
            std::string::npos);
}

TEST_F(EvaluateRangeified, FaultyElementsAreErrorsWhereTheyAreUsed) {
  const UOp x = input(1, ints({1, 2, 3})), i = loop(4, 0);
  const UOp gate = i < 3, zero = constant(arena_, dtypes::int32, 0);
  EXPECT_EQ(run(stored(where(gate, at(x, {i}), zero), {i})), ints({1, 2, 3, 0}));
  const std::string message = error_of<IndexError>([&] { run(stored(at(x, {i}), {i})); });
  EXPECT_NE(message.find("INDEX: element 3 of 3, at r0 = 3"), std::string::npos) << message;
}

TEST_F(EvaluateRangeified, OpenRangesAreRefused) {
  const UOp i = loop(4, 0);
  EXPECT_NE(error_of<InternalError>([&] { run(i + 1); }).find("outside of its loop"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::test
