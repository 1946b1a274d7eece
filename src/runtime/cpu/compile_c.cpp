// Finding a compiler, and one file through it.
#include "runtime/cpu/compile_c.h"

#include <cstddef>
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
#include "runtime/run_compiler.h"

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
  const auto command = [&](const std::string& /*input*/, const std::string& output) {
    std::vector<std::string> line = c.command;
    line.insert(line.end(), std::begin(kFlags), std::end(kFlags));
    line.insert(line.end(), {"-o", output, "-"});
    return line;
  };
  return run_compiler("CPU:C", name, source, ".c", command);
}

}  // namespace weft
