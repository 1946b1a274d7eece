// A block of 64 x 64 elements has rows of 128 bytes, whose eight parts of 16 bytes are exchanged by
// the row's number (bits 4 to 6 of an address by bits 7 to 9), so that neither way to read it meets
// a bank twice. Copies write it so, and both kinds of products read it so: nothing else does.
#include "render/cuda_tensor.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "ir/dtype.h"
#include "ir/node.h"
#include "render/gpu_c.h"

namespace weft {
namespace {

constexpr std::string_view kFunctions =
    R"(static __device__ __forceinline__ unsigned local_at(const void* p) {
  unsigned a; asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(a) : "l"(p)); return a;
}
static __device__ __forceinline__ unsigned exchanged(unsigned a) { return a ^ (a >> 3 & 0x70); }
static __device__ __forceinline__ void fetch(void* to, const void* from, bool gate) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" :: "r"(exchanged(local_at(to))), "l"(from), "r"(gate ? 16 : 0) : "memory");
}
// Only copies and products touch this memory: other reads may pass it.
template <class T> static __device__ __forceinline__ void put(void* to, const T& value) {
  uint4 bits;
  memcpy(&bits, &value, 16);
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" :: "r"(exchanged(local_at(to))), "r"(bits.x), "r"(bits.y), "r"(bits.z), "r"(bits.w));
}
static __device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int left> static __device__ __forceinline__ void wait_products() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(left) : "memory");
#endif
}
template <int left> static __device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;" :: "n"(left) : "memory");
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// A tile in local memory: 8 rows of 128 bytes are 1024 apart, blocks 8192.
static __device__ __forceinline__ unsigned long long tile_at(unsigned a) {
  return (a & 0x3ffff) >> 4 | 512ull << 16 | 64ull << 32 | 1ull << 62;
}
#else
template <bool turned> static __device__ __forceinline__ void matrices(unsigned (&r)[4], unsigned a) {
  if (turned) asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(exchanged(a)) : "memory");
  else asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(exchanged(a)) : "memory");
}
#endif
template <class T> static __device__ __forceinline__ void done(T& sums) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int k = 0; k < sizeof(T) / 4; k++) asm volatile("" : "+f"(sums.v[k]) :: "memory");
#endif
}
)";

// Boxes come with the same exchange. A group of them completes a phase of the next of n signals,
// where thread 0 says how many bytes are to arrive.
constexpr std::string_view kBoxFunctions =
    R"(struct __align__(64) BoxedArray { char map[128]; };
template <unsigned n> struct Signals {
  unsigned first, begun, done;
  __device__ __forceinline__ explicit Signals(unsigned long long* p) : first(local_at(p)), begun(0), done(0) {
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
      for (unsigned k = 0; k < n; k++) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(first + k * 8) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
  }
  __device__ __forceinline__ unsigned next() const { return first + begun % n * 8; }
  __device__ __forceinline__ void commit(bool is_mine, unsigned bytes) {
    if (is_mine) asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" :: "r"(next()), "r"(bytes) : "memory");
    begun++;
  }
  __device__ __forceinline__ void wait(unsigned left) {
    for (; done + left < begun; done++) {
      unsigned is_done = 0;
      while (!is_done) asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(is_done) : "r"(first + done % n * 8), "r"(done / n & 1) : "memory");
    }
  }
};
static __device__ __forceinline__ void fetch_box(void* to, const BoxedArray& from, unsigned signal, int a, int b) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" :: "r"(local_at(to)), "l"(&from), "r"(signal), "r"(a), "r"(b) : "memory");
}
static __device__ __forceinline__ void fetch_box(void* to, const BoxedArray& from, unsigned signal, int a, int b, int c) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" :: "r"(local_at(to)), "l"(&from), "r"(signal), "r"(a), "r"(b), "r"(c) : "memory");
}
static __device__ __forceinline__ void fetch_box(void* to, const BoxedArray& from, unsigned signal, int a, int b, int c, int d) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" :: "r"(local_at(to)), "l"(&from), "r"(signal), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
static __device__ __forceinline__ void fetch_box(void* to, const BoxedArray& from, unsigned signal, int a, int b, int c, int d, int e) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];" :: "r"(local_at(to)), "l"(&from), "r"(signal), "r"(a), "r"(b), "r"(c), "r"(d), "r"(e) : "memory");
}
)";

