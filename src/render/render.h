// A program as source text. The text defines one function:
//
//   void <name>(void* const* buffers, const int64_t* variables, void* scratch, int64_t first,
//   int64_t last);
//
// buffers[i] is DEFINE_GLOBAL i; variables[j] is the j-th of variable_names(); scratch is
// scratch_bytes() bytes, aligned to 64, of the calling thread's own; a RANGE of axis type kThread
// runs from `first` to `last` - 1. Buffers may overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/target.h"
#include "ir/node.h"
#include "rewrite/pattern.h"

namespace weft {

// `linear` is a LINEAR, legal as a program. Equal programs give equal text. Throws CompileError on
// a node that the target has no text for, naming its op and dtype.
std::string render_c(UOp linear, std::string_view name);     // C11 with vector extensions
std::string render_llvm(UOp linear, std::string_view name);  // LLVM IR, of LLVM 16 or newer

// How a WebGPU device does float32, which the language leaves open, and what its driver bounds.
struct WgslDriver {
  bool fused = false;       // fma() rounds once; else its text is an exact one in integers
  bool contracts = false;   // a * b + c may become an fma,
  bool simplifies = false;  // or (a + b) - b become a: the text keeps it from that
  int64_t iterations = 0;   // of all loops of a thread, after which it ends them; 0: it does not
};
inline constexpr size_t kWgslZeros = 2;
// A WGSL module with the entry point `main`. Bindings of group 0: 0 is a uniform buffer of
// vec4<u32>: kWgslZeros that are all zeros, then the VARIABLEs with their low and high words; the
// others are the DEFINE_GLOBALs that stand in the list, by number. Memory is in words: buffers have
// a multiple of 4 bytes, of 8 with 64-bit dtypes. Throws DeviceError where a thread runs more
// iterations than the driver allows, however unrolled.
std::string render_wgsl(UOp linear, std::string_view name, WgslDriver driver = {});

// PTX: one .entry that takes a pointer for each DEFINE_GLOBAL in order of number, then the value of
// each of variable_names() in its dtype; DEFINE_LOCALs that need more than 48 KiB are the dynamic
// shared memory of the launch, scratch_bytes() of it. Memory is aligned to 16 bytes. The text for
// sm_80 runs on every later machine too.
enum class PtxLevel : uint8_t { kSm80, kSm90 };
std::string render_ptx(UOp linear, std::string_view name, PtxLevel level);
std::string render_ptx(UOp linear, std::string_view name);  // for sm_80
Target ptx_target();

// Triton: a Python module with one @triton.jit function, whose programs are workgroups. It takes a
// pointer for each DEFINE_GLOBAL in order of number, then each of variable_names(); bool is uint8
// in memory, float16, bfloat16 and the fp8 formats are unsigned integers of their width. It has to
// be compiled with enable_fp_fusion=False. Local memory and vectors have no text.
std::string render_triton(UOp linear, std::string_view name);
Target triton_target();

// Whether the target's float16 <-> float32 conversions are instructions (F16C on x86).
enum class HalfCasts : bool { kDecomposed, kNative };

// What the two renderers have text for. The sizes (vector registers, cores, caches) are left at
// their defaults: the machine's owner sets them.
Target c_target(HalfCasts half = HalfCasts::kDecomposed);
Target llvm_target(HalfCasts half = HalfCasts::kDecomposed);
Target wgsl_target(WgslDriver driver = {});

// For devices with workgroups: kernels that take a pointer per DEFINE_GLOBAL, then the VARIABLEs in
// the order of variable_names(), of the dtypes that they have in the list. The targets are without
// the sizes of workgroups; `dtypes` are those that the device has arithmetic for.
std::string render_opencl(UOp linear, std::string_view name);  // OpenCL C 1.2
// The same where the device's float32 division and square root are not exact, but it has float64.
std::string render_opencl_by_double(UOp linear, std::string_view name);
Target opencl_target(DTypeSet dtypes);
std::string render_cuda(UOp linear, std::string_view name);  // CUDA C, for NVRTC and nvcc
Target cuda_target();
std::string render_metal(UOp linear, std::string_view name);  // Metal's shading language 2.3
Target metal_target();                                        // without float64
std::string render_hip(UOp linear, std::string_view name);    // HIP, by hiprtc or hipcc
Target hip_target();

// The VARIABLEs of a program, in the order in which its function takes them.
std::vector<std::string> variable_names(UOp linear);

// What `scratch` must hold: the DEFINE_LOCALs by id, each at a multiple of 64.
size_t scratch_bytes(UOp linear);

}  // namespace weft
