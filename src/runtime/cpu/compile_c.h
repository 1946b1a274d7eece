// Text of C to object code, by the system's C compiler as a child process.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// Whether there is one: CC, else clang or gcc.
bool has_c_compiler();
// What tells this compiler and how it is called from another, for keys of compiled code. Runs
// nothing.
const std::string& c_compiler_identity();

// Object code, an ELF file for this CPU, position independent. Floats are not contracted. A
// compiler that takes longer than the configured limit is killed with all its children.
// Thread-safe. Throws CompileError, with what the compiler said and `name` for the name of the
// source, and DeviceError when there is no compiler.
std::vector<std::byte> compile_c(std::string_view source, std::string_view name);

}  // namespace weft
