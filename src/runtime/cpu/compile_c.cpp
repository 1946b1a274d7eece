// Finding a compiler, and one file through it.
#include "runtime/cpu/compile_c.h"

#include <cstddef>
#include <fstream>
#include <ios>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/child_process.h"
#include "base/config.h"
#include "base/dynamic_library.h"
#include "base/error.h"

namespace weft {
namespace {

// What the C renderer counts on: floats round as written, nothing sets errno, names of the library
// are no built-ins but those that a compiler may call by itself.
constexpr const char* kFlags[] = {"-x",
                                  "c",
                                  "-std=gnu11",
                                  "-O2",
                                  "-march=native",
                                  "-fPIC",
#if defined(__x86_64__)
                                  "-mprefer-vector-width=512",  // vectors are as wide as asked for
#endif
                                  "-ffp-contract=off",
                                  "-fno-math-errno",
                                  "-fno-trapping-math",
                                  "-fno-stack-protector",
                                  "-fno-asynchronous-unwind-tables",
                                  "-fno-strict-aliasing",
                                  "-fcf-protection=none",
                                  "-w",
                                  "-c"};

struct Compiler {
  std::vector<std::string> command;  // none: there is no compiler
  std::string identity;
};

std::vector<std::string> split_words(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
}

Compiler find_compiler(const std::string& configured) {
  std::vector<std::vector<std::string>> candidates;
  if (!configured.empty()) {
    candidates = {split_words(configured)};
  } else {
    candidates = {{"clang"}};
    for (int version = 22; version >= 14; version--) {
      candidates.push_back({fmt::format("clang-{}", version)});
    }
    candidates.push_back({"gcc"});
    candidates.push_back({"cc"});
  }
  for (std::vector<std::string>& command : candidates) {
    if (command.empty()) continue;
    const std::string file = find_program(command[0]);
    if (file.empty()) continue;
    command[0] = file;
    return {command, fmt::format("{} {} {}", file_identity(file), fmt::join(command, " "),
                                 fmt::join(kFlags, " "))};
  }
  return {};
}

// Found once per setting of CC.
const Compiler& compiler() {
  thread_local std::string configured;
  thread_local bool is_known = false;
  thread_local Compiler found;
  if (!is_known || configured != config().c_compiler) {
    configured = config().c_compiler;
    found = find_compiler(configured);
    is_known = true;
  }
  return found;
}

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

bool has_c_compiler() { return !compiler().command.empty(); }

const std::string& c_compiler_identity() { return compiler().identity; }

std::vector<std::byte> compile_c(std::string_view source, std::string_view name) {
  const Compiler& c = compiler();
  if (c.command.empty()) {
    throw DeviceError(fmt::format(
        "[CPU:C] there is no C compiler{}; install one (apt install gcc, or clang), or set CC",
        config().c_compiler.empty() ? "" : fmt::format(" CC={}", config().c_compiler)));
  }
  const int seconds = config().compile_seconds;
  try {
    const TempFolder folder;
    const std::string input = folder.path() + "/kernel.c", output = folder.path() + "/kernel.o";
    std::ofstream(input, std::ios::binary)
        .write(source.data(), std::streamsize(source.size()))
        .flush();
    std::vector<std::string> command = c.command;
    command.insert(command.end(), std::begin(kFlags), std::end(kFlags));
    command.insert(command.end(), {"-o", output, "-"});
    const ChildResult result = run_child(command, input, {"TMPDIR=" + folder.path()}, seconds);
    const bool is_good = result.end == ChildResult::End::kExited && result.code == 0;
    std::vector<std::byte> object;
    if (is_good) object = read_file(output);
    if (!object.empty()) return object;
    throw CompileError(fmt::format("[CPU:C] {}: {} {}{}{}", name, c.command[0],
                                   how_it_ended(result, seconds),
                                   result.output.empty() ? "" : ":\n", result.output));
  } catch (const CompileError&) {
    throw;
  } catch (const Error& e) {
    throw CompileError(fmt::format("[CPU:C] {}: {}", name, e.what()));
  }
}

}  // namespace weft
