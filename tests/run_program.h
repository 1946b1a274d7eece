// Source text -> functions, by the compilers of this machine: the one place where tests of
// renderers compile.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

namespace weft::test {

using ProgramFunction = void (*)(void* const* buffers, const int64_t* variables, void* scratch,
                                 int64_t first, int64_t last);

enum class Language { kC, kLlvm };

// The command that compiles a language, or "" where this machine has none.
inline std::string compiler_for(Language language) {
  // NOLINTNEXTLINE(bugprone-command-processor): the shell finds programs
  const auto runs = [](const std::string& command) { return std::system(command.c_str()) == 0; };
  const auto first_of = [&](std::initializer_list<const char*> names) -> std::string {
    for (const char* name : names) {
      if (runs(fmt::format("command -v {} > /dev/null 2>&1", name))) return name;
    }
    return "";
  };
  if (language == Language::kC) return first_of({"${CC:-cc}", "gcc", "clang"});
  return first_of({"clang-19", "clang-18", "clang-17", "clang-16"});
}

// A shared library in a temporary folder, which goes with it.
class CompiledProgram {
 public:
  CompiledProgram(Language language, std::string_view text) {
    char pattern[] = "/tmp/weft_test_XXXXXX";
    folder_ = mkdtemp(pattern);
    const std::string source = (folder_ / (language == Language::kC ? "p.c" : "p.ll")).string();
    const std::string library = (folder_ / "p.so").string(), log = (folder_ / "log").string();
    std::ofstream(source) << text;
    const std::string command = fmt::format(
        "{} -O2 -march=native -ffp-contract=off -fno-math-errno -w -fPIC -shared -o {} {} -lm > {} "
        "2>&1",
        compiler_for(language), library, source, log);
    if (std::system(command.c_str()) == 0) {  // NOLINT(bugprone-command-processor)
      handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    if (handle_ != nullptr) return;
    std::ifstream in(log);
    error_.assign(std::istreambuf_iterator<char>(in), {});
    if (error_.empty()) error_ = fmt::format("{}: cannot be loaded", command);
  }
  CompiledProgram(const CompiledProgram&) = delete;
  CompiledProgram& operator=(const CompiledProgram&) = delete;
  ~CompiledProgram() {
    if (handle_ != nullptr) dlclose(handle_);
    std::filesystem::remove_all(folder_);
  }

  const std::string& error() const {
    return error_;
  }  // what the compiler said; "" when it is there
  ProgramFunction function(const char* name) const {
    return reinterpret_cast<ProgramFunction>(dlsym(handle_, name));
  }

 private:
  std::filesystem::path folder_;
  void* handle_ = nullptr;
  std::string error_;
};

}  // namespace weft::test
