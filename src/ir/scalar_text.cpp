// Constants as text that reads back to the same bits.
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "ir/dtype.h"
#include "ir/scalar.h"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
std::optional<T> read(std::string_view text, int base = 10) {
  T value{};
  std::from_chars_result r{};
  if constexpr (std::is_floating_point_v<T>) {
    r = std::from_chars(text.data(), text.data() + text.size(), value);
  } else {
    r = std::from_chars(text.data(), text.data() + text.size(), value, base);
  }
  if (r.ec != std::errc() || r.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string text_of_float(DType type, uint64_t bits) {
  const double value = double_of_bits(type, bits);
  if (std::isnan(value)) {
    const uint64_t plain = bits_of_double(type, std::nan(""));
    return bits == plain ? "nan" : fmt::format("nan:{:#x}", bits);
  }
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  // The shortest text that a float, or a double for float64, reads back: every narrower format is
  // a subset of float.
  std::string text =
      type.scalar == Scalar::kFloat64 ? fmt::format("{}", value) : fmt::format("{}", float(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::optional<uint64_t> parse_nan(DType type, std::string_view digits) {
  const std::optional<uint64_t> bits = read<uint64_t>(digits, 16);
  const bool fits = bits && (type.bits() == 64 || *bits >> type.bits() == 0);
  return fits && std::isnan(double_of_bits(type, *bits)) ? bits : std::nullopt;
}

std::optional<uint64_t> parse_float(DType type, std::string_view text) {
  if (text == "nan") return bits_of_double(type, std::nan(""));
  if (text == "inf") return bits_of_double(type, kInfinity);
  if (text == "-inf") return bits_of_double(type, -kInfinity);
  if (text.starts_with("nan:0x")) return parse_nan(type, text.substr(6));
  // Straight to a float: the shortest text of one may lie so close to a midpoint of floats that a
  // double cannot tell them apart.
  const std::optional<double> value = type.scalar == Scalar::kFloat32
                                          ? std::optional<double>(read<float>(text))
                                          : read<double>(text);
  if (!value) return std::nullopt;
  return bits_of_double(type, *value);
}

}  // namespace

std::string text_of_bits(DType type, uint64_t bits) {
  if (type.is_bool()) return bits != 0 ? "true" : "false";
  if (type.is_float()) return text_of_float(type, bits);
  return type.is_unsigned() ? fmt::format("{}", bits) : fmt::format("{}", int64_t(bits));
}

std::optional<uint64_t> parse_bits(DType type, std::string_view text) {
  if (type.is_bool()) {
    if (text == "true") return 1;
    return text == "false" ? std::optional<uint64_t>(0) : std::nullopt;
  }
  if (type.is_float()) return parse_float(type, text);
  std::optional<uint64_t> bits;
  if (type.is_unsigned()) {
    bits = read<uint64_t>(text);
  } else if (auto value = read<int64_t>(text)) {
    bits = uint64_t(*value);
  }
  return bits && bits_of_uint(type, *bits) == *bits ? bits : std::nullopt;
}

}  // namespace weft
