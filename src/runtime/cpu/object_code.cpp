// Sections to memory: code and constants, stubs and words, then data on pages of its own.
#include "runtime/cpu/object_code.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include <elf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/scalar.h"
#include "runtime/cpu/object_file.h"
#include "runtime/cpu/relocations.h"

namespace weft {
namespace {

using Section = ObjectFile::Section;
using Use = Section::Use;

struct External {
  std::string_view name;
  void* address;
};

template <class Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

using Unary32 = float(float);
using Unary64 = double(double);

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;
Int128 divide(Int128 a, Int128 b) { return a / b; }
Int128 remainder(Int128 a, Int128 b) { return a % b; }
Uint128 divide_unsigned(Uint128 a, Uint128 b) { return a / b; }
Uint128 remainder_unsigned(Uint128 a, Uint128 b) { return a % b; }

// How gcc compares halves that it has made floats of: 0 when they are equal. They come in the low
// bits of registers for floats.
int compare_halves(float x, float y) {
  const uint32_t a = std::bit_cast<uint32_t>(x) & 0xffff, b = std::bit_cast<uint32_t>(y) & 0xffff;
  const auto is_nan = [](uint32_t half) { return (half & 0x7fff) > 0x7c00; };
  if (is_nan(a) || is_nan(b)) return 1;
  return a == b || ((a | b) & 0x7fff) == 0 ? 0 : 1;
}

double extended_half(float x) {
  return double_of_bits(dtypes::float16, std::bit_cast<uint32_t>(x) & 0xffff);
}

// All that compiled kernels may call: what compilers call by themselves. Sorted by nothing; short.
const External* find_external(std::string_view name) {
  static const External kExternals[] = {
      {"memcpy", address_of(&std::memcpy)},
      {"memmove", address_of(&std::memmove)},
      {"memset", address_of(&std::memset)},
      {"fma", address_of<double(double, double, double)>(&std::fma)},
      {"fmaf", address_of<float(float, float, float)>(&std::fma)},
      {"fmod", address_of<double(double, double)>(&std::fmod)},
      {"fmodf", address_of<float(float, float)>(&std::fmod)},
      {"fmin", address_of<double(double, double)>(&std::fmin)},
      {"fminf", address_of<float(float, float)>(&std::fmin)},
      {"fmax", address_of<double(double, double)>(&std::fmax)},
      {"fmaxf", address_of<float(float, float)>(&std::fmax)},
      {"sqrt", address_of<Unary64>(&std::sqrt)},
      {"sqrtf", address_of<Unary32>(&std::sqrt)},
      {"floor", address_of<Unary64>(&std::floor)},
      {"floorf", address_of<Unary32>(&std::floor)},
      {"ceil", address_of<Unary64>(&std::ceil)},
      {"ceilf", address_of<Unary32>(&std::ceil)},
      {"trunc", address_of<Unary64>(&std::trunc)},
      {"truncf", address_of<Unary32>(&std::trunc)},
      {"round", address_of<Unary64>(&std::round)},
      {"roundf", address_of<Unary32>(&std::round)},
      {"rint", address_of<Unary64>(&std::rint)},
      {"rintf", address_of<Unary32>(&std::rint)},
      {"nearbyint", address_of<Unary64>(&std::nearbyint)},
      {"nearbyintf", address_of<Unary32>(&std::nearbyint)},
      {"roundeven", address_of<Unary64>(&std::nearbyint)},  // the mode is never changed
      {"roundevenf", address_of<Unary32>(&std::nearbyint)},
      {"__eqhf2", address_of(&compare_halves)},
      {"__nehf2", address_of(&compare_halves)},
      {"__extendhfdf2", address_of(&extended_half)},
      {"__divti3", address_of(&divide)},
      {"__modti3", address_of(&remainder)},
      {"__udivti3", address_of(&divide_unsigned)},
      {"__umodti3", address_of(&remainder_unsigned)},
  };
  for (const External& external : kExternals) {
    if (external.name == name) return &external;
  }
  return nullptr;
}

constexpr uint64_t kMostBytes = uint64_t(1) << 30;

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

// Where everything lies, as offsets into one piece of memory.
class Layout {
 public:
  explicit Layout(const ObjectFile& file) : file_(file), sections_(file.sections().size()) {
    place(Use::kCode);
    find_words_and_stubs();
    size_ = round_up(size_, kStubBytes);
    stubs_at_ = size_;
    size_ += stubs_.size() * kStubBytes;
    words_at_ = size_;
    size_ += words_.size() * sizeof(uint64_t);
    const auto page = uint64_t(sysconf(_SC_PAGESIZE));
    code_bytes_ = size_ = round_up(size_, page);
    place(Use::kData);
    size_ = round_up(size_, page);
    if (size_ > kMostBytes) throw CompileError("[object] the object code is damaged: its size");
  }

  uint64_t size() const { return size_; }
  uint64_t code_bytes() const { return code_bytes_; }
  uint64_t section(size_t i) const { return sections_[i]; }

