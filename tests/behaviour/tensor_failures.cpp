// A realise that fails half way changes no tensor; what a device destroyed is an error, never data.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "base/config.h"
#include "base/error.h"
#include "base/ref.h"
#include "ir/node.h"
#include "ir/op.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "runtime/program.h"
#include "schedule/schedule_cache.h"
#include "tests/unit/tensor_helpers.h"
#include "value/storage.h"
#include "value/value.h"
#include "value/view.h"
#include "weft/dtype.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

// The reference device, whose n-th allocation or kernel from now fails.
class FaultyDevice : public Device {
 public:
  FaultyDevice() : Device("FAULTY") {}

  void* allocate(size_t bytes) override {
    if (allocations_left && (*allocations_left)-- == 0) throw DeviceError("[FAULTY] no memory");
    return ref_device().allocate(bytes);
  }
  void free(void* memory, size_t bytes) noexcept override { ref_device().free(memory, bytes); }
  void copy_in(void* to, std::span<const std::byte> from) override {
    ref_device().copy_in(to, from);
  }
  void copy_out(std::span<std::byte> to, const void* from) override {
    ref_device().copy_out(to, from);
  }
  std::shared_ptr<weft::Program> compile(UOp ast, std::string_view name) override {
    if (compilations_left && (*compilations_left)-- == 0) throw CompileError("[FAULTY] no program");
    return std::make_shared<FaultyProgram>(*this, ref_device().compile(ast, name));
  }

  std::optional<int> allocations_left, compilations_left, kernels_left;
  std::function<void()> on_run;  // at the next kernel

 private:
  class FaultyProgram : public weft::Program {
   public:
    FaultyProgram(FaultyDevice& device, std::shared_ptr<weft::Program> program)
        : device_(device), program_(std::move(program)) {}
    void run(std::span<Buffer* const> arguments, std::span<const int64_t> variables) override {
      if (device_.on_run) std::exchange(device_.on_run, nullptr)();
      if (device_.kernels_left && (*device_.kernels_left)-- == 0) {
        throw DeviceError("[FAULTY] no kernel");
      }
      program_->run(arguments, variables);
    }

   private:
    FaultyDevice& device_;
    std::shared_ptr<weft::Program> program_;
  };
};

FaultyDevice& device() {
  static auto* device = new FaultyDevice;
  return *device;
}

Tensor counted(int64_t size) {
  test::Floats elements(static_cast<size_t>(size));
  std::iota(elements.begin(), elements.end(), 0.0F);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(elements));
  Ref<Buffer> buffer = Buffer::make(device(), bytes.size());
  buffer->copy_in(bytes);
  const int64_t shape[] = {size};
  const Ints sizes{std::span<const int64_t>(shape)};
  return {Storage::make(Value::make_filled(dtypes::float32, device(), sizes, std::move(buffer))),
          contiguous_view(dtypes::float32, sizes)};
}

struct Example {
  Tensor x = counted(6), y = x * 2;  // y is of x before it was written
  Tensor part = x.at({Slice{1, 3}});
  Tensor sum = (part.update(Op::ADD, 10), x.sum());

  void check() const {
    EXPECT_EQ(x.data<float>(), (test::Floats{0, 11, 12, 3, 4, 5}));
    EXPECT_EQ(y.data<float>(), (test::Floats{0, 2, 4, 6, 8, 10}));
    EXPECT_EQ(part.data<float>(), (test::Floats{11, 12}));
    EXPECT_EQ(sum.item<float>(), 35);
  }
};

TEST(TensorFailures, of_an_allocation_change_nothing) {
  int failures = 0;
  for (bool failed = true; failed; failures++) {
    Example p;
    const Ref<Value> version = p.x.storage()->version();
    device().allocations_left = failures;
    failed = !test::thrown<DeviceError>([&] { p.sum.realize(); }).empty();
    device().allocations_left.reset();
    EXPECT_EQ(p.x.storage()->version(), version);
    EXPECT_EQ(p.sum.is_realized(), !failed);
    p.check();
  }
  EXPECT_GE(failures, 2);
}