// The places of a wgmma's sums, and the sums themselves.
std::string places(int64_t count) {
  std::string out;
  for (int64_t i = 0; i < count; i++) out += fmt::format("{}%{}", i == 0 ? "" : ", ", i);
  return out;
}
std::string operands(int64_t count, char kind) {
  std::string out;
  for (int64_t i = 0; i < count; i++)
    out += fmt::format("{}\"{}f\"(d.v[{}])", i == 0 ? "" : ", ", kind, i);
  return out;
}

// $T sums, $M memory, $F the name of the factors' dtype, $N columns, $A and $B whether transposed,
// $S the places and $O the operands of the sums, $a and $b the places of the factors.
constexpr std::string_view kProduct =
    R"(static __device__ __forceinline__ $T $W($pconst $M* a, const $M* b, int thread) {
$z  const unsigned at_a = local_at(a), at_b = local_at(b);
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
$f#pragma unroll
  for (int k = $k; k < 4; k++) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n$Nk16.f32.$F.$F {$S}, %$a, %$b, 1, 1, 1, $A, $B;" : $O : "l"(tile_at(at_a + k * ($A ? 2048 : 32))), "l"(tile_at(at_b + k * ($B ? 2048 : 32))));
  }
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
  const int warp = thread / 32, t = thread % 32;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    unsigned x[4], y[4];
    matrices<$A>(x, $A ? at_a + (k * 16 + t / 16 * 8 + t % 8) * 128 + (warp * 16 + t / 8 % 2 * 8) * 2
                     : at_a + (warp * 16 + t % 16) * 128 + (k * 16 + t / 16 * 8) * 2);
#pragma unroll
    for (int n = 0; n < $N / 16; n++) {
      matrices<$B>(y, $B ? at_b + n / 4 * 8192 + (k * 16 + t % 16) * 128 + (n % 4 * 16 + t / 16 * 8) * 2
                       : at_b + (n * 16 + t / 16 * 8 + t % 8) * 128 + (k * 16 + t / 8 % 2 * 8) * 2);
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float* s = d.v + n * 8 + h * 4;
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.$F.$F.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[h * 2]), "r"(y[h * 2 + 1]));
      }
    }
  }
#endif
  return d;
}
)";

// What a product to be added to nothing begins with: sums without a value, then the first product.
constexpr std::string_view kNoSums = R"(  $T d;
#ifndef __CUDA_ARCH_FEAT_SM90_ALL
  for (int k = 0; k < $N / 2; k++) d.v[k] = 0.0f;
#endif
)";
constexpr std::string_view kFirstProduct =
    R"(  asm volatile("wgmma.mma_async.sync.aligned.m64n$Nk16.f32.$F.$F {$S}, %$a, %$b, 0, 1, 1, $A, $B;" : $o : "l"(tile_at(at_a)), "l"(tile_at(at_b)));
)";

// $P is the first factor as a thread holds it, $w the places of four words of it and $d that of the
// other factor. Registers are written before the fence.
constexpr std::string_view kHeldProduct =
    R"(static __device__ __forceinline__ $T $W($T d, const $P& a, const $M* b, int thread) {
  unsigned x[16];
#pragma unroll
  for (int k = 0; k < 16; k++) x[k] = a.v[2 * k] | (unsigned)a.v[2 * k + 1] << 16;
  const unsigned at_b = local_at(b);
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#pragma unroll
  for (int k = 0; k < 16; k++) asm volatile("" : "+r"(x[k]) :: "memory");
