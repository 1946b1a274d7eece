// Build, or take the binary that an earlier process left; then set arguments and enqueue.
#include "runtime/opencl/opencl_program.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "codegen/opt/opt.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "runtime/buffer.h"
#include "runtime/caching_allocator.h"
#include "runtime/debug.h"
#include "runtime/gpu/gpu_kernel.h"
#include "runtime/kernel_cache.h"
#include "runtime/loaded_table.h"
#include "runtime/opencl/opencl_functions.h"
#include "runtime/opencl/opencl_library.h"
#include "runtime/program.h"

namespace weft::cl {
namespace {

// A program as the library has it.
class Code {
 public:
  Code(const Functions& call, Program program) : call_(call), program_(program) {}
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() {
    if (!is_lost_by_fork()) call_.clReleaseProgram(program_);
  }
  Program program() const { return program_; }

 private:
  const Functions& call_;
  Program program_;
};

// Its function, with the arguments that were set last.
class Function {
 public:
  // `code` says what is wrong, if anything is.
  Function(const Functions& call, Program program, std::string_view name, int32_t& code)
      : call_(call), kernel_(call.clCreateKernel(program, std::string(name).c_str(), &code)) {}
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;
  ~Function() {
    if (kernel_ != nullptr && !is_lost_by_fork()) call_.clReleaseKernel(kernel_);
  }
  Kernel kernel() const { return kernel_; }

 private:
  const Functions& call_;
  Kernel kernel_;
};

LoadedTable<const Code>& loaded() {
  static auto& table = *new LoadedTable<const Code>;
  return table;
}

// No word of the language.
std::string function_name(std::string_view name) { return fmt::format("weft_{}", name); }

std::string build_log(const Session& s, Program program) {
  size_t bytes = 0;
  s.call.clGetProgramBuildInfo(program, s.facts.id, kProgramBuildLog, 0, nullptr, &bytes);
  std::string log(bytes, '\0');
  if (bytes > 0) {
    s.call.clGetProgramBuildInfo(program, s.facts.id, kProgramBuildLog, bytes, log.data(), nullptr);
  }
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  return log;
}

int32_t build(const Session& s, Program program) {
  return s.call.clBuildProgram(program, 1, &s.facts.id, s.options.c_str(), nullptr, nullptr);
}

// None when the binary is not one of this device, or not whole.
std::shared_ptr<const Code> from_binary(const Session& s, std::span<const std::byte> binary,
                                        std::string_view name) {
  const size_t bytes = binary.size();
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  int32_t status = kSuccess, code = kSuccess;
  Program program =
      s.call.clCreateProgramWithBinary(s.context, 1, &s.facts.id, &bytes, &data, &status, &code);
  if (program == nullptr) return nullptr;
  auto made = std::make_shared<const Code>(s.call, program);
  if (code != kSuccess || status != kSuccess || build(s, program) != kSuccess) return nullptr;
  const Function function(s.call, program, function_name(name), code);
  return code == kSuccess ? made : nullptr;
}

std::shared_ptr<const Code> from_source(const Session& s, const std::string& source,
                                        std::string_view name) {
  const char* text = source.c_str();
  const size_t length = source.size();
  int32_t code = kSuccess;
  Program program = s.call.clCreateProgramWithSource(s.context, 1, &text, &length, &code);
  if (program == nullptr) {
    throw CompileError(fmt::format("[{}] no program: {}", s.name, error_text(code)));
  }
  auto made = std::make_shared<const Code>(s.call, program);
  code = build(s, program);
  if (code != kSuccess) {
    throw CompileError(fmt::format("[{}] the kernel {} does not compile: {}\n{}\n{}", s.name, name,
                                   error_text(code), build_log(s, program), source));
  }
  return made;
}

std::vector<std::byte> binary_of(const Session& s, Program program) {
  size_t bytes = 0;
  if (s.call.clGetProgramInfo(program, kProgramBinarySizes, sizeof bytes, &bytes, nullptr) !=
      kSuccess) {
    return {};
  }
  std::vector<std::byte> binary(bytes);
  std::byte* data = binary.data();
  if (s.call.clGetProgramInfo(program, kProgramBinaries, sizeof data, static_cast<void*>(&data),
                              nullptr) != kSuccess) {
    return {};
  }
  return binary;
}

std::shared_ptr<const Code> load(const Session& s, const std::string& source, std::string_view name,
                                 Keep keep) {
  const Hash128 key = mix(hash_bytes_128(source), s.identity);
  if (std::shared_ptr<const Code> found = loaded().find(key)) return found;
  const uint64_t start = now_ns();
  const auto say = [&](const char* from) {
    if (keep == Keep::kYes && shows(2)) show_loaded(name, from, now_ns() - start);
  };
  const std::shared_ptr<KernelCache> cache = kernel_cache();
  if (const std::optional<std::vector<std::byte>> binary = cache->get(key)) {
    if (std::shared_ptr<const Code> made = from_binary(s, *binary, name)) {
      say("disk");
      return loaded().add(key, std::move(made));
    }
    cache->remove(key);
  }
  std::shared_ptr<const Code> made = from_source(s, source, name);
  if (keep == Keep::kYes) {
    const std::vector<std::byte> binary = binary_of(s, made->program());
    if (!binary.empty()) cache->put(key, binary);
  }
  say("compiled");
  return loaded().add(key, std::move(made));
}

bool is_out_of_memory(int32_t code) {
  return code == kMemoryAllocationFailure || code == kOutOfResources || code == kOutOfHostMemory;
}

class OpenClProgram : public weft::Program {
 public:
  // `make` gives the kernel, which cannot be moved.
  template <class Make>
  OpenClProgram(const Session& session, const Make& make, std::string_view name, Keep keep)
      : session_(session),
        kernel_(make()),
        name_(name),
        code_(load(session, kernel_.source, name, keep)),
        function_(session.call, code_->program(), function_name(name), state_) {
    if (state_ != kSuccess) {
      throw CompileError(fmt::format("[{}] the compiled program lacks the kernel {}: {}",
                                     session.name, name, error_text(state_)));
    }
    size_t most = 0;
    session.call.clGetKernelWorkGroupInfo(function_.kernel(), session.facts.id, kKernelGroupSize,
                                          sizeof most, &most, nullptr);
    const auto threads = kernel_.launch.threads();
    const auto needed = size_t(threads[0] * threads[1] * threads[2]);
    if (most != 0 && most < needed) {
      throw CompileError(
          fmt::format("[{}] the kernel {} needs groups of {} threads, of which {} have registers",
                      session.name, name, needed, most));
    }
  }

