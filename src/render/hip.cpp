// Programs -> HIP, for hiprtc and hipcc: no header is included. Compiled with -ffp-contract=off.
#include <string>
#include <string_view>

#include "codegen/target.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "render/gpu_c.h"
#include "render/render.h"
#include "rewrite/pattern.h"

namespace weft {
namespace {

// Vectors are those of clang, aligned to their elements only.
constexpr GpuDialect kHip{
    .name = "HIP",
    .start = "#pragma clang fp contract(off)\n",
    .function_start = "static inline __device__",
    .types = kCppTypes,
    .suffix_of_64_bits = "ll",
    .kernel = "extern \"C\" __global__ void __launch_bounds__($n) ",
    .buffer = "$T* $N",
    .variable = "$T $N",
    .global_space = "",
    .local_space = "",
    .local = "  __shared__ __attribute__((aligned(64))) $T $N[$n];\n",
    .group = {"blockIdx.x", "blockIdx.y", "blockIdx.z"},
    .thread = {"threadIdx.x", "threadIdx.y", "threadIdx.z"},
    .barrier = "__syncthreads();",
    .vector_name = "$Tx$n",
    .vector_defined_as =
        "typedef $T $N __attribute__((ext_vector_type($n)));\n"
        "typedef $N $Nm __attribute__((aligned(sizeof($T)), may_alias));\n",
    .make_vector = "($T){$L}",
    .converts_lanes = false,
    .lanes = kLanesByIndex,
    .read_vector = "*($Tm*)($p)",
    .write_vector = "*($Tm*)($p) = $v",
    .bitcast_body = "return __builtin_bit_cast($T, a);",
};

}  // namespace

std::string render_hip(UOp linear, std::string_view name) {
  return render_gpu_c(linear, name, kHip);
}

Target hip_target() {
  return gpu_c_target("HIP", kHip,
                      kMachineInts | kBools | set_of(Scalar::kFloat32) | set_of(Scalar::kFloat64));
}

}  // namespace weft
