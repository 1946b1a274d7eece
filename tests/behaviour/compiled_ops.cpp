// Every elementwise op on every dtype that it admits, lowered, compiled and run as the CPU device
// does, gives what the reference evaluator gives: in vectors, and one by one in what is left of
// them. On devices with workgroups, likewise for a few dtypes, with the optimisations that they
// choose.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/error_bounds.h"
#include "codegen/opt/opt.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "ir/spec_rules.h"
#include "rewrite/pattern.h"
#include "runtime/cpu/cpu_toolchain.h"
#include "runtime/device.h"
#include "tests/edge_values.h"
#include "tests/gpu_devices.h"
#include "tests/kernel_batch.h"

namespace weft {
namespace {

constexpr std::array kTypes = {
    dtypes::bool_,       dtypes::int8,    dtypes::int16,    dtypes::int32,   dtypes::int64,
    dtypes::uint8,       dtypes::uint16,  dtypes::uint32,   dtypes::uint64,  dtypes::float8_e4m3,
    dtypes::float8_e5m2, dtypes::float16, dtypes::bfloat16, dtypes::float32, dtypes::float64};
constexpr int64_t kLanes = 16;

// All pairs of edges and random bits, and a number that leaves a rest of the vectors.
std::array<Array, 3> operands(DType type) {
  std::vector<uint64_t> values = test::edge_values(type);
  std::mt19937_64 random(1);
  for (int i = 0; i < (type.is_bool() ? 0 : 16); i++) {
    values.push_back(bits_of_uint(type.is_float() ? dtypes::uint64 : type, random()));
    if (type.is_float()) values.back() >>= 64 - type.bits();
  }
  std::array<std::vector<uint64_t>, 3> bits;
  for (size_t i = 0; i < values.size(); i++) {
    for (size_t j = 0; j < values.size(); j++) {
      bits[0].push_back(values[i]);
      bits[1].push_back(values[j]);
      bits[2].push_back(values[(i * 7 + j * 3 + 1) % values.size()]);
    }
  }
  std::array<Array, 3> out;
  for (size_t k = 0; k < 3; k++) {
    while (bits[k].size() < kLanes || bits[k].size() % kLanes != 11) bits[k].push_back(values[0]);
    const auto size = int64_t(bits[k].size());
    out[k] = Array::of_bits(type, {size}, bits[k]);
  }
  return out;
}

// Floats in order, as integers: neighbours differ by 1, the zeros by none.
int64_t ordinal(DType type, uint64_t bits) {
  const uint64_t sign = uint64_t(1) << (type.bits() - 1);
  const auto size = int64_t(bits & (sign - 1));
  return (bits & sign) != 0 ? -size : size;
}

// How far a result may be from that of the evaluator, which rounds the true value: empty when not
// at all.
std::optional<int64_t> most_steps(Op op, DType type) {
  for (const ErrorBound& bound : kErrorBounds) {
    if (bound.op != op) continue;
    if (bound.dtype == type) return int64_t(bound.ulp) + 1;
    if (type.bits() < 32) return 1;
  }
  return std::nullopt;
}

class OpKernels {
 public:
  OpKernels(Toolchain toolchain, DType type)
      : batch_(toolchain),
        opts_(OptList{{OptKind::kVector, 0, kLanes}}),
        type_(type),
        in_(operands(type)) {}
  OpKernels(Device& device, DType type)
      : batch_(device), type_(type), missing_(device.missing_dtypes()), in_(operands(type)) {}

  void add_all() {
    for (size_t k = 0; k < kOpCount; k++) {
      const Op op = Op(k);
      if (is_elementwise(op) && op != Op::CAST && op != Op::BITCAST && spec::accepts(op, type_))
        add(op);
    }
    for (const DType to : kTypes) {
      if ((missing_ & set_of(to.scalar)) != 0) continue;
      add_kernel("CAST to " + to.name(), Op::CAST, [&](auto x) { return cast(x[0], to); });
      if (type_.item_bytes() != to.item_bytes()) continue;
      add_kernel("BITCAST to " + to.name(), Op::BITCAST, [&](auto x) { return bitcast(x[0], to); });
    }
  }

  void check() {
    batch_.compile();
    for (size_t i = 0; i < kernels_.size(); i++) check(i);
  }

 private:
  struct Kernel {
    std::string name;
    Op op;
    test::Arrays before, after;
  };

  void add(Op op) {
    const std::string name(name_of(op));
    if (info(op).least_sources == 1) {
      add_kernel(name, op, [&](auto x) { return unary(op, x[0]); });
      return;
    }
    if (info(op).least_sources == 3) {
      add_kernel(name, op, [&](auto x) {
        return op == Op::WHERE ? where(not_equal(x[2], x[0]), x[0], x[1])
                               : mulacc(x[0], x[1], x[2]);
      });
      return;
    }
    add_kernel(name, op, [&](auto x) { return binary(op, x[0], x[1]); });
    if (!type_.is_int()) return;
    for (const int64_t c : {-3, 0, 1, 7, 8}) {  // constants are divided by in other ways
      add_kernel(fmt::format("{} by {}", name, c), op, [&](auto x) {
        return binary(op, x[0], constant_bits(arena_, type_, bits_of_int(type_, c)));
      });
    }
  }

