// The form of programs (loops, registers, gates, masks, scratch memory, variables, threads),
// compiled from both renderers and compared with the reference evaluator.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ir/arena.h"
#include "ir/array.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "render/render.h"
#include "tests/program_builder.h"
#include "tests/run_program.h"

namespace weft {
namespace {

using test::Buffers;
using test::Call;
using test::Language;
using test::ProgramBuilder;

class RenderedPrograms : public testing::TestWithParam<Language> {
 protected:
  void SetUp() override {
    if (!test::has_compiler(GetParam())) GTEST_SKIP() << "no compiler";
  }

  Buffers run(UOp linear, const Buffers& buffers, const Call& call = {}) {
    const bool is_c = GetParam() == Language::kC;
    const std::string text = is_c ? render_c(linear, "kernel") : render_llvm(linear, "kernel");
    const test::CompiledProgram program(GetParam(), text);
    EXPECT_EQ(program.error(), "") << text;
    if (!program.error().empty()) return buffers;
    return test::called(program.function("kernel"), linear, buffers, call);
  }

  ProgramBuilder b;  // NOLINT(readability-identifier-naming): it is in every line
};
INSTANTIATE_TEST_SUITE_P(All, RenderedPrograms, testing::Values(Language::kC, Language::kLlvm),
                         [](const auto& test) {
                           return test.param == Language::kC ? "C" : "LLVM";
                         });

Array counting(DType type, int64_t size, int64_t first = 1) {
  std::vector<int64_t> numbers;
  for (int64_t k = 0; k < size; k++) numbers.push_back(first + k);
  return Array::of_ints(type, {size}, numbers);
}

TEST_P(RenderedPrograms,
       NestedLoopsWithAVectorRegister) {  // c[i, 0..8] = sum over k of a[i,k] * b[k,0..8]
  constexpr uint16_t lanes = 8;
  const DType vector = dtypes::float32.vec(lanes);
  const UOp c = b.global(dtypes::float32, 24, 0), x = b.global(dtypes::float32, 15, 1),
            y = b.global(dtypes::float32, 40, 2), acc = b.reg(vector, 0);
  const UOp i = b.range(b.integer(3), 0);
  const UOp init = b.write(acc, b.constant(vector, 0));
  const UOp k = b.range(b.integer(5), 1, AxisType::kReduce);
  const UOp a = b.load(b.at(x, b.binary(Op::ADD, b.binary(Op::MUL, i, b.integer(5)), k)));
  const UOp row = b.load(b.at(y, b.binary(Op::MUL, k, b.integer(lanes)), lanes));
  const UOp wide = b.add(Op::VECTORIZE, vector, std::vector<UOp>(lanes, a));
  const UOp old = b.after(acc, {init, k});
  const UOp body = b.write(b.after(acc, {init, k}), b.add(Op::MULACC, vector, {wide, row, old}));
  const UOp done = b.end(body, k);
  const UOp result = b.after(acc, {done});
  b.end(b.store(b.at(c, b.binary(Op::MUL, i, b.integer(lanes)), lanes), result), i);
  const Buffers in = {{0, Array::zeros(dtypes::float32, {24})},
                      {1, counting(dtypes::float32, 15)},
                      {2, counting(dtypes::float32, 40)}};
  EXPECT_EQ(run(b.linear(), in), test::evaluated(b.linear(), in));
}

TEST_P(RenderedPrograms, RegisterIsReadWhereTheListReadsIt) {
  const UOp out = b.global(dtypes::int32, 2, 0), acc = b.reg(dtypes::int32, 0);
  const UOp first = b.write(acc, b.integer(1));
  const UOp before = b.after(acc, {first});
  const UOp second = b.write(b.after(acc, {first}), b.binary(Op::ADD, before, b.integer(10)));
  const UOp now = b.after(acc, {second});
  b.store(b.at(out, b.integer(0)), before);
  b.store(b.at(out, b.integer(1)), now);
  const Buffers in = {{0, Array::zeros(dtypes::int32, {2})}};
  EXPECT_EQ(run(b.linear(), in).at(0).ints(), (std::vector<int64_t>{1, 11}));
}

TEST_P(RenderedPrograms, LoadIsReadBeforeALaterStore) {  // swaps two elements
  const UOp p = b.global(dtypes::int32, 2, 0);
  const UOp at0 = b.at(p, b.integer(0)), at1 = b.at(p, b.integer(1));
  const UOp x = b.load(at0), y = b.load(at1);
  b.store(at0, y);
  b.store(at1, x);
  const Buffers in = {{0, counting(dtypes::int32, 2)}};
  EXPECT_EQ(run(b.linear(), in).at(0).ints(), (std::vector<int64_t>{2, 1}));
}

TEST_P(RenderedPrograms, GatedElements) {  // out[i] = i < 3 ? in[i] : 7, for i < 5
  const UOp out = b.global(dtypes::float32, 8, 0), in = b.global(dtypes::float32, 3, 1);
  const UOp i = b.range(b.integer(8), 0);
  const UOp gate = b.binary(Op::CMPLT, i, b.integer(3)),
            write = b.binary(Op::CMPLT, i, b.integer(5));
  const UOp seven = b.constant(dtypes::float32, bits_of_int(dtypes::float32, 7));
  const UOp x = b.add(Op::LOAD, dtypes::float32, {b.at(in, i), gate, seven});
  b.end(b.add(Op::STORE, dtypes::void_, {b.at(out, i), x, write}), i);
  const Buffers buffers = {{0, Array::zeros(dtypes::float32, {8})},
                           {1, counting(dtypes::float32, 3)}};
  EXPECT_EQ(run(b.linear(), buffers), test::evaluated(b.linear(), buffers));
}

TEST_P(RenderedPrograms,
       MaskedVectors) {  // the last vector of 6 elements in lanes of 4, from element 1
  for (const DType type : {dtypes::float32, dtypes::bool_, dtypes::bfloat16, dtypes::int64}) {
    ProgramBuilder p;
    const DType vector = type.vec(4);
    const UOp out = p.global(type, 7, 0), in = p.global(type, 7, 1);
    const UOp i = p.range(p.integer(2), 0);
    const UOp at = p.binary(Op::ADD, p.binary(Op::MUL, i, p.integer(4)), p.integer(1));
    std::vector<UOp> lanes;
    for (int64_t k = 0; k < 4; k++) lanes.push_back(p.binary(Op::ADD, at, p.integer(k)));
    const UOp places = p.add(Op::VECTORIZE, dtypes::int32.vec(4), lanes);
    const UOp gate = p.binary(Op::CMPLT, places, p.constant(dtypes::int32.vec(4), 7));
    const UOp other = p.constant(vector, bits_of_int(type, 1));
    const UOp x = p.add(Op::LOAD, vector, {p.at(in, at, 4), gate, other});
    const UOp kept = p.add(Op::WHERE, vector, {gate, x, other});
    p.end(p.add(Op::STORE, dtypes::void_, {p.at(out, at, 4), kept, gate}), i);
    const Buffers buffers = {{0, Array::zeros(type, {7})}, {1, counting(type, 7, 0)}};
    EXPECT_EQ(run(p.linear(), buffers), test::evaluated(p.linear(), buffers)) << type.name();
  }
}

TEST_P(RenderedPrograms, VectorsUnderOneGate) {
  const DType vector = dtypes::int16.vec(8);
  const UOp out = b.global(dtypes::int16, 24, 0), in = b.global(dtypes::int16, 8, 1);
  const UOp i = b.range(b.integer(3), 0);
  const UOp gate = b.binary(Op::CMPLT, i, b.integer(1)),
            write = b.binary(Op::CMPLT, i, b.integer(2));
  const UOp at = b.binary(Op::MUL, i, b.integer(8));
  const UOp x = b.add(Op::LOAD, vector, {b.at(in, at, 8), gate, b.constant(vector, 5)});
  b.end(b.add(Op::STORE, dtypes::void_, {b.at(out, at, 8), x, write}), i);
  const Buffers buffers = {{0, Array::zeros(dtypes::int16, {24})}, {1, counting(dtypes::int16, 8)}};
  EXPECT_EQ(run(b.linear(), buffers), test::evaluated(b.linear(), buffers));
}

TEST_P(RenderedPrograms, ScratchMemoryAndBlocks) {
  const UOp out = b.global(dtypes::int64, 4, 0);
  const auto local = [&](DType type, int64_t size, int64_t id) {
    return b.add(Op::DEFINE_LOCAL, type.ptr(AddrSpace::kLocal), {b.integer(size)},
                 Arg::integer(id));
  };
  const UOp bytes = local(dtypes::int8, 65, 0), words = local(dtypes::int64, 4, 1);
  const UOp i = b.range(b.integer(4), 0);
  const UOp gate = b.binary(Op::CMPLT, b.integer(1), i);
  const UOp clear = b.store(b.at(words, i), b.integer(-1, dtypes::int64));
  const UOp block = b.add(Op::IF, dtypes::void_, {gate, clear});
  const UOp inside = b.store(b.at(words, i), b.add(Op::CAST, dtypes::int64, {i}));
  b.add(Op::ENDIF, dtypes::void_, {block});
  const UOp narrow = b.store(b.at(bytes, i), b.add(Op::CAST, dtypes::int8, {i}));
  const UOp filled = b.end(narrow, i);
  const UOp j = b.range(b.integer(4), 1);
  const UOp x = b.load(b.at(b.after(words, {filled, inside}), j));
  const UOp y = b.load(b.at(b.after(bytes, {filled}), j));
  const UOp sum = b.binary(Op::ADD, x, b.add(Op::CAST, dtypes::int64, {y}));
  b.end(b.store(b.at(out, j), sum), j);
  EXPECT_EQ(scratch_bytes(b.linear()), 128U + 64U);
  const Buffers buffers = {{0, Array::zeros(dtypes::int64, {4})}};
  EXPECT_EQ(run(b.linear(), buffers).at(0).ints(), (std::vector<int64_t>{-1, 0, 4, 6}));
}

UOp variable(ProgramBuilder& b, std::string_view name, DType type) {
  return b.add(Op::VARIABLE, type, {b.integer(0, type), b.integer(9, type)}, Arg::name(name));
}

TEST_P(RenderedPrograms, VariablesComeByName) {
  const UOp out = b.global(dtypes::int32, 9, 0);
  const UOp n = variable(b, "n", dtypes::int32), a = variable(b, "a b", dtypes::int64);
  const UOp i = b.range(n, 0);
  b.end(b.store(b.at(out, i), b.binary(Op::MUL, i, b.add(Op::CAST, dtypes::int32, {a}))), i);
  EXPECT_EQ(variable_names(b.linear()), (std::vector<std::string>{"a b", "n"}));
  const Buffers buffers = {{0, Array::zeros(dtypes::int32, {9})}};
  EXPECT_EQ(run(b.linear(), buffers, {.variables = {3, 5}}).at(0).ints(),
            (std::vector<int64_t>{0, 3, 6, 9, 12, 0, 0, 0, 0}));
  EXPECT_EQ(run(b.linear(), buffers, {.variables = {3, 0}}), buffers);
}

TEST_P(RenderedPrograms, ThreadsTakeAPartOfTheLoop) {
  const UOp out = b.global(dtypes::int32, 8, 0);
  const UOp i = b.range(b.integer(8, dtypes::int64), 0, AxisType::kThread);
  b.end(b.store(b.at(out, i), b.integer(1)), i);
  const Buffers buffers = {{0, Array::zeros(dtypes::int32, {8})}};
  EXPECT_EQ(run(b.linear(), buffers, {.first = 2, .last = 5}).at(0).ints(),
            (std::vector<int64_t>{0, 0, 1, 1, 1, 0, 0, 0}));
}

TEST_P(RenderedPrograms, OneElementArgumentsAreRegisters) {
  const UOp total = b.add(Op::DEFINE_GLOBAL, dtypes::int32, {}, Arg::integer(0));
  const UOp in = b.global(dtypes::int32, 4, 1);
  const UOp init = b.write(total, b.integer(0));
  const UOp i = b.range(b.integer(4), 0);
  const UOp x = b.load(b.at(in, i));
  const UOp old = b.after(total, {init, i});
  b.end(b.write(b.after(total, {init, i}), b.binary(Op::ADD, old, x)), i);
  const Buffers buffers = {{0, Array::zeros(dtypes::int32, {1})}, {1, counting(dtypes::int32, 4)}};
  EXPECT_EQ(run(b.linear(), buffers).at(0).ints(), (std::vector<int64_t>{10}));
}

TEST_P(RenderedPrograms, ConstantsKeepTheirBits) {
  const std::map<DType, std::vector<uint64_t>,
                 decltype([](DType x, DType y) { return x.packed() < y.packed(); })>
      constants = {
          {dtypes::float32,
           {0x7fc01234, 0xffc00000, 0x7f800000, 0x80000000, 0x00000001, 0x3dcccccd, 0x7f7fffff}},
          {dtypes::float64,
           {0x7ff8000000000123, 0xfff0000000000000, 1, 0x3fb999999999999a, 0x8000000000000000}},
          {dtypes::bfloat16, {0x3f80, 0x7fc1}},
          {dtypes::int32, {uint64_t(INT32_MIN), uint64_t(-1)}},
          {dtypes::int64, {uint64_t(INT64_MIN), uint64_t(INT64_MAX)}},
          {dtypes::uint64, {UINT64_MAX, uint64_t(1) << 63}},
          {dtypes::int8, {uint64_t(-128)}},
      };
  Buffers buffers, expected;
  for (const auto& [type, bits] : constants) {
    const auto id = int64_t(buffers.size()), size = int64_t(bits.size());
    const UOp out = b.global(type, size * 5, id);
    std::vector<uint64_t> all(bits);
    for (int64_t k = 0; k < size; k++) {
      b.store(b.at(out, b.integer(k)), b.constant(type, bits[size_t(k)]));
      b.store(b.at(out, b.integer(size + k * 4), 4), b.constant(type.vec(4), bits[size_t(k)]));
      all.insert(all.end(), 4, bits[size_t(k)]);
    }
    buffers[id] = Array::zeros(type, {size * 5});
    expected[id] = Array::of_bits(type, {size * 5}, all);
  }
  EXPECT_EQ(run(b.linear(), buffers), expected);
}

}  // namespace
}  // namespace weft
