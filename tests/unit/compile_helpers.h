// Small kernels as text, and running them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/cpu/object_code.h"

namespace weft::test {

using KernelFunction = void(void* const*, const int64_t*, void*, int64_t, int64_t);

// buffers[0][i] = buffers[1][i] * 2 + variables[0], for i in [first, last)
inline constexpr const char* kDoubleInC = R"(
void twice(void* const* buffers, const long* variables, void* scratch, long first, long last) {
  float* out = buffers[0];
  const float* in = buffers[1];
  for (long i = first; i < last; i++) out[i] = in[i] * 2 + (float)variables[0];
}
)";

inline constexpr const char* kDoubleInLlvm = R"(
define void @twice(ptr %buffers, ptr %variables, ptr %scratch, i64 %first, i64 %last) {
entry:
  %out = load ptr, ptr %buffers
  %in_at = getelementptr ptr, ptr %buffers, i64 1
  %in = load ptr, ptr %in_at
  %v = load i64, ptr %variables
  %more = sitofp i64 %v to float
  %any = icmp slt i64 %first, %last
  br i1 %any, label %loop, label %done
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %from = getelementptr float, ptr %in, i64 %i
  %x = load float, ptr %from
  %twice = fmul float %x, 2.0
  %sum = fadd float %twice, %more
  %to = getelementptr float, ptr %out, i64 %i
  store float %sum, ptr %to
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %last
  br i1 %again, label %loop, label %done
done:
  ret void
}
)";

// The object defines `twice`, and it does what it should.
inline void expect_doubles(std::span<const std::byte> object) {
  const ObjectCode code(object);
  auto* twice = reinterpret_cast<KernelFunction*>(code.function("twice"));
  ASSERT_NE(twice, nullptr);
  std::vector<float> in{1, 2, 3, 4, 5}, out(5, -1);
  void* const buffers[] = {out.data(), in.data()};
  const int64_t variables[] = {10};
  twice(buffers, variables, nullptr, 1, 4);
  EXPECT_EQ(out, (std::vector<float>{-1, 14, 16, 18, -1}));
}

}  // namespace weft::test