  void run(std::span<Buffer* const> arguments, std::span<const int64_t> variables) override {
    check_process();
    const LaunchSize size = kernel_.launch.size(variables);
    std::array<size_t, 3> all{}, group{};
    for (size_t d = 0; d < 3; d++) {
      if (size.groups[d] <= 0) return;
      group[d] = size_t(size.threads[d]);
      all[d] = size_t(size.groups[d]) * group[d];
    }
    const std::lock_guard lock(mutex_);
    set_arguments(arguments, variables);
    const auto enqueue = [&] {
      return session_.call.clEnqueueNDRangeKernel(session_.queue, function_.kernel(), 3, nullptr,
                                                  all.data(), group.data(), 0, nullptr, nullptr);
    };
    int32_t code = enqueue();
    if (is_out_of_memory(code)) {
      session_.memory->release_kept();
      code = enqueue();
    }
    if (is_out_of_memory(code)) {
      size_t bytes = 0;
      for (const Buffer* argument : arguments) bytes += argument->bytes();
      throw DeviceError(fmt::format(
          "[{}] there is no memory for the {} bytes that {} takes, beside {} bytes in use: {}",
          session_.name, bytes, name_, session_.memory->used_bytes(), error_text(code)));
    }
    check("launch", code);
    session_.call.clFlush(session_.queue);
  }

  std::string source(UOp) const override { return kernel_.source; }

 private:
  void check(const char* what, int32_t code) const {
    if (code == kSuccess) return;
    throw DeviceError(
        fmt::format("[{}] {} of {}: {}", session_.name, what, name_, error_text(code)));
  }

  void set_arguments(std::span<Buffer* const> arguments, std::span<const int64_t> variables) {
    uint32_t place = 0;
    const auto set = [&](size_t bytes, const void* value) {
      check("arguments", session_.call.clSetKernelArg(function_.kernel(), place++, bytes, value));
    };
    for (const uint32_t number : kernel_.launch.globals()) {
      void* memory = arguments[number]->memory();
      set(sizeof memory, static_cast<const void*>(&memory));
    }
    for (const Launch::Variable& v : kernel_.launch.variables()) {
      const int64_t wide = variables[v.place];
      const auto narrow = int32_t(wide);
      if (v.type.bits() == 64) {
        set(sizeof wide, &wide);
      } else {
        set(sizeof narrow, &narrow);
      }
    }
  }

  const Session& session_;
  GpuKernel kernel_;
  std::string name_;
  std::shared_ptr<const Code> code_;
  int32_t state_ = kSuccess;  // what making the function said
  Function function_;
  std::mutex mutex_;  // arguments of a kernel are its state
};

}  // namespace

std::shared_ptr<weft::Program> make_program(const Session& session, UOp ast, std::string_view name,
                                            const OptList* opts, Keep keep) {
  check_process();
  const auto make = [&] {
    return make_gpu_kernel(ast, function_name(name), session.target, session.render, opts);
  };
  return std::make_shared<OpenClProgram>(session, make, name, keep);
}

std::shared_ptr<weft::Program> make_program_of_list(const Session& session, UOp linear,
                                                    std::string_view name) {
  check_process();
  const auto make = [&] {
    return make_gpu_kernel_of_list(linear, function_name(name), session.render);
  };
  return std::make_shared<OpenClProgram>(session, make, name, Keep::kYes);
}

}  // namespace weft::cl
