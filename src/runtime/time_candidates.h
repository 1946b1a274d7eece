// How long a kernel takes with one list of optimisations or another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ref.h"
#include "codegen/opt/opt.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "runtime/program.h"

namespace weft {

// Arguments for a run of a kernel: how many bytes each must have for no access to be outside of
// them, and values of its variables, by name order.
struct KernelArguments {
  std::vector<size_t> bytes;  // by number of the DEFINE_GLOBAL
  std::vector<int64_t> variables;
};

// Variables are at their upper bounds, or, where that needs more than `most_bytes`, at a half, a
// quarter and so on of that. None when it is too much all the same, or when an access might lie
// before its memory.
std::optional<KernelArguments> arguments_for(UOp ast, int64_t most_bytes);

class CandidateTimer {
 public:
  using Compile = std::function<std::shared_ptr<Program>(UOp ast, const OptList&)>;

  // Throws DeviceError when there is no memory.
  CandidateTimer(UOp ast, Device& device, const KernelArguments& arguments, Compile compile,
                 size_t compile_threads);

  // Compiles these, on several threads; time() finds them until the next call.
  void prepare(std::span<const OptList> lists);

  // The shortest of several runs, in seconds. One that takes much longer than the best so far runs
  // once. None when it does not compile.
  std::optional<double> time(const OptList& opts);

 private:
  std::shared_ptr<Program> compiled(UOp ast, const OptList& opts) const;
  double run(Program& program);

  std::vector<Graph> asts_;  // one for each thread
  Device& device_;
  Compile compile_;
  std::vector<Ref<Buffer>> buffers_;
  std::vector<Buffer*> arguments_;
  std::vector<int64_t> variables_;
  std::map<std::string, std::shared_ptr<Program>> prepared_;  // by the text of the list
  std::optional<double> best_;
};

}  // namespace weft