  template <class Make>
  void add_kernel(const std::string& name, Op op, Make&& make) {
    const int64_t size = in_[0].size();
    const UOp r = range(arena_, size, 0);
    std::array<UOp, 3> x;
    test::Arrays arrays;
    for (size_t k = 0; k < 3; k++) {
      const auto id = int64_t(k) + 1;
      x[k] = load(index(define_global(arena_, type_, size, id), r));
      arrays[id] = in_[k];
    }
    const UOp value = make(x);
    const UOp out = define_global(arena_, value.dtype(), size, 0);
    arrays[0] = Array::zeros(value.dtype(), {size});
    const UOp ast = sink(end(index(out, r).assign(value), r));
    Bindings bindings{arrays, {}};
    evaluate(ast, bindings);
    batch_.add(ast, opts_);
    kernels_.push_back({name, op, arrays, bindings.buffers});
  }

  void check(size_t i) const {
    const Kernel& kernel = kernels_[i];
    const test::Arrays got = batch_.run(i, kernel.before);
    const Array &e = kernel.after.at(0), &g = got.at(0);
    for (size_t k = 0; k < e.data.size(); k++) {
      if (is_same(kernel.op, e.dtype, e.data[k], g.data[k])) continue;
      ADD_FAILURE() << kernel.name << " of " << type_.name() << ": "
                    << text_of_bits(type_, in_[0].data[k]) << ", "
                    << text_of_bits(type_, in_[1].data[k]) << ", "
                    << text_of_bits(type_, in_[2].data[k]) << " at " << k << " gives "
                    << text_of_bits(g.dtype, g.data[k]) << ", not "
                    << text_of_bits(e.dtype, e.data[k]);
      break;
    }
  }

  static bool is_same(Op op, DType type, uint64_t expected, uint64_t given) {
    if (expected == given) return true;
    if (!type.is_float() || op == Op::BITCAST || op == Op::WHERE) return false;
    const double e = double_of_bits(type, expected), g = double_of_bits(type, given);
    if (std::isnan(e) || std::isnan(g)) return std::isnan(e) && std::isnan(g);
    const std::optional<int64_t> steps = most_steps(op, type);
    return steps && std::abs(ordinal(type, expected) - ordinal(type, given)) <= *steps &&
           std::signbit(e) == std::signbit(g);
  }

  Arena arena_;
  test::KernelBatch batch_;
  std::optional<OptList> opts_;
  DType type_;
  DTypeSet missing_ = 0;  // dtypes that the device lacks
  std::array<Array, 3> in_;
  std::vector<Kernel> kernels_;
};

struct Way {
  Toolchain toolchain;
  DType type;
};
class CompiledOps : public testing::TestWithParam<Way> {};

std::vector<Way> ways() {
  std::vector<Way> out;
  for (const Toolchain toolchain : {Toolchain::kLlvm, Toolchain::kC}) {
    for (const DType type : kTypes) out.push_back({toolchain, type});
  }
  return out;
}
INSTANTIATE_TEST_SUITE_P(All, CompiledOps, testing::ValuesIn(ways()), [](const auto& test) {
  return (test.param.toolchain == Toolchain::kC ? "C_" : "LLVM_") + test.param.type.name();
});

TEST_P(CompiledOps, LikeTheEvaluator) {
  const auto [toolchain, type] = GetParam();
  if (!is_installed(toolchain)) GTEST_SKIP() << "the toolchain is not installed";
  OpKernels kernels(toolchain, type);
  kernels.add_all();
  kernels.check();
}

struct WayOnDevice {
  const char* device;
  DType type;
};
class CompiledOpsOnDevice : public testing::TestWithParam<WayOnDevice> {};

std::vector<WayOnDevice> ways_on_devices() {
  std::vector<WayOnDevice> out;
  for (const char* device : test::kGpuDevices) {
    for (const DType type : {dtypes::float32}) out.push_back({device, type});
  }
  return out;
}
INSTANTIATE_TEST_SUITE_P(All, CompiledOpsOnDevice, testing::ValuesIn(ways_on_devices()),
                         [](const auto& test) {
                           return test.param.device + ("_" + test.param.type.name());
                         });

TEST_P(CompiledOpsOnDevice, LikeTheEvaluator) {
  const auto [name, type] = GetParam();
  const auto [device, missing] = test::gpu_device(name);
  if (device == nullptr) GTEST_SKIP() << missing;
  OpKernels kernels(*device, type);
  kernels.add_all();
  kernels.check();
}

}  // namespace
}  // namespace weft
