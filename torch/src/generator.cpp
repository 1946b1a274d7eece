// Random bits of the device.
#include "generator.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GeneratorImpl.h>
#include <c10/util/Exception.h>

#include "base/ref.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "storage.h"
#include "tensor/operand.h"
#include "tensor/random_bits.h"
#include "value/value.h"
#include "weft/dtype.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

constexpr auto kDeviceType = c10::DeviceType::PrivateUse1;
using State = std::array<uint64_t, 2>;

}  // namespace

GeneratorImpl::GeneratorImpl(c10::DeviceIndex index)
    : c10::GeneratorImpl(c10::Device(kDeviceType, index),
                         c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

void GeneratorImpl::set_current_seed(uint64_t seed) {
  seed_ = seed;
  drawn_ = 0;
}

uint64_t GeneratorImpl::seed() {
  set_current_seed(c10::detail::getNonDeterministicRandom());
  return seed_;
}

void GeneratorImpl::set_state(const c10::TensorImpl& state) {
  State numbers;
  TORCH_CHECK(state.device().is_cpu() && state.dtype() == caffe2::TypeMeta::Make<uint8_t>() &&
                  state.numel() == int64_t(sizeof(numbers)) && state.is_contiguous(),
              "the state of a generator of weft is a CPU ByteTensor of ", sizeof(numbers),
              " elements");
  std::memcpy(numbers.data(), state.data(), sizeof(numbers));
  seed_ = numbers[0];
  drawn_ = numbers[1];
}

c10::intrusive_ptr<c10::TensorImpl> GeneratorImpl::get_state() const {
  const State numbers = {seed_, drawn_};
  const at::Tensor state = at::detail::empty_cpu({int64_t(sizeof(numbers))}, c10::kByte);
  std::memcpy(state.mutable_data_ptr(), numbers.data(), sizeof(numbers));
  return state.getIntrusivePtr();
}

// The key and the counter are memory, not numbers of the graph: drawing again is the same graph.
weft::Tensor GeneratorImpl::draw(Ints shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  const State state = {seed_, drawn_};
  drawn_ += uint64_t(count);
  Device& device = weft_device();
  Ref<Buffer> buffer = Buffer::make(device, sizeof(State));
  buffer->copy_in(std::as_bytes(std::span(state)));
  const weft::Tensor numbers =
      tensor_of(Value::make_filled(dtypes::uint64, device, {2}, std::move(buffer)));
  return blocks_of(numbers, shape);
}

GeneratorImpl* GeneratorImpl::clone_impl() const {
  auto* const copy = new GeneratorImpl(device().index());
  copy->seed_ = seed_;
  copy->drawn_ = drawn_;
  return copy;
}

const at::Generator& default_generator() {
  static const at::Generator kGenerator = at::make_generator<GeneratorImpl>(0);
  return kGenerator;
}

GeneratorImpl& generator_of(const std::optional<at::Generator>& generator) {
  const bool is_given = generator && generator->defined();
  c10::GeneratorImpl* const impl =
      is_given ? generator->unsafeGetGeneratorImpl() : default_generator().unsafeGetGeneratorImpl();
  TORCH_CHECK(impl->device().type() == kDeviceType, "Expected a '", c10::Device(kDeviceType),
              "' device type for generator but found '", impl->device().type(), "'");
  return static_cast<GeneratorImpl&>(*impl);
}

weft::Tensor draw_blocks(const std::optional<at::Generator>& generator, Ints shape) {
  GeneratorImpl& impl = generator_of(generator);
  const std::lock_guard lock(impl.mutex_);
  return impl.draw(shape);
}

at::Generator cpu_generator_from(const at::Generator& generator) {
  GeneratorImpl& impl = generator_of(generator);
  const std::lock_guard lock(impl.mutex_);
  const uint64_t seed = impl.current_seed() ^ (impl.get_offset() * 0x9E3779B97F4A7C15);
  impl.set_offset(impl.get_offset() + 1);
  return at::detail::createCPUGenerator(seed);
}

}  // namespace weft::pytorch
