// The bits of 1 / 2 pi that matter for a float x = m 2^k are those from place k on: the ones above
// give whole turns, the ones far below nothing. They are chosen from a table of words by k,
// shifted, and multiplied by the mantissa m; what overflows is whole turns again.
#include "codegen/decompose_turns.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codegen/decompose_rules.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"

namespace weft {
namespace {

// 1 / 2 pi, the bits after the point.
constexpr std::array<uint64_t, 20> kInverseTwoPi = {
    0x28be60db9391054a, 0x7f09d5f47d4d3770, 0x36d8a5664f10e410, 0x7f9458eaf7aef158,
    0x6dc91b8e909374b8, 0x01924bba82746487, 0x3f877ac72c4a69cf, 0xba208d7d4baed121,
    0x3a671c09ad17df90, 0x4e64758e60d4ce7d, 0x272117e2ef7e4a0e, 0xc7fe25fff7816603,
    0xfbcbc462d6829b47, 0xdb4d9fb3c9f2c26d, 0xd3d18fd9a797fa8b, 0x5d49eeb1faf97c5e,
    0xcf41ce7de294a4ba, 0x9afed7ec47e35742, 0x1580cc11bf1edaea, 0xfc33ef0826bd0d87};

constexpr uint64_t word(size_t i) { return i < kInverseTwoPi.size() ? kInverseTwoPi[i] : 0; }

// Word i of the table that begins `zeros` (1 to 63) places before the point.
constexpr uint64_t word_after(int zeros, size_t i) {
  return word(i) >> zeros | (i == 0 ? 0 : word(i - 1) << (64 - zeros));
}

// `count` words of the table from bit `place` on, as it begins `zeros` places before the point.
std::vector<UOp> window(UOp place, int zeros, size_t count, int index_bits) {
  const size_t first = (size_t(1) << index_bits) + count;
  std::vector<UOp> words;
  words.reserve(first);
  for (size_t i = 0; i < first; i++) words.push_back(bits_like(place, word_after(zeros, i)));
  for (int b = index_bits - 1; b >= 0;
       b--) {  // halves of the table, by each bit of the word number
    const uint64_t bit = uint64_t(64) << b;
    const UOp second = not_equal(place & bits_like(place, bit), bits_like(place, 0));
    const size_t step = size_t(1) << b;
    for (size_t i = 0; i < step + count; i++) words[i] = where(second, words[i + step], words[i]);
  }
  const UOp by = place & bits_like(place, 63), rest = bits_like(place, 64) - by;
  std::vector<UOp> out;
  out.reserve(count);
  for (size_t i = 0; i < count; i++) {
    out.push_back(binary(Op::SHL, words[i], by) | binary(Op::SHR, words[i + 1], rest));
  }
  return out;
}

// The upper word of a product of two words, by halves.
UOp multiply_high(UOp a, UOp b) {
  const UOp mask = bits_like(a, 0xffffffff);
  const UOp a_low = a & mask, a_high = shift_right(a, 32);
  const UOp b_low = b & mask, b_high = shift_right(b, 32);
  const UOp middle = a_high * b_low + shift_right(a_low * b_low, 32);  // does not overflow
  const UOp other = a_low * b_high + (middle & mask);
  return a_high * b_high + shift_right(middle, 32) + shift_right(other, 32);
}

struct Float {
  UOp mantissa, place;  // x = mantissa 2^(place - zeros), all in uint64
};

Float unpack(UOp x, int mantissa_bits, int bias, int zeros) {
  const DType wide = like(x.dtype(), dtypes::uint64);
  const UOp bits = magnitude(x);
  const uint64_t one = uint64_t(1) << mantissa_bits;
  const UOp mantissa = (bits & bits_like(bits, one - 1)) | bits_like(bits, one);
  const UOp exponent = shift_right(bits, mantissa_bits);
  const UOp place = exponent - bits_like(exponent, uint64_t(bias + mantissa_bits - zeros));
  return {cast(mantissa, wide), cast(place, wide)};
}

UOp one_where(UOp condition, UOp x) { return where(condition, bits_like(x, 1), bits_like(x, 0)); }

}  // namespace

Turns turns32(UOp x) {
  const Float f = unpack(x, 23, 127, 16);
  const std::vector<UOp> w = window(f.place, 16, 2, 1);
  const UOp low = shift_right(f.mantissa * shift_right(w[1], 32), 32);
  const UOp turns = f.mantissa * w[0] + low;
  return {where(x < number(x, 0), bits_like(turns, 0) - turns, turns), UOp()};
}

Turns turns64(UOp x) {
  const Float f = unpack(x, 52, 1023, 32);
  const std::vector<UOp> w = window(f.place, 32, 3, 4);
  const UOp product = f.mantissa * w[1];
  const UOp low = product + multiply_high(f.mantissa, w[2]);
  const UOp high =
      f.mantissa * w[0] + multiply_high(f.mantissa, w[1]) + one_where(low < product, low);
  const UOp zero = bits_like(low, 0), is_negative = x < number(x, 0);
  const UOp borrow = one_where(not_equal(low, zero), low);
  return {where(is_negative, zero - high - borrow, high), where(is_negative, zero - low, low)};
}

Turns quarter_turn_on(Turns t) { return {t.high + bits_like(t.high, uint64_t(1) << 62), t.low}; }

UOp half_turns(Turns t) { return shift_right(t.high + bits_like(t.high, uint64_t(1) << 62), 63); }

UOp half_turn(Turns t) {
  const DType ints = signed_of(t.high.dtype()), floats = like(ints, dtypes::float64);
  const UOp high = shift_left(t.high, 1);
  if (!t.low) {
    const UOp f = cast(bitcast(high, ints), floats);
    return f * number(f, 0x1p-64);
  }
  const UOp f = cast(bitcast(high | shift_right(t.low, 63), ints), floats);
  const UOp rest = cast(shift_left(t.low, 1), floats);
  return (f + rest * number(f, 0x1p-64)) * number(f, 0x1p-64);
}

HalfTurn half_turn_in_float32(Turns t) {
  const DType ints = signed_of(t.high.dtype()), floats = like(ints, dtypes::float32);
  const UOp all = bitcast(shift_left(t.high, 1), ints), high = cast(all, floats);
  const UOp low = cast(all - cast(high, ints), floats);
  return {high * number(high, 0x1p-64), low * number(low, 0x1p-64)};
}

}  // namespace weft
