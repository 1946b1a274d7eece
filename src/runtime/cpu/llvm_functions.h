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

// LLVM_FUNCTION(result, name without LLVM, parameters)
#define WEFT_LLVM_FUNCTIONS(LLVM_FUNCTION)                                                      \
  LLVM_FUNCTION(void, GetVersion, (unsigned*, unsigned*, unsigned*))                            \
  LLVM_FUNCTION(LlvmContext, ContextCreate, ())                                                 \
  LLVM_FUNCTION(void, ContextDispose, (LlvmContext))                                            \
  LLVM_FUNCTION(void, ContextSetDiagnosticHandler, (LlvmContext, LlvmDiagnosticHandler, void*)) \
  LLVM_FUNCTION(char*, GetDiagInfoDescription, (LlvmDiagnostic))                                \
  LLVM_FUNCTION(int, GetDiagInfoSeverity, (LlvmDiagnostic))                                     \
  LLVM_FUNCTION(LlvmBuffer, CreateMemoryBufferWithMemoryRangeCopy,                              \
                (const char*, size_t, const char*))                                             \
  LLVM_FUNCTION(void, DisposeMemoryBuffer, (LlvmBuffer))                                        \
  LLVM_FUNCTION(const char*, GetBufferStart, (LlvmBuffer))                                      \
  LLVM_FUNCTION(size_t, GetBufferSize, (LlvmBuffer))                                            \
  LLVM_FUNCTION(int, ParseIRInContext, (LlvmContext, LlvmBuffer, LlvmModule*, char**))          \
  LLVM_FUNCTION(void, DisposeModule, (LlvmModule))                                              \
  LLVM_FUNCTION(int, VerifyModule, (LlvmModule, int, char**))                                   \
  LLVM_FUNCTION(void, SetTarget, (LlvmModule, const char*))                                     \
  LLVM_FUNCTION(void, SetModuleDataLayout, (LlvmModule, LlvmTargetData))                        \
  LLVM_FUNCTION(void, DisposeMessage, (char*))                                                  \
  LLVM_FUNCTION(char*, GetDefaultTargetTriple, ())                                              \
  LLVM_FUNCTION(char*, GetHostCPUName, ())                                                      \
  LLVM_FUNCTION(char*, GetHostCPUFeatures, ())                                                  \
  LLVM_FUNCTION(int, GetTargetFromTriple, (const char*, LlvmTarget*, char**))                   \
  LLVM_FUNCTION(LlvmMachine, CreateTargetMachine,                                               \
                (LlvmTarget, const char*, const char*, const char*, int, int, int))             \
  LLVM_FUNCTION(void, DisposeTargetMachine, (LlvmMachine))                                      \
  LLVM_FUNCTION(LlvmTargetData, CreateTargetDataLayout, (LlvmMachine))                          \
  LLVM_FUNCTION(void, DisposeTargetData, (LlvmTargetData))                                      \
  LLVM_FUNCTION(int, TargetMachineEmitToMemoryBuffer,                                           \
                (LlvmMachine, LlvmModule, int, char**, LlvmBuffer*))                            \
  LLVM_FUNCTION(LlvmPassOptions, CreatePassBuilderOptions, ())                                  \
  LLVM_FUNCTION(void, DisposePassBuilderOptions, (LlvmPassOptions))                             \
  LLVM_FUNCTION(LlvmError, RunPasses, (LlvmModule, const char*, LlvmMachine, LlvmPassOptions))  \
  LLVM_FUNCTION(char*, GetErrorMessage, (LlvmError))                                            \
  LLVM_FUNCTION(void, DisposeErrorMessage, (char*))

struct LlvmFunctions {
#define WEFT_DECLARE(result, name, parameters) result(*name) parameters = nullptr;
  WEFT_LLVM_FUNCTIONS(WEFT_DECLARE)
#undef WEFT_DECLARE

  // False when one is not there.
  bool load(const DynamicLibrary& library) {
#define WEFT_LOAD(result, name, parameters)                 \
  name = library.function<result parameters>("LLVM" #name); \
  if (name == nullptr) return false;
    WEFT_LLVM_FUNCTIONS(WEFT_LOAD)
#undef WEFT_LOAD
    return true;
  }
};

}  // namespace weft
