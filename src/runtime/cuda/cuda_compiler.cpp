// The compilers that there are.
#include "runtime/cuda/cuda_compiler.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "render/render.h"
#include "runtime/cuda/compile_cuda.h"

namespace weft {
namespace {

constexpr int kLeastForPtx = 80;

std::vector<std::byte> ptx_for_driver(std::string_view source, std::string_view name,
                                      int architecture) {
  if (architecture < kLeastForPtx) {
    throw CompileError(
        fmt::format("[compile] {}: CUDA:PTX needs a GPU of architecture {} or newer, "
                    "this one has {}; CUDA compiles for it",
                    name, kLeastForPtx, architecture));
  }
  const auto bytes = std::as_bytes(std::span(source));
  std::vector<std::byte> out(bytes.begin(), bytes.end());
  out.push_back(std::byte{0});
  return out;
}

const std::string& ptx_identity() {
  static const std::string kIdentity = "the driver";
  return kIdentity;
}

const std::string& nothing_missing() {
  static const std::string kNothing;
  return kNothing;
}

}  // namespace

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
      {.name = "PTX",
       .target = ptx_target,
       .render = render_ptx,
       .compile = ptx_for_driver,
       .keeps_code = false,  // the driver keeps what it makes of it
       .identity = ptx_identity,
       .missing = nothing_missing,
       .description = [] { return std::string("PTX, assembled by the driver"); }},
  };
  return kCompilers;
}

}  // namespace weft
