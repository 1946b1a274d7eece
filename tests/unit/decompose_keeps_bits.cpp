// On every target, every op of every dtype comes out in ops that the target has, and with the same
// bits (functions aside, whose bounds have a test of their own), on scalars and vectors.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "codegen/decompose.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/scalar.h"
#include "ir/spec.h"
#include "ir/spec_rules.h"
#include "ir/walk.h"
#include "tests/unit/decompose_helpers.h"

namespace weft::test {
namespace {

constexpr OpSet kFunctions = {Op::EXP2, Op::LOG2, Op::EXP, Op::LOG, Op::SIN, Op::COS};
// What every target takes in every dtype.
constexpr OpSet kEverywhere = {Op::BITCAST, Op::WHERE};

std::vector<DType> all_dtypes() {
  std::vector<DType> all;
  for (size_t s = size_t(Scalar::kBool); s < size_t(Scalar::kIndex); s++) {
    all.push_back(DType{Scalar(s)});
  }
  return all;
}

bool is_native(UOp n, const Target& target) {
  if (!is_elementwise(n.op()) || kEverywhere.has(n.op())) return true;
  const DType type = n.src(n.src_count() - 1).dtype();
  if (n.dtype().is_pointer() || type.is_index()) return true;
  return target.can(n.op(), type) && (!n.is(Op::CAST) || target.can(Op::CAST, n.dtype()));
}

std::vector<uint64_t> edge_values(DType type) {
  std::vector<uint64_t> all;
  if (type.is_bool()) return {0, 1};
  if (type.bits() == 8) {
    for (uint64_t i = 0; i < 256; i++) all.push_back(type.is_float() ? i : bits_of_uint(type, i));
    return all;
  }
  if (type.is_float()) {
    const uint64_t sign = uint64_t(1) << (type.bits() - 1);
    for (const double v : {0.0,
                           1.0,
                           0.5,
                           1.5,
                           2.5,
                           3.0,
                           1e-3,
                           65504.0,
                           65519.99,
                           65520.0,
                           448.0,
                           464.0,
                           1e-8,
                           3e-8,
                           1e30,
                           2147483648.0,
                           9.3e18,
                           1.9e19,
                           0x1p-133,
                           0x1.8p-134,
                           0x1p-149,
                           0x1p-1074,
                           0x1.fffffefffffffp127,
                           0x1.feffp127,
                           0x1p23 - 0.5,
                           0x1p52 - 0.5,
                           0x1p53 + 2,
                           double(INFINITY)}) {
      all.push_back(bits_of_double(type, v));
      all.push_back(bits_of_double(type, -v));
    }
    // the ends of all exponents, quiet and other NaNs
    for (const uint64_t bits : {uint64_t(1), sign - 1, sign - 2}) {
      all.push_back(bits);
      all.push_back(bits | sign);
    }
    const uint64_t inf = bits_of_double(type, double(INFINITY));
    all.push_back(inf - 1);
    all.push_back(inf + 1);
    all.push_back((inf + 1) | sign);
    return all;
  }
  for (const int64_t v : {0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100, 255, 256}) {
    all.push_back(bits_of_int(type, v));
    all.push_back(bits_of_int(type, -v));
  }
  for (const uint64_t v : {least_bits(type), greatest_bits(type)}) {
    for (uint64_t i = 0; i < 3; i++) {
      all.push_back(bits_of_uint(type, v + i));
      all.push_back(bits_of_uint(type, v - i));
    }
  }
  for (const int shift : {24, 25, 53, 54, 55, 62}) {
    for (int64_t i = -2; i <= 2; i++) all.push_back(bits_of_int(type, (int64_t(1) << shift) + i));
  }
  return all;
}

uint64_t random_value(DType type, std::mt19937_64& random) {
  const std::vector<uint64_t> edges = edge_values(type);
  const uint64_t any = random();
  if (any % 2 == 0) return edges[random() % edges.size()];
  if (type.is_float()) {
    if (any % 8 == 1) {
      return bits_of_double(
          type, double(int64_t(random())) * 0x1p-63 * std::ldexp(1.0, int(random() % 30)));
    }
    return random() & (~uint64_t(0) >> (64 - type.bits()));
  }
  return bits_of_uint(type, random() >> random() % 64);
}

bool is_nan_of(DType type, uint64_t bits) {
  return type.is_float() && std::isnan(double_of_bits(type, bits));
}

// out[i] = op(in0[i], in1[i], ...) for vectors of `lanes`
struct Kernel {
  std::shared_ptr<Arena> arena = std::make_shared<Arena>();
  UOp sink;
  std::vector<DType> operands;  // of its inputs
  DType result;
};

Kernel elementwise(Op op, const std::vector<DType>& operands, DType result, uint16_t lanes,
                   int64_t count, UOp (*wrap)(UOp) = nullptr) {
  Kernel k;
  k.operands = operands;
  k.result = result;
  const UOp r = range(*k.arena, count, 0);
  std::vector<UOp> srcs;
  for (size_t i = 0; i < operands.size(); i++) {
    const UOp memory = define_global(*k.arena, operands[i].vec(lanes), count, int64_t(i) + 1);
    srcs.push_back(load(index(memory, r)));
  }
  UOp value = k.arena->make(op, result.vec(lanes), srcs);
  if (wrap != nullptr) value = wrap(value);
  const UOp out = define_global(*k.arena, result.vec(lanes), count, 0);
  k.sink = sink(end(index(out, r).assign(value), r));
  return k;
}

Array run(UOp root, const Bindings& inputs) {
  Bindings bindings = inputs;
  evaluate(root, bindings);
  return bindings.buffers.at(0);
}

class Decompose : public testing::TestWithParam<Target (*)()> {
 protected:
  void check(const Kernel& k, const Target& target, Op op, uint16_t lanes, int64_t count) {
    verify(k.sink, Stage::kKernel);
    const UOp after = decompose(k.sink, target);
    verify(after, Stage::kKernel);
    EXPECT_EQ(decompose(after, target), after) << "not at rest";
    for (UOp n : toposort(after)) {
      if (op == Op::MULACC && k.result == dtypes::float64) continue;
      ASSERT_TRUE(is_native(n, target))
          << target.name << " has no " << short_form(n) << " on " << k.operands[0].name();
    }
    if (kFunctions.has(op) || after == k.sink) return;
    Bindings inputs;
    for (size_t i = 0; i < k.operands.size(); i++) {
      Array values = Array::zeros(k.operands[i].vec(lanes), {count});
      for (uint64_t& bits : values.data) bits = random_value(k.operands[i], random_);
      inputs.buffers[int64_t(i) + 1] = values;
    }
    const Array expected = run(k.sink, inputs), got = run(after, inputs);
    const bool by_bits = op == Op::CAST || op == Op::NEG;
    for (size_t i = 0; i < expected.data.size(); i++) {
      if (expected.data[i] == got.data[i]) continue;
      if (!by_bits && is_nan_of(k.result, expected.data[i]) && is_nan_of(k.result, got.data[i])) {
        continue;
      }
      std::string text = target.name + " " + std::string(name_of(op));
      for (const auto& [id, array] : inputs.buffers) {
        text += " " + text_of_bits(array.dtype.element(), array.data[i]) + ":" +
                array.dtype.element().name();
      }
      FAIL() << text << " = " << text_of_bits(k.result, expected.data[i]) << ", decomposed "
             << text_of_bits(k.result, got.data[i]);
    }
  }

