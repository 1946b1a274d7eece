// Reading an ELF64 relocatable file that may be damaged: every offset is checked before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <elf.h>

#include "runtime/cpu/relocations.h"

namespace weft {

class ObjectFile {
 public:
  struct Section {
    enum class Use : uint8_t { kNone, kCode, kData };  // kCode: read or executed; kData: written
    Use use = Use::kNone;
    uint64_t size = 0, alignment = 1;
    std::span<const std::byte> content;     // shorter than size: the rest is zeros
    std::vector<Elf64_Rela> relocations{};  // all inside of it
  };
  struct Symbol {
    std::string_view name;
    uint32_t section;  // kExternal: defined elsewhere
    uint64_t value;    // in its section, not past its end
    bool is_function;  // and seen from outside
  };
  static constexpr uint32_t kExternal = UINT32_MAX;

  // Throws CompileError that says what is wrong with it. Refers to `object`.
  explicit ObjectFile(std::span<const std::byte> object);

  Machine machine() const { return machine_; }
  std::span<const Section> sections() const { return sections_; }
  std::span<const Symbol> symbols() const { return symbols_; }

 private:
  template <class T>
  T read(uint64_t at) const;
  std::span<const std::byte> bytes_of(const Elf64_Shdr& header) const;
  void read_sections(const Elf64_Ehdr& file);
  void read_symbols(const Elf64_Shdr& table);
  void read_relocations(const Elf64_Shdr& table);

  std::span<const std::byte> object_;
  Machine machine_ = Machine::kX86;
  std::vector<Elf64_Shdr> headers_;
  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
};

}  // namespace weft
