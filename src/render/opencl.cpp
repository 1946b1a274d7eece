// Programs -> OpenCL C 1.2.
#include <string>
#include <string_view>

#include "codegen/target.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "render/c_style.h"
#include "render/gpu_c.h"
#include "render/render.h"
#include "rewrite/pattern.h"

namespace weft {
namespace {

constexpr CType kTypes[] = {
    {Scalar::kBool, "bool"},     {Scalar::kInt8, "char"},     {Scalar::kInt16, "short"},
    {Scalar::kInt32, "int"},     {Scalar::kInt64, "long"},    {Scalar::kUInt8, "uchar"},
    {Scalar::kUInt16, "ushort"}, {Scalar::kUInt32, "uint"},   {Scalar::kUInt64, "ulong"},
    {Scalar::kFloat32, "float"}, {Scalar::kFloat64, "double"}};

// float64 has more than twice the digits of float32: rounding twice is rounding once.
// clang-format off
constexpr DTypeSet kFloat32 = set_of(Scalar::kFloat32);
constexpr CRow kByDouble[] = {
  {{Op::FDIV},  kFloat32, "(float)((double)$0 / (double)$1)", kPrefix, kPrefix},
  {{Op::RECIP}, kFloat32, "(float)(1.0 / (double)$0)", kPrefix, kPrefix},
  {{Op::SQRT},  kFloat32, "(float)sqrt((double)$0)", kPrefix, kPrefix},
};
// clang-format on

// Vectors in memory are aligned to their elements only.
constexpr GpuDialect kOpenCl{
    .name = "OpenCL C",
    .start = "#pragma OPENCL FP_CONTRACT OFF\n",
    .types = kTypes,
    .kernel = "__attribute__((reqd_work_group_size($x, $y, $z)))\n__kernel void ",
    .buffer = "__global $T* $N",
    .variable = "$T $N",
    .global_space = "__global",
    .local_space = "__local",
    .local = "  __local $T $N[$n] __attribute__((aligned(64)));\n",
    .group = {"get_group_id(0)", "get_group_id(1)", "get_group_id(2)"},
    .thread = {"get_local_id(0)", "get_local_id(1)", "get_local_id(2)"},
    .barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    .vector_name = "$T$n",
    .make_vector = "($T)($L)",
    .lanes = {".s0", ".s1", ".s2", ".s3", ".s4", ".s5", ".s6", ".s7", ".s8", ".s9", ".sa", ".sb",
              ".sc", ".sd", ".se", ".sf"},
    .read_vector = "vload$n(0, $p)",
    .write_vector = "vstore$n($v, 0, $p)",
    .bitcast_body = "return as_$T(a);",
};

constexpr GpuDialect by_double() {
  GpuDialect out = kOpenCl;
  out.rows = kByDouble;
  return out;
}
constexpr GpuDialect kOpenClByDouble = by_double();

}  // namespace

std::string render_opencl(UOp linear, std::string_view name) {
  return render_gpu_c(linear, name, kOpenCl);
}

std::string render_opencl_by_double(UOp linear, std::string_view name) {
  return render_gpu_c(linear, name, kOpenClByDouble);
}

Target opencl_target(DTypeSet dtypes) { return gpu_c_target("OPENCL", kOpenCl, dtypes); }

}  // namespace weft