  std::mt19937_64 random_{7};
};

TEST_P(Decompose, KeepsEveryOpOnEveryDType) {
  const Target target = GetParam()();
  for (size_t i = 0; i < kOpCount; i++) {
    const Op op = Op(i);
    if (!is_elementwise(op) || op == Op::CAST || op == Op::BITCAST || op == Op::WHERE) continue;
    for (const DType type : all_dtypes()) {
      if (!spec::accepts(op, type)) continue;
      const DType result = yields_bool(op) ? dtypes::bool_ : type;
      const std::vector<DType> operands(info(op).least_sources, type);
      for (const uint16_t lanes : {1, 4, 16}) {
        const int64_t count = 1200 / lanes;
        check(elementwise(op, operands, result, lanes, count), target, op, lanes, count);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Decompose, KeepsEveryCast) {
  const Target target = GetParam()();
  for (const DType from : all_dtypes()) {
    for (const DType to : all_dtypes()) {
      if (from == to) continue;
      for (const uint16_t lanes : {1, 4}) {
        const int64_t count = 2400 / lanes;
        check(elementwise(Op::CAST, {from}, to, lanes, count), target, Op::CAST, lanes, count);
        if (HasFatalFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Decompose,
                         testing::Values(
                             bare_target, rich_target, wide_target,
                             +[] { return with_fused_multiply_add(bare_target()); }));

}  // namespace
}  // namespace weft::test
