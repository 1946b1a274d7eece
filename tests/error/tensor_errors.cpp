// What tensors refuse: a typed error at the call, which names the operation, and nothing changed.
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/ref.h"
#include "ir/op.h"
#include "tests/unit/tensor_helpers.h"
#include "value/storage.h"
#include "value/value.h"
#include "weft/weft.h"

namespace weft {
namespace {

using Call = std::function<void(Tensor&)>;

struct Refused {
  std::string name;
  Call call;  // on counted({2, 3})
  std::string message;
};

template <class Kind>
void expect_refused(const std::vector<Refused>& all) {
  for (const Refused& refused : all) {
    Tensor x = test::counted({2, 3});
    const Ref<Value> version = x.storage()->version();
    EXPECT_EQ(test::thrown<Kind>([&] { refused.call(x); }), refused.message) << refused.name;
    EXPECT_EQ(x.storage()->version(), version) << refused.name;
    EXPECT_EQ(x.data<float>(), (test::Floats{0, 1, 2, 3, 4, 5})) << refused.name;
  }
}

TEST(TensorErrors, shapes) {
  const Tensor four = Tensor::zeros({4}), cube = Tensor::zeros({2, 2, 3});
  expect_refused<ShapeError>({
      {"reshape", [](Tensor& x) { x.reshape({4, 2}); },
       "[reshape] cannot view (2,3) as (4,2): 6 elements against 8"},
      {"reshape_open", [](Tensor& x) { x.reshape({-1, -1}); },
       "[reshape] (-1,-1) leaves more than one size open"},
      {"reshape_undivided", [](Tensor& x) { x.reshape({-1, 4}); },
       "[reshape] cannot view (2,3) as (-1,4): 6 elements"},
      {"reshape_negative", [](Tensor& x) { x.reshape({-2, -3}); },
       "[reshape] (-2,-3) has a negative size, -2"},
      {"permute", [](Tensor& x) { x.permute({0}); },
       "[permute] [0] is not an order of the 2 axes of (2,3)"},
      {"permute_twice", [](Tensor& x) { x.permute({0, 0}); }, "[permute] axis 0 is given twice"},
      {"expand", [](Tensor& x) { x.expand({2, 4}); },
       "[expand] cannot expand (2,3) to (2,4): axis 1 has size 3, and only 1 is repeated"},
      {"expand_rank", [](Tensor& x) { x.expand({3}); },
       "[expand] cannot expand (2,3) to (3): 2 axes against 1"},
      {"shrink", [](Tensor& x) { x.shrink({{0, 2}, {1, 4}}); },
       "[shrink] cannot take 1 to 4 of axis 1 of (2,3)"},
      {"pad", [](Tensor& x) { x.pad({{1, 1}}); }, "[pad] (2,3) has 2 axes; given is padding of 1"},
      {"unfold", [](Tensor& x) { x.unfold(1, 4, 1); },
       "[unfold] cannot take windows of 4 in steps of 1 along axis 1 of (2,3)"},
      {"as_strided", [](Tensor& x) { x.as_strided({3, 3}, {2, 1}, 0); },
       "[as_strided] sizes (3,3) with strides (2,1) from 0 read elements 0 to 6 of 6"},
      {"add", [&](Tensor& x) { x.add(four); },
       "[ADD] the shapes (2,3) and (4) do not broadcast: 3 against 4"},
      {"matmul", [](Tensor& x) { x.matmul(x); },
       "[matmul] (2,3) and (2,3) do not fit: 3 columns against 2 rows"},
      {"cat", [&](Tensor& x) { Tensor::cat({x, four}); },
       "[cat] (2,3) and (4) differ in more than axis 0"},
      {"assign", [&](Tensor& x) { x.assign(four); },
       "[assign] the shapes (4) and (2,3) do not broadcast: 3 against 4"},
      {"assign_larger", [&](Tensor& x) { x.assign(cube); },
       "[assign] a value of shape (2,2,3) does not broadcast to (2,3)"},
      {"assign_expanded", [](Tensor& x) { x.at({0}).expand({2, 3}).assign(Tensor::zeros({2, 3})); },
       "[assign] the target (2,3) is expanded: elements of it share memory; write to a clone"},
      {"update_expanded", [](Tensor& x) { x.at({0}).expand({2, 3}).update(Op::ADD, 1); },
       "[update] the target (2,3) is expanded: elements of it share memory; write to a clone"},
      {"update_overlapping", [](Tensor& x) { x.flatten().unfold(0, 2, 1).update(Op::ADD, 1); },
       "[update] elements of the target (5,2) share memory; reading and writing it at once has no "
       "one meaning"},
      {"update_broadcast", [&](Tensor& x) { x.at({0}).update(Op::ADD, cube); },
       "[update] a value of shape (2,2,3) does not broadcast to (3)"},
      {"empty_max", [](Tensor& x) { x.at({Slice{0, 0}}).max(); },
       "[MAX] (0,3) has no element along the reduced axes, and so no MAX"},
      {"axes_twice", [](Tensor& x) { x.sum({{0, -2}}); }, "[reduce] axis 0 is given twice"},
      {"item", [](Tensor& x) { x.item(); }, "[item] (2,3) has 6 elements, not one"},
      {"negative", [](Tensor&) { Tensor::zeros({2, -1}); },
       "[full] (2,-1) has a negative size, -1"},
      {"endless", [](Tensor&) { Tensor::empty({1LL << 40, 1LL << 40}); },
       "[empty] (1099511627776,1099511627776) has more elements than 63 bits count"},
      {"arange", [](Tensor&) { Tensor::arange(0, 3, 0); }, "[arange] the step is 0"},
      {"bytes", [](Tensor&) { Tensor::from_bytes({}, {2}, dtypes::int16); },
       "[from_bytes] (2) of int16 takes 4 bytes; given are 0"},
  });
}

TEST(TensorErrors, indices) {
  expect_refused<IndexError>({
      {"past_the_end", [](Tensor& x) { x.at({2}); },
       "[index] 2 is out of bounds of axis 0 with size 2"},
      {"before_the_start", [](Tensor& x) { x.set({0, -4}, 1); },
       "[index] -4 is out of bounds of axis 1 with size 3"},
      {"too_many", [](Tensor& x) { x.at({0, 0, 0}); }, "[index] 3 indices are too many for (2,3)"},
      {"two_ellipses", [](Tensor& x) { x.at({Ellipsis{}, Ellipsis{}}); },
       "[index] there is more than one ellipsis"},
      {"step_0", [](Tensor& x) { x.at({Slice{.step = 0}}); }, "[index] the step of a slice is 0"},
      {"axis", [](Tensor& x) { x.sum({{2}}); }, "[reduce] there is no axis 2; allowed are -2 to 1"},
      {"axis_of_scalar", [](Tensor& x) { x.sum().flip({0}); },
       "[flip] there is no axis 0 of a scalar"},
  });
}

TEST(TensorErrors, dtypes) {
  const Tensor wide = Tensor::zeros({3}, dtypes::uint64), whole = Tensor::zeros({3}, dtypes::int64);
  expect_refused<DTypeError>({
      {"and_of_floats", [](Tensor& x) { x.binary(Op::AND, x); },
       "[AND] it is not defined on float32; it takes integers and bool"},
      {"not_of_floats", [](Tensor& x) { x.unary(Op::NOT); },
       "[NOT] it is not defined on float32; it takes integers and bool"},
      {"neg_of_bool", [](Tensor& x) { x.cast(dtypes::bool_).neg(); },
       "[NEG] it is not defined on bool; it takes integers and floats"},
      {"signed_and_unsigned", [&](Tensor&) { wide.add(whole); },
       "[ADD] no integer dtype holds both uint64 and int64; cast one of them"},
      {"bitcast", [](Tensor& x) { x.bitcast(dtypes::float64); },
       "[bitcast] cannot view the bits of float32 (2,3) as float64: 32 bits against 64"},
      {"xor_reduce", [](Tensor& x) { x.reduce(Op::XOR); },
       "[reduce] there is no reduction of float32 by XOR"},
      {"cast", [](Tensor& x) { x.cast(dtypes::index); },
       "[cast] tensors do not have elements of index"},
  });
}

TEST(TensorErrors, numbers) {
  const Tensor byte = Tensor::zeros({3}, dtypes::uint8), small = Tensor::zeros({3}, dtypes::int8);
  const Tensor whole = Tensor::zeros({3}, dtypes::int32);
  const int64_t large = int64_t(1) << 40;
  const std::string of_int32 = " is not a value of int32, which holds -2147483648 to 2147483647";
  expect_refused<DTypeError>({
      {"full", [&](Tensor&) { Tensor::full({2}, large); }, "[full] 1099511627776" + of_int32},
      {"full_real", [](Tensor&) { Tensor::full({2}, 2147483648.0, dtypes::int32); },
       "[full] 2147483648" + of_int32},
      {"full_nan", [](Tensor&) { Tensor::full({2}, std::nan(""), dtypes::int32); },
       "[full] nan" + of_int32},
      {"full_negative", [](Tensor&) { Tensor::full({2}, -1, dtypes::uint64); },
       "[full] -1 is not a value of uint64, which holds 0 to 18446744073709551615"},
      {"add", [&](Tensor&) { whole.add(large); }, "[ADD] 1099511627776" + of_int32},
      {"sub_from", [&](Tensor&) { 300 - byte; },
       "[SUB] 300 is not a value of uint8, which holds 0 to 255"},
      {"max", [&](Tensor&) { small.binary(Op::MAX, -129); },
       "[MAX] -129 is not a value of int8, which holds -128 to 127"},
      {"where", [&](Tensor&) { Tensor::where(byte, small, 128); },
       "[where] 128 is not a value of int8, which holds -128 to 127"},
      {"where_numbers", [&](Tensor&) { Tensor::where(byte, 1, large); },
       "[where] 1099511627776" + of_int32},
      {"pad", [&](Tensor&) { byte.pad({{0, 0}}, 256); },
       "[pad] 256 is not a value of uint8, which holds 0 to 255"},
      {"assign", [&](Tensor&) { Tensor(whole).assign(large); },
       "[assign] 1099511627776" + of_int32},
      {"assign_real", [&](Tensor&) { Tensor(byte).assign(-1.5); },
       "[assign] -1.5 is not a value of uint8, which holds 0 to 255"},
      {"set", [&](Tensor&) { Tensor(byte).set({0}, 256); },
       "[assign] 256 is not a value of uint8, which holds 0 to 255"},
      {"update", [&](Tensor&) { Tensor(byte).update(Op::MUL, 256); },
       "[MUL] 256 is not a value of uint8, which holds 0 to 255"},
      {"arange", [](Tensor&) { Tensor::arange(250, 260, 2, dtypes::uint8); },
       "[arange] 258 is not a value of uint8, which holds 0 to 255"},
      {"arange_down", [](Tensor&) { Tensor::arange(2, -2, -1, dtypes::uint8); },
       "[arange] -1 is not a value of uint8, which holds 0 to 255"},
  });
  EXPECT_EQ(byte.data<uint8_t>(), std::vector<uint8_t>(3));
  EXPECT_EQ(whole.data<int32_t>(), std::vector<int32_t>(3));
}

TEST(TensorErrors, numbers_that_fit) {
  const int64_t large = int64_t(1) << 40;
  EXPECT_EQ(Tensor::full({}, large, dtypes::bool_).item<int>(), 1);
  EXPECT_EQ(Tensor::full({}, large, dtypes::float32).item<int64_t>(), large);
  EXPECT_EQ(Tensor::full({}, 1e300, dtypes::float16).item<double>(), HUGE_VAL);
  EXPECT_EQ(Tensor::full({}, 255.9, dtypes::uint8).item<int>(), 255);
  EXPECT_EQ(Tensor::full({}, -0.9, dtypes::uint8).item<int>(), 0);
  EXPECT_EQ(Tensor::full({}, -128.9, dtypes::int8).item<int>(), -128);
  EXPECT_EQ(Tensor::full({}, true, dtypes::uint8).item<int>(), 1);
  EXPECT_EQ(Tensor::full({}, INT64_MIN, dtypes::int64).item<int64_t>(), INT64_MIN);
  EXPECT_EQ((Tensor::full({}, 3) / large).item<float>(), 3.0F / float(large));
  EXPECT_EQ(Tensor::arange(2, -1, -1, dtypes::uint8).data<uint8_t>(),
            (std::vector<uint8_t>{2, 1, 0}));
  EXPECT_EQ(Tensor::arange(0, 256, 1, dtypes::uint8).at({255}).item<int>(), 255);
}

// As in NumPy: what lies past all values is compared, not refused.
TEST(TensorErrors, numbers_that_are_compared) {
  const Tensor x = Tensor::zeros({2}, dtypes::uint8);
  for (const auto& [op, number, right, left] :
       std::vector<std::tuple<Op, int64_t, bool, bool>>{{Op::CMPLT, 256, true, false},
                                                        {Op::CMPLT, -1, false, true},
                                                        {Op::CMPEQ, 256, false, false},
                                                        {Op::CMPNE, -1, true, true}}) {
    EXPECT_EQ(x.binary(op, number).data<bool>(), std::vector<bool>(2, right));
    EXPECT_EQ(x.reverse_binary(op, number).data<bool>(), std::vector<bool>(2, left));
  }
}

TEST(TensorErrors, devices) {
  const Tensor other = Tensor::zeros({2, 3}, dtypes::float32, "NULL");
  expect_refused<DeviceError>({
      {"add", [&](Tensor& x) { x.add(other); }, "[ADD] one tensor is on REF, the other on NULL"},
      {"assign", [&](Tensor& x) { x.assign(other); },
       "[assign] one tensor is on REF, the other on NULL"},
      {"unknown", [](Tensor&) { Tensor::zeros({1}, dtypes::int8, "ABACUS"); },
       "[device] there is no device ABACUS; there are CPU, CPU:LLVM, CPU:C, REF, NULL, NULL:CUDA, "
       "and with a "
       "driver CUDA, OPENCL, WEBGPU"},
  });
}

TEST(TensorErrors, nothing_is_scheduled) {
  const uint64_t kernels = counters().kernels;
  Tensor x = Tensor::zeros({2, 3}) + 1;
  const int64_t pending = pending_values();
  EXPECT_THROW(x.add(Tensor::zeros({4})), ShapeError);
  EXPECT_THROW(x.update(Op::ADD, Tensor::zeros({4})), ShapeError);
  EXPECT_THROW(x.update(Op::AND, 1), DTypeError);
  EXPECT_EQ(pending_values(), pending);
  EXPECT_EQ(counters().kernels, kernels);
  EXPECT_EQ(x.sum().item<float>(), 6);
}

}  // namespace
}  // namespace weft
