// Devices with workgroups, where the machine has them, and programs run on them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ref.h"
#include "ir/array.h"
#include "ir/dtype.h"
#include "rewrite/pattern.h"
#include "runtime/array_bytes.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "runtime/program.h"

namespace weft::test {

// Tests that go over these skip those that the machine lacks, and say what it lacks.
inline constexpr std::array kGpuDevices = {"OPENCL", "WEBGPU"};

struct FoundDevice {
  Device* device;
  std::string missing;  // why there is none
};
inline FoundDevice gpu_device(const std::string& name) {
  try {
    return {&find_device(name), {}};
  } catch (const DeviceError& e) {
    return {nullptr, e.what()};
  }
}

inline bool has_dtype(const Device& device, DType type) {
  return (device.missing_dtypes() & set_of(type.scalar)) == 0;
}

// The arrays after a run, by the number of the argument. Arguments have bytes behind them that
// nobody may write. Variables are in order of their names.
inline std::map<int64_t, Array> run_on_device(Device& device, Program& program,
                                              std::map<int64_t, Array> arrays,
                                              std::span<const int64_t> variables = {}) {
  constexpr size_t guard = 256;
  constexpr std::byte mark{0xfb};  // a NaN of every float
  std::vector<Ref<Buffer>> owned;
  std::vector<Buffer*> arguments;
  for (const auto& [id, array] : arrays) {
    const DType type = array.dtype.element();
    const size_t bytes = array.data.size() * size_t(type.item_bytes());
    std::vector<std::byte> content(bytes + guard, mark);
    bytes_of_bits(type, array.data, std::span(content).first(bytes));
    owned.push_back(Buffer::make(device, content.size()));
    owned.back()->copy_in(content);
    arguments.resize(size_t(id) + 1);
    arguments[size_t(id)] = owned.back().get();
  }
  program.run(arguments, variables);
  size_t i = 0;
  for (auto& [id, array] : arrays) {
    const Buffer& buffer = *owned[i++];
    std::vector<std::byte> content(buffer.bytes());
    buffer.copy_out(content);
    const size_t bytes = content.size() - guard;
    for (const std::byte b : std::span(content).subspan(bytes)) {
      if (b != mark) throw InternalError("an argument is written outside of its bounds");
    }
    array.data = bits_of_bytes(array.dtype.element(), std::span(content).first(bytes));
  }
  return arrays;
}

}  // namespace weft::test
