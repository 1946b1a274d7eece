// One kernel to a program.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/node.h"
#include "rewrite/pass_list.h"
#include "rewrite/trace.h"

namespace weft {

// `ast` is a SINK that is legal as a kernel; the result is a LINEAR, legal as a program, made in
// the same arena. Its optimisations are those given, or else what choose_opts says. Throws
// CompileError when the kernel does not fit the target, or an optimisation the kernel.
UOp lower(UOp ast, const Target& target, Trace* trace = nullptr);
UOp lower(UOp ast, const Target& target, std::span<const Opt> opts, Trace* trace = nullptr);

// What the passes of codegen are told beside the graph.
struct Lowering {
  const Target& target;
  std::optional<std::span<const Opt>> opts;  // none: what choose_opts says
};

struct CodegenPass {
  PassInfo info;
  UOp (*run)(UOp graph, const Lowering& with, Trace* trace, std::string* notes);
};

// All of them, in the order in which lower() runs them.
std::span<const CodegenPass> codegen_passes();

}  // namespace weft
