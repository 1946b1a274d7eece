// A way from a program to code that runs on this CPU: a renderer, a compiler, and the cache
// between.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "codegen/target.h"
#include "ir/node.h"

namespace weft {

enum class Toolchain { kLlvm, kC };

// What the toolchain's programs are lowered for, on this machine.
const Target& target_of(Toolchain toolchain);

bool is_installed(Toolchain toolchain);

// As src/render/render.h says.
using KernelFunction = void(void* const* buffers, const int64_t* variables, void* scratch,
                            int64_t first, int64_t last);

// Code in memory, shared by all kernels whose text is the same.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  KernelFunction* function() const { return function_; }
  virtual size_t bytes() const = 0;  // of memory

 protected:
  KernelFunction* function_ = nullptr;
};

std::string render(Toolchain toolchain, UOp linear, std::string_view name);

// Whether code that is compiled is written to the disk, for other processes.
enum class Keep : bool { kNo, kYes };

// The function `name` of `source`: loaded already, or compiled by an earlier process and kept on
// disk, or compiled now. Thread-safe. Throws CompileError, and DeviceError when the toolchain is
// not installed.
std::shared_ptr<const LoadedKernel> load_kernel(Toolchain toolchain, std::string_view source,
                                                std::string_view name, Keep keep = Keep::kYes);

// What tells compiled code of this toolchain on this machine from that of others.
Hash128 identity_of(Toolchain toolchain);

}  // namespace weft
