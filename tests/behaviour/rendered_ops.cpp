// Every elementwise op on every dtype that the targets have text for, compiled and compared with
// the reference evaluator on the edges of the dtypes: in lanes of 1, 4 and 16 on the CPU, and on
// devices with workgroups where there are any.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "ir/spec_rules.h"
#include "render/render.h"
#include "runtime/device.h"
#include "runtime/program.h"
#include "tests/edge_values.h"
#include "tests/gpu_devices.h"
#include "tests/program_builder.h"
#include "tests/run_program.h"

namespace weft {
namespace {

using test::Buffers;
using test::Language;
using test::ProgramBuilder;

constexpr std::array kTypes = {dtypes::bool_,  dtypes::int8,    dtypes::int16,   dtypes::int32,
                               dtypes::int64,  dtypes::uint8,   dtypes::uint16,  dtypes::uint32,
                               dtypes::uint64, dtypes::float16, dtypes::float32, dtypes::float64};
constexpr uint16_t kLanes[] = {1, 4, 16}, kOneLane[] = {1};
constexpr size_t kAllResults = 100'000;
// On devices that bound arguments; four are operands.
size_t results_of_a_kernel(const Device& device) {
  return std::min<size_t>(48, device.limits().buffers - 4);
}

// Operands of an op: all pairs of edges; the third cycles through them out of step.
std::array<Array, 3> operands(DType type) {
  const std::vector<uint64_t> e = test::edge_values(type);
  std::array<std::vector<uint64_t>, 3> bits;
  for (size_t i = 0; i < e.size(); i++) {
    for (size_t j = 0; j < e.size(); j++) {
      bits[0].push_back(e[i]);
      bits[1].push_back(e[j]);
      bits[2].push_back(e[(i * 7 + j * 3 + 1) % e.size()]);
    }
  }
  std::array<Array, 3> out;
  for (size_t k = 0; k < 3; k++) {
    while (bits[k].size() % 16 != 0) bits[k].push_back(e[0]);
    const auto size = int64_t(bits[k].size());
    out[k] = Array::of_bits(type, {size}, bits[k]);
  }
  return out;
}

// One program for all that is done to one dtype: a loop per number of lanes, a buffer per result.
struct Case {
  ProgramBuilder builder;
  Buffers buffers;
  std::vector<std::string> names;  // of the results, from buffer 4
  size_t first = 0, most = 0;      // which results, of all that there are
  size_t count = 0;                // of all that there are

  Case(DType type, const Target& target, std::span<const uint16_t> all_lanes, size_t from,
       size_t results)
      : first(from), most(results) {
    std::array<Array, 3> in = operands(type);
    const int64_t size = in[0].size();
    Array condition = Array::zeros(dtypes::bool_, {size});
    for (size_t i = 0; i < condition.data.size(); i++) condition.data[i] = i % 3 == 1;
    for (size_t k = 0; k < 3; k++) buffers[int64_t(k)] = in[k];
    buffers[3] = condition;
    std::vector<UOp> inputs;
    for (int64_t k = 0; k < 4; k++) inputs.push_back(builder.global(buffers[k].dtype, size, k));
    for (const uint16_t lanes : all_lanes) add_loop(type, target, lanes, size, inputs);
  }

  void add_loop(DType type, const Target& target, uint16_t lanes, int64_t size,
                const std::vector<UOp>& inputs) {
    const UOp r = builder.range(builder.integer(size / lanes), lanes);
    const UOp i = builder.binary(Op::MUL, r, builder.integer(lanes));
    std::vector<UOp> x;
    for (UOp p : inputs) x.push_back(builder.load(builder.at(p, i, lanes)));
    const DType vector = type.vec(lanes), condition = dtypes::bool_.vec(lanes);
    UOp last;
    const auto keep = [&](const std::string& what, UOp value) {
      const size_t number = count++;
      if (number < first || number - first >= most) return;
      const auto id = int64_t(names.size()) + 4;
      names.push_back(fmt::format("{} of {} in {} lanes", what, type.name(), lanes));
      buffers[id] = Array::zeros(value.dtype().element(), {size});
      last = builder.store(builder.at(builder.global(value.dtype().element(), size, id), i, lanes),
                           value);
    };
    for (size_t k = 0; k < kOpCount; k++) {
      const Op op = Op(k);
      if (!is_elementwise(op) || op == Op::CAST || op == Op::BITCAST || op == Op::WHERE) continue;
      if (!target.can(op, type) || !spec::accepts(op, type)) continue;
      const DType result = yields_bool(op) ? condition : vector;
      const std::string name(name_of(op));
      keep(name, builder.add(op, result, std::span(x.data(), info(op).least_sources)));
      if (info(op).least_sources != 2) continue;
      for (const int64_t c : {-1, 0, 1, 3, 200}) {  // short forms for constants
        const UOp y = builder.constant(vector, bits_of_int(type, c));
        keep(fmt::format("{} by {}", name, c), builder.add(op, result, {x[0], y}));
      }
    }
    keep("WHERE", builder.add(Op::WHERE, vector, {x[3], x[0], x[1]}));
    if (lanes > 1) add_shuffles(x, keep);
    for (const DType to : kTypes) {
      if (target.can(Op::CAST, type) && target.can(Op::CAST, to)) {
        keep("CAST to " + to.name(), builder.add(Op::CAST, to.vec(lanes), {x[0]}));
      }
      if (type.bits() == to.bits()) {
        keep("BITCAST to " + to.name(), builder.add(Op::BITCAST, to.vec(lanes), {x[0]}));
      }
    }
    if (last) builder.end(last, r);
  }