  // The address of a symbol once the memory lies at `memory`.
  uint64_t address(uint32_t index, const std::byte* memory) const {
    const ObjectFile::Symbol& symbol = file_.symbols()[index];
    if (symbol.section != ObjectFile::kExternal) {
      if (file_.sections()[symbol.section].use == Use::kNone) {
        throw CompileError("[object] the object code uses a section that is not loaded");
      }
      return uint64_t(uintptr_t(memory)) + sections_[symbol.section] + symbol.value;
    }
    const External* external = find_external(symbol.name);
    if (external == nullptr) {
      throw CompileError(fmt::format("[object] the object code calls {}, which it may not",
                                     symbol.name.empty() ? "nothing" : symbol.name));
    }
    return uint64_t(uintptr_t(external->address));
  }

  void write(std::byte* memory) const {
    for (size_t i = 0; i < sections_.size(); i++) {
      const Section& section = file_.sections()[i];
      if (section.use == Use::kNone || section.content.empty()) continue;
      std::memcpy(memory + sections_[i], section.content.data(), section.content.size());
    }
    for (const auto& [symbol, i] : stubs_) {
      write_stub(file_.machine(), memory + stubs_at_ + i * kStubBytes, address(symbol, memory));
    }
    for (const auto& [symbol, i] : words_) {
      const uint64_t word = address(symbol, memory);
      std::memcpy(memory + words_at_ + i * sizeof word, &word, sizeof word);
    }
    for (size_t i = 0; i < sections_.size(); i++) {
      for (const Elf64_Rela& r : file_.sections()[i].relocations) relocate_one(r, i, memory);
    }
  }

 private:
  void place(Use use) {
    for (size_t i = 0; i < sections_.size(); i++) {
      const Section& section = file_.sections()[i];
      if (section.use != use) continue;
      size_ = round_up(size_, section.alignment);
      sections_[i] = size_;
      size_ += section.size;
    }
  }

  void find_words_and_stubs() {
    for (const Section& section : file_.sections()) {
      for (const Elf64_Rela& r : section.relocations) {
        const auto symbol = uint32_t(ELF64_R_SYM(r.r_info));
        const Needs needs = needs_of(r);
        if (needs == Needs::kWord) words_.try_emplace(symbol, words_.size());
        if (needs == Needs::kStub) stubs_.try_emplace(symbol, stubs_.size());
      }
    }
  }

  // Stubs are for what is far away, words for what is asked for by word.
  Needs needs_of(const Elf64_Rela& r) const {
    const Relocation relocation{uint32_t(ELF64_R_TYPE(r.r_info)), r.r_addend};
    const bool is_near = file_.symbols()[ELF64_R_SYM(r.r_info)].section != ObjectFile::kExternal;
    const Needs needs = weft::needs_of(file_.machine(), relocation);
    return needs == Needs::kStub && is_near ? Needs::kNothing : needs;
  }

  void relocate_one(const Elf64_Rela& r, size_t section, std::byte* memory) const {
    const auto symbol = uint32_t(ELF64_R_SYM(r.r_info));
    const Relocation relocation{uint32_t(ELF64_R_TYPE(r.r_info)), r.r_addend};
    if (width_of(file_.machine(), relocation) == 0) return;
    std::byte* place = memory + sections_[section] + r.r_offset;
    const std::byte* stands_for = nullptr;
    const Needs needs = needs_of(r);
    if (needs == Needs::kWord) {
      stands_for = memory + words_at_ + words_.at(symbol) * sizeof(uint64_t);
    } else if (needs == Needs::kStub) {
      stands_for = memory + stubs_at_ + stubs_.at(symbol) * kStubBytes;
    }
    const uint64_t target =
        stands_for != nullptr ? uint64_t(uintptr_t(stands_for)) : address(symbol, memory);
    relocate(file_.machine(), relocation, place, uint64_t(uintptr_t(place)), target);
  }

  const ObjectFile& file_;
  std::vector<uint64_t> sections_;
  std::map<uint32_t, uint64_t> words_, stubs_;  // symbol -> number
  uint64_t words_at_ = 0, stubs_at_ = 0;
  uint64_t code_bytes_ = 0, size_ = 0;
};

}  // namespace

ObjectCode::ObjectCode(std::span<const std::byte> object) {
  const ObjectFile file(object);
  const Layout layout(file);
  if (layout.code_bytes() == 0) throw CompileError("[object] the object code is damaged: no code");
  void* memory =
      mmap(nullptr, layout.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw DeviceError(
        fmt::format("[object] there is no memory for {} bytes of code", layout.size()));
  }
  const auto unmap = [&] { munmap(memory, layout.size()); };
  try {
    auto* start = static_cast<std::byte*>(memory);
    layout.write(start);
    for (uint32_t i = 0; i < file.symbols().size(); i++) {
      const ObjectFile::Symbol& symbol = file.symbols()[i];
      if (!symbol.is_function) continue;
      functions_.emplace_back(symbol.name, reinterpret_cast<void*>(layout.address(i, start)));
    }
    if (mprotect(memory, layout.code_bytes(), PROT_READ | PROT_EXEC) != 0) {
      throw DeviceError("[object] this system does not let memory become executable");
    }
    __builtin___clear_cache(reinterpret_cast<char*>(start),
                            reinterpret_cast<char*>(start) + layout.code_bytes());
  } catch (...) {
    unmap();
    throw;
  }
  memory_ = static_cast<std::byte*>(memory);
  bytes_ = layout.size();
}

ObjectCode::~ObjectCode() { munmap(memory_, bytes_); }

void* ObjectCode::function(std::string_view name) const {
  for (const auto& [known, address] : functions_) {
    if (known == name) return address;
  }
  return nullptr;
}

}  // namespace weft
