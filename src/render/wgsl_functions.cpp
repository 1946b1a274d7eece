// Functions in WGSL, and which of them a text needs.
//
// A 64-bit integer is vec2<u32>(low word, high word). NaN is found by its bits: compilers of WGSL
// may assume that there is none.
#include "render/wgsl_functions.h"

#include <array>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weft {
namespace {

struct Function {
  std::string_view name, text;
};

// clang-format off
constexpr Function kFunctions[] = {
// floats
{"float_of", R"(fn float_of(bits: u32) -> f32 { return bitcast<f32>(bits); }
)"},
// What no compiler sees through: the first two of the arguments are 0. Drivers compile anew for the values of uniforms that
// conditions depend on, but only of those at constant places.
{"opaque", R"(fn opaque(a: f32) -> f32 { return bitcast<f32>(bitcast<u32>(a) ^ arguments[arguments[0].y].x); }
)"},
{"is_nan", R"(fn is_nan(a: f32) -> bool { return (bitcast<u32>(a) & 0x7fffffffu) > 0x7f800000u; }
)"},
// NaN of either operand; of equal numbers, which may be zeros of two signs, the one by sign.
{"max_f32", R"(fn max_f32(a: f32, b: f32) -> f32 {
  let equal = bitcast<f32>(bitcast<u32>(a) & bitcast<u32>(b));
  return select(select(b, equal, a == b), a, a > b || is_nan(a));
}
)"},
{"min_f32", R"(fn min_f32(a: f32, b: f32) -> f32 {
  let equal = bitcast<f32>(bitcast<u32>(a) | bitcast<u32>(b));
  return select(select(b, equal, a == b), a, a < b || is_nan(a));
}
)"},
{"f32_to_i32", R"(fn f32_to_i32(a: f32) -> i32 {
  let low = select(i32(a), i32(-2147483648), a < -2147483648.0f);
  return select(select(low, 2147483647, a >= 2147483648.0f), 0, is_nan(a));
}
)"},
{"f32_to_u32", R"(fn f32_to_u32(a: f32) -> u32 {
  let low = select(u32(a), 0u, a < 0.0f);
  return select(select(low, 4294967295u, a >= 4294967296.0f), 0u, is_nan(a));
}
)"},
// The mantissa (24 bits) and the exponent of its last bit, of a number that is neither 0 nor infinite.
{"unpack_f32", R"(fn unpack_f32(bits: u32) -> vec2<i32> {
  let e = i32((bits >> 23u) & 255u);
  let m = bits & 0x7fffffu;
  let n = countLeadingZeros(m) - 8u;
  if (e == 0) { return vec2<i32>(i32(m << n), -149 - i32(n)); }
  return vec2<i32>(i32(m | 0x800000u), e - 150);
}
)"},
// The bits of a mantissa (24 bits, fewer with an exponent that is subnormal) and the exponent of its
// first bit.
{"based_f32", R"(fn based_f32(e: i32, m: u32) -> u32 { return select((u32(e + 126) << 23u) + m, m, e < -126); }
)"},
// a * b + c in 64 bits, rounded to even or to odd: the product has 48. What is shifted out sets the last bit, which is far
// below the place of the rounding whenever anything is.
{"mulacc_f32", R"(fn mulacc_f32(a: f32, b: f32, c: f32) -> f32 { return mulacc(a, b, c, false); }
)"},
{"mulacc_odd_f32", R"(fn mulacc_odd_f32(a: f32, b: f32, c: f32) -> f32 { return mulacc(a, b, c, true); }
)"},
{"mulacc", R"(fn mulacc(a: f32, b: f32, c: f32, to_odd: bool) -> f32 {
  let x = bitcast<u32>(a);
  let y = bitcast<u32>(b);
  let z = bitcast<u32>(c);
  if ((x & 0x7f800000u) == 0x7f800000u || (y & 0x7f800000u) == 0x7f800000u) { return a * b + c; }
  if ((z & 0x7f800000u) == 0x7f800000u) { return c; }
  if ((x & 0x7fffffffu) == 0u || (y & 0x7fffffffu) == 0u) { return a * b + c; }
  let u = unpack_f32(x);
  let v = unpack_f32(y);
  var sign = (x ^ y) & 0x80000000u;
  var sum = shl_word(mul_wide(u32(u.x), u32(v.x)), 14u);
  var e = u.y + v.y - 14;
  if ((z & 0x7fffffffu) != 0u) {
    let w = unpack_f32(z);
    var other = shl_word(vec2<u32>(u32(w.x), 0u), 38u);
    let d = e - (w.y - 38);
    if (d >= 0) {
      other = shr_sticky(other, u32(d));
    } else {
      sum = shr_sticky(sum, u32(-d));
      e = w.y - 38;
    }
    let other_sign = z & 0x80000000u;
    if (other_sign == sign) {
      sum = add_u64(sum, other);
    } else if (lt_u64(sum, other)) {
      sum = sub_u64(other, sum);
      sign = other_sign;
    } else {
      sum = sub_u64(sum, other);
    }
  }
  if (all(sum == vec2<u32>(0u, 0u))) { return 0.0f; }
  let n = leading_zeros_u64(sum);
  sum = shl_word(sum, n);
  e += 63 - i32(n);
  if (e > 127) { return bitcast<f32>(sign | 0x7f800000u); }
  let is_subnormal = e < -126;
  if (is_subnormal) { sum = shr_sticky(sum, u32(-126 - e)); }
  let m = sum.y >> 8u;
  let is_above_half = (sum.y & 0x7fu) != 0u || sum.x != 0u || (m & 1u) != 0u;
  let is_exact = (sum.y & 0xffu) == 0u && sum.x == 0u;
  if (to_odd) { return bitcast<f32>(sign | ((based_f32(e, m) | select(1u, 0u, is_exact)))); }
  let up = select(0u, 1u, (sum.y & 0x80u) != 0u && is_above_half);
  return bitcast<f32>(sign | (based_f32(e, m) + up));
}
)"},
// 64-bit integers
{"add_u64", R"(fn add_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}
)"},
{"sub_u64", R"(fn sub_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}
)"},
{"neg_u64", R"(fn neg_u64(a: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(0u - a.x, ~a.y + select(0u, 1u, a.x == 0u));
}
)"},
{"mul_wide", R"(fn mul_wide(a: u32, b: u32) -> vec2<u32> {
  let a0 = a & 0xffffu;
  let a1 = a >> 16u;
  let b0 = b & 0xffffu;
  let b1 = b >> 16u;
  let middle = a1 * b0 + ((a0 * b0) >> 16u);
  let other = a0 * b1 + (middle & 0xffffu);
  return vec2<u32>(a * b, a1 * b1 + (middle >> 16u) + (other >> 16u));
}
)"},
{"mul_u64", R"(fn mul_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = mul_wide(a.x, b.x);
  return vec2<u32>(low.x, low.y + a.x * b.y + a.y * b.x);
}
)"},
{"lt_u64", R"(fn lt_u64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return a.y < b.y || (a.y == b.y && a.x < b.x);
}
)"},
{"lt_i64", R"(fn lt_i64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return bitcast<i32>(a.y) < bitcast<i32>(b.y) || (a.y == b.y && a.x < b.x);
}
)"},
{"max_u64", R"(fn max_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return select(a, b, lt_u64(a, b)); }
)"},
{"min_u64", R"(fn min_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return select(a, b, lt_u64(b, a)); }
)"},
{"max_i64", R"(fn max_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return select(a, b, lt_i64(a, b)); }
)"},
{"min_i64", R"(fn min_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return select(a, b, lt_i64(b, a)); }
)"},
// Shifts by less than 64.
{"shl_word", R"(fn shl_word(a: vec2<u32>, n: u32) -> vec2<u32> {
  let m = n & 31u;
  let near = vec2<u32>(a.x << m, (a.y << m) | ((a.x >> 1u) >> (31u - m)));
  return select(near, vec2<u32>(0u, a.x << m), n >= 32u);
}
)"},
{"shr_word", R"(fn shr_word(a: vec2<u32>, n: u32) -> vec2<u32> {
  let m = n & 31u;
  let near = vec2<u32>((a.x >> m) | ((a.y << 1u) << (31u - m)), a.y >> m);
  return select(near, vec2<u32>(a.y >> m, 0u), n >= 32u);
}
)"},
// What is lost sets the last bit.
{"shr_sticky", R"(fn shr_sticky(a: vec2<u32>, n: u32) -> vec2<u32> {
  if (n >= 64u) { return vec2<u32>(select(0u, 1u, any(a != vec2<u32>(0u, 0u))), 0u); }
  let kept = shr_word(a, n);
  let is_exact = all(shl_word(kept, n) == a);
  return vec2<u32>(kept.x | select(1u, 0u, is_exact), kept.y);
}
)"},
{"shl_u64", R"(fn shl_u64(a: vec2<u32>, n: vec2<u32>) -> vec2<u32> {
  return select(shl_word(a, n.x & 63u), vec2<u32>(0u, 0u), n.y != 0u || n.x >= 64u);
}
)"},
{"shr_u64", R"(fn shr_u64(a: vec2<u32>, n: vec2<u32>) -> vec2<u32> {
  return select(shr_word(a, n.x & 63u), vec2<u32>(0u, 0u), n.y != 0u || n.x >= 64u);
}
)"},
{"shr_i64", R"(fn shr_i64(a: vec2<u32>, n: vec2<u32>) -> vec2<u32> {
  let flip = vec2<u32>(0u, 0u) - vec2<u32>(a.y >> 31u);
  return select(shr_word(a ^ flip, n.x & 63u) ^ flip, vec2<u32>(0u, 0u), n.y != 0u || n.x >= 64u);
}
)"},
{"leading_zeros_u64", R"(fn leading_zeros_u64(a: vec2<u32>) -> u32 {
  return select(countLeadingZeros(a.y), 32u + countLeadingZeros(a.x), a.y == 0u);
}
)"},
// Quotient and remainder; b is not 0. Each estimate is at most 2^-19 below the quotient of what is
// left, and never above: four of them leave less than 3 b. There is no loop: some drivers end those.
{"divide_step", R"(fn divide_step(q_r: vec4<u32>, b: vec2<u32>) -> vec4<u32> {
  let estimate = f32_to_u64(u64_to_f32(q_r.zw) / u64_to_f32(b) * 0x1.ffffep-1f);
  return vec4<u32>(add_u64(q_r.xy, estimate), sub_u64(q_r.zw, mul_u64(estimate, b)));
}
)"},
{"last_step", R"(fn last_step(q_r: vec4<u32>, b: vec2<u32>) -> vec4<u32> {
  let next = vec4<u32>(add_u64(q_r.xy, vec2<u32>(1u, 0u)), sub_u64(q_r.zw, b));
  return select(next, q_r, lt_u64(q_r.zw, b));
}
)"},
{"divmod_u64", R"(fn divmod_u64(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
  if (a.y == 0u && b.y == 0u) { return vec4<u32>(a.x / b.x, 0u, a.x % b.x, 0u); }
  let first = divide_step(divide_step(vec4<u32>(0u, 0u, a), b), b);
  return last_step(last_step(divide_step(divide_step(first, b), b), b), b);
}
)"},
{"div_u64", R"(fn div_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if (all(b == vec2<u32>(0u, 0u))) { return b; }
  return divmod_u64(a, b).xy;
}
)"},
{"mod_u64", R"(fn mod_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if (all(b == vec2<u32>(0u, 0u))) { return a; }
  return divmod_u64(a, b).zw;
}
)"},
{"size_i64", R"(fn size_i64(a: vec2<u32>) -> vec2<u32> { return select(a, neg_u64(a), a.y >= 0x80000000u); }
)"},
{"div_i64", R"(fn div_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let q = div_u64(size_i64(a), size_i64(b));
  return select(q, neg_u64(q), (a.y ^ b.y) >= 0x80000000u);
}
)"},
{"mod_i64", R"(fn mod_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let r = mod_u64(size_i64(a), size_i64(b));
  return select(r, neg_u64(r), a.y >= 0x80000000u);
}
)"},
// 64-bit integers from and to floats
{"scale_f32", R"(fn scale_f32(a: f32, e: u32) -> f32 { return a * bitcast<f32>((127u + e) << 23u); }
)"},
{"u64_to_f32", R"(fn u64_to_f32(a: vec2<u32>) -> f32 {
  let n = countLeadingZeros(a.y);
  if (n == 32u) { return f32(a.x); }
  let top = shl_word(a, n);
  return scale_f32(f32(top.y | select(0u, 1u, top.x != 0u)), 32u - n);
}
)"},
{"i64_to_f32", R"(fn i64_to_f32(a: vec2<u32>) -> f32 {
  let size = u64_to_f32(size_i64(a));
  return select(size, -size, a.y >= 0x80000000u);
}
)"},
// Rounded to odd: rounding once more, to fewer digits, is rounding once.
{"u32_to_odd_f32", R"(fn u32_to_odd_f32(a: u32) -> f32 {
  let n = countLeadingZeros(a);
  if (n >= 8u) { return f32(a); }
  let last = 1u << (8u - n);
  let kept = a & ~(last - 1u);
  return f32(kept | select(last, 0u, kept == a));
}
)"},
{"i32_to_odd_f32", R"(fn i32_to_odd_f32(a: i32) -> f32 {
  let bits = bitcast<u32>(a);
  let size = u32_to_odd_f32(select(bits, 0u - bits, a < 0));
  return select(size, -size, a < 0);
}
)"},
{"u64_to_odd_f32", R"(fn u64_to_odd_f32(a: vec2<u32>) -> f32 {
  let n = countLeadingZeros(a.y);
  if (n == 32u) { return u32_to_odd_f32(a.x); }
  let top = shl_word(a, n);
  return scale_f32(u32_to_odd_f32(top.y | select(0u, 1u, top.x != 0u)), 32u - n);
}
)"},
{"i64_to_odd_f32", R"(fn i64_to_odd_f32(a: vec2<u32>) -> f32 {
  let size = u64_to_odd_f32(size_i64(a));
  return select(size, -size, a.y >= 0x80000000u);
}
)"},
// |a| below 2^64
{"size_to_u64", R"(fn size_to_u64(a: f32) -> vec2<u32> {
  let bits = bitcast<u32>(a);
  let e = i32((bits >> 23u) & 255u) - 150;
  let m = (bits & 0x7fffffu) | 0x800000u;
  if (e >= 0) { return shl_word(vec2<u32>(m, 0u), u32(e) & 63u); }
  return vec2<u32>(select(0u, m >> (u32(-e) & 31u), e > -24), 0u);
}
)"},
{"f32_to_u64", R"(fn f32_to_u64(a: f32) -> vec2<u32> {
  if (is_nan(a) || a < 1.0f) { return vec2<u32>(0u, 0u); }
  if (a >= 18446744073709551616.0f) { return vec2<u32>(0xffffffffu, 0xffffffffu); }
  return size_to_u64(a);
}
)"},
{"f32_to_i64", R"(fn f32_to_i64(a: f32) -> vec2<u32> {
  if (is_nan(a)) { return vec2<u32>(0u, 0u); }
  if (a >= 9223372036854775808.0f) { return vec2<u32>(0xffffffffu, 0x7fffffffu); }
  if (a < -9223372036854775808.0f) { return vec2<u32>(0u, 0x80000000u); }
  let size = size_to_u64(a);
  return select(size, neg_u64(size), a < 0.0f);
}
)"},
// narrow floats: numbers that are subnormal in the narrow format are rounded by adding a number
// whose last place is theirs
{"f16_to_f32", R"(fn f16_to_f32(a: u32) -> f32 {
  let size = a & 0x7fffu;
  let sign = (a & 0x8000u) << 16u;
  if (size < 0x400u) { return bitcast<f32>(bitcast<u32>(f32(size) * 0x1p-24f) | sign); }
  var bits = (size << 13u) + 0x38000000u;
  if (size >= 0x7c00u) { bits = (size << 13u) | 0x7f800000u; }
  if (size > 0x7c00u) { bits |= 0x400000u; }
  return bitcast<f32>(bits | sign);
}
)"},
{"bf16_to_f32", R"(fn bf16_to_f32(a: u32) -> f32 {
  return bitcast<f32>((a << 16u) | select(0u, 0x400000u, (a & 0x7fffu) > 0x7f80u));
}
)"},
{"e5m2_to_f32", R"(fn e5m2_to_f32(a: u32) -> f32 { return f16_to_f32(a << 8u); }
)"},
{"e4m3_to_f32", R"(fn e4m3_to_f32(a: u32) -> f32 {
  let size = a & 0x7fu;
  let sign = (a & 0x80u) << 24u;
  if (size < 8u) { return bitcast<f32>(bitcast<u32>(f32(size) * 0x1p-9f) | sign); }
  return bitcast<f32>(select((size << 20u) + 0x3c000000u, 0x7fc00000u, size == 0x7fu) | sign);
}
)"},
{"f32_to_f16", R"(fn f32_to_f16(a: f32) -> u32 {
  let bits = bitcast<u32>(a);
  let size = bits & 0x7fffffffu;
  let sign = (bits >> 16u) & 0x8000u;
  if (size > 0x7f800000u) { return sign | 0x7e00u | ((size >> 13u) & 0x3ffu); }
  if (size < 0x38800000u) { return sign | (bitcast<u32>(bitcast<f32>(size) + 0.5f) - 0x3f000000u); }
  let based = size - 0x38000000u;
  return sign | min((based + 0xfffu + ((based >> 13u) & 1u)) >> 13u, 0x7c00u);
}
)"},
{"f32_to_bf16", R"(fn f32_to_bf16(a: f32) -> u32 {
  let bits = bitcast<u32>(a);
  let size = bits & 0x7fffffffu;
  let sign = (bits >> 16u) & 0x8000u;
  if (size > 0x7f800000u) { return sign | 0x7fc0u | (size >> 16u); }
  return sign | ((size + 0x7fffu + ((size >> 16u) & 1u)) >> 16u);
}
)"},
{"f32_to_e5m2", R"(fn f32_to_e5m2(a: f32) -> u32 {
  let bits = bitcast<u32>(a);
  let size = bits & 0x7fffffffu;
  let sign = (bits >> 24u) & 0x80u;
  if (size > 0x7f800000u) { return sign | 0x7eu | ((size >> 21u) & 3u); }
  if (size < 0x38800000u) { return sign | (bitcast<u32>(bitcast<f32>(size) + 128.0f) - 0x43000000u); }
  let based = size - 0x38000000u;
  return sign | min((based + 0xfffffu + ((based >> 21u) & 1u)) >> 21u, 0x7cu);
}
)"},
{"f32_to_e4m3", R"(fn f32_to_e4m3(a: f32) -> u32 {
  let bits = bitcast<u32>(a);
  let size = bits & 0x7fffffffu;
  let sign = (bits >> 24u) & 0x80u;
  if (size > 0x7f800000u) { return sign | 0x7fu; }
  if (size < 0x3c800000u) { return sign | (bitcast<u32>(bitcast<f32>(size) + 16384.0f) - 0x46800000u); }
  let based = size - 0x3c000000u;
  return sign | min((based + 0x7ffffu + ((based >> 20u) & 1u)) >> 20u, 0x7fu);
}
)"},
};
// clang-format on

bool is_of_name(char c) { return std::isalnum((unsigned char)c) != 0 || c == '_'; }

bool calls(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    const bool is_whole = at == 0 || !is_of_name(text[at - 1]);
    if (is_whole && end < text.size() && text[end] == '(') return true;
  }
  return false;
}

}  // namespace

std::string with_wgsl_functions(std::string_view text) {
  std::array<bool, std::size(kFunctions)> is_needed{};
  std::vector<std::string_view> callers{text};
  while (!callers.empty()) {
    const std::string_view caller = callers.back();
    callers.pop_back();
    for (size_t i = 0; i < std::size(kFunctions); i++) {
      if (is_needed[i] || !calls(caller, kFunctions[i].name)) continue;
      is_needed[i] = true;
      callers.push_back(kFunctions[i].text);
    }
  }
  std::string out;
  for (size_t i = 0; i < std::size(kFunctions); i++) {
    if (is_needed[i]) out += kFunctions[i].text;
  }
  return out.append(text);
}

}  // namespace weft
