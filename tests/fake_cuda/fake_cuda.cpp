// A libcuda.so.1 for tests without a GPU: two devices in the memory of this process, whose work is
// done as late as the real driver may do it. Every kernel is out[i] = in[i] + 1 on int32; one with
// "bad" in its name is an illegal access.
//
//   FAKE_CUDA_BYTES   of memory of each device, 64 MiB unless set
//   FAKE_CUDA_RESET   set: a context that was lost can be made anew
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/cuda_functions.h"

namespace weft {

constexpr CudaResult kInvalidValue = 1, kIllegalAddress = 700;
constexpr size_t kModuleBytes = size_t(1) << 20;

// Work that was begun and is done when somebody waits.
struct CudaStreamObject {
  std::deque<std::function<void()>> work;
  uint64_t begun = 0, done = 0;
};

struct CudaEventObject {
  CudaStream stream = nullptr;
  uint64_t place = 0;
};

struct CudaContextObject {
  CudaResult error = 0;  // which stays
  std::map<CudaAddress, size_t> memory;
  size_t used = 0;
};

struct CudaFunctionObject {
  std::string name;
};

struct CudaModuleObject {
  CudaContextHandle context = nullptr;
  std::map<std::string, CudaFunctionObject> functions{};
};

struct CudaGraphNodeObject {
  CudaFunction function = nullptr;
  CudaAddress out = 0, in = 0;
};

struct CudaGraphObject {
  std::vector<std::unique_ptr<CudaGraphNodeObject>> nodes;
};

struct CudaGraphExecObject {
  std::vector<std::pair<CudaGraphNode, CudaGraphNodeObject>> nodes;
};

namespace {

std::recursive_mutex mutex;
std::array<CudaContextObject, 2> contexts;
std::vector<CudaStream> streams;
std::map<const std::byte*, std::unique_ptr<std::byte[]>> pinned;
thread_local std::vector<CudaContextHandle> current;

size_t device_bytes() {
  const char* const set = std::getenv("FAKE_CUDA_BYTES");
  return set != nullptr ? size_t(std::strtoull(set, nullptr, 10)) : size_t(64) << 20;
}

CudaContextHandle context() { return current.empty() ? nullptr : current.back(); }
CudaResult state() { return context() == nullptr ? 201 : context()->error; }

void finish(CudaStream stream, uint64_t up_to) {
  while (stream->done < up_to && !stream->work.empty()) {
    const std::function<void()> next = std::move(stream->work.front());
    stream->work.pop_front();
    stream->done++;
    next();
  }
}
void finish_all() {
  for (CudaStream stream : streams) finish(stream, stream->begun);
}

void begin(CudaStream stream, std::function<void()> work) {
  stream->work.push_back([lost = context(), work = std::move(work)] {
    if (lost->error == 0) work();
  });
  stream->begun++;
}

std::byte* bytes_at(CudaAddress address) { return reinterpret_cast<std::byte*>(address); }

// How much is left of the block that an address lies in; 0: in none.
size_t left_at(CudaAddress address) {
  for (const CudaContextObject& c : contexts) {
    const auto after = c.memory.upper_bound(address);
    if (after == c.memory.begin()) continue;
    const auto [begin, size] = *std::prev(after);
    if (address < begin + size) return size - (address - begin);
  }
  return 0;
}

bool is_pinned(const void* host) {
  const auto after = pinned.upper_bound(static_cast<const std::byte*>(host));
  return after != pinned.begin() &&
         static_cast<const std::byte*>(host) < std::prev(after)->first + (size_t(4) << 20);
}

void run_kernel(CudaContextHandle on, CudaFunction function, CudaAddress out, CudaAddress in) {
  const size_t size = std::min(left_at(out), left_at(in)) / sizeof(int32_t);
  if (function->name.find("bad") != std::string::npos || size == 0) {
    on->error = kIllegalAddress;
    return;
  }
  const auto* from = reinterpret_cast<const int32_t*>(bytes_at(in));
  auto* to = reinterpret_cast<int32_t*>(bytes_at(out));
  for (size_t i = 0; i < size; i++) to[i] = from[i] + 1;
}

CudaGraphNodeObject node_of(const CudaKernelNode& launch) {
  return {launch.function, *static_cast<CudaAddress*>(launch.arguments[0]),
          *static_cast<CudaAddress*>(launch.arguments[1])};
}

}  // namespace

#define FAKE(name) extern "C" __attribute__((visibility("default"))) CudaResult name
using Lock = std::lock_guard<std::recursive_mutex>;

FAKE(cuInit)(unsigned) { return 0; }
FAKE(cuDriverGetVersion)(int* version) {
  *version = 13000;
  return 0;
}
FAKE(cuGetErrorName)(CudaResult result, const char** name) {
  *name = result == kIllegalAddress    ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : result == kCudaOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY"
                                       : "CUDA_ERROR_OF_THE_FAKE";
  return 0;
}
FAKE(cuGetErrorString)(CudaResult, const char** text) {
  *text = "said by the fake driver";
  return 0;
}

// ---- devices

FAKE(cuDeviceGetCount)(int* count) {
  *count = int(contexts.size());
  return 0;
}
FAKE(cuDeviceGet)(CudaOrdinal* ordinal, int number) {
  *ordinal = number;
  return 0;
}
FAKE(cuDeviceGetName)(char* name, int length, CudaOrdinal) {
  std::strncpy(name, "fake GPU", size_t(length));
  return 0;
}
FAKE(cuDeviceTotalMem_v2)(size_t* bytes, CudaOrdinal) {
  *bytes = device_bytes();
  return 0;
}
FAKE(cuDeviceGetAttribute)(int* value, int which, CudaOrdinal) {
  *value = which == kMajor ? 9 : which == kMinor ? 0 : which == kMultiprocessors ? 4 : 48 << 10;
  return 0;
}
FAKE(cuDeviceCanAccessPeer)(int* can, CudaOrdinal, CudaOrdinal) {
  *can = 1;
  return 0;
}
FAKE(cuCtxEnablePeerAccess)(CudaContextHandle, unsigned) { return 0; }

// ---- contexts

FAKE(cuDevicePrimaryCtxRetain)(CudaContextHandle* handle, CudaOrdinal ordinal) {
  *handle = &contexts[size_t(ordinal)];
  return (*handle)->error;
}
FAKE(cuDevicePrimaryCtxReset_v2)(CudaOrdinal ordinal) {
  const Lock lock(mutex);
  CudaContextObject& lost = contexts[size_t(ordinal)];
  if (std::getenv("FAKE_CUDA_RESET") == nullptr) return lost.error;
  for (const auto& [address, size] : lost.memory) std::free(bytes_at(address));
  lost = {};
  return 0;
}
FAKE(cuCtxGetCurrent)(CudaContextHandle* handle) {
  *handle = context();
  return 0;
}
FAKE(cuCtxPushCurrent_v2)(CudaContextHandle handle) {
  current.push_back(handle);
  return 0;
}
FAKE(cuCtxPopCurrent_v2)(CudaContextHandle* handle) {
  *handle = context();
  current.pop_back();
  return 0;
}

// ---- memory

FAKE(cuMemGetInfo_v2)(size_t* free, size_t* total) {
  const Lock lock(mutex);
  *total = device_bytes();
  *free = *total - context()->used;
  return state();
}
FAKE(cuMemAlloc_v2)(CudaAddress* address, size_t bytes) {
  const Lock lock(mutex);
  if (state() != 0) return state();
  if (bytes > device_bytes() - context()->used) return kCudaOutOfMemory;
  auto* const made = static_cast<std::byte*>(std::aligned_alloc(512, (bytes + 511) / 512 * 512));
  std::memset(made, 0xA5, bytes);
  *address = reinterpret_cast<CudaAddress>(made);
  context()->memory[*address] = bytes;
  context()->used += bytes;
  return 0;
}
FAKE(cuMemFree_v2)(CudaAddress address) {
  const Lock lock(mutex);
  finish_all();
  const auto at = context()->memory.find(address);
  if (at == context()->memory.end()) return kInvalidValue;
  context()->used -= at->second;
  context()->memory.erase(at);
  std::free(bytes_at(address));
  return 0;
}
FAKE(cuMemHostAlloc)(void** memory, size_t bytes, unsigned) {
  const Lock lock(mutex);
  auto made = std::make_unique<std::byte[]>(bytes);
  *memory = made.get();
  pinned[made.get()] = std::move(made);
  return state();
}
FAKE(cuMemFreeHost)(void* memory) {
  const Lock lock(mutex);
  return pinned.erase(static_cast<std::byte*>(memory)) == 1 ? 0 : kInvalidValue;
}

// ---- copies: pinned memory is read and written late, other memory before the call is over

FAKE(cuMemcpyHtoDAsync_v2)(CudaAddress to, const void* from, size_t bytes, CudaStream stream) {
  const Lock lock(mutex);
  if (state() != 0) return state();
  if (left_at(to) < bytes) return kInvalidValue;
  if (is_pinned(from)) {
    begin(stream, [=] { std::memcpy(bytes_at(to), from, bytes); });
  } else {
    const auto* first = static_cast<const std::byte*>(from);
    begin(stream, [to, taken = std::vector<std::byte>(first, first + bytes)] {
      std::memcpy(bytes_at(to), taken.data(), taken.size());
    });
  }
  return 0;
}
FAKE(cuMemcpyDtoHAsync_v2)(void* to, CudaAddress from, size_t bytes, CudaStream stream) {
  const Lock lock(mutex);
  if (state() != 0) return state();
  if (left_at(from) < bytes) return kInvalidValue;
  begin(stream, [=] { std::memcpy(to, bytes_at(from), bytes); });
  if (!is_pinned(to)) finish(stream, stream->begun);
  return state();
}
FAKE(cuMemcpyDtoDAsync_v2)(CudaAddress to, CudaAddress from, size_t bytes, CudaStream stream) {
  const Lock lock(mutex);
  if (state() != 0) return state();
  if (std::min(left_at(to), left_at(from)) < bytes) return kInvalidValue;
  begin(stream, [=] { std::memmove(bytes_at(to), bytes_at(from), bytes); });
  return 0;
}
FAKE(cuMemcpyPeerAsync)(CudaAddress to, CudaContextHandle, CudaAddress from, CudaContextHandle,
                        size_t bytes, CudaStream stream) {
  return cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}

// ---- streams and events

FAKE(cuStreamCreate)(CudaStream* stream, unsigned) {
  const Lock lock(mutex);
  *stream = streams.emplace_back(new CudaStreamObject);
  return state();
}
FAKE(cuStreamSynchronize)(CudaStream stream) {
  const Lock lock(mutex);
  finish(stream, stream->begun);
  return state();
}
FAKE(cuStreamWaitEvent)(CudaStream stream, CudaEvent event, unsigned) {
  const Lock lock(mutex);
  begin(stream, [stream = event->stream, place = event->place] { finish(stream, place); });
  return state();
}
FAKE(cuEventCreate)(CudaEvent* event, unsigned) {
  *event = new CudaEventObject;
  return state();
}
FAKE(cuEventRecord)(CudaEvent event, CudaStream stream) {
  const Lock lock(mutex);
  *event = {stream, stream->begun};
  return state();
}
FAKE(cuEventSynchronize)(CudaEvent event) {
  const Lock lock(mutex);
  if (event->stream != nullptr) finish(event->stream, event->place);
  return state();
}

// ---- kernels: a module takes memory of its device

FAKE(cuModuleLoadDataEx)(CudaModuleHandle* module, const void*, unsigned, int*, void**) {
  const Lock lock(mutex);
  if (state() != 0) return state();
  if (kModuleBytes > device_bytes() - context()->used) return kCudaOutOfMemory;
  context()->used += kModuleBytes;
  *module = new CudaModuleObject{context()};
  return 0;
}
FAKE(cuModuleUnload)(CudaModuleHandle module) {
  const Lock lock(mutex);
  module->context->used -= kModuleBytes;
  delete module;
  return 0;
}
FAKE(cuModuleGetFunction)(CudaFunction* function, CudaModuleHandle module, const char* name) {
  const Lock lock(mutex);
  *function = &module->functions.try_emplace(name, CudaFunctionObject{name}).first->second;
  return state();
}
FAKE(cuFuncGetAttribute)(int* value, int, CudaFunction) {
  *value = 0;
  return 0;
}
FAKE(cuFuncSetAttribute)(CudaFunction, int, int) { return 0; }
FAKE(cuLaunchKernel)(CudaFunction function, unsigned, unsigned, unsigned, unsigned, unsigned,
                     unsigned, unsigned, CudaStream stream, void** arguments, void**) {
  const Lock lock(mutex);
  if (state() != 0) return state();
  const CudaGraphNodeObject node = node_of({function, {}, {}, 0, arguments, nullptr});
  begin(stream, [on = context(), node] { run_kernel(on, node.function, node.out, node.in); });
  return 0;
}

// ---- graphs, of kernels that follow each other

FAKE(cuGraphCreate)(CudaGraph* graph, unsigned) {
  *graph = new CudaGraphObject;
  return state();
}
FAKE(cuGraphDestroy)(CudaGraph graph) {
  delete graph;
  return 0;
}
FAKE(cuGraphAddKernelNode)(CudaGraphNode* node, CudaGraph graph, const CudaGraphNode* before,
                           size_t count, const CudaKernelNode* launch) {
  const bool follows =
      graph->nodes.empty() ? count == 0 : count == 1 && *before == graph->nodes.back().get();
  if (!follows) return kInvalidValue;
  graph->nodes.push_back(std::make_unique<CudaGraphNodeObject>(node_of(*launch)));
  *node = graph->nodes.back().get();
  return state();
}
FAKE(cuGraphInstantiateWithFlags)(CudaGraphExec* exec, CudaGraph graph, unsigned long long) {
  *exec = new CudaGraphExecObject;
  for (const auto& node : graph->nodes) (*exec)->nodes.emplace_back(node.get(), *node);
  return state();
}
FAKE(cuGraphExecKernelNodeSetParams)(CudaGraphExec exec, CudaGraphNode node,
                                     const CudaKernelNode* launch) {
  for (auto& [of, now] : exec->nodes) {
    if (of == node) now = node_of(*launch);
  }
  return state();
}
FAKE(cuGraphLaunch)(CudaGraphExec exec, CudaStream stream) {
  const Lock lock(mutex);
  for (const auto& [of, node] : exec->nodes) {
    begin(stream, [on = context(), n = node] { run_kernel(on, n.function, n.out, n.in); });
  }
  return state();
}
FAKE(cuGraphExecDestroy)(CudaGraphExec exec) {
  delete exec;
  return 0;
}

}  // namespace weft
