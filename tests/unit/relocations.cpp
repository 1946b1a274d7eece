// Addresses in code, bit by bit: of AArch64 too, which the tests may not run on.
#include "runtime/cpu/relocations.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>

#include "base/error.h"

namespace weft {
namespace {

constexpr uint64_t kAt = 0x7f0000001000;

template <class Word>
Word relocated(Machine machine, uint32_t type, Word before, uint64_t symbol, int64_t addend = 0) {
  std::array<std::byte, 8> place{};
  std::memcpy(place.data(), &before, sizeof before);
  const Relocation relocation{type, addend};
  EXPECT_EQ(width_of(machine, relocation), sizeof before);
  relocate(machine, relocation, place.data(), kAt, symbol);
  Word after{};
  std::memcpy(&after, place.data(), sizeof after);
  return after;
}

TEST(Relocations, of_x86) {
  constexpr Machine machine = Machine::kX86;
  EXPECT_EQ(relocated<uint64_t>(machine, 1, 0, kAt + 5, 3), kAt + 8);           // 64
  EXPECT_EQ(relocated<uint32_t>(machine, 2, 0, kAt + 0x100, -4), 0xfcU);        // PC32
  EXPECT_EQ(relocated<uint32_t>(machine, 4, 0, kAt - 0x100, -4), 0xfffffefcU);  // PLT32
  EXPECT_EQ(relocated<uint32_t>(machine, 10, 0, 0xf0000000), 0xf0000000U);      // 32
  EXPECT_EQ(relocated<uint64_t>(machine, 24, 0, kAt - 1), UINT64_MAX);          // PC64
  EXPECT_THROW(relocated<uint32_t>(machine, 2, 0, kAt + 0x80000000), CompileError);
  EXPECT_THROW(relocated<uint32_t>(machine, 11, 0, 0xf0000000), CompileError);  // 32S
  EXPECT_THROW(relocated<uint32_t>(machine, 99, 0, 0), CompileError);
  EXPECT_EQ(needs_of(machine, {42, 0}), Needs::kWord);
  EXPECT_EQ(needs_of(machine, {4, 0}), Needs::kStub);
  EXPECT_EQ(width_of(machine, {0, 0}), 0U);
}

TEST(Relocations, of_aarch64) {
  constexpr Machine machine = Machine::kArm;
  // bl: the word offset in 26 bits.
  EXPECT_EQ(relocated<uint32_t>(machine, 283, 0x94000000, kAt + 0x1000), 0x94000400U);
  EXPECT_EQ(relocated<uint32_t>(machine, 283, 0x94000000, kAt - 4), 0x97ffffffU);
  EXPECT_THROW(relocated<uint32_t>(machine, 283, 0x94000000, kAt + (1 << 27)), CompileError);
  EXPECT_THROW(relocated<uint32_t>(machine, 283, 0x94000000, kAt + 2), CompileError);
  // adrp x0: pages, low two bits at 29, the others at 5.
  EXPECT_EQ(relocated<uint32_t>(machine, 275, 0x90000000, kAt + 0x1234), 0xb0000000U);
  EXPECT_EQ(relocated<uint32_t>(machine, 275, 0x90000000, kAt + 0x5000), 0xb0000020U);
  EXPECT_EQ(relocated<uint32_t>(machine, 275, 0x90000000, kAt - 1), 0xf0ffffe0U);
  // add x0, x0, #low12, and loads in units of their size.
  EXPECT_EQ(relocated<uint32_t>(machine, 277, 0x91000000, kAt + 0x234), 0x9108d000U);
  EXPECT_EQ(relocated<uint32_t>(machine, 286, 0xf9400000, kAt + 0x238), 0xf9411c00U);
  EXPECT_EQ(relocated<uint32_t>(machine, 299, 0x3dc00000, kAt + 0x230), 0x3dc08c00U);
  EXPECT_THROW(relocated<uint32_t>(machine, 286, 0xf9400000, kAt + 0x234), CompileError);
  // b.ne
  EXPECT_EQ(relocated<uint32_t>(machine, 280, 0x54000001, kAt + 8), 0x54000041U);
  // movz x0, #..., lsl 16
  EXPECT_EQ(relocated<uint32_t>(machine, 266, 0xd2a00000, 0x12345678), 0xd2a24680U);
  EXPECT_EQ(needs_of(machine, {311, 0}), Needs::kWord);
  EXPECT_EQ(needs_of(machine, {282, 0}), Needs::kStub);
}

}  // namespace
}  // namespace weft
