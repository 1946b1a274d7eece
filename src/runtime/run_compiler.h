// Compilers that are programs of their own.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// The command line, given the files to read and to write.
using CompilerCommand =
    std::function<std::vector<std::string>(const std::string& input, const std::string& output)>;

// What the compiler writes for the kernel `name`; the source is also its standard input, and the
// file to read ends in `extension`. After WEFT_COMPILE_SECONDS it is killed. Throws CompileError
// with the device, the kernel, how it ended and what it said.
std::vector<std::byte> run_compiler(std::string_view device, std::string_view name,
                                    std::string_view source, std::string_view extension,
                                    const CompilerCommand& command);

}  // namespace weft
