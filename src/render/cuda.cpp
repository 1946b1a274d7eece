// Programs -> CUDA C, for NVRTC and nvcc: no header is included.
#include <string>
#include <string_view>

#include "codegen/target.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "render/c_style.h"
#include "render/cuda_tensor.h"
#include "render/gpu_c.h"
#include "render/render.h"
#include "rewrite/pattern.h"

namespace weft {
namespace {

constexpr DTypeSet kF16 = set_of(Scalar::kFloat16), kBf16 = set_of(Scalar::kBFloat16),
                   kF32 = set_of(Scalar::kFloat32), kF64 = set_of(Scalar::kFloat64),
                   kI32 = set_of(Scalar::kInt32), kU32 = set_of(Scalar::kUInt32),
                   kI64 = set_of(Scalar::kInt64), kU64 = set_of(Scalar::kUInt64),
                   kReals = kF32 | kF64,
                   kSmall = (kMachineInts | kBools) & ~(kI32 | kU32 | kI64 | kU64);

// The instruction gives NaN for NaN of either operand, and of two zeros the one by sign.
#define WEFT_MAX_MIN(instruction, otherwise)                  \
  "\n#if __CUDA_ARCH__ >= 800\n  float r; asm(\"" instruction \
  " %0, %1, %2;\" : \"=f\"(r) : \"f\"(a), \"f\"(b)); return r;\n#else\n  " otherwise "\n#endif\n"

// clang-format off
constexpr CRow kRows[] = {
  {{Op::SQRT},   kReals, "sqrt$f($0)",  kPostfix},
  {{Op::TRUNC},  kReals, "trunc$f($0)", kPostfix},
  {{Op::FLOOR},  kReals, "floor$f($0)", kPostfix},
  {{Op::CEIL},   kReals, "ceil$f($0)",  kPostfix},
  {{Op::ROUND},  kReals, "rint$f($0)",  kPostfix},
  {{Op::MULACC}, kReals, "fma$f($0, $1, $2)", kPostfix},
  // Within 1 ulp, 2 for exp2f, without -use_fast_math.
  {{Op::EXP},  kF32, "expf($0)",  kPostfix},
  {{Op::EXP2}, kF32, "exp2f($0)", kPostfix},
  {{Op::LOG},  kF32, "logf($0)",  kPostfix},
  {{Op::LOG2}, kF32, "log2f($0)", kPostfix},
  {{Op::MAX}, kF32, "max_$s($0, $1)", kPostfix, kAny, {},
   WEFT_MAX_MIN("max.NaN.f32", "return a > b || a != a ? a : a == b && __float_as_int(a) >= 0 ? a : b;")},
  {{Op::MIN}, kF32, "min_$s($0, $1)", kPostfix, kAny, {},
   WEFT_MAX_MIN("min.NaN.f32", "return a < b || a != a ? a : a == b && __float_as_int(a) < 0 ? a : b;")},
  {{Op::MAX}, kF64, "max_$s($0, $1)", kPostfix, kAny, {},
   "return a > b || a != a ? a : a == b && __double_as_longlong(a) >= 0 ? a : b;"},
  {{Op::MIN}, kF64, "min_$s($0, $1)", kPostfix, kAny, {},
   "return a < b || a != a ? a : a == b && __double_as_longlong(a) < 0 ? a : b;"},
};

// A number as a float32 x from which another rounding gives what one rounding of the number would: cut to
// float32's digits, the last one set where any was lost.
#define WEFT_CUT(cut, back) \
  "float x = " cut "(a); if (" back "(x) != a) x = __int_as_float(__float_as_int(x) | 1); "
#define WEFT_X "float x = a; "
// The instructions lose the sign of NaN.
#define WEFT_SIGNED_R "return r | (__float_as_uint(x) >> 16 & 0x8000);"
#define WEFT_HALF_OF_X "unsigned short r; asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(r) : \"f\"(x)); " WEFT_SIGNED_R
#define WEFT_BF16_OF_X \
  "\n#if __CUDA_ARCH__ >= 800\n  unsigned short r; asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(r) : \"f\"(x)); " WEFT_SIGNED_R "\n" \
  "#else\n  unsigned n = __float_as_uint(x); return x != x ? n >> 16 | 0x7fff : (n + 0x7fff + (n >> 16 & 1)) >> 16;\n#endif\n"
#define WEFT_X_OF_HALF "float x; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : \"h\"(a)); "
#define WEFT_X_OF_BF16 "float x = __uint_as_float((unsigned)a << 16); "
#define WEFT_SIGNED_OF_X "return x >= $l && x < $h ? ($T)x : x != x ? 0 : x < 0 ? $m : $g;"
#define WEFT_UNSIGNED_OF_X "return x >= 0 && x < $h ? ($T)x : x > 0 ? $g : 0;"
#define WEFT_CAST(from, to, text, body) {from, to, {{Op::CAST}, kAnyDType, text, kPostfix, kAny, {}, body}}
#define WEFT_TO_NARROW(type, name, of_x)                                                       \
  WEFT_CAST(kSmall | kF32, type, name "_of_$s($0)", WEFT_X of_x),                              \
  WEFT_CAST(kI32, type, name "_of_$s($0)", WEFT_CUT("__int2float_rz", "__float2int_rz") of_x), \
  WEFT_CAST(kU32, type, name "_of_$s($0)", WEFT_CUT("__uint2float_rz", "__float2uint_rz") of_x), \
  WEFT_CAST(kI64, type, name "_of_$s($0)", WEFT_CUT("__ll2float_rz", "__float2ll_rz") of_x),   \
  WEFT_CAST(kU64, type, name "_of_$s($0)", WEFT_CUT("__ull2float_rz", "__float2ull_rz") of_x), \
  WEFT_CAST(kF64, type, name "_of_$s($0)", WEFT_CUT("__double2float_rz", "(double)") of_x)
#define WEFT_FROM_NARROW(type, name, x_of)                                                     \
  WEFT_CAST(type, kBools, name "_to_$T($0)", "return (a & 0x7fff) != 0;"),                     \
  WEFT_CAST(type, kReals, name "_to_$T($0)", x_of "return x;"),                                \
  WEFT_CAST(type, kSignedInts, name "_to_$T($0)", x_of WEFT_SIGNED_OF_X),                      \
  WEFT_CAST(type, kUnsignedInts, name "_to_$T($0)", x_of WEFT_UNSIGNED_OF_X)
constexpr GpuCast kCasts[] = {
  WEFT_CAST(kF16, kBf16, "half_to_bf16($0)", WEFT_X_OF_HALF WEFT_BF16_OF_X),
  WEFT_CAST(kBf16, kF16, "bf16_to_half($0)", WEFT_X_OF_BF16 WEFT_HALF_OF_X),
  WEFT_TO_NARROW(kF16, "half", WEFT_HALF_OF_X),
  WEFT_TO_NARROW(kBf16, "bf16", WEFT_BF16_OF_X),
  WEFT_FROM_NARROW(kF16, "half", WEFT_X_OF_HALF),
  WEFT_FROM_NARROW(kBf16, "bf16", WEFT_X_OF_BF16),
  // The instructions saturate, and make 0 of NaN.
  WEFT_CAST(kF32, kI32, "__float2int_rz($0)", {}),
  WEFT_CAST(kF32, kU32, "__float2uint_rz($0)", {}),
};
// clang-format on

constexpr GpuDialect kCuda{
    .name = "CUDA C",
    .start = "",
    .function_start = "static __device__ __forceinline__",
    .types = kCppTypes,
    .suffix_of_64_bits = "ll",
    .kernel = "extern \"C\" __global__ void __launch_bounds__($n) ",
    .buffer = "$T* $N",
    .variable = "$T $N",
    .global_space = "",
    .local_space = "",
    .local = "  __shared__ __align__(64) $T $N[$n];\n",
    .most_local_bytes = 48 << 10,
    .locals = "  extern __shared__ __align__(1024) unsigned char locals[];\n",
    .local_in_locals = "  $T* $N = ($T*)(locals + $n);\n",
    .group = {"blockIdx.x", "blockIdx.y", "blockIdx.z"},
    .thread = {"threadIdx.x", "threadIdx.y", "threadIdx.z"},
    .barrier = "__syncthreads();",
    .vector_name = "$Tx$n",
    .vector_defined_as =
        "struct __align__($B) $N {\n  $T v[$n];\n"
        "  template <class... A> static __device__ __forceinline__ $N of(A... a) { return "
        "{{($T)a...}}; }\n"
        "  static __device__ __forceinline__ $N at(const $T* p) { $N r; for (int k = 0; k < $n; "
        "k++) "
        "r.v[k] = p[k]; return r; }\n"
        "  __device__ __forceinline__ void put($T* p) const { for (int k = 0; k < $n; k++) p[k] = "
        "v[k]; }\n};\n",
    .make_vector = "$T::of($L)",
    .lanes = {".v[0]", ".v[1]", ".v[2]", ".v[3]", ".v[4]", ".v[5]", ".v[6]", ".v[7]", ".v[8]",
              ".v[9]", ".v[10]", ".v[11]", ".v[12]", ".v[13]", ".v[14]", ".v[15]"},
    .any_lane = ".v[$n]",
    .read_vector = "*(const $T*)($p)",
    .write_vector = "*($T*)($p) = $v",
    .read_unaligned = "$T::at($p)",
    .write_unaligned = "$v.put($p)",
    .bitcast_body = "return __builtin_bit_cast($T, a);",
    .rows = kRows,
    .casts = kCasts,
    .tensor = &kCudaTensor,
};

}  // namespace

std::string render_cuda(UOp linear, std::string_view name) {
  return render_gpu_c(linear, name, kCuda);
}

Target cuda_target() {
  Target out = gpu_c_target("CUDA", kCuda, kMachineInts | kBools | kReals);
  out.tensor.dtypes = kF16 | kBf16;
  return out;
}

}  // namespace weft
