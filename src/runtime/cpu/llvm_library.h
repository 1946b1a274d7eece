// LLVM, loaded when it is needed: text of LLVM IR to object code for this machine's CPU.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// Whether a library of LLVM 16 or newer lies where libraries lie. Loads nothing.
bool has_llvm();
// What tells this LLVM from another, for keys of compiled code: its file, size and date. Loads
// nothing where the file is found by its name.
const std::string& llvm_identity();

// Starts to load LLVM on a thread of its own, once; compile_llvm waits for it. The process may end
// or fork meanwhile.
void load_llvm_in_background();

// Object code of the module `ir`, an ELF file for this CPU, position independent. Floats are not
// contracted. Thread-safe. Throws CompileError, with `name` for the name of the source, and
// DeviceError when there is no LLVM.
std::vector<std::byte> compile_llvm(std::string_view ir, std::string_view name);

// What compile_llvm makes, as text for people.
std::string assembly_llvm(std::string_view ir, std::string_view name);

// The same with passes in LLVM's notation, for measuring; level 0..3 of code generation.
struct LlvmOptions {
  const char* passes;
  int level;
};
std::vector<std::byte> compile_llvm(std::string_view ir, std::string_view name,
                                    const LlvmOptions& options);

}  // namespace weft
