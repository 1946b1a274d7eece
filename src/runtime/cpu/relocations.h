// Relocations of ELF64 objects for x86-64 and AArch64: addresses written into code.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {

enum class Machine : uint16_t { kX86 = 62, kArm = 183 };  // as ELF numbers them

// What a relocation needs beside its symbol: a word that holds the symbol's address, or a stub near
// by that jumps to it, because code that calls or loads reaches 2 GiB (128 MiB on AArch64) only.
enum class Needs : uint8_t { kNothing, kWord, kStub };

struct Relocation {
  uint32_t type;
  int64_t addend;
};

// Throws CompileError for a type that is not known. A stub is needed for what lies outside of the
// object only.
Needs needs_of(Machine machine, const Relocation& relocation);

// How many bytes it changes.
size_t width_of(Machine machine, const Relocation& relocation);

// Writes to `place` (width_of bytes) what it holds when the code there runs at address `at` and its
// symbol (or the word or stub that stands for it) is at address `symbol`. Throws CompileError when
// that is out of reach.
void relocate(Machine machine, const Relocation& relocation, std::byte* place, uint64_t at,
              uint64_t symbol);

// A stub: code of kStubBytes that jumps to `target`, wherever it runs.
constexpr size_t kStubBytes = 16;
void write_stub(Machine machine, std::byte* place, uint64_t target);

}  // namespace weft
