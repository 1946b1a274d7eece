// Kernel graphs: accumulators, nested loops and the order of effects.
#include <algorithm>
#include <cmath>
#include <cstddef>
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
#include "ir/op.h"
#include "ir/spec.h"
#include "tests/unit/evaluate_helpers.h"

namespace weft::test {
namespace {

class EvaluateKernelLoops : public testing::Test {
 protected:
  UOp pointer(int64_t id, int64_t size, DType type = dtypes::float32) {
    return define_global(arena_, type, size, id);
  }
  UOp loop(Dim size, int64_t id) { return range(arena_, size, id); }
  UOp reg(int64_t id, DType type = dtypes::float32) { return define_reg(arena_, type, id); }
  UOp number(double value) { return constant(arena_, dtypes::float32, value); }
  static UOp read(UOp p, UOp i) { return load(index(p, i)); }
  static UOp write(UOp p, UOp i, UOp value) { return index(p, i).assign(value); }

  // The register with `op` of x over range r, started in the loop `outer`: AFTER its loop.
  UOp accumulate(Op op, UOp start, UOp x, UOp r, UOp outer, int64_t id) {
    const UOp acc = reg(id, x.dtype());
    const UOp init = after(acc, {outer}).assign(start);
    const UOp inside = after(acc, {init, r});
    return after(acc, {end(inside.assign(binary(op, inside, x)), {r})});
  }

  void run(const std::vector<UOp>& effects) {
    const UOp root = weft::sink(arena_, effects);
    verify(root, Stage::kKernel);
    evaluate(root, bindings_);
  }
  std::vector<double> buffer(int64_t id) { return bindings_.buffers.at(id).doubles(); }