  template <class Keep>
  void add_shuffles(const std::vector<UOp>& x, const Keep& keep) {
    const DType type = x[0].dtype(), element = type.element();
    std::vector<int64_t> back;
    std::vector<UOp> same, mixed;
    for (int64_t k = type.lanes; k-- > 0;) back.push_back(k);
    const int64_t lane[] = {2};
    const UOp two = builder.add(Op::GEP, element, {x[0]}, Arg::ints(lane));
    for (int64_t k = 0; k < type.lanes; k++) {
      const int64_t which[] = {k};
      same.push_back(two);
      mixed.push_back(builder.add(Op::GEP, element, {x[size_t(k % 3)]}, Arg::ints(which)));
    }
    keep("GEP", builder.add(Op::GEP, type, {x[0]}, Arg::ints(back)));
    keep("VECTORIZE of one", builder.add(Op::VECTORIZE, type, same));
    keep("VECTORIZE", builder.add(Op::VECTORIZE, type, mixed));
  }
};

bool is_nan(DType type, uint64_t bits) {
  return type.is_float() && std::isnan(double_of_bits(type, bits));
}

// The payload of a NaN that arithmetic makes is the machine's.
void expect_same(const Case& c, const Buffers& expected, const Buffers& given) {
  for (size_t k = 0; k < c.names.size(); k++) {
    const Array &e = expected.at(int64_t(k) + 4), &g = given.at(int64_t(k) + 4);
    const bool is_exact = c.names[k].starts_with("NEG") || c.names[k].starts_with("WHERE") ||
                          c.names[k].starts_with("BITCAST") || c.names[k].starts_with("GEP") ||
                          c.names[k].starts_with("VECTORIZE");
    for (size_t i = 0; i < e.data.size(); i++) {
      if (e.data[i] == g.data[i]) continue;
      if (!is_exact && is_nan(e.dtype, e.data[i]) && is_nan(e.dtype, g.data[i])) continue;
      const auto in = [&](int64_t b) {
        const Array& a = expected.at(b);
        return text_of_bits(a.dtype, a.data[i]);
      };
      ADD_FAILURE() << c.names[k] << ": " << in(0) << ", " << in(1) << ", " << in(2) << " gives "
                    << text_of_bits(g.dtype, g.data[i]) << ", not "
                    << text_of_bits(e.dtype, e.data[i]);
      break;
    }
  }
}

struct Way {
  Language language;
  DType type;
};
class RenderedOps : public testing::TestWithParam<Way> {};

std::vector<Way> ways() {
  std::vector<Way> out;
  for (const Language language : {Language::kC, Language::kLlvm}) {
    for (const DType type : kTypes) out.push_back({language, type});
  }
  return out;
}
INSTANTIATE_TEST_SUITE_P(All, RenderedOps, testing::ValuesIn(ways()), [](const auto& test) {
  const char* language = test.param.language == Language::kC ? "C_" : "LLVM_";
  return language + test.param.type.name();
});

TEST_P(RenderedOps, LikeTheEvaluator) {
  const auto [language, type] = GetParam();
  if (!test::has_compiler(language)) GTEST_SKIP() << "no compiler";
  const bool is_c = language == Language::kC;
  const HalfCasts half =
      __builtin_cpu_supports("f16c") ? HalfCasts::kNative : HalfCasts::kDecomposed;
  Case c(type, is_c ? c_target(half) : llvm_target(half), kLanes, 0, kAllResults);
  const UOp linear = c.builder.linear();
  const std::string text = is_c ? render_c(linear, "kernel") : render_llvm(linear, "kernel");
  const test::CompiledProgram program(language, text);
  ASSERT_EQ(program.error(), "") << text;
  expect_same(c, test::evaluated(linear, c.buffers),
              test::called(program.function("kernel"), linear, c.buffers));
}

struct WayOnDevice {
  const char* device;
  DType type;
};
class RenderedOpsOnDevice : public testing::TestWithParam<WayOnDevice> {};

std::vector<WayOnDevice> ways_on_devices() {
  std::vector<WayOnDevice> out;
  for (const char* device : test::kGpuDevices) {
    for (const DType type : kTypes) out.push_back({device, type});
  }
  return out;
}
INSTANTIATE_TEST_SUITE_P(All, RenderedOpsOnDevice, testing::ValuesIn(ways_on_devices()),
                         [](const auto& test) {
                           return test.param.device + ("_" + test.param.type.name());
                         });

TEST_P(RenderedOpsOnDevice, LikeTheEvaluator) {
  const auto [name, type] = GetParam();
  const auto [device, missing] = test::gpu_device(name);
  if (device == nullptr) GTEST_SKIP() << missing;
  if (!test::has_dtype(*device, type)) GTEST_SKIP() << "the device has no " << type.name();
  const size_t most = results_of_a_kernel(*device);
  ASSERT_GT(most, 0U);
  for (size_t first = 0, count = 1; first < count; first += most) {
    Case c(type, *device->target(), kOneLane, first, most);
    count = c.count;
    const UOp linear = c.builder.linear();
    const std::shared_ptr<Program> program = device->compile_list(linear, "kernel");
    expect_same(c, test::evaluated(linear, c.buffers),
                test::run_on_device(*device, *program, c.buffers));
  }
}

}  // namespace
}  // namespace weft
