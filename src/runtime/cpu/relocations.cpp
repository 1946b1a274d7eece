// One table per machine: how an address is computed, and which bits of the place it goes into.
#include "runtime/cpu/relocations.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "base/error.h"

namespace weft {
namespace {

// With S the symbol, A the addend and P the place.
enum class Value : uint8_t {
  kNone,
  kAbsolute,  // S + A
  kRelative,  // S + A - P
  kPages,     // Page(S + A) - Page(P), in pages of 4 KiB
};

enum class Field : uint8_t {
  kWord64,
  kSigned32,    // a word of 32 bits that is sign-extended
  kUnsigned32,  // that is zero-extended
  kBranch26,    // AArch64 instructions, by the bits of their immediate
  kBranch19,
  kBranch14,
  kAddress21,
  kLow12,   // bits 0..11 of the value, in units of 1 << shift
  kMove16,  // bits shift..shift+15 of the value
};

struct Kind {
  uint32_t type;
  Value value;
  Field field;
  Needs needs = Needs::kNothing;
  int shift = 0;
};

constexpr Kind kX86Kinds[] = {
    {1, Value::kAbsolute, Field::kWord64},                   // 64
    {2, Value::kRelative, Field::kSigned32},                 // PC32
    {4, Value::kRelative, Field::kSigned32, Needs::kStub},   // PLT32
    {9, Value::kRelative, Field::kSigned32, Needs::kWord},   // GOTPCREL
    {10, Value::kAbsolute, Field::kUnsigned32},              // 32
    {11, Value::kAbsolute, Field::kSigned32},                // 32S
    {24, Value::kRelative, Field::kWord64},                  // PC64
    {41, Value::kRelative, Field::kSigned32, Needs::kWord},  // GOTPCRELX
    {42, Value::kRelative, Field::kSigned32, Needs::kWord},  // REX_GOTPCRELX
};

constexpr Kind kArmKinds[] = {
    {257, Value::kAbsolute, Field::kWord64},                       // ABS64
    {258, Value::kAbsolute, Field::kUnsigned32},                   // ABS32
    {260, Value::kRelative, Field::kWord64},                       // PREL64
    {261, Value::kRelative, Field::kSigned32},                     // PREL32
    {263, Value::kAbsolute, Field::kMove16, Needs::kNothing, 0},   // MOVW_UABS_G0
    {264, Value::kAbsolute, Field::kMove16, Needs::kNothing, 0},   // MOVW_UABS_G0_NC
    {265, Value::kAbsolute, Field::kMove16, Needs::kNothing, 16},  // MOVW_UABS_G1
    {266, Value::kAbsolute, Field::kMove16, Needs::kNothing, 16},  // MOVW_UABS_G1_NC
    {267, Value::kAbsolute, Field::kMove16, Needs::kNothing, 32},  // MOVW_UABS_G2
    {268, Value::kAbsolute, Field::kMove16, Needs::kNothing, 32},  // MOVW_UABS_G2_NC
    {269, Value::kAbsolute, Field::kMove16, Needs::kNothing, 48},  // MOVW_UABS_G3
    {274, Value::kRelative, Field::kAddress21},                    // ADR_PREL_LO21
    {275, Value::kPages, Field::kAddress21},                       // ADR_PREL_PG_HI21
    {276, Value::kPages, Field::kAddress21},                       // ADR_PREL_PG_HI21_NC
    {277, Value::kAbsolute, Field::kLow12, Needs::kNothing, 0},    // ADD_ABS_LO12_NC
    {278, Value::kAbsolute, Field::kLow12, Needs::kNothing, 0},    // LDST8_ABS_LO12_NC
    {279, Value::kRelative, Field::kBranch14},                     // TSTBR14
    {280, Value::kRelative, Field::kBranch19},                     // CONDBR19
    {282, Value::kRelative, Field::kBranch26, Needs::kStub},       // JUMP26
    {283, Value::kRelative, Field::kBranch26, Needs::kStub},       // CALL26
    {284, Value::kAbsolute, Field::kLow12, Needs::kNothing, 1},    // LDST16_ABS_LO12_NC
    {285, Value::kAbsolute, Field::kLow12, Needs::kNothing, 2},    // LDST32_ABS_LO12_NC
    {286, Value::kAbsolute, Field::kLow12, Needs::kNothing, 3},    // LDST64_ABS_LO12_NC
    {299, Value::kAbsolute, Field::kLow12, Needs::kNothing, 4},    // LDST128_ABS_LO12_NC
    {311, Value::kPages, Field::kAddress21, Needs::kWord},         // ADR_GOT_PAGE
    {312, Value::kAbsolute, Field::kLow12, Needs::kWord, 3},       // LD64_GOT_LO12_NC
};

const Kind& kind_of(Machine machine, uint32_t type) {
  static constexpr Kind kNothing{0, Value::kNone, Field::kWord64};
  if (type == 0 || (machine == Machine::kArm && type == 256)) return kNothing;
  const std::span<const Kind> kinds = machine == Machine::kX86 ? std::span<const Kind>(kX86Kinds)
                                                               : std::span<const Kind>(kArmKinds);
  for (const Kind& kind : kinds) {
    if (kind.type == type) return kind;
  }
  throw CompileError(fmt::format("[object] a relocation of type {} is not supported", type));
}

bool fits_signed(uint64_t value, int bits) {
  const int64_t shifted = int64_t(value) >> (bits - 1);
  return shifted == 0 || shifted == -1;
}

// `bits` bits of the immediate of an instruction, from bit `from`.
void put_bits(std::byte* place, uint64_t value, int bits, int from) {
  uint32_t code = 0;
  std::memcpy(&code, place, sizeof code);
  const uint32_t mask = (uint32_t(1) << bits) - 1;
  code = (code & ~(mask << from)) | ((uint32_t(value) & mask) << from);
  std::memcpy(place, &code, sizeof code);
}

bool put_branch(std::byte* place, uint64_t value, int bits, int from) {
  if (value % 4 != 0 || !fits_signed(value, bits + 2)) return false;
  put_bits(place, value >> 2, bits, from);
  return true;
}

// False when it does not fit.
bool put(const Kind& kind, std::byte* place, uint64_t value) {
  switch (kind.field) {
    case Field::kWord64: std::memcpy(place, &value, 8); return true;
    case Field::kSigned32: std::memcpy(place, &value, 4); return fits_signed(value, 32);
    case Field::kUnsigned32: std::memcpy(place, &value, 4); return value >> 32 == 0;
    case Field::kBranch26: return put_branch(place, value, 26, 0);
    case Field::kBranch19: return put_branch(place, value, 19, 5);
    case Field::kBranch14: return put_branch(place, value, 14, 5);
    case Field::kAddress21:
      if (!fits_signed(value, 21)) return false;
      put_bits(place, value, 2, 29);
      put_bits(place, value >> 2, 19, 5);
      return true;
    case Field::kLow12: {
      const uint64_t low = value & 0xfff;
      if (low % (uint64_t(1) << kind.shift) != 0) return false;
      put_bits(place, low >> kind.shift, 12 - kind.shift, 10);
      return true;
    }
    case Field::kMove16: put_bits(place, value >> kind.shift, 16, 5); return true;
  }
  return false;
}

}  // namespace

Needs needs_of(Machine machine, const Relocation& relocation) {
  return kind_of(machine, relocation.type).needs;
}

size_t width_of(Machine machine, const Relocation& relocation) {
  const Kind& kind = kind_of(machine, relocation.type);
  if (kind.value == Value::kNone) return 0;
  return kind.field == Field::kWord64 ? 8 : 4;
}

void relocate(Machine machine, const Relocation& relocation, std::byte* place, uint64_t at,
              uint64_t symbol) {
  const Kind& kind = kind_of(machine, relocation.type);
  uint64_t value = symbol + uint64_t(relocation.addend);
  switch (kind.value) {
    case Value::kNone: return;
    case Value::kAbsolute: break;
    case Value::kRelative: value -= at; break;
    case Value::kPages:
      value = uint64_t(int64_t((value & ~uint64_t(0xfff)) - (at & ~uint64_t(0xfff))) >> 12);
      break;
  }
  if (!put(kind, place, value)) {
    throw CompileError(
        fmt::format("[object] a relocation of type {} is out of reach", relocation.type));
  }
}

void write_stub(Machine machine, std::byte* place, uint64_t target) {
  // x86-64: jmp *0(%rip), then the address. AArch64: ldr x16, 8; br x16, then the address.
  constexpr uint8_t x86[8] = {0xff, 0x25, 2, 0, 0, 0, 0x90, 0x90};
  constexpr uint32_t arm[2] = {0x58000050, 0xd61f0200};
  std::memcpy(place, machine == Machine::kX86 ? static_cast<const void*>(x86) : arm, 8);
  std::memcpy(place + 8, &target, 8);
}

}  // namespace weft
