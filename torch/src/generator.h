// Random bits of the device: a counter that a hash with a key makes 64 bits of. The state of a
// generator is its seed and how many blocks were drawn.
#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {

class GeneratorImpl final : public c10::GeneratorImpl {
 public:
  explicit GeneratorImpl(c10::DeviceIndex index);

  void set_current_seed(uint64_t seed) override;
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override;
  void set_offset(uint64_t offset) override { drawn_ = offset; }
  uint64_t get_offset() const override { return drawn_; }
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;
  static c10::DeviceType device_type() { return c10::DeviceType::PrivateUse1; }

  // The next blocks of 64 bits, uint64, in this shape.
  weft::Tensor draw(Ints shape);

 private:
  GeneratorImpl* clone_impl() const override;

  uint64_t seed_ = c10::default_rng_seed_val;
  uint64_t drawn_ = 0;
};

const at::Generator& default_generator();
// The one given, or the default.
GeneratorImpl& generator_of(const std::optional<at::Generator>& generator);
// Locks the generator and draws.
weft::Tensor draw_blocks(const std::optional<at::Generator>& generator, Ints shape);
// A generator of the CPU, seeded by the next bits of this one.
at::Generator cpu_generator_from(const at::Generator& generator);

}  // namespace weft::pytorch
