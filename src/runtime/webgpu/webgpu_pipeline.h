// A compiled kernel of a WebGPU device, released by its last owner.
#pragma once

#include <unistd.h>

#include "runtime/webgpu/webgpu_queue.h"
#include "runtime/webgpu/wgpu_functions.h"

namespace weft {

class WebGpuQueue::PipelineHandle {
 public:
  PipelineHandle(const wgpu::Functions& functions, int process, wgpu::Pipeline pipeline)
      : wgpu_(functions), process_(process), pipeline_(pipeline) {}
  PipelineHandle(const PipelineHandle&) = delete;
  PipelineHandle& operator=(const PipelineHandle&) = delete;
  ~PipelineHandle() {
    if (pipeline_ != nullptr && getpid() == process_) wgpu_.pipeline_release(pipeline_);
  }

  wgpu::Pipeline get() const { return pipeline_; }

 private:
  const wgpu::Functions& wgpu_;
  const int process_;  // that made it
  const wgpu::Pipeline pipeline_;
};

}  // namespace weft
