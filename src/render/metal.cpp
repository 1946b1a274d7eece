// Programs -> Metal's shading language, 2.3 or newer. Compiled without fast math; there is no
// float64.
#include <string>
#include <string_view>

#include "codegen/target.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "render/c_style.h"
#include "render/gpu_c.h"
#include "render/render.h"
#include "rewrite/pattern.h"

namespace weft {
namespace {

constexpr CType kTypes[] = {{Scalar::kBool, "bool"},     {Scalar::kInt8, "char"},
                            {Scalar::kInt16, "short"},   {Scalar::kInt32, "int"},
                            {Scalar::kInt64, "long"},    {Scalar::kUInt8, "uchar"},
                            {Scalar::kUInt16, "ushort"}, {Scalar::kUInt32, "uint"},
                            {Scalar::kUInt64, "ulong"},  {Scalar::kFloat32, "float"}};

// The language's own vectors have at most four lanes: a structure aligned to one element has any
// number.
constexpr GpuDialect kMetal{
    .name = "Metal",
    .start =
        "#include <metal_stdlib>\n"
        "#pragma METAL fp math_mode(safe)\n"
        "#pragma METAL fp contract(off)\n"
        "using namespace metal;\n",
    .function_start = "static inline",
    .types = kTypes,
    .kernel = "kernel void ",
    .buffer = "device $T* $N [[buffer($K)]]",
    .variable = "constant $T& $N [[buffer($K)]]",
    .more_parameters =
        ", uint3 group [[threadgroup_position_in_grid]], uint3 thread "
        "[[thread_position_in_threadgroup]]",
    .global_space = "device",
    .local_space = "threadgroup",
    .local = "  threadgroup $T $N[$n];\n",
    .group = {"group.x", "group.y", "group.z"},
    .thread = {"thread.x", "thread.y", "thread.z"},
    .barrier = "threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);",
    .vector_name = "$Tx$n",
    .vector_defined_as = "struct $N {\n  $T v[$n];\n};\n",
    .make_vector = "$T{{$L}}",
    .converts_lanes = false,
    .lanes = {".v[0]", ".v[1]", ".v[2]", ".v[3]", ".v[4]", ".v[5]", ".v[6]", ".v[7]", ".v[8]",
              ".v[9]", ".v[10]", ".v[11]", ".v[12]", ".v[13]", ".v[14]", ".v[15]"},
    .read_vector = "*($S $T*)($p)",
    .write_vector = "*($S $T*)($p) = $v",
    .bitcast_body = "return as_type<$T>(a);",
};

}  // namespace

std::string render_metal(UOp linear, std::string_view name) {
  return render_gpu_c(linear, name, kMetal);
}

Target metal_target() {
  return gpu_c_target("METAL", kMetal, kMachineInts | kBools | set_of(Scalar::kFloat32));
}

}  // namespace weft