#pragma unroll
  for (int k = 0; k < $N / 2; k++) asm volatile("" : "+f"(d.v[k]) :: "memory");
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int k = 0; k < 4; k++) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n$Nk16.f32.$F.$F {$S}, {$w}, %$d, 1, 1, 1, $B;" : $O : "r"(x[k * 4]), "r"(x[k * 4 + 1]), "r"(x[k * 4 + 2]), "r"(x[k * 4 + 3]), "l"(tile_at(at_b + k * ($B ? 2048 : 32))));
  }
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
  const int t = thread % 32;
#pragma unroll
  for (int k = 0; k < 4; k++) {
#pragma unroll
    for (int n = 0; n < $N / 16; n++) {
      unsigned y[4];
      matrices<$B>(y, $B ? at_b + n / 4 * 8192 + (k * 16 + t % 16) * 128 + (n % 4 * 16 + t / 16 * 8) * 2
                       : at_b + (n * 16 + t / 16 * 8 + t % 8) * 128 + (k * 16 + t / 8 % 2 * 8) * 2);
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float* s = d.v + n * 8 + h * 4;
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.$F.$F.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]) : "r"(x[k * 4]), "r"(x[k * 4 + 1]), "r"(x[k * 4 + 2]), "r"(x[k * 4 + 3]), "r"(y[h * 2]), "r"(y[h * 2 + 1]));
      }
    }
  }
#endif
  return d;
}
)";

std::string function_of(UOp wmma, std::string_view name, std::string_view sums_type,
                        std::string_view memory_type, std::string_view first_type) {
  const int64_t columns = wmma.ints()[0], sums = columns / 2;
  const bool is_bfloat = wmma.src(1).dtype().element() == dtypes::bfloat16;
  const bool is_first = wmma.src(0).is_const();
  std::string text(wmma.src(1).dtype().is_pointer() ? kProduct : kHeldProduct);
  const auto put_in = [&](std::string_view mark, std::string_view what) {
    if (const size_t at = text.find(mark); at != std::string::npos) text.replace(at, 2, what);
  };
  put_in("$p", is_first ? "" : "$T d, ");
  put_in("$z", is_first ? kNoSums : "");
  put_in("$f", is_first ? kFirstProduct : "");
  put_in("$k", is_first ? "1" : "0");
  std::string out;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] != '$') {
      out += text[i];
      continue;
    }
    switch (text[++i]) {
      case 'T': out += sums_type; break;
      case 'P': out += first_type; break;
      case 'w': out += fmt::format("%{}, %{}, %{}, %{}", sums, sums + 1, sums + 2, sums + 3); break;
      case 'd': out += fmt::format("{}", sums + 4); break;
      case 'M': out += memory_type; break;
      case 'W': out += name; break;
      case 'F': out += is_bfloat ? "bf16" : "f16"; break;
      case 'N': out += fmt::format("{}", columns); break;
      case 'A': out += fmt::format("{}", wmma.ints()[1]); break;
      case 'B': out += fmt::format("{}", wmma.ints()[2]); break;
      case 'S': out += places(sums); break;
      case 'O': out += operands(sums, '+'); break;
      case 'o': out += operands(sums, '='); break;
      case 'a': out += fmt::format("{}", sums); break;
      default: out += fmt::format("{}", sums + 1);
    }
  }
  return out;
}

}  // namespace

constinit const GpuTensorText kCudaTensor{
    .functions = kFunctions,
    .wait_products = "wait_products<$n>();",
    .fetch = "fetch($p, $f, $g);",
    .put = "put($p, $v);",
    .commit = "commit();",
    .wait = "wait<$n>();",
    .box_functions = kBoxFunctions,
    .boxed_array = "const __grid_constant__ BoxedArray $N",
    .begin_boxes = "  __shared__ unsigned long long signal[$n];\n  Signals<$n> signals(signal);\n",
    .fetch_box = "if ($t == 0 && $g) fetch_box($p, $m, signals.next(), $L);",
    .commit_boxes = "signals.commit($t == 0, $B);",
    .wait_boxes = "signals.wait($n);",
    .function = function_of,
    .done = "done($v);",
};

}  // namespace weft
