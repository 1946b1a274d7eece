// The functions of LLVM's C interface that weft uses, declared as LLVM 16 and newer export them.
#pragma once

#include <cstddef>

#include "base/dynamic_library.h"

namespace weft {

// Each is a pointer to an opaque object of LLVM's.
using LlvmContext = struct LlvmContextObject*;
using LlvmModule = struct LlvmModuleObject*;
using LlvmBuffer = struct LlvmBufferObject*;
using LlvmTarget = struct LlvmTargetObject*;
using LlvmMachine = struct LlvmMachineObject*;
using LlvmTargetData = struct LlvmTargetDataObject*;
using LlvmPassOptions = struct LlvmPassOptionsObject*;
using LlvmError = struct LlvmErrorObject*;
using LlvmDiagnostic = struct LlvmDiagnosticObject*;
using LlvmDiagnosticHandler = void (*)(LlvmDiagnostic, void*);
using LlvmFatalErrorHandler = void (*)(const char* reason);

// LLVM_FUNCTION(result, member, name without LLVM, parameters)
#define WEFT_LLVM_FUNCTIONS(LLVM_FUNCTION)                                                        \
  LLVM_FUNCTION(void, get_version, GetVersion, (unsigned*, unsigned*, unsigned*))                 \
  LLVM_FUNCTION(void, install_fatal_error_handler, InstallFatalErrorHandler,                      \
                (LlvmFatalErrorHandler))                                                          \
  LLVM_FUNCTION(LlvmContext, context_create, ContextCreate, ())                                   \
  LLVM_FUNCTION(void, context_dispose, ContextDispose, (LlvmContext))                             \
  LLVM_FUNCTION(void, context_set_diagnostic_handler, ContextSetDiagnosticHandler,                \
                (LlvmContext, LlvmDiagnosticHandler, void*))                                      \
  LLVM_FUNCTION(char*, get_diag_info_description, GetDiagInfoDescription, (LlvmDiagnostic))       \
  LLVM_FUNCTION(int, get_diag_info_severity, GetDiagInfoSeverity, (LlvmDiagnostic))               \
  LLVM_FUNCTION(LlvmBuffer, create_buffer, CreateMemoryBufferWithMemoryRangeCopy,                 \
                (const char*, size_t, const char*))                                               \
  LLVM_FUNCTION(void, dispose_memory_buffer, DisposeMemoryBuffer, (LlvmBuffer))                   \
  LLVM_FUNCTION(const char*, get_buffer_start, GetBufferStart, (LlvmBuffer))                      \
  LLVM_FUNCTION(size_t, get_buffer_size, GetBufferSize, (LlvmBuffer))                             \
  LLVM_FUNCTION(int, parse_ir_in_context, ParseIRInContext,                                       \
                (LlvmContext, LlvmBuffer, LlvmModule*, char**))                                   \
  LLVM_FUNCTION(void, dispose_module, DisposeModule, (LlvmModule))                                \
  LLVM_FUNCTION(int, verify_module, VerifyModule, (LlvmModule, int, char**))                      \
  LLVM_FUNCTION(void, set_target, SetTarget, (LlvmModule, const char*))                           \
  LLVM_FUNCTION(void, set_module_data_layout, SetModuleDataLayout, (LlvmModule, LlvmTargetData))  \
  LLVM_FUNCTION(void, dispose_message, DisposeMessage, (char*))                                   \
  LLVM_FUNCTION(char*, get_default_target_triple, GetDefaultTargetTriple, ())                     \
  LLVM_FUNCTION(char*, get_host_cpu_name, GetHostCPUName, ())                                     \
  LLVM_FUNCTION(char*, get_host_cpu_features, GetHostCPUFeatures, ())                             \
  LLVM_FUNCTION(int, get_target_from_triple, GetTargetFromTriple,                                 \
                (const char*, LlvmTarget*, char**))                                               \
  LLVM_FUNCTION(LlvmMachine, create_target_machine, CreateTargetMachine,                          \
                (LlvmTarget, const char*, const char*, const char*, int, int, int))               \
  LLVM_FUNCTION(void, dispose_target_machine, DisposeTargetMachine, (LlvmMachine))                \
  LLVM_FUNCTION(LlvmTargetData, create_target_data_layout, CreateTargetDataLayout, (LlvmMachine)) \
  LLVM_FUNCTION(void, dispose_target_data, DisposeTargetData, (LlvmTargetData))                   \
  LLVM_FUNCTION(int, target_machine_emit_to_memory_buffer, TargetMachineEmitToMemoryBuffer,       \
                (LlvmMachine, LlvmModule, int, char**, LlvmBuffer*))                              \
  LLVM_FUNCTION(LlvmPassOptions, create_pass_builder_options, CreatePassBuilderOptions, ())       \
  LLVM_FUNCTION(void, dispose_pass_builder_options, DisposePassBuilderOptions, (LlvmPassOptions)) \
  LLVM_FUNCTION(LlvmError, run_passes, RunPasses,                                                 \
                (LlvmModule, const char*, LlvmMachine, LlvmPassOptions))                          \
  LLVM_FUNCTION(char*, get_error_message, GetErrorMessage, (LlvmError))                           \
  LLVM_FUNCTION(void, dispose_error_message, DisposeErrorMessage, (char*))

struct LlvmFunctions {
#define WEFT_DECLARE(result, member, name, parameters) result(*member) parameters = nullptr;
  WEFT_LLVM_FUNCTIONS(WEFT_DECLARE)
#undef WEFT_DECLARE

  // False when one is not there.
  bool load(const DynamicLibrary& library) {
#define WEFT_LOAD(result, member, name, parameters)           \
  member = library.function<result parameters>("LLVM" #name); \
  if (member == nullptr) return false;
    WEFT_LLVM_FUNCTIONS(WEFT_LOAD)
#undef WEFT_LOAD
    return true;
  }
};

}  // namespace weft
