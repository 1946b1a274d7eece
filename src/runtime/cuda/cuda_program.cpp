// Text to code, code to a function, and launches of it.
#include "runtime/cuda/cuda_program.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/box.h"
#include "ir/node.h"
#include "runtime/buffer.h"
#include "runtime/cuda/cuda_compiler.h"
#include "runtime/cuda/cuda_context.h"
#include "runtime/cuda/cuda_driver.h"
#include "runtime/cuda/cuda_functions.h"
#include "runtime/debug.h"
#include "runtime/gpu/gpu_kernel.h"
#include "runtime/kernel_cache.h"
#include "runtime/loaded_table.h"

namespace weft {
namespace {

// Raised when code of old would not do any more for the same text: part of every key.
constexpr uint64_t kFormat = 1;

const CudaFunctions& cuda() { return CudaDriver::get().functions(); }

// Names of kernels, for messages that come after their programs are gone.
const std::string& lasting(std::string_view name) {
  static std::mutex mutex;
  static auto& names = *new std::unordered_set<std::string>;
  const std::lock_guard lock(mutex);
  return *names.emplace(name).first;
}

LoadedTable<CudaCode>& table() {
  static auto& instance = *new LoadedTable<CudaCode>;
  return instance;
}

size_t dynamic_bytes(const Launch& launch) {
  return launch.local_bytes() > kStaticSharedBytes ? launch.local_bytes() : 0;
}

std::shared_ptr<CudaCode> load_code(CudaGpu& gpu, const CudaCompiler& compiler,
                                    const GpuKernel& kernel, std::string_view name,
                                    CudaProgram::Keep keep) {
  const bool is_shown = shows(2) && keep == CudaProgram::Keep::kYes;
  const uint64_t begin = is_shown ? now_ns() : 0;
  const auto say = [&](std::string_view from) {
    if (is_shown) show_loaded(name, from, now_ns() - begin);
  };
  const Hash128 key =
      mix(mix(mix(hash_bytes_128(kernel.source), hash_bytes_128(compiler.identity())),
              hash_bytes_128(compiler.name)),
          (kFormat << 32) + uint64_t(gpu.architecture()));
  const Hash128 loaded_key = mix(key, uint64_t(gpu.ordinal()));
  if (auto loaded = table().find(loaded_key)) {
    say("loaded already");
    return loaded;
  }
  const auto load = [&](std::vector<std::byte> code) {
    auto made =
        std::make_shared<CudaCode>(gpu, std::move(code), name, dynamic_bytes(kernel.launch));
    made->function(gpu.context());
    return made;
  };
  const std::shared_ptr<KernelCache> cache = kernel_cache();
  if (compiler.keeps_code) {
    if (auto kept = cache->get(key)) {
      try {
        auto code = load(std::move(*kept));
        say("from the cache on disk");
        return table().add(loaded_key, std::move(code));
      } catch (const CompileError&) {
        cache->remove(key);
        say("damaged in the cache on disk");
      }
    }
  }
  std::vector<std::byte> code = compiler.compile(kernel.source, name, gpu.architecture());
  auto loaded = load(code);
  if (compiler.keeps_code && keep == CudaProgram::Keep::kYes) cache->put(key, code);
  say("compiled, this source is new");
  return table().add(loaded_key, std::move(loaded));
}

}  // namespace

// -------------------------------------------------------------------------------------------- code

CudaCode::CudaCode(CudaGpu& gpu, std::vector<std::byte> code, std::string_view name,
                   size_t dynamic_bytes)
    : gpu_(gpu), code_(std::move(code)), name_(name), dynamic_bytes_(dynamic_bytes) {}

CudaCode::~CudaCode() {
  if (all_.empty() || cuda_is_of_parent()) return;
  const Loaded& last = *all_.back();
  if (last.context->is_lost()) return;
  const CudaContext::Scope scope(*last.context);
  cuda().stream_synchronize(last.context->stream());  // it may run still
  cuda().module_unload(last.module);
}

CudaFunction CudaCode::function(CudaContext& context) {
  const Loaded* loaded = loaded_.load(std::memory_order_acquire);
  if (loaded == nullptr || loaded->context != &context) loaded = &load(context);
  return loaded->function;
}

const CudaCode::Loaded& CudaCode::load(CudaContext& context) {
  const std::lock_guard lock(mutex_);
  if (!all_.empty() && all_.back()->context == &context) return *all_.back();
  if (dynamic_bytes_ > gpu_.most_shared_bytes()) {
    throw CompileError(fmt::format("[{}] {}: a group shares {} bytes, and can have {}", gpu_.name(),
                                   name_, dynamic_bytes_, gpu_.most_shared_bytes()));
  }
  const CudaContext::Scope scope(context);
  Loaded made{&context, nullptr, nullptr};
  std::array<char, 4096> log{};
  std::array<int, 2> options{kJitErrorLog, kJitErrorLogBytes};
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size())};
  CudaResult result = context.with_memory([&] {
    return cuda().module_load(&made.module, code_.data(), unsigned(options.size()), options.data(),
                              values.data());
  });
  if (result == 0) result = cuda().module_function(&made.function, made.module, name_.c_str());
  if (result == 0 && dynamic_bytes_ > 0) {
    result = cuda().function_set(made.function, kFunctionDynamicSharedBytes, int(dynamic_bytes_));
  }
  if (result == kCudaOutOfMemory) context.fail(result, fmt::format("to load {}", name_));
  if (result != 0) {
    if (made.module != nullptr) cuda().module_unload(made.module);
    throw CompileError(fmt::format("[{}] {}: the driver does not take the code: {}{}{}",
                                   gpu_.name(), name_, CudaDriver::get().text_of(result),
                                   log[0] == '\0' ? "" : ":\n", log.data()));
  }
  all_.push_back(std::make_unique<const Loaded>(made));
  loaded_.store(all_.back().get(), std::memory_order_release);
  return *all_.back();
}

