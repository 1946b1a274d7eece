// Source text -> functions, by the compilers of the CPU device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "runtime/cpu/compile_c.h"
#include "runtime/cpu/llvm_library.h"
#include "runtime/cpu/object_code.h"

namespace weft::test {

using ProgramFunction = void (*)(void* const* buffers, const int64_t* variables, void* scratch,
                                 int64_t first, int64_t last);

enum class Language { kC, kLlvm };

inline bool has_compiler(Language language) {
  return language == Language::kC ? has_c_compiler() : has_llvm();
}

class CompiledProgram {
 public:
  CompiledProgram(Language language, std::string_view text) {
    try {
      code_.emplace(language == Language::kC ? compile_c(text, "program")
                                             : compile_llvm(text, "program"));
    } catch (const CompileError& e) {
      error_ = e.what();
    }
  }

  const std::string& error() const {
    return error_;
  }  // what the compiler said; "" when it is there
  ProgramFunction function(std::string_view name) const {
    return reinterpret_cast<ProgramFunction>(code_->function(name));
  }

 private:
  std::optional<ObjectCode> code_;
  std::string error_;
};

}  // namespace weft::test
