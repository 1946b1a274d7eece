// Builders make what the spec accepts, and refuse the rest with an error of the right type.
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/shape.h"
#include "ir/spec.h"

namespace weft {
namespace {

using Dims = std::vector<Dim>;
using Ints = std::vector<int64_t>;
using Pairs = std::vector<std::pair<Dim, Dim>>;

template <class E>
std::string message_of(const std::function<void()>& build) {
  try {
    build();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing was thrown";
}

struct Builders : testing::Test {
  UOp tensor(Dims sizes, int64_t id) {
    int64_t count = 1;
    for (const Dim d : sizes) count *= d.value();
    return reshape(buffer(arena, dtypes::float32, count, "CPU", id), sizes);
  }

  Arena arena;
  UOp x = tensor({2, 3}, 1);
  UOp one = constant(arena, dtypes::float32, 1.0);
  UOp three = constant(arena, dtypes::int32, 3);
  UOp r = range(arena, 4, 2);
  UOp data = define_global(arena, dtypes::float32, 4, 0);
  UOp reg = define_reg(arena, dtypes::float32, 3);
};

TEST_F(Builders, MakeViewsWithTheirShapes) {
  EXPECT_EQ(text_of(shape_of(reshape(x, Dims{3, 1, 2}))), "(3,1,2)");
  EXPECT_EQ(text_of(shape_of(permute(x, Ints{1, 0}))), "(3,2)");
  EXPECT_EQ(text_of(shape_of(expand(reshape(x, Dims{6, 1}), Dims{6, 5}))), "(6,5)");
  EXPECT_EQ(text_of(shape_of(pad(x, Pairs{{0, 1}, {2, 0}}))), "(3,5)");
  EXPECT_EQ(text_of(shape_of(shrink(x, Pairs{{1, 2}, {0, 2}}))), "(1,2)");
  EXPECT_EQ(text_of(shape_of(flip(x, Ints{1}))), "(2,3)");
  EXPECT_EQ(text_of(shape_of(strided_view(x, Dims{2, 2}, Dims{-3, 1}, 4))), "(2,2)");
  EXPECT_EQ(text_of(shape_of(reduce_axis(Op::ADD, x, Ints{1}))), "(2,1)");
  EXPECT_EQ(contiguous(x).op(), Op::CONTIGUOUS);
  EXPECT_EQ(detach(x).op(), Op::DETACH);
  EXPECT_EQ(copy_to(x, "CUDA").src(1), device(arena, "CUDA"));
}

TEST_F(Builders, KeepSymbolicSizes) {
  const UOp n = variable(arena, "n", 1, 8);
  const UOp b = buffer(arena, dtypes::float32, mul(arena, n, 2), "CPU", 4);
  EXPECT_EQ(text_of(shape_of(reshape(b, Dims{n, 2}))), "(n,2)");
  EXPECT_EQ(message_of<ShapeError>([&] { reshape(b, Dims{n, 3}); }),
            "[reshape] cannot view (n*2) as (n,3): 2*n elements against 3*n");
}

TEST_F(Builders, RefuseShapesWithShapeError) {
  EXPECT_EQ(message_of<ShapeError>([&] { reshape(x, Dims{4, 2}); }),
            "[reshape] cannot view (2,3) as (4,2): 6 elements against 8");
  EXPECT_EQ(message_of<ShapeError>([&] { permute(x, Ints{0}); }),
            "[permute] [0] is not an order of the 2 axes of (2,3)");
  EXPECT_EQ(message_of<ShapeError>([&] { expand(x, Dims{2, 6}); }),
            "[expand] cannot expand (2,3) to (2,6): axis 1 has size 3, and only 1 is repeated");
  EXPECT_EQ(message_of<ShapeError>([&] { pad(x, Pairs{{1, 1}}); }),
            "[pad] (2,3) has 2 axes, which take 4 numbers; given are 2");
  EXPECT_EQ(message_of<ShapeError>([&] { shrink(x, Pairs{{0, 3}, {0, 3}}); }),
            "[shrink] cannot take 0 to 3 of axis 0 of (2,3)");
  EXPECT_EQ(message_of<ShapeError>([&] { flip(x, Ints{-1}); }),
            "[flip] axis -1 is not one of the 2 of (2,3)");
  EXPECT_EQ(message_of<ShapeError>([&] { strided_view(x, Dims{7}, Dims{1}, 0); }),
            "[view] sizes (7) with strides (1) from 0 read elements 0 to 6 of 6");
  EXPECT_EQ(message_of<ShapeError>([&] { reduce_axis(Op::ADD, x, Ints{2}); }),
            "[reduce_axis] axis 2 is not one of the 2 of (2,3)");
  EXPECT_EQ(message_of<ShapeError>([&] { x + tensor({3, 2}, 5); }),
            "[add] the operands have shapes (2,3) and (3,2)");
  EXPECT_EQ(message_of<ShapeError>([&] { variable(arena, "n", 3, 1); }),
            "[variable] n has no value: its bounds are 3 to 1");
  EXPECT_EQ(message_of<ShapeError>([&] { range(arena, -2, 7); }),
            "[range] the size -2 is negative");
}

TEST_F(Builders, RefuseDTypesWithDTypeError) {
  EXPECT_EQ(message_of<DTypeError>([&] { one + three; }),
            "[add] the operands have dtypes float32 and int32");
  EXPECT_EQ(message_of<DTypeError>([&] { unary(Op::SQRT, three); }),
            "[sqrt] the operands have dtype int32; it takes floats");
  EXPECT_EQ(message_of<DTypeError>([&] { where(three, one, one); }),
            "[where] the condition has dtype int32; it must be bool");
  EXPECT_EQ(message_of<DTypeError>([&] { bitcast(one, dtypes::int64); }),
            "[bitcast] cannot view the bits of float32 as int64: 32 bits against 64");
  EXPECT_EQ(message_of<DTypeError>([&] { load(one); }),
            "[load] source 0 has dtype float32; a LOAD reads through a pointer");
  EXPECT_EQ(message_of<DTypeError>([&] { reduce(Op::AND, one, std::array{r}); }),
            "[reduce] cannot reduce float32 by AND; it takes integers and bool");
  EXPECT_EQ(message_of<DTypeError>([&] { define_reg(arena, dtypes::void_, 1); }),
            "[define_reg] the dtype is void; a register holds a value");
  EXPECT_EQ(message_of<DTypeError>([&] { define_local(arena, dtypes::index, 4, 1); }),
            "[define_local] memory does not hold elements of index");
  EXPECT_EQ(message_of<DTypeError>([&] { constant_bits(arena, dtypes::float16, 0x17e00); }),
            "[const] the bits 0x17e00 are not canonical in float16; they would be 0x7e00");
  EXPECT_EQ(message_of<DTypeError>([&] { constant_bits(arena, dtypes::int8, 0x80); }),
            "[const] the bits 0x80 are not canonical in int8; they would be 0xffffffffffffff80");
  EXPECT_EQ(message_of<DTypeError>([&] { vectorize(std::array{one, three}); }),
            "[vectorize] a lane has dtype int32; the lanes of float32x2 have float32");
}

TEST_F(Builders, RefuseStructuresWithSpecError) {
  EXPECT_EQ(message_of<SpecError>([&] { load(data); }),
            "[load] source 0 is data0, a whole buffer; a LOAD reads an INDEX of it");
  EXPECT_EQ(message_of<SpecError>([&] { after(one, one); }),
            "[after] source 1 is a CONST; it must be an effect, a RANGE or an AFTER");
  EXPECT_EQ(message_of<SpecError>([&] { end(index(data, r).assign(one), range(arena, 2, 9)); }),
            "[end] r9 is not open in its effect; open there: r2");
  EXPECT_EQ(message_of<SpecError>([&] { barrier({}); }),
            "[barrier] there is no effect to wait for");
  EXPECT_EQ(message_of<SpecError>([&] { vectorize({}); }), "[vectorize] there are no lanes");
  EXPECT_EQ(message_of<SpecError>([&] { gep(one, Ints{1}); }),
            "[gep] lane 1 is not one of the 1 of float32");
  EXPECT_EQ(message_of<SpecError>([&] { bufferize(one, std::array{r, r}, AddrSpace::kLocal); }),
            "[bufferize] r2 occurs twice");
  EXPECT_EQ(message_of<SpecError>([&] { device(arena, ""); }), "[device] the name is empty");
}

TEST_F(Builders, RefuseOperandsOfAnotherArena) {
  Arena other;
  const UOp foreign = constant(other, dtypes::float32, 1.0);
  EXPECT_EQ(message_of<SpecError>([&] { one + foreign; }),
            "[add] the operands are of different arenas");
  EXPECT_EQ(message_of<SpecError>([&] { x.assign(foreign); }),
            "[store] the operands are of different arenas");
  EXPECT_EQ(message_of<SpecError>([&] { reshape(x, Dims{variable(other, "n", 1, 6)}); }),
            "[reshape] the operands are of different arenas");
}

TEST_F(Builders, LeaveTheArenaUsable) {
  const std::string before = print(x);
  for (int i = 0; i < 3; i++) {
    EXPECT_THROW(reshape(x, Dims{4, 2}), ShapeError);
    EXPECT_THROW(x.assign(three), DTypeError);
    EXPECT_THROW(data.assign(one), SpecError);
  }
  EXPECT_EQ(print(x), before);
  EXPECT_EQ(reshape(x, Dims{2, 3}), reshape(x, Dims{2, 3}));
  EXPECT_NO_THROW(verify(sink(x + one), Stage::kTensor));
}

// ------------------------------------------------------------------------------------------ the
// write

TEST_F(Builders, AssignToAViewOfAVersion) {
  const UOp version = x.src(0);
  const UOp row = shrink(x, Pairs{{1, 2}, {0, 3}});
  const UOp store = row.assign(tensor({1, 3}, 6));
  EXPECT_EQ(store.op(), Op::STORE);
  EXPECT_EQ(store.dtype(), dtypes::void_);
  EXPECT_EQ(text_of(shape_of(store)), "(1,3)");
  const UOp next = after(version, store);
  EXPECT_EQ(text_of(shape_of(next)), "(6)");
  EXPECT_NO_THROW(verify(sink(next, after(next, next.assign(one))), Stage::kTensor));
}

TEST_F(Builders, AssignThroughAPointer) {
  const UOp gate = r < 3;
  const UOp store = index(data, r).assign(one, gate);
  EXPECT_EQ(store.dtype(), dtypes::void_);
  EXPECT_EQ(store.src_count(), 3u);
  EXPECT_NO_THROW(verify(sink(end(store, r)), Stage::kKernel));
}

TEST_F(Builders, AssignToARegister) {
  EXPECT_EQ(reg.assign(one).dtype(), dtypes::float32);
  EXPECT_EQ(after(reg, r).assign(one).dtype(), dtypes::float32);
  EXPECT_EQ(define_global(arena, dtypes::int32, 8).assign(three).dtype(), dtypes::int32);
}

TEST_F(Builders, AccumulateInARegister) {
  const UOp s = range(arena, 2, 5, AxisType::kReduce);
  const UOp init = after(reg, r).assign(constant(arena, dtypes::float32, 0.0));
  const UOp accumulator = after(reg, std::array{init, s});
  const UOp in = define_global(arena, dtypes::float32, 8, 1);
  const UOp body = accumulator.assign(accumulator + load(index(in, r * 2 + s)));
  const UOp sum = after(reg, end(body, s));
  const UOp root = sink(end(index(data, r).assign(sum), r));
  EXPECT_NO_THROW(verify(root, Stage::kKernel));
}

TEST_F(Builders, AssignRefusesWhatDoesNotFit) {
  EXPECT_EQ(message_of<ShapeError>([&] { x.assign(tensor({3, 2}, 7)); }),
            "[store] the value has shape (3,2), the target (2,3)");
  EXPECT_EQ(message_of<DTypeError>([&] { x.assign(three); }),
            "[store] the value has dtype int32; the target takes float32");
  EXPECT_EQ(message_of<DTypeError>([&] { index(data, r).assign(three); }),
            "[store] the value has dtype int32; the target takes float32");
  EXPECT_EQ(message_of<DTypeError>([&] { reg.assign(three); }),
            "[store] the value has dtype int32; the target takes float32");
  EXPECT_EQ(message_of<SpecError>([&] { x.assign(one, bool_const(arena, true)); }),
            "[store] it has a gate; a write to a tensor has none");
  EXPECT_EQ(message_of<DTypeError>([&] { reg.assign(one, one); }),
            "[store] the gate has dtype float32; it must be bool");
  EXPECT_EQ(message_of<SpecError>([&] { data.assign(one); }),
            "[store] the target is data0, a whole buffer; INDEX it to say which element");
  EXPECT_EQ(
      message_of<SpecError>([&] { r.assign(index_const(arena, 1)); }),
      "[store] the target is a RANGE; allowed are a view of a value, an INDEX and a register");
  EXPECT_EQ(message_of<SpecError>([&] { pad(x, Pairs{{1, 1}, {0, 0}}).assign(one); }),
            "[store] the target is a padded view, whose padding is not in memory");
}

}  // namespace
}  // namespace weft