// ----------------------------------------------------------------------------------------- program

void** CudaArguments::pointers() {
  pointers_.clear();
  for (uint64_t& word : words()) pointers_.push_back(&word);
  for (CudaTensorMap& array : arrays()) pointers_.push_back(&array);
  return pointers_.data();
}

CudaProgram::CudaProgram(CudaGpu& gpu, const CudaCompiler& compiler, const Target& target, UOp ast,
                         std::string_view name, const OptList* opts, Keep keep)
    : gpu_(gpu),
      name_(lasting(name)),
      kernel_(make_gpu_kernel(ast, name, target, compiler.render, opts)),
      code_(load_code(gpu, compiler, kernel_, name, keep)) {}

CudaKernelNode CudaProgram::launch(CudaContext& context, CudaArguments& taken,
                                   std::span<const int64_t> variables) const {
  for (size_t i = 0; i < taken_arguments().size(); i++) taken.add(0);
  for (const Launch::Variable& variable : kernel_.launch.variables()) {
    taken.add(uint64_t(variables[variable.place]));  // an int32 is the first half of it
  }
  taken.add_arrays(kernel_.launch.boxed().size());
  const LaunchSize size = kernel_.launch.size(variables);
  CudaKernelNode out{};
  out.function = code_->function(context);
  for (size_t d = 0; d < 3; d++) {
    out.groups[d] = unsigned(size.groups[d]);
    out.threads[d] = unsigned(size.threads[d]);
  }
  out.shared_bytes = unsigned(dynamic_bytes(kernel_.launch));
  out.arguments = taken.pointers();
  return out;
}

void CudaProgram::set_arrays(CudaContext& context, CudaArguments& taken) const {
  const std::span<const Launch::BoxedArray> boxed = kernel_.launch.boxed();
  for (size_t i = 0; i < boxed.size(); i++) {
    const auto& [place, type, box] = boxed[i];
    const auto bytes = uint64_t(type.item_bytes());
    std::array<uint64_t, kMostBoxAxes> sizes{}, steps{};
    std::array<uint32_t, kMostBoxAxes> of_box{}, every{};
    for (size_t k = 0; k < box.axes.size(); k++) {
      sizes[k] = uint64_t(box.axes[k].size);
      if (k > 0) steps[k - 1] = uint64_t(box.axes[k].step) * bytes;
      of_box[k] = 1;
      every[k] = 1;
    }
    of_box[0] = uint32_t(kBoxWidth);
    of_box[size_t(box.row_axis)] = uint32_t(box.rows);
    const CudaAddress address = taken.words()[place] + uint64_t(box.offset) * bytes;
    context.check(cuda().encode_tiled(&taken.arrays()[i], kTensorMapWords16,
                                      uint32_t(box.axes.size()), reinterpret_cast<void*>(address),
                                      sizes.data(), steps.data(), of_box.data(), every.data(), 0,
                                      kTensorMapExchange128, kTensorMapCacheLines256, 0),
                  fmt::format("to describe an array of {} for copies", name_));
  }
}

void CudaProgram::run(std::span<Buffer* const> arguments, std::span<const int64_t> variables) {
  CudaContext& context = gpu_.context();
  CudaArguments taken;
  const CudaKernelNode node = launch(context, taken, variables);
  if (std::ranges::find(node.groups, 0U) != node.groups.end()) return;
  for (size_t i = 0; i < taken_arguments().size(); i++) {
    taken.words()[i] = gpu_.memory(arguments[taken_arguments()[i]]->memory()).address;
  }
  const CudaContext::Scope scope(context);
  set_arrays(context, taken);
  const CudaResult result = context.with_memory([&] {
    return cuda().launch(node.function, node.groups[0], node.groups[1], node.groups[2],
                         node.threads[0], node.threads[1], node.threads[2], node.shared_bytes,
                         context.stream(), node.arguments, nullptr);
  });
  if (result != 0) {
    context.fail(result, fmt::format("to start {} with {}x{}x{} groups of {}x{}x{} threads", name_,
                                     node.groups[0], node.groups[1], node.groups[2],
                                     node.threads[0], node.threads[1], node.threads[2]));
  }
  context.started(name_);
}

}  // namespace weft
