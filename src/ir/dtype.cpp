// Names and sizes of dtypes.
#include "ir/dtype.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace weft {
namespace {

struct ScalarInfo {
  std::string_view name;
  int bits;
};
constexpr std::array<ScalarInfo, kScalarCount> kScalars = {{
    {"void", 0},
    {"bool", 1},
    {"int8", 8},
    {"int16", 16},
    {"int32", 32},
    {"int64", 64},
    {"uint8", 8},
    {"uint16", 16},
    {"uint32", 32},
    {"uint64", 64},
    {"float8_e4m3", 8},
    {"float8_e5m2", 8},
    {"float16", 16},
    {"bfloat16", 16},
    {"float32", 32},
    {"float64", 64},
    {"index", 64},
}};
constexpr std::array<std::string_view, 4> kSpaces = {"none", "global", "local", "reg"};

std::optional<DType> parse_value_dtype(std::string_view text) {
  for (int i = 0; i < kScalarCount; i++) {
    const std::string_view name = kScalars[size_t(i)].name;
    if (!text.starts_with(name)) continue;
    const std::string_view rest = text.substr(name.size());
    if (rest.empty()) return DType{Scalar(i)};
    // "int8x4": lanes follow; "int" never matches here since every int has its width in the name
    uint16_t lanes = 0;
    if (rest.size() < 2 || rest[0] != 'x') continue;
    auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), lanes);
    if (error == std::errc() && end == rest.data() + rest.size() && lanes > 1) {
      return DType{Scalar(i)}.vec(lanes);
    }
  }
  return std::nullopt;
}

}  // namespace

int DType::bits() const { return kScalars[size_t(scalar)].bits; }

int DType::item_bytes() const { return (bits() + 7) / 8; }

std::string_view name_of(AddrSpace space) { return kSpaces[size_t(space)]; }

std::string DType::name() const {
  std::string base(kScalars[size_t(scalar)].name);
  if (lanes != 1) base += fmt::format("x{}", lanes);
  return is_pointer() ? fmt::format("ptr<{}, {}>", base, name_of(space)) : base;
}

std::optional<DType> parse_dtype(std::string_view text) {
  if (!text.starts_with("ptr<") || !text.ends_with('>')) return parse_value_dtype(text);
  text = text.substr(4, text.size() - 5);
  const size_t comma = text.find(", ");
  if (comma == std::string_view::npos) return std::nullopt;
  const std::optional<DType> base = parse_value_dtype(text.substr(0, comma));
  for (size_t s = 1; base && s < kSpaces.size(); s++) {
    if (text.substr(comma + 2) == kSpaces[s]) return base->ptr(AddrSpace(s));
  }
  return std::nullopt;
}

}  // namespace weft
