// Object code that is damaged is refused with a typed error, or is still legal: loading it never
// reads or writes where it may not.
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <elf.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "runtime/cpu/compile_c.h"
#include "runtime/cpu/llvm_library.h"
#include "runtime/cpu/object_code.h"
#include "tests/unit/compile_helpers.h"
#include "tests/unit/tensor_helpers.h"

namespace weft {
namespace {

std::vector<std::byte> any_object() {
  if (has_llvm()) return compile_llvm(test::kDoubleInLlvm, "twice");
  if (has_c_compiler()) return compile_c(test::kDoubleInC, "twice");
  return {};
}

void load(const std::vector<std::byte>& object) {
  try {
    const ObjectCode code(object);
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()), "");
  }
}

TEST(DamagedObjects, that_end_early) {
  const std::vector<std::byte> whole = any_object();
  if (whole.empty()) GTEST_SKIP() << "no compiler";
  for (size_t size = 0; size < whole.size(); size++) {
    const std::vector<std::byte> part(whole.begin(), whole.begin() + ptrdiff_t(size));
    load(part);
    if (size < sizeof(Elf64_Ehdr)) {
      EXPECT_THROW(ObjectCode code(part), CompileError);
    }
  }
}

TEST(DamagedObjects, with_bytes_changed) {
  const std::vector<std::byte> whole = any_object();
  if (whole.empty()) GTEST_SKIP() << "no compiler";
  std::mt19937 random(5);
  for (int round = 0; round < 20000; round++) {
    std::vector<std::byte> object = whole;
    const size_t changes = 1 + random() % 4;
    for (size_t i = 0; i < changes; i++) {
      object[random() % object.size()] = std::byte(random() % 4 == 0 ? 0xff : random());
    }
    load(object);
  }
}

TEST(DamagedObjects, say_what_is_wrong) {
  std::vector<std::byte> object = any_object();
  if (object.empty()) GTEST_SKIP() << "no compiler";
  const auto message = [&] {
    return test::thrown<CompileError>([&] { const ObjectCode code(object); });
  };
  object[offsetof(Elf64_Ehdr, e_machine)] ^= std::byte(1);
  EXPECT_EQ(message(), "[object] the object code is damaged: it is for another machine");
  object[0] = std::byte(0);
  EXPECT_EQ(message(), "[object] the object code is damaged: it is no ELF file");
  object.resize(10);
  EXPECT_EQ(message(), "[object] the object code is damaged: it ends too early");
}

}  // namespace
}  // namespace weft
