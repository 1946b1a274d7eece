// Text to a key, a key to code.
#include "runtime/cpu/cpu_toolchain.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/phases.h"
#include "codegen/target.h"
#include "ir/node.h"
#include "render/render.h"
#include "runtime/counters.h"
#include "runtime/cpu/compile_c.h"
#include "runtime/cpu/host_cpu.h"
#include "runtime/cpu/llvm_library.h"
#include "runtime/cpu/object_code.h"
#include "runtime/debug.h"
#include "runtime/kernel_cache.h"
#include "runtime/loaded_table.h"

namespace weft {
namespace {

// Raised when objects of old would not do any more for the same text: part of every key.
constexpr uint64_t kFormat = 1;

class LoadedObject : public LoadedKernel {
 public:
  LoadedObject(std::span<const std::byte> object, std::string_view name) : code_(object) {
    const std::string text(name);
    function_ = reinterpret_cast<KernelFunction*>(code_.function(text));
    if (function_ == nullptr) {
      throw CompileError(fmt::format("[object] the object code lacks the function {}", name));
    }
  }
  size_t bytes() const override { return code_.bytes(); }

 private:
  ObjectCode code_;
};

LoadedTable<const LoadedKernel>& table() {
  static auto& instance = *new LoadedTable<const LoadedKernel>;
  return instance;
}

Hash128 key_of(Toolchain toolchain, std::string_view source) {
  return mix(hash_bytes_128(source), identity_of(toolchain));
}

Target make_target(Toolchain toolchain) {
  const HalfCasts half = has_half_casts() ? HalfCasts::kNative : HalfCasts::kDecomposed;
  Target target = toolchain == Toolchain::kLlvm ? llvm_target(half) : c_target(half);
  describe_host(target);
  return target;
}

}  // namespace

const Target& target_of(Toolchain toolchain) {
  static const Target kLlvmTarget = make_target(Toolchain::kLlvm);
  static const Target kCTarget = make_target(Toolchain::kC);
  return toolchain == Toolchain::kLlvm ? kLlvmTarget : kCTarget;
}

Hash128 identity_of(Toolchain toolchain) {
  const bool is_llvm = toolchain == Toolchain::kLlvm;
  Hash128 key = mix(hash_bytes_128(target_of(toolchain).name), kFormat);
  key = mix(key, hash_bytes_128(is_llvm ? llvm_identity() : c_compiler_identity()));
  return mix(key, hash_bytes_128(host_identity()));
}

bool is_installed(Toolchain toolchain) {
  return toolchain == Toolchain::kLlvm ? has_llvm() : has_c_compiler();
}

std::string render(Toolchain toolchain, UOp linear, std::string_view name) {
  return toolchain == Toolchain::kLlvm ? render_llvm(linear, name) : render_c(linear, name);
}

std::shared_ptr<const LoadedKernel> load_kernel(Toolchain toolchain, std::string_view source,
                                                std::string_view name, Keep keep) {
  const bool is_shown = shows(2) && keep == Keep::kYes;  // not every candidate of a search
  const uint64_t begin = is_shown ? now_ns() : 0;
  const auto say = [&](std::string_view from) {
    if (is_shown) show_loaded(name, from, now_ns() - begin);
  };
  const PhaseTimer timer(Phase::kCompile);
  const Hash128 key = key_of(toolchain, source);
  if (auto loaded = table().find(key)) {
    say("loaded already");
    return loaded;
  }
  const std::shared_ptr<KernelCache> cache = kernel_cache();
  if (const auto kept = cache->get(key)) {
    try {
      auto kernel = std::make_shared<const LoadedObject>(*kept, name);
      say("from the cache on disk");
      return table().add(key, std::move(kernel));
    } catch (const CompileError&) {
      cache->remove(key);
      say("damaged in the cache on disk");
    }
  }
  count_compiled();
  const std::vector<std::byte> object =
      toolchain == Toolchain::kLlvm ? compile_llvm(source, name) : compile_c(source, name);
  auto kernel = std::make_shared<const LoadedObject>(object, name);
  if (keep == Keep::kYes) cache->put(key, object);
  say(toolchain == Toolchain::kLlvm ? "compiled by LLVM, this source is new"
                                    : "compiled by the C compiler, this source is new");
  return table().add(key, std::move(kernel));
}

}  // namespace weft
