// Source -> a program of an OpenCL device, and its launches.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/node.h"
#include "runtime/caching_allocator.h"
#include "runtime/gpu/gpu_kernel.h"
#include "runtime/opencl/opencl_functions.h"
#include "runtime/opencl/opencl_library.h"
#include "runtime/program.h"

namespace weft::cl {

// What programs need of their device; lives as long as the process.
struct Session {
  std::string name;
  const Functions& call;
  const Facts& facts;
  Context context;
  Queue queue;
  std::string options;  // of the compiler
  Hash128 identity;     // of the compiler, its version and options
  Target target;
  RenderFunction* render;
  CachingAllocator* memory;
};

enum class Keep : bool { kNo, kYes };  // on disk, for other processes

// `opts` as make_gpu_kernel takes them. Throws CompileError with the compiler's log. Thread-safe.
std::shared_ptr<weft::Program> make_program(const Session& session, UOp ast, std::string_view name,
                                            const OptList* opts, Keep keep);

std::shared_ptr<weft::Program> make_program_of_list(const Session& session, UOp linear,
                                                    std::string_view name);

}  // namespace weft::cl
