// A chain of kernel nodes; those whose memory is another than in the last run are changed.
#include "runtime/cuda/cuda_recording.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "runtime/buffer.h"
#include "runtime/cuda/cuda_context.h"
#include "runtime/cuda/cuda_driver.h"
#include "runtime/cuda/cuda_functions.h"
#include "runtime/cuda/cuda_program.h"
#include "runtime/program.h"

namespace weft {
namespace {

const CudaFunctions& cuda() { return CudaDriver::get().functions(); }

class CudaRecording : public RecordedCalls {
 public:
  struct Call {
    const CudaProgram* program;
    std::vector<uint32_t> slots;
    std::vector<int64_t> variables;
  };

  CudaRecording(CudaGpu& gpu, std::vector<Call> calls) : gpu_(gpu), calls_(std::move(calls)) {
    std::set<uint32_t> used;
    for (const Call& call : calls_) used.insert(call.slots.begin(), call.slots.end());
    used_.assign(used.begin(), used.end());
  }
  ~CudaRecording() override { drop(); }

  void run(std::span<Buffer* const> memory) override {
    CudaContext& context = gpu_.context();
    addresses_.resize(memory.size());
    for (const uint32_t slot : used_) {
      addresses_[slot] = gpu_.memory(memory[slot]->memory()).address;
    }
    const CudaContext::Scope scope(context);
    if (context_ != &context || exec_ == nullptr) {
      drop();
      build(context);
    } else {
      update(context);
    }
    context.check(cuda().graph_launch(exec_, context.stream()), "to start a graph of kernels");
    for (const Call& call : calls_) context.started(call.program->name());
  }

 private:
  // A call in the graph.
  struct Node {
    CudaGraphNode node;
    CudaKernelNode launch;
    std::unique_ptr<CudaArguments> arguments;
    const Call* call;
  };

  void build(CudaContext& context) {
    context.check(cuda().graph_create(&graph_, 0), "to make a graph of kernels");
    context_ = &context;
    CudaResult result = 0;
    for (const Call& call : calls_) {
      Node made{nullptr, {}, std::make_unique<CudaArguments>(), &call};
      made.launch = call.program->launch(context, *made.arguments, call.variables);
      if (std::ranges::find(made.launch.groups, 0U) != made.launch.groups.end()) continue;
      set_addresses(made);
      call.program->set_arrays(context, *made.arguments);
      const CudaGraphNode* before = nodes_.empty() ? nullptr : &nodes_.back().node;
      result =
          cuda().graph_add(&made.node, graph_, before, before == nullptr ? 0 : 1, &made.launch);
      if (result != 0) break;
      nodes_.push_back(std::move(made));
    }
    if (result == 0) {
      result = context.with_memory([&] { return cuda().graph_instantiate(&exec_, graph_, 0); });
    }
    if (result == 0) return;
    drop();
    context.fail(result, "to make a graph of kernels");
  }

  void update(CudaContext& context) {
    for (Node& node : nodes_) {
      if (!set_addresses(node)) continue;
      node.call->program->set_arrays(context, *node.arguments);
      context.check(cuda().graph_set(exec_, node.node, &node.launch),
                    "to change a graph of kernels");
    }
  }

  // Whether one is another.
  bool set_addresses(Node& node) {
    bool is_changed = false;
    const std::span<uint64_t> words = node.arguments->words();
    for (size_t i = 0; i < node.call->slots.size(); i++) {
      const CudaAddress now = addresses_[node.call->slots[i]];
      is_changed |= std::exchange(words[i], now) != now;
    }
    return is_changed;
  }

  void drop() noexcept {
    if (context_ != nullptr && !context_->is_lost() && !cuda_is_of_parent()) {
      const CudaContext::Scope scope(*context_);
      if (exec_ != nullptr) cuda().graph_exec_destroy(exec_);
      if (graph_ != nullptr) cuda().graph_destroy(graph_);
    }
    exec_ = nullptr;
    graph_ = nullptr;
    context_ = nullptr;
    nodes_.clear();
  }

  CudaGpu& gpu_;
  const std::vector<Call> calls_;
  std::vector<uint32_t> used_;          // numbers of memory
  std::vector<CudaAddress> addresses_;  // by number
  CudaContext* context_ = nullptr;      // that the graph is in
  CudaGraph graph_ = nullptr;           // owns the nodes
  CudaGraphExec exec_ = nullptr;
  std::vector<Node> nodes_;
};

}  // namespace

std::unique_ptr<RecordedCalls> record_cuda(CudaGpu& gpu, std::span<const RecordedCall> calls) {
  std::vector<CudaRecording::Call> own;
  for (const RecordedCall& call : calls) {
    const auto* const program = dynamic_cast<const CudaProgram*>(call.program);
    if (program == nullptr) return nullptr;
    CudaRecording::Call& made = own.emplace_back();
    made.program = program;
    for (const uint32_t argument : program->taken_arguments()) {
      made.slots.push_back(call.arguments[argument]);
    }
    made.variables.assign(call.variables.begin(), call.variables.end());
  }
  return std::make_unique<CudaRecording>(gpu, std::move(own));
}

}  // namespace weft