  Arena arena_;
  Bindings bindings_;
};

using Numbers = std::vector<double>;
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST_F(EvaluateKernelLoops, AnAccumulatorStartsAnewInEveryOuterIteration) {
  bindings_.buffers[1] = floats({1, 2, 3, 4, 5, 6});
  const UOp in = pointer(1, 6), out = pointer(0, 2), i = loop(2, 0), r = loop(3, 1);
  const UOp sum = accumulate(Op::ADD, number(0), read(in, i * 3 + r), r, i, 0);
  run({end(write(out, i, sum), {i})});
  EXPECT_EQ(buffer(0), (Numbers{6, 15}));
}

TEST_F(EvaluateKernelLoops, AnAccumulatorOutsideOfTheLoopGoesOn) {
  const UOp out = pointer(0, 3), i = loop(3, 0);
  const UOp acc = reg(0), init = acc.assign(number(10)), inside = after(acc, {init, i});
  const UOp step = inside.assign(inside + number(1));
  run({end(write(out, i, after(acc, {step})), {i})});
  EXPECT_EQ(buffer(0), (Numbers{11, 12, 13}));
}

TEST_F(EvaluateKernelLoops, AStoreToARegisterIsItsValue) {
  const UOp out = pointer(0, 3), i = loop(3, 0), acc = reg(0);
  const UOp inside = after(acc, {acc.assign(number(1)), i});
  const UOp doubled = inside.assign(inside * number(2));
  EXPECT_EQ(doubled.dtype(), dtypes::float32);
  const UOp sum = arena_.make(Op::ADD, dtypes::float32, {doubled, number(0.5)});
  const UOp root = sink({end(write(out, i, after(sum, {doubled})), {i})});
  evaluate(root, bindings_);
  EXPECT_EQ(buffer(0), (Numbers{2.5, 4.5, 8.5}));
}

TEST_F(EvaluateKernelLoops, AccumulatorsNest) {
  // sum over i of the largest of row i: a register inside of another one's loop
  bindings_.buffers[1] = floats({1, 9, 3, 7, 5, 6});
  const UOp in = pointer(1, 6), out = pointer(0, 2), o = loop(2, 0), i = loop(3, 1), r = loop(2, 2);
  const UOp most = accumulate(Op::MAX, number(-kInf), read(in, i * 2 + r), r, i, 0);
  const UOp total = accumulate(Op::ADD, number(0), most + cast(o, dtypes::float32), i, o, 1);
  run({end(write(out, o, total), {o})});
  EXPECT_EQ(buffer(0), (Numbers{22, 25}));
}

TEST_F(EvaluateKernelLoops, TwoAccumulatorsShareALoop) {
  bindings_.buffers[1] = floats({1, 2, 3, 4});
  const UOp in = pointer(1, 4), out = pointer(0, 2), r = loop(4, 0);
  const UOp sum = reg(0), running = reg(1);
  const UOp sum_in = after(sum, {sum.assign(number(0)), r});
  const UOp sum_step = sum_in.assign(sum_in + read(in, r));
  const UOp running_in = after(running, {running.assign(number(0)), r});
  // The second adds up what the first holds in the same iteration: its store is in both loops.
  const UOp running_step = running_in.assign(running_in + after(sum, {sum_step}));
  const UOp zero = index_const(arena_, 0), one = index_const(arena_, 1);
  run({write(out, zero, after(sum, {end(sum_step, {r})})),
       write(out, one, after(running, {end(running_step, {r})}))});
  EXPECT_EQ(buffer(0), (Numbers{10, 20}));
}

TEST_F(EvaluateKernelLoops, AccumulatorsMayDependOnOneAnotherInTurn) {
  // Fibonacci: (a, b) = (b, a + b), both read before either is written
  const UOp out = pointer(0, 2), r = loop(5, 0), a = reg(0), b = reg(1);
  const UOp starts[] = {a.assign(number(0)), b.assign(number(1))};
  const UOp a_in = after(a, {starts[0], r}), b_in = after(b, {starts[1], r});
  const UOp a_end = end(a_in.assign(b_in), {r}), b_end = end(b_in.assign(a_in + b_in), {r});
  run({write(out, index_const(arena_, 0), after(a, {a_end})),
       write(out, index_const(arena_, 1), after(b, {b_end}))});
  EXPECT_EQ(buffer(0), (Numbers{5, 8}));
}

TEST_F(EvaluateKernelLoops, MatrixProduct) {
  constexpr int64_t n = 3, m = 4, k = 5;
  Numbers a, b;
  for (int64_t i = 0; i < n * k; i++) a.push_back(double(i % 7) - 3);
  for (int64_t i = 0; i < k * m; i++) b.push_back(double(i % 5) - 2);
  bindings_.buffers[1] = floats(a);
  bindings_.buffers[2] = floats(b);
  const UOp i = loop(n, 0), j = loop(m, 1), r = loop(k, 2);
  const UOp x = read(pointer(1, n * k), i * k + r), y = read(pointer(2, k * m), r * m + j);
  const UOp acc = reg(0), init = after(acc, {i, j}).assign(number(0));
  const UOp inside = after(acc, {init, r});
  const UOp sum = after(acc, {end(inside.assign(mulacc(x, y, inside)), {r})});
  run({end(write(pointer(0, n * m), i * m + j, sum), {i, j})});
  Numbers want;
  for (int64_t row = 0; row < n; row++) {
    for (int64_t column = 0; column < m; column++) {
      double dot = 0;
      for (int64_t q = 0; q < k; q++) dot += a[size_t(row * k + q)] * b[size_t(q * m + column)];
      want.push_back(dot);
    }
  }
  EXPECT_EQ(buffer(0), want);
}

TEST_F(EvaluateKernelLoops, Softmax) {
  const Numbers x{1, 3, 2, 0, -1, 5};
  bindings_.buffers[1] = floats(x);
  const UOp in = pointer(1, 6), out = pointer(0, 6);
  const UOp i = loop(2, 0), r1 = loop(3, 1), r2 = loop(3, 2), j = loop(3, 3);
  const UOp most = accumulate(Op::MAX, number(-kInf), read(in, i * 3 + r1), r1, i, 0);
  auto power = [&](UOp column) { return unary(Op::EXP2, read(in, i * 3 + column) - most); };
  const UOp sum = accumulate(Op::ADD, number(0), power(r2), r2, i, 1);
  run({end(write(out, i * 3 + j, power(j) / sum), {i, j})});
  for (size_t row = 0; row < 2; row++) {
    float total = 0;
    const double top = *std::max_element(x.begin() + long(row) * 3, x.begin() + long(row) * 3 + 3);
    for (size_t c = 0; c < 3; c++) total += float(std::exp2(x[row * 3 + c] - top));
    for (size_t c = 0; c < 3; c++) {
      EXPECT_EQ(buffer(0)[row * 3 + c], float(std::exp2(x[row * 3 + c] - top)) / total);
    }
  }
}

TEST_F(EvaluateKernelLoops, ALaterLoopReadsWhatAnEarlierOneStored) {
  // prefix sums in place, then a loop that reads them backwards
  bindings_.buffers[1] = floats({1, 2, 3, 4});
  const UOp p = pointer(1, 4), out = pointer(0, 4), i = loop(3, 0), j = loop(4, 1);
  const UOp sums = end(write(p, i + 1, read(p, i + 1) + read(p, i)), {i});
  const UOp done = after(p, {sums});
  run({end(write(out, j, read(done, index_const(arena_, 3) - j)), {j})});
  EXPECT_EQ(buffer(0), (Numbers{10, 6, 3, 1}));
}

TEST_F(EvaluateKernelLoops, AnEffectOfAnOuterScopeHappensOnce) {
  // The store to t does not depend on j: once per i, before the loop over j that reads it.
  const UOp t = pointer(1, 1), out = pointer(0, 6), i = loop(3, 0), j = loop(2, 1);
  const UOp zero = index_const(arena_, 0);
  bindings_.buffers[1] = floats({1});
  const UOp doubled = write(t, zero, load(index(after(t, {i}), zero)) * number(2));
  run({end(write(out, i * 2 + j, read(after(t, {doubled}), zero)), {i, j})});
  EXPECT_EQ(buffer(0), (Numbers{2, 2, 4, 4, 8, 8}));
}

TEST_F(EvaluateKernelLoops, ReadsComeBeforeWritesThatTheyDoNotWaitFor) {
  // x, y = y, x: two stores in one loop
  bindings_.buffers[0] = floats({1, 2, 3});
  bindings_.buffers[1] = floats({4, 5, 6});
  const UOp x = pointer(0, 3), y = pointer(1, 3), i = loop(3, 0);
  run({end(write(x, i, read(y, i)), {i}), end(write(y, i, read(x, i)), {i})});
  EXPECT_EQ(buffer(0), (Numbers{4, 5, 6}));
  EXPECT_EQ(buffer(1), (Numbers{1, 2, 3}));
}

TEST_F(EvaluateKernelLoops, EndsOfOneRangeThatWaitForEachOtherAreTwoLoops) {
  const UOp x = pointer(0, 3), y = pointer(1, 3), i = loop(3, 0);
  const UOp first = end(write(x, i, cast(i, dtypes::float32)), {i});
  const UOp reversed = read(after(x, {first}), index_const(arena_, 2) - i);
  run({first, end(write(y, i, reversed), {i})});
  EXPECT_EQ(buffer(1), (Numbers{2, 1, 0}));
}

TEST_F(EvaluateKernelLoops, LoopsOfNoIterationsDoNothing) {
  const UOp n = variable(arena_, "n", 0, 4), out = pointer(0, 1), i = loop(n, 0);
  bindings_.variables["n"] = 0;
  bindings_.buffers[0] = floats({7});
  const UOp none = pointer(1, 4);
  const UOp sum = accumulate(Op::ADD, number(1), read(none, i), i, loop(1, 1), 0);
  run({end(write(out, index_const(arena_, 0), sum), {loop(1, 1)})});
  EXPECT_EQ(buffer(0), (Numbers{1}));
}

TEST_F(EvaluateKernelLoops, ReduceIsAFold) {
  bindings_.buffers[1] = floats({1, 2, 3, 4});
  const UOp in = pointer(1, 4), out = pointer(0, 2), i = loop(2, 0), r = loop(2, 1);
  const UOp sum = reduce(Op::MUL, read(in, i * 2 + r), {&r, 1});
  run({end(write(out, i, sum), {i})});
  EXPECT_EQ(buffer(0), (Numbers{2, 12}));
}

TEST_F(EvaluateKernelLoops, AnEffectInTwoLoopsIsRefused) {
  // The same store under i then j, and under j then i.
  const UOp out = pointer(0, 4), i = loop(2, 0), j = loop(2, 1);
  const UOp store = write(out, i * 2 + j, number(1));
  EXPECT_NE(error_of<InternalError>([&] {
              run({end(store, {i, j}), end(store, {j, i})});
            }).find("would happen twice"),
            std::string::npos);
}

TEST_F(EvaluateKernelLoops, LongChainsInLoopsAreFine) {
  const UOp out = pointer(0, 2), i = loop(2, 0);
  UOp x = cast(i, dtypes::float32);
  for (int k = 0; k < 100000; k++) x = arena_.make(Op::ADD, dtypes::float32, {x, number(1)});
  run({end(write(out, i, x), {i})});
  EXPECT_EQ(buffer(0), (Numbers{100000, 100001}));
}

}  // namespace
}  // namespace weft::test
