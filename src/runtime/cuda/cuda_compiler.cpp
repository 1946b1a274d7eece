// The compilers that there are.
#include "runtime/cuda/cuda_compiler.h"

#include <vector>

#include "render/render.h"
#include "runtime/cuda/compile_cuda.h"

namespace weft {

const std::vector<CudaCompiler>& cuda_compilers() {
  static const std::vector<CudaCompiler> kCompilers = {
      {.name = "",
       .target = cuda_target,
       .render = render_cuda,
       .compile = compile_cuda,
       .keeps_code = true,
       .identity = cuda_compiler_identity,
       .missing = cuda_compiler_missing,
       .description = cuda_compiler_description},
  };
  return kCompilers;
}

}  // namespace weft