TEST(TensorFailures, of_a_compilation_change_nothing_and_are_not_remembered) {
  clear_schedule_cache();
  int failures = 0;
  for (bool failed = true; failed; failures++) {
    Example p;
    device().compilations_left = failures;
    device().allocations_left = failures == 0 ? std::optional(0) : std::nullopt;  // none is tried
    failed = !test::thrown<CompileError>([&] { p.sum.realize(); }).empty();
    device().compilations_left.reset();
    device().allocations_left.reset();
    EXPECT_EQ(p.sum.is_realized(), !failed);
    p.check();
    clear_schedule_cache();
  }
  EXPECT_GE(failures, 2);
}

TEST(TensorFailures, of_the_first_kernel_change_nothing) {
  Example p;
  device().kernels_left = 0;
  EXPECT_EQ(test::thrown<DeviceError>([&] { p.sum.realize(); }), "[FAULTY] no kernel");
  device().kernels_left.reset();
  p.check();
}

// x is written in place; then the sum fails.
TEST(TensorFailures, after_a_write_in_place_are_said) {
  Tensor x = counted(6);
  x.at({Slice{1, 3}}).update(Op::ADD, 10);
  Tensor sum = x.sum();
  ASSERT_EQ(sum.kernel_count(), 2U);
  device().kernels_left = 1;
  EXPECT_EQ(test::thrown<DeviceError>([&] { sum.realize(); }), "[FAULTY] no kernel");
  device().kernels_left.reset();
  const std::string lost =
      "[value] a kernel failed while this memory was being written: what it held is lost; write "
      "all of the tensor anew";
  EXPECT_EQ(test::thrown<DeviceError>([&] { x.bytes(); }), lost);
  EXPECT_EQ(test::thrown<DeviceError>([&] { sum.item(); }), lost);
  x.set({0}, 5);
  EXPECT_EQ(test::thrown<DeviceError>([&] { x.bytes(); }), lost);
  x.assign(1);
  EXPECT_EQ(x.sum().item<float>(), 6);
}

// The same with x still read by someone: it is copied before it is written, and nothing is lost.
TEST(TensorFailures, after_a_write_to_a_copy_change_nothing) {
  for (int kernels = 0; kernels < 3; kernels++) {
    Example p;
    device().kernels_left = kernels;
    try {
      p.sum.realize();
    } catch (const DeviceError&) {
      EXPECT_EQ(device().kernels_left, -1);
    }
    device().kernels_left.reset();
    p.check();
  }
}

// `t` has the version of x after the first write; x has gone on. While t is computed, a read of x
// finds what the first write stored, which this schedule would otherwise be the last to read.
TEST(TensorFailures, a_read_while_a_schedule_runs) {
  Tensor x = counted(8);
  std::optional<Tensor> stored = counted(4);
  x.set({Slice{0, 4}}, *stored);
  Tensor t = x.clone();
  x.set({Slice{4, 8}}, -1);
  stored.reset();
  std::optional<Tensor> read;
  device().on_run = [&] { read = x.at({Slice{0, 4}}) * 2; };
  t.realize();
  ASSERT_TRUE(read);
  EXPECT_EQ(read->data<float>(), (test::Floats{0, 2, 4, 6}));
  EXPECT_EQ(t.data<float>(), (test::Floats{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(x.data<float>(), (test::Floats{0, 1, 2, 3, -1, -1, -1, -1}));
}

TEST(TensorFailures, a_write_while_a_schedule_runs) {
  Tensor x = counted(4);
  x.set({1}, 10);
  Tensor y = x * 2;
  device().on_run = [&] { x.set({0}, 7); };
  y.realize();
  EXPECT_EQ(y.data<float>(), (test::Floats{0, 20, 4, 6}));
  EXPECT_EQ(x.data<float>(), (test::Floats{7, 10, 2, 3}));
}

// The bound realises at a write: when that fails, nothing was written.
TEST(TensorFailures, of_the_bound) {
  Tensor x = counted(4);
  x.set({1}, 10);
  const test::Setting bound(config().most_pending_values, int64_t(0));
  device().kernels_left = 0;
  EXPECT_THROW(x.set({0}, 7), DeviceError);
  device().kernels_left = 0;
  EXPECT_THROW(x.set({0}, x.at({1})), DeviceError);
  device().kernels_left.reset();
  EXPECT_EQ(x.data<float>(), (test::Floats{0, 10, 2, 3}));
}

}  // namespace
}  // namespace weft
