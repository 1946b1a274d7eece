// Transfers in chunks.
#include "runtime/cuda/cuda_staging.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>

#include "runtime/cpu/parallel.h"
#include "runtime/cuda/cuda_context.h"
#include "runtime/cuda/cuda_driver.h"
#include "runtime/cuda/cuda_functions.h"

namespace weft {
namespace {

constexpr size_t kChunk = size_t(4) << 20;
constexpr size_t kPiece = size_t(256) << 10;  // that one thread copies
constexpr size_t kDirect = size_t(64) << 10;  // the driver takes so much into its own queue

const CudaFunctions& cuda() { return CudaDriver::get().functions(); }

// One core is slower than the bus.
void copy_on_cores(std::byte* to, const std::byte* from, size_t bytes) {
  struct Copy {
    std::byte* to;
    const std::byte* from;
    size_t bytes;
  };
  const Copy copy{to, from, bytes};
  const auto body = [](const void* context, int64_t first, int64_t last) {
    const Copy& c = *static_cast<const Copy*>(context);
    const size_t begin = size_t(first) * kPiece, end = std::min(size_t(last) * kPiece, c.bytes);
    std::memcpy(c.to + begin, c.from + begin, end - begin);
  };
  parallel_for(int64_t((bytes + kPiece - 1) / kPiece), body, &copy);
}

}  // namespace

void CudaStaging::copy_in(CudaAddress to, std::span<const std::byte> from) {
  if (from.size() <= kDirect) {
    context_.check(cuda().copy_to_device(to, from.data(), from.size(), context_.stream()),
                   "a transfer to it");
    return;
  }
  const std::lock_guard lock(mutex_);
  while (!from.empty()) {
    const size_t bytes = std::min(from.size(), kChunk);
    const Chunk& chunk = next();
    copy_on_cores(chunk.memory, from.data(), bytes);
    context_.check(cuda().copy_to_device(to, chunk.memory, bytes, context_.stream()),
                   "a transfer to it");
    context_.check(cuda().event_record(chunk.event, context_.stream()), "a transfer to it");
    to += bytes;
    from = from.subspan(bytes);
  }
}

void CudaStaging::copy_out(std::span<std::byte> to, CudaAddress from) {
  const std::lock_guard lock(mutex_);
  const size_t count = (to.size() + kChunk - 1) / kChunk;
  const auto part = [&](size_t i) {
    return to.subspan(i * kChunk, std::min(kChunk, to.size() - i * kChunk));
  };
  const size_t first = at_;
  const auto chunk_of = [&](size_t i) -> Chunk& { return chunks_[(first + i) % chunks_.size()]; };
  for (size_t begun = 0, done = 0; done < count; done++) {
    for (; begun < count && begun - done < chunks_.size(); begun++) {
      const Chunk& chunk = next();
      context_.check(cuda().copy_to_host(chunk.memory, from + begun * kChunk, part(begun).size(),
                                         context_.stream()),
                     "a transfer from it");
      context_.check(cuda().event_record(chunk.event, context_.stream()), "a transfer from it");
    }
    wait(chunk_of(done));
    copy_on_cores(part(done).data(), chunk_of(done).memory, part(done).size());
  }
}

// The chunk that was used longest ago, when it is free.
CudaStaging::Chunk& CudaStaging::next() {
  Chunk& chunk = chunks_[at_];
  if (chunk.event == nullptr) {
    if (chunk.memory == nullptr) {
      void* memory = nullptr;
      context_.check(cuda().host_allocate(&memory, kChunk, 0), "to get pinned memory");
      chunk.memory = static_cast<std::byte*>(memory);
    }
    context_.check(cuda().event_create(&chunk.event, kEventWithoutTiming), "to make an event");
  } else {
    wait(chunk);
  }
  at_ = (at_ + 1) % chunks_.size();
  return chunk;
}

void CudaStaging::wait(const Chunk& chunk) {
  context_.check(cuda().event_synchronize(chunk.event), "a transfer");
}

}  // namespace weft
