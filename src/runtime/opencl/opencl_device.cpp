// A context and a queue in order per device.
#include "runtime/opencl/opencl_device.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/config.h"
#include "base/error.h"
#include "base/hash.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "render/render.h"
#include "rewrite/pattern.h"
#include "runtime/caching_allocator.h"
#include "runtime/device.h"
#include "runtime/gpu/gpu_machine.h"
#include "runtime/kernel_cache.h"
#include "runtime/opencl/opencl_functions.h"
#include "runtime/opencl/opencl_library.h"
#include "runtime/opencl/opencl_program.h"
#include "runtime/program.h"
#include "runtime/search_kernel.h"
#include "schedule/schedule.h"

namespace weft {
namespace {

constexpr DTypeSet kFloat64 = set_of(Scalar::kFloat64);
constexpr size_t kMostThreads = 1024;       // of a group: more make no kernel faster
constexpr size_t kVariableParameters = 16;  // of a kernel, beside its buffers
// Raised when binaries of old would not do any more for the same text: part of every key.
constexpr uint64_t kFormat = 1;

bool has_double(const cl::Facts& facts) { return facts.double_config != 0; }
bool rounds_divisions(const cl::Facts& facts) {
  return (facts.single_config & cl::kRoundsDivisions) != 0;
}

Target target_for(const cl::Facts& facts) {
  const DTypeSet all = kMachineInts | kBools | set_of(Scalar::kFloat32) | kFloat64;
  Target target = opencl_target(has_double(facts) ? all : all & ~kFloat64);
  Workgroups& groups = target.groups;
  groups.threads = std::min(facts.group_size, kMostThreads);
  for (size_t d = 0; d < 3; d++) {
    groups.most_threads[d] = int64_t(std::min(facts.group_sizes[d], kMostThreads));
    groups.most_groups[d] = INT32_MAX;
  }
  groups.warp = facts.warp;
  groups.local_bytes = facts.local_memory;
  groups.together = facts.compute_units;
  target.narrow_indices = true;
  target.limits.sequences = false;
  target.limits.pieces = facts.compute_units * 64;
  target.limits.machine = gpu_machine(facts.compute_units);
  const size_t pointers = facts.max_parameter_bytes / sizeof(void*);
  target.limits.buffers =
      std::min(target.limits.buffers,
               pointers > 2 * kVariableParameters ? pointers - kVariableParameters : pointers / 2);
  return target;
}

// Commands run in order: memory that a later one gets is not in use any more.
class ClMemory : public MemorySource {
 public:
  ClMemory(const cl::Functions& call, cl::Context context, cl::Queue queue, size_t most)
      : call_(call), context_(context), queue_(queue), most_(most) {}

  void* allocate(size_t bytes) override {
    const size_t size = std::clamp<size_t>(bytes, 1, most_);
    int32_t code = cl::kSuccess;
    cl::Memory memory = call_.clCreateBuffer(context_, cl::kReadWrite, size, nullptr, &code);
    if (code != cl::kSuccess) {  // what was freed is there again when the commands have run
      call_.clFinish(queue_);
      memory = call_.clCreateBuffer(context_, cl::kReadWrite, size, nullptr, &code);
    }
    return code == cl::kSuccess ? memory : nullptr;
  }
  void free(void* memory, size_t) noexcept override {
    call_.clReleaseMemObject(cl::Memory(memory));
  }

 private:
  const cl::Functions& call_;
  const cl::Context context_;
  const cl::Queue queue_;
  const size_t most_;  // of one allocation
};

class OpenClDevice : public Device {
 public:
  OpenClDevice(std::string name, const cl::Library& library, const cl::Facts& facts)
      : Device(std::move(name)),
        call_(library.call),
        facts_(facts),
        target_(target_for(facts)),
        options_(rounds_divisions(facts) ? "-w -cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
                                         : "-w -cl-std=CL1.2") {}

  void* allocate(size_t bytes) override {
    const cl::Session& s = session();
    if (bytes > facts_.max_allocation) {
      throw DeviceError(
          fmt::format("[{}] there is no memory for {} bytes: one allocation has at most {}", name(),
                      bytes, facts_.max_allocation));
    }
    return s.memory->allocate(bytes);
  }
  void free(void* memory, size_t bytes) noexcept override {
    if (!cl::is_lost_by_fork()) session_->memory->free(memory, bytes);
  }
  void copy_in(void* to, std::span<const std::byte> from) override {
    if (from.empty()) return;
    const cl::Session& s = session();
    check("a copy to the device",
          call_.clEnqueueWriteBuffer(s.queue, cl::Memory(to), cl::kBlocking, 0, from.size(),
                                     from.data(), 0, nullptr, nullptr));
  }
  void copy_out(std::span<std::byte> to, const void* from) override { copy_out_part(to, from, 0); }
  bool copy_out_part(std::span<std::byte> to, const void* from, size_t first) override {
    if (to.empty()) return true;
    const cl::Session& s = session();
    check("a copy from the device",
          call_.clEnqueueReadBuffer(s.queue, cl::Memory(const_cast<void*>(from)), cl::kBlocking,
                                    first, to.size(), to.data(), 0, nullptr, nullptr));
    return true;
  }
  bool copy_part(void* to, const void* from, size_t first, size_t bytes) override {
    if (bytes == 0) return true;
    const cl::Session& s = session();
    check("a copy on the device",
          call_.clEnqueueCopyBuffer(s.queue, cl::Memory(const_cast<void*>(from)), cl::Memory(to),
                                    first, 0, bytes, 0, nullptr, nullptr));
    return true;
  }
  bool copy_from(void* to, Device& other, const void* from, size_t bytes) override {
    return &other == this && copy_part(to, from, 0, bytes);
  }
  void synchronize() override { check("waiting", call_.clFinish(session().queue)); }

