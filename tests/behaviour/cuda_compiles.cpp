// CUDA C of every op on every dtype, of shared memory and of vectors goes through NVRTC or nvcc for
// the architectures that weft knows, without a GPU.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "codegen/lower.h"
#include "codegen/opt/opt.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/spec_rules.h"
#include "render/render.h"
#include "runtime/cuda/compile_cuda.h"
#include "tests/program_builder.h"

namespace weft {
namespace {

constexpr std::array kTypes = {
    dtypes::bool_,       dtypes::int8,    dtypes::int16,    dtypes::int32,   dtypes::int64,
    dtypes::uint8,       dtypes::uint16,  dtypes::uint32,   dtypes::uint64,  dtypes::float8_e4m3,
    dtypes::float8_e5m2, dtypes::float16, dtypes::bfloat16, dtypes::float32, dtypes::float64};

// Kernels in one source: each brings its own types and functions.
class Source {
 public:
  void add(UOp linear) {
    text_ += fmt::format("namespace n{0} {{\n{1}}}\n", count_,
                         render_cuda(linear, fmt::format("kernel{}", count_)));
    count_++;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int count_ = 0;
};

// All ops of one dtype, each result in memory of its own.
UOp all_ops(Arena& arena, DType type) {
  const UOp r = range(arena, 64, 0);
  std::array<UOp, 3> x;
  int64_t id = 0;
  for (UOp& each : x) each = load(index(define_global(arena, type, 64, id++), r));
  std::vector<UOp> stores;
  const auto add = [&](UOp value) {
    stores.push_back(index(define_global(arena, value.dtype(), 64, id++), r).assign(value));
  };
  for (size_t k = 0; k < kOpCount; k++) {
    const Op op = Op(k);
    if (!is_elementwise(op) || op == Op::CAST || op == Op::BITCAST || !spec::accepts(op, type)) {
      continue;
    }
    const uint32_t count = info(op).least_sources;
    add(count == 1        ? unary(op, x[0])
        : count == 2      ? binary(op, x[0], x[1])
        : op == Op::WHERE ? where(not_equal(x[2], x[0]), x[0], x[1])
                          : mulacc(x[0], x[1], x[2]));
  }
  for (const DType to : kTypes) {
    add(cast(x[0], to));
    if (type.bits() == to.bits() && !type.is_bool() && !to.is_bool()) add(bitcast(x[0], to));
  }
  std::vector<UOp> ends;
  ends.reserve(stores.size());
  for (const UOp store : stores) ends.push_back(end(store, r));
  return sink(arena, ends);
}

// Threads that pass what they read on through `bytes` of shared memory.
UOp shared(test::ProgramBuilder& b, int64_t bytes) {
  const int64_t size = bytes / 4;
  const UOp out = b.global(dtypes::float32, size, 0), in = b.global(dtypes::float32, size, 1);
  const UOp local = b.add(Op::DEFINE_LOCAL, dtypes::float32.ptr(AddrSpace::kLocal),
                          {b.integer(size)}, Arg::integer(0));
  const UOp thread = b.add(Op::SPECIAL, dtypes::int32, {b.integer(256)}, Arg::name("lidx0"));
  const UOp stored = b.store(b.at(local, thread), b.load(b.at(in, thread)));
  const UOp barrier = b.add(Op::BARRIER, dtypes::void_, {stored});
  const UOp turned = b.binary(Op::SUB, b.integer(255), thread);
  b.store(b.at(out, thread), b.load(b.at(b.after(local, {barrier}), turned)));
  return b.linear();
}

// Vectors at places that are multiples of their size, and at others.
UOp vectors(test::ProgramBuilder& b, DType type, uint16_t lanes) {
  const UOp out = b.global(type, 1024, 0), in = b.global(type, 1024, 1);
  const UOp thread = b.add(Op::SPECIAL, dtypes::int32, {b.integer(32)}, Arg::name("lidx0"));
  const UOp place = b.binary(Op::MUL, thread, b.integer(lanes));
  const UOp next = b.binary(Op::ADD, place, b.integer(1));
  const UOp aligned = b.load(b.at(in, place, lanes)), other = b.load(b.at(in, next, lanes));
  std::vector<UOp> picked;
  for (int64_t k = 0; k < lanes; k++) {
    picked.push_back(
        b.add(Op::GEP, type, {k % 2 == 0 ? aligned : other}, Arg::ints(std::array{k})));
  }
  const UOp mixed = b.add(Op::VECTORIZE, type.vec(lanes), picked);
  b.store(b.at(out, place, lanes), mixed);
  b.store(b.at(out, next, lanes), other);
  return b.linear();
}

class CudaCompiles : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(All, CudaCompiles, testing::Values(80, 90),
                         [](const auto& test) { return fmt::format("sm_{}", test.param); });

TEST_P(CudaCompiles, AllThatItHasTextFor) {
  if (!cuda_compiler_missing().empty()) GTEST_SKIP() << cuda_compiler_missing();
  Source source;
  Arena arena;
  for (const DType type : kTypes) {
    source.add(lower(all_ops(arena, type), cuda_target(), OptList{}));
  }
  test::ProgramBuilder fixed, dynamic, narrow, wide;
  source.add(shared(fixed, 48 << 10));
  source.add(shared(dynamic, 64 << 10));
  source.add(vectors(narrow, dtypes::bfloat16, 8));
  source.add(vectors(wide, dtypes::float32, 4));
  EXPECT_NE(source.text().find("extern __shared__"), std::string::npos);
  EXPECT_NE(source.text().find("::at("), std::string::npos);
  EXPECT_FALSE(compile_cuda(source.text(), "all", GetParam()).empty());
}

TEST(CudaCompiler, SaysWhatIsWrong) {
  if (!cuda_compiler_missing().empty()) GTEST_SKIP() << cuda_compiler_missing();
  try {
    compile_cuda("extern \"C\" __global__ void broken() { nonsense; }", "broken", 90);
    FAIL() << "it compiled";
  } catch (const CompileError& e) {
    EXPECT_NE(std::string(e.what()).find("nonsense"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace weft
