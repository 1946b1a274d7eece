// A jump out of LLVM's handler of fatal errors, as LLVM's own CrashRecoveryContext does: it is
// compiled without exceptions, so that none can pass it.
#include "runtime/cpu/llvm_recovery.h"

#include <array>
#include <csetjmp>
#include <cstring>
#include <mutex>
#include <new>
#include <string>

#include "base/dynamic_library.h"
#include "runtime/cpu/llvm_functions.h"

namespace weft {
namespace {

struct Recovery {
  std::jmp_buf place;
  std::array<char, 1024> reason;
};
thread_local Recovery* recovery_of_thread = nullptr;

// Returning from here ends the process.
void leave_llvm(const char* reason) {
  Recovery* const recovery = recovery_of_thread;
  if (recovery == nullptr) return;
  std::strncpy(recovery->reason.data(), reason, recovery->reason.size() - 1);
  std::longjmp(recovery->place, 1);
}

// The frame that is jumped to has nothing to destroy.
bool runs_through(void (*call)(void*), void* context, Recovery& recovery) {
  recovery_of_thread = &recovery;
  const bool has_failed = setjmp(recovery.place) != 0;
  if (!has_failed) call(context);
  recovery_of_thread = nullptr;
  return !has_failed;
}

}  // namespace

void install_llvm_recovery(const DynamicLibrary& library, const LlvmFunctions& llvm) {
  static std::once_flag once;
  std::call_once(once, [&] {
    llvm.install_fatal_error_handler(&leave_llvm);
    // The C interface has no name for this one.
    using BadAllocHandler = void (*)(void*, const char*, bool);
    auto* const install = library.function<void(BadAllocHandler, void*)>(
        "_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_");
    if (install == nullptr) return;
    install([](void*, const char*, bool) { leave_llvm(kOutOfMemory); }, nullptr);
  });
}

bool is_survived(void (*call)(void*), void* context, std::string& reason) {
  Recovery recovery{};
  try {
    if (runs_through(call, context, recovery)) return true;
  } catch (const std::bad_alloc&) {  // of an operator new in LLVM
    recovery_of_thread = nullptr;
    reason = kOutOfMemory;
    return false;
  }
  reason = recovery.reason.data();
  return false;
}

}  // namespace weft
