// Calls into LLVM that outlive LLVM's giving up.
#pragma once

#include <string>

#include "base/dynamic_library.h"
#include "runtime/cpu/llvm_functions.h"

namespace weft {

// LLVM ends the process on what it calls a fatal error, such as an instruction that it cannot
// select, and where it gets no memory. From here on it does so only outside of is_survived.
void install_llvm_recovery(const DynamicLibrary& library, const LlvmFunctions& llvm);

// The reason where it got no memory.
inline constexpr const char* kOutOfMemory = "out of memory";

// Runs call(context), which may call LLVM and must own nothing that has a destructor. False where
// LLVM has given up in it, why in `reason`: then what LLVM worked on is in no state to be used or
// disposed of, and is lost.
bool is_survived(void (*call)(void*), void* context, std::string& reason);

template <class Call>
bool is_survived(Call call, std::string& reason) {
  return is_survived([](void* c) { (*static_cast<Call*>(c))(); }, &call, reason);
}

}  // namespace weft