  DTypeSet missing_dtypes() const override { return has_double(facts_) ? 0 : kFloat64; }
  const KernelLimits& limits() const override { return target_.limits; }

  std::shared_ptr<Program> compile(UOp ast, std::string_view name) override {
    const cl::Session& s = session();
    if (config().beam == 0) return cl::make_program(s, ast, name, nullptr, cl::Keep::kYes);
    const KernelSearch settings{
        .device = *this,
        .target = target_,
        .machine = s.identity,
        .width = size_t(config().beam),
        .compile_threads = 1,
        .compile =
            [&](UOp kernel, const OptList& opts) {
              return cl::make_program(s, kernel, name, &opts, cl::Keep::kNo);
            },
    };
    const OptList opts = searched_opts(ast, name, settings, *kernel_cache());
    return cl::make_program(s, ast, name, &opts, cl::Keep::kYes);
  }

  const Target* target() const override { return &target_; }
  std::shared_ptr<Program> compile_list(UOp linear, std::string_view name) override {
    return cl::make_program_of_list(session(), linear, name);
  }

  std::string description() const override {
    constexpr uint64_t mebi = 1 << 20;
    std::string text = fmt::format(
        "{}, {}, driver {}, {} compute units, {} MiB of memory, {} MiB at most in one piece, {} "
        "KiB "
        "of local memory",
        facts_.name, facts_.version, facts_.driver, facts_.compute_units, facts_.memory / mebi,
        facts_.max_allocation / mebi, facts_.local_memory >> 10);
    if (!has_double(facts_)) text += "; no float64";
    if (!rounds_divisions(facts_)) {
      text += has_double(facts_) ? "; float32 divides by float64"
                                 : "; float32 division and sqrt are not exact";
    }
    if ((facts_.single_config & cl::kKeepsDenormals) == 0) text += "; float32 has no denormals";
    return text;
  }

 private:
  // Made at the first use. Throws DeviceError.
  const cl::Session& session() {
    cl::check_process();
    std::call_once(once_, [&] { session_ = make_session(); });
    return *session_;
  }

  cl::Session* make_session() const {
    int32_t code = cl::kSuccess;
    cl::Context context = call_.clCreateContext(nullptr, 1, &facts_.id, nullptr, nullptr, &code);
    check("a context", code);
    cl::Queue queue = call_.clCreateCommandQueue(context, facts_.id, 0, &code);
    check("a queue", code);
    const bool by_double = !rounds_divisions(facts_) && has_double(facts_);
    const std::string machine =
        fmt::format("{}|{}|{}|{}|{}|{}", facts_.platform_name, facts_.platform_version, facts_.name,
                    facts_.version, facts_.driver, options_);
    return new cl::Session{
        .name = name(),
        .call = call_,
        .facts = facts_,
        .context = context,
        .queue = queue,
        .options = options_,
        .identity = mix(hash_bytes_128(machine), kFormat),
        .target = target_,
        .render = by_double ? &render_opencl_by_double : &render_opencl,
        .memory = new CachingAllocator(name(), int64_t(facts_.memory), int64_t(facts_.memory / 4),
                                       *new ClMemory(call_, context, queue, facts_.max_allocation)),
    };
  }

  void check(const char* what, int32_t code) const {
    if (code == cl::kSuccess) return;
    throw DeviceError(fmt::format("[{}] {}: {}", name(), what, cl::error_text(code)));
  }

  const cl::Functions& call_;
  const cl::Facts& facts_;
  const Target target_;
  const std::string options_;
  std::once_flag once_;
  cl::Session* session_ = nullptr;
};

}  // namespace

std::vector<Device*> opencl_devices() {
  static const auto& devices = *[] {
    const cl::Library& library = cl::library();
    auto* made = new std::vector<Device*>;
    for (size_t k = 0; k < library.devices.size(); k++) {
      const std::string name = k == 0 ? "OPENCL" : fmt::format("OPENCL:{}", k);
      made->push_back(new OpenClDevice(name, library, library.devices[k]));
    }
    return made;
  }();
  return devices;
}

std::string opencl_missing() { return cl::library().missing; }

}  // namespace weft
