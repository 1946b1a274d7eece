// A GPU, and what a process has on it: a stream, memory, and how it ended where a kernel failed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/caching_allocator.h"
#include "runtime/cuda/cuda_functions.h"
#include "runtime/cuda/cuda_staging.h"

namespace weft {

class CudaGpu;
class CudaContext;

// What Buffer::memory() points to.
struct CudaMemory {
  CudaAddress address;
  CudaContext* context;
};

// One life of the primary context of a GPU. All work is done in its order, on one stream, and is
// only begun by the functions here unless they say that they wait. They throw DeviceError. After an
// error of the kind that a context does not survive, it is lost: all that was in it is, too.
// Thread-safe.
class CudaContext {
 public:
  // Makes it the current one of the thread for as long as it lives.
  class Scope {
   public:
    explicit Scope(const CudaContext& context);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    bool is_pushed_ = false;
  };

  explicit CudaContext(CudaGpu& gpu);
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;
  ~CudaContext() = delete;  // memory of one that is lost may live as long as the process

  CudaGpu& gpu() const { return gpu_; }
  CudaContextHandle handle() const { return handle_; }
  CudaStream stream() const { return stream_; }
  CachingAllocator& allocator() { return allocator_; }

  bool is_lost() const { return is_lost_.load(std::memory_order_acquire); }
  std::string why_lost() const;

  // Throws where the result is an error, after `what` was tried.
  void check(CudaResult result, std::string_view what) {
    if (result != 0) fail(result, what);
  }
  [[noreturn]] void fail(CudaResult result, std::string_view what);

  // Calls it, and again where there was no memory, after what is kept has gone back.
  template <class Call>
  CudaResult with_memory(Call&& call) {
    const CudaResult result = call();
    if (result != kCudaOutOfMemory) return result;
    allocator_.release_kept();
    return call();
  }

  // A kernel was started; the name lives for ever. Where one fails, messages name the last ones.
  void started(const std::string& kernel);

  void copy_in(CudaAddress to, std::span<const std::byte> from);    // `from` is free afterwards
  void copy_out(std::span<std::byte> to, CudaAddress from);         // waits
  void copy(CudaAddress to, const CudaMemory& from, size_t bytes);  // also from another GPU
  void synchronize();                                               // waits

 private:
  class Memory : public MemorySource {
   public:
    explicit Memory(CudaContext& context) : context_(context) {}
    void* allocate(size_t bytes) override;
    void free(void* memory, size_t bytes) noexcept override;
    std::string state() const override;

   private:
    CudaContext& context_;
  };

  // Work of one stream waits for what the other has begun.
  void wait_for(CudaContext& other);
  std::string last_kernels() const;

  static constexpr size_t kNames = 4;

  CudaGpu& gpu_;
  CudaContextHandle handle_ = nullptr;
  CudaStream stream_ = nullptr;
  CudaEvent event_ = nullptr;  // for wait_for
  Memory memory_;
  CachingAllocator allocator_;
  CudaStaging staging_;
  std::array<std::atomic<const std::string*>, kNames> names_{};
  std::atomic<uint64_t> started_ = 0;  // since the last time that all was done
  std::atomic<bool> is_lost_ = false;
  mutable std::mutex mutex_;  // of why_lost_, peers_ and event_
  std::string why_lost_;
  std::vector<CudaContext*> peers_;  // that were looked at
};

class CudaGpu {
 public:
  // Those that the driver counts; none where it is missing.
  static const std::vector<CudaGpu*>& all();

  CudaGpu(const CudaGpu&) = delete;
  CudaGpu& operator=(const CudaGpu&) = delete;

  const std::string& name() const { return name_; }  // CUDA, CUDA:1: for messages
  CudaOrdinal ordinal() const { return ordinal_; }
  const std::string& product() const { return product_; }
  int architecture() const { return architecture_; }  // 90: of compute capability 9.0
  int64_t bytes() const { return bytes_; }
  int multiprocessors() const { return multiprocessors_; }
  size_t most_shared_bytes() const { return size_t(most_shared_bytes_); }  // that a group can have

  // That which is alive. One that was lost makes place for the next, where the driver allows.
  // Throws DeviceError: there is none, or the process is a fork.
  CudaContext& context();
  // The memory in that context; throws DeviceError when it was lost with another.
  const CudaMemory& memory(const void* of_buffer);
  // Ends without an error: for destructors.
  void free(void* of_buffer, size_t bytes) noexcept;

 private:
  explicit CudaGpu(int number);
  CudaContext& make_context();

  std::string name_, product_;
  CudaOrdinal ordinal_ = 0;
  int architecture_ = 0, multiprocessors_ = 0, most_shared_bytes_ = 0;
  int64_t bytes_ = 0;
  std::mutex mutex_;
  std::string dead_;                // what to say when there is no next context
  std::vector<CudaContext*> lost_;  // that memory names still
  std::atomic<CudaContext*> context_ = nullptr;
};

}  // namespace weft
