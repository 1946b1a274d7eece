// A jump out of LLVM's handler of fatal errors, as LLVM's own CrashRecoveryContext does: it is
// compiled without exceptions, so that none can pass it.
#include "runtime/cpu/llvm_recovery.h"

#include <array>
#include <csetjmp>
#include <cstring>
#include <string>

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

void install_llvm_recovery(const LlvmFunctions& llvm) {
  llvm.install_fatal_error_handler(&leave_llvm);
}

bool is_survived(void (*call)(void*), void* context, std::string& reason) {
  Recovery recovery{};
  if (runs_through(call, context, recovery)) return true;
  reason = recovery.reason.data();
  return false;
}

}  // namespace weft
