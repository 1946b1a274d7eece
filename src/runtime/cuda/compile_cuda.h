// Text of CUDA C to code for a GPU: by NVRTC in the process where it is installed, else by nvcc as
// a child process. Neither needs a GPU.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// Why there is no compiler; empty: there is one. Loads nothing where NVRTC is found by its file.
const std::string& cuda_compiler_missing();
// NVRTC 13.0, nvcc: for people. Loads NVRTC.
std::string cuda_compiler_description();
// What tells this compiler and how it is called from another, for keys of compiled code.
const std::string& cuda_compiler_identity();

// Code that the driver loads for a device of this architecture (90: compute capability 9.0): a
// cubin, or PTX where the compiler is older than the device. Floats are not contracted, denormals
// are kept, division and square root round correctly. Thread-safe. Throws CompileError, with `name`
// for the name of the source, and DeviceError when there is no compiler.
std::vector<std::byte> compile_cuda(std::string_view source, std::string_view name,
                                    int architecture);

}  // namespace weft
