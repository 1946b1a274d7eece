// The device REF: memory is bytes of this process, a kernel runs on the reference evaluator.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/config.h"
#include "base/error.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/walk.h"
#include "runtime/array_bytes.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "runtime/program.h"

namespace weft {
namespace {

std::span<std::byte> bytes_of(const Buffer& buffer) {
  return {static_cast<std::byte*>(buffer.memory()), buffer.bytes()};
}

class RefProgram : public Program {
 public:
  explicit RefProgram(UOp ast) : kernel_(own(ast)) {
    for (UOp n : toposort(kernel_.root)) {
      if (n.is(Op::DEFINE_GLOBAL)) globals_.push_back(n);
      if (n.is(Op::VARIABLE)) variables_.insert(std::string(n.name()));
      if (!n.is(Op::STORE)) continue;
      const UOp base = place_of(n.src(0)).base;
      if (base.is(Op::DEFINE_GLOBAL)) written_.insert(base.number());
    }
  }

  void run(std::span<Buffer* const> arguments, std::span<const int64_t> variables) override {
    Bindings bindings;
    for (UOp global : globals_) {
      const DType type = global.dtype().element();
      const Buffer& buffer = *arguments[size_t(global.number())];
      buffer.check_lender();
      std::vector<uint64_t> bits = bits_of_bytes(type, bytes_of(buffer));
      const int64_t count = int64_t(bits.size());
      bindings.buffers[global.number()] = Array::of_bits(type, {count}, std::move(bits));
    }
    size_t i = 0;
    for (const std::string& name : variables_) bindings.variables[name] = variables[i++];
    evaluate_alone(bindings);
    for (const int64_t id : written_) {
      const Array& array = bindings.buffers.at(id);
      bytes_of_bits(array.dtype, array.data, bytes_of(*arguments[size_t(id)]));
    }
  }

 private:
  // An arena is used by one thread at a time.
  void evaluate_alone(Bindings& bindings) {
    const std::lock_guard lock(mutex_);
    evaluate(kernel_.root, bindings);
  }

  Graph kernel_;
  std::vector<UOp> globals_;  // each DEFINE_GLOBAL once
  std::set<std::string> variables_;
  std::set<int64_t> written_;
  std::mutex mutex_;
};

class RefDevice : public Device {
 public:
  RefDevice() : Device("REF") {}

  void* allocate(size_t bytes) override {
    // The system lends more than it has, and ends the process when that is used.
    static const auto kMost = uint64_t(memory_of_machine());
    void* memory = bytes > kMost ? nullptr : std::calloc(bytes == 0 ? 1 : bytes, 1);
    if (memory == nullptr) {
      throw DeviceError(fmt::format("[REF] there is no memory for {} bytes", bytes));
    }
    return memory;
  }
  void free(void* memory, size_t) noexcept override { std::free(memory); }
  bool has_host_memory() const override { return true; }
  void copy_in(void* to, std::span<const std::byte> from) override {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
  }
  void copy_out(std::span<std::byte> to, const void* from) override {
    if (!to.empty()) std::memcpy(to.data(), from, to.size());
  }

  std::shared_ptr<Program> compile(UOp ast, std::string_view) override {
    return std::make_shared<RefProgram>(ast);
  }
};

}  // namespace

Device& ref_device() {
  static auto* device = new RefDevice;  // never freed: buffers may outlive all else
  return *device;
}

}  // namespace weft
