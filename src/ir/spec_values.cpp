// The rules of elementwise ops and vectors.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "ir/shape.h"
#include "ir/spec_rules.h"

namespace weft::spec {
namespace {

// ----------------------------------------------------------------------------- which op takes what

// Narrower than the arithmetic of scalar.cpp.
constexpr OpSet kFloatsOnly = {Op::TRUNC, Op::FLOOR, Op::CEIL, Op::ROUND};

using Accepted = std::array<std::array<bool, kScalarCount>, kOpCount>;

// An op takes the dtypes on which its arithmetic gives a result.
Accepted probe_arithmetic() {
  Accepted out{};
  for (size_t i = 0; i < kOpCount; i++) {
    const Op op = Op(i);
    if (!is_elementwise(op) || op == Op::CAST || op == Op::BITCAST) continue;
    for (size_t s = 1; s < size_t(kScalarCount); s++) {
      const DType type{Scalar(s)};
      const uint64_t one = bits_of_int(type, 1);
      const std::array<uint64_t, 3> ones = {one, one, one};
      const std::span operands(ones.data(), info(op).least_sources);
      out[i][s] = evaluate_scalar(op, type, type, operands).has_value();
      if (kFloatsOnly.has(op)) out[i][s] = type.is_float();
      if (op == Op::THREEFRY) out[i][s] = type == dtypes::uint64;
    }
  }
  return out;
}

// ------------------------------------------------------------------------------------- elementwise

Found check_operands(UOp n) {
  for (size_t i = 0; i < n.src_count(); i++) {
    if (Found f = check_operand(n, i)) return f;
  }
  return {};
}

// The operands that share n's dtype: all but WHERE's condition.
std::span<const UOp> peers(UOp n) { return n.srcs().subspan(n.is(Op::WHERE) ? 1 : 0); }

Found check_peer_dtypes(UOp n) {
  const DType type = peers(n)[0].dtype();
  for (UOp s : peers(n)) {
    if (s.dtype() != type) {
      return bad_dtype("the operands have dtypes {} and {}", type.name(), s.dtype().name());
    }
  }
  if (!accepts(n.op(), type)) {
    return bad_dtype("the operands have dtype {}; it takes {}", type.name(),
                     accepted_dtypes(n.op()));
  }
  const DType result = yields_bool(n.op()) ? dtypes::bool_.vec(type.lanes) : type;
  if (n.dtype() == result) return {};
  return bad_dtype("the dtype is {}; on {} it is {}", n.dtype().name(), type.name(), result.name());
}

Found check_condition(UOp n) {
  const DType given = n.src(0).dtype(), needed = dtypes::bool_.vec(n.dtype().lanes);
  if (given == needed) return {};
  return bad_dtype("the condition has dtype {}; it must be {}", given.name(), needed.name());
}

Found check_cast(UOp n) {
  const DType from = n.src(0).dtype(), to = n.dtype();
  if (from.is_pointer() && to.is_pointer()) {
    if (from.scalar == to.scalar && from.space == to.space) return {};
    return bad_dtype("cannot cast {} to {}: only the lanes of a pointer change", from.name(),
                     to.name());
  }
  if (to.is_pointer() || to.is_void()) {
    return bad_dtype("cannot cast {} to {}", from.name(), to.name());
  }
  if (Found f = check_operand(n, 0)) return f;
  if (from.lanes == to.lanes) return {};
  return bad_dtype("cannot cast {} to {}: {} lanes against {}", from.name(), to.name(), from.lanes,
                   to.lanes);
}

Found check_bitcast(UOp n) {
  const DType from = n.src(0).dtype(), to = n.dtype();
  if (Found f = check_operand(n, 0)) return f;
  if (!is_value(to) || from.is_index() || to.is_index()) {
    return bad_dtype("cannot view the bits of {} as {}: both must have a width", from.name(),
                     to.name());
  }
  // bool is a byte of memory.
  const int from_bits = from.item_bytes() * 8, to_bits = to.item_bytes() * 8;
  if (from_bits == to_bits && from.lanes == to.lanes) return {};
  return bad_dtype("cannot view the bits of {} as {}: {} bits against {}", from.name(), to.name(),
                   from_bits * from.lanes, to_bits * to.lanes);
}

bool same(Shape a, Shape b) {
  return a.size() == b.size() &&
         (a.data() == b.data() || std::equal(a.begin(), a.end(), b.begin()));
}

Found check_shapes(UOp n) {
  Shape shape;
  for (UOp s : n.srcs()) {
    const Shape given = shape_of(s);
    if (given.empty()) continue;
    if (!shape.empty() && !same(shape, given)) {
      return bad_shape("the operands have shapes {} and {}", text_of(shape), text_of(given));
    }
    shape = given;
  }
  return {};
}

// ------------------------------------------------------------------------------------------
// vectors

Found check_vectorize(UOp n) {
  if (Found f = check_operands(n)) return f;
  for (UOp s : n.srcs()) {
    if (s.dtype() != n.dtype().element()) {
      return bad_dtype("a lane has dtype {}; the lanes of {} have {}", s.dtype().name(),
                       n.dtype().name(), n.dtype().element().name());
    }
  }
  if (n.dtype().is_pointer() || n.src_count() != n.dtype().lanes) {
    return bad_dtype("{} sources do not make a {}", n.src_count(), n.dtype().name());
  }
  return {};
}

Found check_gep(UOp n) {
  if (Found f = check_operand(n, 0)) return f;
  const DType from = n.src(0).dtype();
  for (const int64_t lane : n.ints()) {
    if (lane < 0 || lane >= from.lanes) {
      return bad_structure("lane {} is not one of the {} of {}", lane, from.lanes, from.name());
    }
  }
  if (n.ints().empty()) return bad_structure("it takes no lane");
  const DType result = from.vec(uint16_t(n.ints().size()));
  if (n.dtype() == result && n.ints().size() == result.lanes) return {};
  return bad_dtype("the dtype is {}; {} of the lanes of {} are a {}", n.dtype().name(),
                   n.ints().size(), from.name(), result.name());
}

Found check_lane(UOp n) {
  if (Found f = check_operands(n)) return f;
  const DType index = n.src(1).dtype();
  if (index != dtypes::index) {
    return bad_dtype("the index has dtype {}; it must be index", index.name());
  }
  const DType from = n.src(0).dtype();
  if (from.is_vector() && n.dtype() == from.element()) return {};
  return bad_dtype("the dtype is {}; it must be that of a lane of {}", n.dtype().name(),
                   from.name());
}

Found check_wmma(UOp n) {
  if (Found f = check_operand(n, 0)) return f;
  if (Found f = check_operand(n, 3)) return f;
  const auto arg = n.ints();
  const auto is_flag = [&](size_t i) { return arg[i] == 0 || arg[i] == 1; };
  if (arg.size() != 3 || arg[0] < 64 || arg[0] > 256 || arg[0] % 64 != 0 || !is_flag(1) ||
      !is_flag(2)) {
    return bad_structure(
        "its argument must be a number of columns, a multiple of 64 up to 256, and two of 0 and 1");
  }
  const DType sums = dtypes::float32.vec(uint16_t(arg[0] / 2));
  if (n.dtype() != sums || n.src(0).dtype() != sums) {
    return bad_dtype("it gives {} from {}; of {} columns each thread has {}", n.dtype().name(),
                     n.src(0).dtype().name(), arg[0], sums.name());
  }
  for (size_t i = 1; i < 3; i++) {
    const DType factor = n.src(i).dtype();
    const bool is_half =
        factor.element() == dtypes::float16 || factor.element() == dtypes::bfloat16;
    const bool is_memory = factor.space == AddrSpace::kLocal && factor.lanes == 1,
               is_held = i == 1 && !factor.is_pointer() && factor.lanes == 32 && arg[1] == 0;
    if ((is_memory || is_held) && is_half && factor.element() == n.src(1).dtype().element())
      continue;
    return bad_dtype(
        "source {} has dtype {}; factors are float16 or bfloat16 in local memory, the first one "
        "perhaps 32 of them",
        i, factor.name());
  }
  if (n.src(3).dtype().is_int() || n.src(3).dtype().is_index()) return {};
  return bad_dtype("the thread has dtype {}; it must be an integer", n.src(3).dtype().name());
}

constexpr OpSet arithmetic() {
  OpSet set;
  for (size_t i = 0; i < kOpCount; i++) {
    const Op op = Op(i);
    if (kElementwise.has(op) && op != Op::CAST && op != Op::BITCAST) set.add(op);
  }
  return set;
}

constexpr NodeRule kValueRules[] = {
    {arithmetic(), check_operands},     {arithmetic(), check_peer_dtypes},
    {{Op::WHERE}, check_condition},     {{Op::CAST}, check_cast},
    {{Op::BITCAST}, check_bitcast},     {kElementwise, check_shapes},
    {{Op::VECTORIZE}, check_vectorize}, {{Op::GEP}, check_gep},
    {{Op::LANE}, check_lane},           {{Op::WMMA}, check_wmma},
};

}  // namespace

std::span<const NodeRule> value_rules() { return kValueRules; }

bool accepts(Op op, DType type) {
  static const Accepted kAccepted = probe_arithmetic();
  return !type.is_pointer() && kAccepted[size_t(op)][size_t(type.scalar)];
}

std::string accepted_dtypes(Op op) {
  if (op == Op::THREEFRY) return "uint64";
  std::string out;
  auto add = [&](DType example, std::string_view name) {
    if (!accepts(op, example)) return;
    if (!out.empty()) out += " and ";
    out += name;
  };
  add(dtypes::int32, "integers");
  add(dtypes::float32, "floats");
  add(dtypes::bool_, "bool");
  return out;
}

}  // namespace weft::spec
