// A folder for the time of the call, a child in it, and the file that it leaves there.
#include "runtime/run_compiler.h"

#include <cstddef>
#include <fstream>
#include <ios>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/child_process.h"
#include "base/config.h"
#include "base/error.h"

namespace weft {
namespace {

std::vector<std::byte> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  std::vector<std::byte> bytes(size_t(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), std::streamsize(bytes.size()));
  return bytes;
}

std::string how_it_ended(const ChildResult& result, int seconds) {
  switch (result.end) {
    case ChildResult::End::kTimedOut:
      return fmt::format("was killed after {} s (WEFT_COMPILE_SECONDS)", seconds);
    case ChildResult::End::kKilled: return fmt::format("ended by signal {}", result.code);
    case ChildResult::End::kExited: break;
  }
  return result.code == 0 ? std::string("wrote no object")
                          : fmt::format("ended with status {}", result.code);
}

}  // namespace

std::vector<std::byte> run_compiler(std::string_view device, std::string_view name,
                                    std::string_view source, std::string_view extension,
                                    const CompilerCommand& command) {
  const int seconds = config().compile_seconds;
  try {
    const TempFolder folder;
    const std::string input = fmt::format("{}/kernel{}", folder.path(), extension),
                      output = folder.path() + "/kernel.o";
    std::ofstream(input, std::ios::binary)
        .write(source.data(), std::streamsize(source.size()))
        .flush();
    const std::vector<std::string> line = command(input, output);
    const ChildResult result = run_child(line, input, {"TMPDIR=" + folder.path()}, seconds);
    std::vector<std::byte> object;
    if (result.end == ChildResult::End::kExited && result.code == 0) object = read_file(output);
    if (!object.empty()) return object;
    throw CompileError(fmt::format("[{}] {}: {} {}{}{}", device, name, line[0],
                                   how_it_ended(result, seconds),
                                   result.output.empty() ? "" : ":\n", result.output));
  } catch (const CompileError&) {
    throw;
  } catch (const Error& e) {
    throw CompileError(fmt::format("[{}] {}: {}", device, name, e.what()));
  }
}

}  // namespace weft
