// A device: memory, and something that compiles kernels for it. A new device is one file, and a
// line in device.cpp.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "codegen/target.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "rewrite/pattern.h"
#include "runtime/program.h"
#include "schedule/schedule.h"
#include "weft/device.h"  // IWYU pragma: export

namespace weft {

class Device {
 public:
  explicit Device(std::string name) : name_(std::move(name)) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  const std::string& name() const { return name_; }

  // Tensors of these dtypes cannot be made on it: the call that would is a DTypeError.
  virtual DTypeSet missing_dtypes() const { return 0; }
  // Throws DTypeError that names the dtype and the device.
  void check_has(DType type) const {
    if ((missing_dtypes() & set_of(type.scalar)) != 0) refuse(type);
  }

  // Throws DeviceError when there is not so much memory. What new memory holds is not said.
  virtual void* allocate(size_t bytes) = 0;
  virtual void free(void* memory, size_t bytes) noexcept = 0;
  virtual void copy_in(void* to, std::span<const std::byte> from) = 0;
  virtual void copy_out(std::span<std::byte> to, const void* from) = 0;
  // As many bytes as `to` has, from the byte `first` on; false: it copies only from the beginning.
  virtual bool copy_out_part(std::span<std::byte>, const void*, size_t) { return false; }

  // Within its own memory, from the byte `first` on; false: it has no way of its own.
  virtual bool copy_part(void*, const void*, size_t, size_t) { return false; }

  // Copies from another device's memory without the host's, or by a way of its own; false: there is
  // none, and nothing is done.
  virtual bool copy_from(void*, Device&, const void*, size_t) { return false; }

  // Its memory is memory of this process, which anybody can read.
  virtual bool has_host_memory() const { return false; }

  // Schedules for it are worth keeping on disk.
  virtual bool keeps_schedules() const { return false; }

  // What a kernel for this device may be.
  virtual const KernelLimits& limits() const;
  // `ast` is a SINK that is legal as a kernel; the program does not need it afterwards. Throws
  // CompileError. Threads may compile at the same time, each from an arena of its own.
  virtual std::shared_ptr<Program> compile(UOp ast, std::string_view name) = 0;
  // What its programs are lowered for; null where kernels are not lowered, or are for this process.
  virtual const Target* target() const { return nullptr; }
  // A LINEAR, legal as a program of target(): for tests of renderers and of optimisations.
  virtual std::shared_ptr<Program> compile_list(UOp linear, std::string_view name);
  // The calls, which are of programs of this device, as one piece; null: it has nothing better than
  // one call after the other.
  virtual std::unique_ptr<RecordedCalls> record(std::span<const RecordedCall>) { return nullptr; }
  // Returns when all that was started on the device has been done; throws what went wrong there.
  virtual void synchronize() {}
  // Called when the device is found by its name: begins what takes long and will be needed.
  virtual void start() {}
  // What runs its kernels, for people.
  virtual std::string description() const { return {}; }
  // What it needs to run kernels and does not find; empty: nothing.
  virtual std::string missing() const { return {}; }
  // How many threads it is worth to compile with.
  virtual size_t compile_threads() const { return 1; }

 private:
  [[noreturn]] void refuse(DType type) const;

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
// The same, with kernels chosen and written for an H200.
Device& null_cuda_device();

}  // namespace weft
