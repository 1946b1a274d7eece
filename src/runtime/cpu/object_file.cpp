// Headers, sections, symbols, relocations.
#include "runtime/cpu/object_file.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include <elf.h>
#include <fmt/format.h>

#include "base/error.h"
#include "runtime/cpu/relocations.h"

namespace weft {
namespace {

#if defined(__aarch64__)
constexpr Machine kHost = Machine::kArm;
#else
constexpr Machine kHost = Machine::kX86;
#endif

constexpr uint64_t kMostBytes = uint64_t(1) << 28;  // of a section
constexpr uint64_t kMostAlignment = 4096;

[[noreturn]] void fail(std::string_view what) {
  throw CompileError(fmt::format("[object] the object code is damaged: {}", what));
}

void require(bool holds, std::string_view what) {
  if (!holds) fail(what);
}

ObjectFile::Section::Use use_of(const Elf64_Shdr& header) {
  using Use = ObjectFile::Section::Use;
  if ((header.sh_flags & SHF_ALLOC) == 0) return Use::kNone;
  // Tables for unwinding and notes for linkers.
  if (header.sh_type != SHT_PROGBITS && header.sh_type != SHT_NOBITS) {
    require(header.sh_type == SHT_NOTE || header.sh_type == SHT_X86_64_UNWIND,
            "a section of a kind that does not occur");
    return Use::kNone;
  }
  require((header.sh_flags & (SHF_TLS | SHF_COMPRESSED)) == 0, "thread-local or compressed data");
  return (header.sh_flags & SHF_WRITE) != 0 ? Use::kData : Use::kCode;
}

}  // namespace

ObjectFile::ObjectFile(std::span<const std::byte> object) : object_(object) {
  const auto file = read<Elf64_Ehdr>(0);
  require(std::memcmp(file.e_ident, ELFMAG, SELFMAG) == 0, "it is no ELF file");
  require(file.e_ident[EI_CLASS] == ELFCLASS64 && file.e_ident[EI_DATA] == ELFDATA2LSB,
          "it is not of 64 bits, little end first");
  require(file.e_type == ET_REL, "it is not relocatable");
  require(file.e_machine == uint16_t(kHost), "it is for another machine");
  machine_ = kHost;
  read_sections(file);
  for (const Elf64_Shdr& header : headers_) {
    if (header.sh_type != SHT_SYMTAB) continue;
    require(symbols_.empty(), "there are two tables of symbols");
    read_symbols(header);
  }
  for (const Elf64_Shdr& header : headers_) {
    require(header.sh_type != SHT_REL, "relocations without addends");
    if (header.sh_type == SHT_RELA) read_relocations(header);
  }
}

template <class T>
T ObjectFile::read(uint64_t at) const {
  require(at <= object_.size() && sizeof(T) <= object_.size() - at, "it ends too early");
  T value;
  std::memcpy(&value, object_.data() + at, sizeof value);
  return value;
}

std::span<const std::byte> ObjectFile::bytes_of(const Elf64_Shdr& header) const {
  require(header.sh_offset <= object_.size() && header.sh_size <= object_.size() - header.sh_offset,
          "a section ends after the file");
  return object_.subspan(header.sh_offset, header.sh_size);
}

void ObjectFile::read_sections(const Elf64_Ehdr& file) {
  require(file.e_shentsize == sizeof(Elf64_Shdr), "its section headers have a wrong size");
  require(file.e_shoff <= object_.size(), "its section headers are not in it");
  for (uint64_t i = 0; i < file.e_shnum; i++) {
    const auto header = read<Elf64_Shdr>(file.e_shoff + i * sizeof(Elf64_Shdr));
    Section section{.use = use_of(header), .content = {}};
    if (section.use != Section::Use::kNone) {
      section.size = header.sh_size;
      require(section.size <= kMostBytes, "a section is too large");
      section.alignment = header.sh_addralign == 0 ? 1 : header.sh_addralign;
      require(std::has_single_bit(section.alignment) && section.alignment <= kMostAlignment,
              "the alignment of a section");
      if (header.sh_type != SHT_NOBITS) section.content = bytes_of(header);
    }
    headers_.push_back(header);
    sections_.push_back(section);
  }
}

void ObjectFile::read_symbols(const Elf64_Shdr& table) {
  require(table.sh_entsize == sizeof(Elf64_Sym), "symbols have a wrong size");
  require(table.sh_link < headers_.size() && headers_[table.sh_link].sh_type == SHT_STRTAB,
          "there are no names of symbols");
  const std::span<const std::byte> raw = bytes_of(headers_[table.sh_link]);
  require(!raw.empty() && raw.back() == std::byte(0), "names of symbols do not end");
  const auto* names = reinterpret_cast<const char*>(raw.data());
  const uint64_t count = bytes_of(table).size() / sizeof(Elf64_Sym);
  for (uint64_t i = 0; i < count; i++) {
    const auto s = read<Elf64_Sym>(table.sh_offset + i * sizeof(Elf64_Sym));
    require(s.st_name < raw.size(), "the name of a symbol");
    Symbol symbol{names + s.st_name, kExternal, s.st_value, false};
    const bool is_file = ELF64_ST_TYPE(s.st_info) == STT_FILE;
    if (s.st_shndx != SHN_UNDEF && !is_file) {
      require(s.st_shndx < sections_.size(), "the section of a symbol");
      const Section& section = sections_[s.st_shndx];
      symbol.section = s.st_shndx;
      require(section.use == Section::Use::kNone || s.st_value <= section.size,
              "a symbol lies outside of its section");
      symbol.is_function = ELF64_ST_TYPE(s.st_info) == STT_FUNC &&
                           ELF64_ST_BIND(s.st_info) != STB_LOCAL &&
                           section.use == Section::Use::kCode && s.st_value < section.size;
    }
    symbols_.push_back(symbol);
  }
}

void ObjectFile::read_relocations(const Elf64_Shdr& table) {
  require(table.sh_info < sections_.size(), "the section that relocations are for");
  Section& section = sections_[table.sh_info];
  if (section.use == Section::Use::kNone) return;
  require(table.sh_entsize == sizeof(Elf64_Rela), "relocations have a wrong size");
  const uint64_t count = bytes_of(table).size() / sizeof(Elf64_Rela);
  for (uint64_t i = 0; i < count; i++) {
    const auto r = read<Elf64_Rela>(table.sh_offset + i * sizeof(Elf64_Rela));
    const Relocation relocation{uint32_t(ELF64_R_TYPE(r.r_info)), r.r_addend};
    require(ELF64_R_SYM(r.r_info) < symbols_.size(), "the symbol of a relocation");
    const size_t width = width_of(machine_, relocation);
    require(r.r_offset <= section.size && width <= section.size - r.r_offset,
            "a relocation lies outside of its section");
    section.relocations.push_back(r);
  }
}

}  // namespace weft
