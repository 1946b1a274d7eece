// A device: memory, and something that runs kernels on it. A new device is one file, and a line in
// device.cpp.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "schedule/schedule.h"
#include "weft/device.h"  // IWYU pragma: export

namespace weft {

class Buffer;

class Device {
 public:
  explicit Device(std::string name) : name_(std::move(name)) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  const std::string& name() const { return name_; }

  // Throws DeviceError when there is not so much memory. What new memory holds is not said.
  virtual void* allocate(size_t bytes) = 0;
  virtual void free(void* memory, size_t bytes) noexcept = 0;
  virtual void copy_in(void* to, std::span<const std::byte> from) = 0;
  virtual void copy_out(std::span<std::byte> to, const void* from) = 0;
  // The kernel on arguments[i] for DEFINE_GLOBAL i. When it throws it has written nothing.
  virtual void run(const KernelCall& call, std::span<Buffer* const> arguments) = 0;

 private:
  std::string name_;
};

// Throws DeviceError that lists what there is. No name: the default device. Devices live as long as
// the process.
Device& find_device(std::string_view name);

// The reference device: memory of this process, kernels run by the reference evaluator.
Device& ref_device();
// Allocates nothing and runs nothing: for looking at schedules and timing them. Its memory reads
// as zeros.
Device& null_device();

}  // namespace weft
