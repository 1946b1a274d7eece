// Generators: one small storage per device.
//
// The state is a Storage as any other, so that what a function draws while it is captured by jit
// reads it and writes it in each replay. Outside of a capture the next state is a number that the
// host knows: it is put into the storage at once, and drawing costs no kernel beside the numbers.
#include "tensor/generator.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/at_fork.h"
#include "base/error.h"
#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "tensor/operand.h"
#include "tensor/random_bits.h"
#include "value/storage.h"
#include "value/storage_watch.h"
#include "value/value.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

using State = std::array<uint64_t, 2>;  // key, counter

Ref<Value> value_of(Device& device, const State& state) {
  Ref<Buffer> buffer = Buffer::make(device, sizeof(State));
  buffer->copy_in(std::as_bytes(std::span(state)));
  return Value::make_filled(dtypes::uint64, device, {2}, std::move(buffer));
}

bool is_captured() { return storage_watch() != nullptr; }

class Generator {
 public:
  Generator(Device& device, uint64_t seed)
      : device_(device),
        state_{seed, 0},
        version_(value_of(device, state_)),
        tensor_(make_tensor(version_)) {}

  Tensor tensor() const { return tensor_; }

  void set(const State& state) {
    if (is_captured()) {
      tensor_.assign(from_numbers(state));
    } else {
      publish(state);
    }
  }

  Tensor draw(Ints shape, int64_t count) {
    Tensor blocks = blocks_of(tensor_, shape);
    if (is_captured()) {
      tensor_.at({1}).update(Op::ADD, count);
    } else {
      State next = known_state();
      next[1] += uint64_t(count);
      publish(next);
    }
    return blocks;
  }

  // What the storage holds, as numbers.
  State known_state() {
    Storage& storage = *tensor_.storage();
    if (storage.version() == version_) return state_;
    const std::vector<std::byte> bytes = tensor_.bytes();
    std::memcpy(state_.data(), bytes.data(), sizeof(State));
    version_ = storage.version();
    return state_;
  }

 private:
  static Tensor make_tensor(Ref<Value> version) { return tensor_of(std::move(version)); }

  Tensor from_numbers(const State& state) const {
    return tensor_of(
        Value::make_filled(dtypes::uint64, device_, {2}, value_of(device_, state)->buffer()));
  }

  void publish(const State& state) {
    Ref<Value> version = value_of(device_, state);
    state_ = state;
    version_ = version;
    const std::lock_guard lock(graph_mutex());
    tensor_.storage()->replace_version(version);
  }

  Device& device_;
  State state_;         // of version_
  Ref<Value> version_;  // which the storage had last
  Tensor tensor_;
};

std::mutex& mutex() {
  static std::mutex mutex;
  static const bool kIsRegistered [[maybe_unused]] = [] {
    at_fork(ForkOrder::kTensor, [] { mutex.lock(); }, [] { mutex.unlock(); });
    return true;
  }();
  return mutex;
}

bool tell_forks() noexcept {
  mutex();
  return true;
}
[[maybe_unused]] const bool kLockIsKnownToForks = tell_forks();

uint64_t random_seed() {
  std::random_device device;
  return uint64_t(device()) << 32 | device();
}

struct Generators {
  uint64_t seed = random_seed();
  std::map<Device*, Generator> of_device;

  Generator& find(Device& device) {
    const auto at = of_device.find(&device);
    if (at != of_device.end()) return at->second;
    const StorageWatch::Pause pause;  // a capture finds it, and did not make it
    return of_device.try_emplace(&device, device, seed).first->second;
  }
};

// It lives as long as the process, as devices do.
Generators& generators() {
  static Generators* const kGenerators = new Generators;
  return *kGenerators;
}

}  // namespace

Tensor draw_blocks(Device& device, Ints shape) {
  const int64_t count = checked_numel("random", shape);
  const std::lock_guard lock(mutex());
  return generators().find(device).draw(shape, count);
}

Tensor generator_state(Device& device) {
  const std::lock_guard lock(mutex());
  return generators().find(device).tensor();
}

void Tensor::manual_seed(int64_t seed) {
  const std::lock_guard lock(mutex());
  generators().seed = uint64_t(seed);
  for (auto& [device, generator] : generators().of_device) generator.set({uint64_t(seed), 0});
}

Tensor Tensor::get_rng_state(std::string_view device) {
  return generator_state(find_device(device)).clone();
}

void Tensor::set_rng_state(const Tensor& state, std::string_view device_name) {
  if (state.dtype() != dtypes::uint64 || state.numel() != 2 || state.ndim() != 1) {
    throw ShapeError(
        fmt::format("[set_rng_state] {} of {} is no state; it is (2) of uint64, from get_rng_state",
                    text_of_shape(state.shape()), state.dtype().name()));
  }
  Device& device = find_device(device_name);
  if (is_captured()) {
    generator_state(device).assign(state.to(device.name()));
    return;
  }
  State numbers;
  const std::vector<std::byte> bytes = state.bytes();
  std::memcpy(numbers.data(), bytes.data(), sizeof(State));
  const std::lock_guard lock(mutex());
  generators().find(device).set(numbers);
}

}  // namespace weft
