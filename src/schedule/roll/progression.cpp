// Arithmetic progressions, bit for bit, or tables.
#include "schedule/roll/progression.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"

namespace weft {
namespace {

// c0 + step*loop in the integers of a dtype, which wrap (index does not).
std::optional<UOp> integer_formula(std::span<const uint64_t> constants, DType type, UOp loop) {
  if (!type.is_int()) return std::nullopt;
  const uint64_t first = constants[0], step = constants[1] - first;
  for (size_t i = 0; i < constants.size(); i++) {
    if (constants[i] != bits_of_uint(type, first + step * i)) return std::nullopt;
  }
  Arena& arena = loop.arena();
  const UOp at = type.is_index() ? loop : cast(loop, type);
  const UOp scaled = at * constant_bits(arena, type, bits_of_uint(type, step));
  return scaled + constant_bits(arena, type, first);
}

// Floats that are whole numbers: the integer formula, cast.
std::optional<UOp> whole_formula(std::span<const uint64_t> constants, DType type, UOp loop) {
  if (!type.is_float()) return std::nullopt;
  constexpr double most = 9007199254740992.0;  // 2^53: doubles hold all integers up to it
  const double first = double_of_bits(type, constants[0]);
  const double step = double_of_bits(type, constants[1]) - first;
  const double last = first + step * double(constants.size() - 1);
  const bool is_whole = std::trunc(first) == first && std::trunc(step) == step &&
                        std::abs(first) < most && std::abs(last) < most && std::abs(step) < most;
  if (!is_whole) return std::nullopt;
  for (size_t i = 0; i < constants.size(); i++) {
    if (constants[i] != bits_of_int(type, int64_t(first) + int64_t(step) * int64_t(i))) {
      return std::nullopt;
    }
  }
  return cast(loop * int64_t(step) + int64_t(first), type);
}

// c0 + step*i with the roundings of the dtype.
std::optional<UOp> float_formula(std::span<const uint64_t> constants, DType type, UOp loop) {
  if (!type.is_float()) return std::nullopt;
  const uint64_t difference[] = {constants[1], constants[0]};
  const uint64_t step = *evaluate_scalar(Op::SUB, type, type, difference);
  for (size_t i = 0; i < constants.size(); i++) {
    const uint64_t factors[] = {bits_of_int(type, int64_t(i)), step};
    const uint64_t terms[] = {*evaluate_scalar(Op::MUL, type, type, factors), constants[0]};
    if (constants[i] != *evaluate_scalar(Op::ADD, type, type, terms)) return std::nullopt;
  }
  Arena& arena = loop.arena();
  return cast(loop, type) * constant_bits(arena, type, step) +
         constant_bits(arena, type, constants[0]);
}

UOp table(std::span<const uint64_t> constants, DType type, UOp loop, const std::string& device,
          Tables& tables) {
  Arena& arena = loop.arena();
  const DType stored = type.is_index() ? dtypes::int64 : type;
  const int64_t id = arena.fresh_id();
  const UOp memory = buffer(arena, stored, int64_t(constants.size()), device, id);
  tables[id].assign(constants.begin(), constants.end());
  const UOp element = index(memory, loop);
  return type.is_index() ? cast(element, type) : element;
}

}  // namespace

std::optional<UOp> formula_of(std::span<const uint64_t> constants, DType type, UOp loop) {
  if (std::ranges::all_of(constants, [&](uint64_t c) { return c == constants[0]; })) {
    return constant_bits(loop.arena(), type, constants[0]);
  }
  for (const auto formula : {integer_formula, whole_formula, float_formula}) {
    if (std::optional<UOp> found = formula(constants, type, loop)) return found;
  }
  return std::nullopt;
}

UOp sequence_of(std::span<const uint64_t> constants, DType type, UOp loop,
                const std::string& device, Tables& tables) {
  if (const std::optional<UOp> formula = formula_of(constants, type, loop)) return *formula;
  return table(constants, type, loop, device, tables);
}

}  // namespace weft
