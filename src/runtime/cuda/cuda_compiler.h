// A way from a program to code for a GPU: a renderer, and what turns its text into what the driver
// loads. Each is a device on every GPU.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/target.h"
#include "runtime/gpu/gpu_kernel.h"

namespace weft {

struct CudaCompiler {
  std::string_view name;  // empty: the device is CUDA; PTX: CUDA:PTX
  Target (*target)();     // without the sizes of a GPU
  // Kernels are called as render.h says. What DEFINE_LOCALs need beyond kStaticSharedBytes in all
  // is dynamic shared memory: each at its offset in Signature::locals.
  RenderFunction* render;
  // Cubin, or PTX with a zero at its end; throws CompileError.
  std::vector<std::byte> (*compile)(std::string_view source, std::string_view name,
                                    int architecture);
  bool keeps_code;                   // on disk
  const std::string& (*identity)();  // of what compiles, for keys of compiled code
  const std::string& (*missing)();   // why it cannot; empty: it can
  std::string (*description)();
};

// What a workgroup shares beyond this is dynamic shared memory.
constexpr size_t kStaticSharedBytes = 48 << 10;

const std::vector<CudaCompiler>& cuda_compilers();

}  // namespace weft
