// The type of an element: a scalar, a vector of scalars, or a pointer to them in an address space.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft {

enum class Scalar : uint8_t {
  kVoid,
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat8E4M3,
  kFloat8E5M2,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kIndex,  // exact integers for sizes and offsets; given a machine width late
};
inline constexpr int kScalarCount = int(Scalar::kIndex) + 1;

enum class AddrSpace : uint8_t { kNone, kGlobal, kLocal, kReg };

// Four bytes, compared as a whole. `space` other than kNone makes it a pointer.
struct DType {
  Scalar scalar = Scalar::kVoid;
  AddrSpace space = AddrSpace::kNone;
  uint16_t lanes = 1;

  constexpr bool operator==(const DType&) const = default;

  constexpr bool is_void() const { return scalar == Scalar::kVoid; }
  constexpr bool is_bool() const { return scalar == Scalar::kBool; }
  constexpr bool is_index() const { return scalar == Scalar::kIndex; }
  constexpr bool is_signed() const {
    return (scalar >= Scalar::kInt8 && scalar <= Scalar::kInt64) || is_index();
  }
  constexpr bool is_unsigned() const {
    return scalar >= Scalar::kUInt8 && scalar <= Scalar::kUInt64;
  }
  constexpr bool is_int() const { return is_signed() || is_unsigned(); }  // bool is none
  constexpr bool is_float() const {
    return scalar >= Scalar::kFloat8E4M3 && scalar <= Scalar::kFloat64;
  }
  constexpr bool is_pointer() const { return space != AddrSpace::kNone; }
  constexpr bool is_vector() const { return lanes > 1; }

  constexpr DType element() const { return {scalar, AddrSpace::kNone, 1}; }
  constexpr DType vec(uint16_t n) const { return {scalar, space, n}; }
  constexpr DType ptr(AddrSpace s) const { return {scalar, s, lanes}; }
  constexpr DType pointee() const { return {scalar, AddrSpace::kNone, lanes}; }

  constexpr uint32_t packed() const {
    return uint32_t(scalar) | uint32_t(space) << 8 | uint32_t(lanes) << 16;
  }

  int bits() const;        // of one lane; void has 0, bool 8 in memory but 1 here
  int item_bytes() const;  // of one lane in memory
  std::string name() const;
};

// "float32", "int8x4", "ptr<float32, global>"; empty when the text is none of them.
std::optional<DType> parse_dtype(std::string_view text);
std::string_view name_of(AddrSpace space);

namespace dtypes {
inline constexpr DType void_{Scalar::kVoid}, bool_{Scalar::kBool};
inline constexpr DType int8{Scalar::kInt8}, int16{Scalar::kInt16}, int32{Scalar::kInt32},
    int64{Scalar::kInt64};
inline constexpr DType uint8{Scalar::kUInt8}, uint16{Scalar::kUInt16}, uint32{Scalar::kUInt32},
    uint64{Scalar::kUInt64};
inline constexpr DType float8_e4m3{Scalar::kFloat8E4M3}, float8_e5m2{Scalar::kFloat8E5M2},
    float16{Scalar::kFloat16}, bfloat16{Scalar::kBFloat16}, float32{Scalar::kFloat32},
    float64{Scalar::kFloat64};
inline constexpr DType index{Scalar::kIndex};
}  // namespace dtypes

// The dtype of a C++ type: dtype_of<float> is float32.
// NOLINTBEGIN(readability-identifier-naming): used like a function
template <class T>
inline constexpr DType dtype_of = dtypes::void_;
template <>
inline constexpr DType dtype_of<bool> = dtypes::bool_;
template <>
inline constexpr DType dtype_of<int8_t> = dtypes::int8;
template <>
inline constexpr DType dtype_of<int16_t> = dtypes::int16;
template <>
inline constexpr DType dtype_of<int32_t> = dtypes::int32;
template <>
inline constexpr DType dtype_of<int64_t> = dtypes::int64;
template <>
inline constexpr DType dtype_of<uint8_t> = dtypes::uint8;
template <>
inline constexpr DType dtype_of<uint16_t> = dtypes::uint16;
template <>
inline constexpr DType dtype_of<uint32_t> = dtypes::uint32;
template <>
inline constexpr DType dtype_of<uint64_t> = dtypes::uint64;
template <>
inline constexpr DType dtype_of<float> = dtypes::float32;
template <>
inline constexpr DType dtype_of<double> = dtypes::float64;
// NOLINTEND(readability-identifier-naming)

}  // namespace weft
