// Object code of both compilers runs where it is loaded, with constants, data and calls of its own.
#include <cstdint>
#include <fstream>
#include <ios>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "runtime/cpu/compile_c.h"
#include "runtime/cpu/llvm_library.h"
#include "runtime/cpu/object_code.h"
#include "tests/unit/compile_helpers.h"
#include "tests/unit/tensor_helpers.h"

namespace weft {
namespace {

TEST(ObjectCode, of_c) {
  if (!has_c_compiler()) GTEST_SKIP() << "no C compiler";
  test::expect_doubles(compile_c(test::kDoubleInC, "twice"));
}

TEST(ObjectCode, of_llvm) {
  if (!has_llvm()) GTEST_SKIP() << "no LLVM";
  test::expect_doubles(compile_llvm(test::kDoubleInLlvm, "twice"));
}

// Tables of constants, of pointers to them (.data.rel.ro), zeroed memory, a call inside and calls
// outside: each needs other relocations.
TEST(ObjectCode, of_c_with_every_kind_of_section) {
  if (!has_c_compiler()) GTEST_SKIP() << "no C compiler";
  const char* source = R"(
void* memcpy(void*, const void*, unsigned long);
static const long table[4] = {1, 2, 3, 5};
static const long other[4] = {10, 20, 30, 50};
static const long* const tables[2] = {table, other};
long seen[512];
long steps = 7;
__attribute__((noinline)) long helper(long a) { return a * steps + tables[a & 1][a & 3]; }
long kernel(long n) {
  char copy[64];
  memcpy(copy, table, n);
  seen[n]++;
  return helper(n) + seen[n] + copy[8] + (long)__builtin_fma((double)n, 2.0, 1.0);
}
)";
  const ObjectCode code(compile_c(source, "sections"));
  auto* kernel = reinterpret_cast<long (*)(long)>(code.function("kernel"));
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel(32), 32 * 7 + 1 + 1 + 2 + 65);
  EXPECT_EQ(kernel(32), 32 * 7 + 1 + 2 + 2 + 65);
  EXPECT_EQ(kernel(33), 33 * 7 + 20 + 1 + 2 + 67);
  EXPECT_EQ(code.function("nothing"), nullptr);
  EXPECT_EQ(code.function("table"), nullptr);
}

TEST(ObjectCode, that_calls_something_else_is_refused) {
  if (!has_c_compiler()) GTEST_SKIP() << "no C compiler";
  const auto object =
      compile_c("int system(const char*); int f(void) { return system(\"x\"); }", "f");
  EXPECT_EQ(test::thrown<CompileError>([&] { const ObjectCode code(object); }),
            "[object] the object code calls system, which it may not");
}

// No page is writable and executable.
TEST(ObjectCode, is_never_writable) {
  if (!has_c_compiler()) GTEST_SKIP() << "no C compiler";
  const ObjectCode code(compile_c("int data = 3; int f(void) { return data++; }", "f"));
  const auto address = uintptr_t(code.function("f"));
  std::ifstream maps("/proc/self/maps");
  ASSERT_TRUE(maps);
  bool is_found = false;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    uintptr_t from = 0, to = 0;
    char dash = 0;
    std::string mode;
    if (!(fields >> std::hex >> from >> dash >> to >> mode)) continue;
    EXPECT_EQ(mode.find("wx"), std::string::npos) << line;
    if (address < from || address >= to) continue;
    is_found = true;
    EXPECT_EQ(mode, "r-xp");
  }
  EXPECT_TRUE(is_found);
}

}  // namespace
}  // namespace weft
