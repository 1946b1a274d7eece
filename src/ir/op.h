// What ops there are, from ops.def.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace weft {

enum class Op : uint8_t {
#define WEFT_OP(name, ...) name,
#include "ir/ops.def"
#undef WEFT_OP
};

enum class Stage : uint8_t { kTensor, kRangeified, kKernel, kProgram };
inline constexpr std::array kStages = {Stage::kTensor, Stage::kRangeified, Stage::kKernel,
                                       Stage::kProgram};

enum class OpGroup : uint8_t {
  Define,
  Movement,
  Tensor,
  Ranges,
  Memory,
  Unary,
  Binary,
  Ternary,
  Vector
};

// How the argument word of a node is read.
enum class ArgKind : uint8_t {
  None,
  Const,    // the bits of a constant in the node's dtype
  Int,      // an integer: the id of a definition
  Name,     // a string
  Range,    // a range id and an AxisType
  Op,       // an op
  MaybeOp,  // an op, or none
  Space,    // an AddrSpace
  Ints,     // a list of integers
  OpInts,   // an op, then a list of integers
};

// What a loop of a kernel is for.
enum class AxisType : uint8_t {
  kLoop,
  kGlobal,
  kLocal,
  kReduce,
  kGroupReduce,
  kUpcast,
  kUnroll,
  kThread,
  kLane,
};

struct OpInfo {
  std::string_view name;
  OpGroup group;
  uint32_t least_sources, most_sources;
  uint8_t stages, flags;
  ArgKind arg;
  uint8_t gradient_reads;
  std::string_view doc;
};

inline constexpr uint32_t kMany = UINT32_MAX;

enum OpFlag : uint8_t { kCommutes = 1, kYieldsBool = 2, kAssociative = 4, kEffect = 8 };
enum GradientRead : uint8_t {
  kReadsS0 = 1,
  kReadsS1 = 2,
  kReadsS2 = 4,
  kReadsOut = 8,
  kReadsShape = 16
};

namespace detail {
inline constexpr uint8_t T = 1, R = 2, K = 4, P = 8;
inline constexpr uint8_t C = kCommutes, B = kYieldsBool, A = kAssociative, E = kEffect;
inline constexpr uint8_t S0 = kReadsS0, S1 = kReadsS1, OUT = kReadsOut, SHAPE = kReadsShape;
inline constexpr OpInfo kOpTable[] = {
#define WEFT_OP(name, group, least, most, stages, flags, arg, grad, doc) \
  {#name, OpGroup::group, least, most, stages, flags, ArgKind::arg, grad, doc},
#include "ir/ops.def"
#undef WEFT_OP
};
}  // namespace detail

inline constexpr size_t kOpCount = std::size(detail::kOpTable);

constexpr const OpInfo& info(Op op) { return detail::kOpTable[size_t(op)]; }
constexpr std::string_view name_of(Op op) { return info(op).name; }
constexpr bool commutes(Op op) { return info(op).flags & kCommutes; }
constexpr bool yields_bool(Op op) { return info(op).flags & kYieldsBool; }
constexpr bool is_associative(Op op) { return info(op).flags & kAssociative; }
constexpr bool is_effect(Op op) { return info(op).flags & kEffect; }
constexpr bool is_elementwise(Op op) {
  return info(op).group >= OpGroup::Unary && info(op).group <= OpGroup::Ternary;
}
constexpr bool is_movement(Op op) { return info(op).group == OpGroup::Movement; }
constexpr bool is_legal_in(Op op, Stage stage) { return info(op).stages >> unsigned(stage) & 1; }

std::optional<Op> parse_op(std::string_view name);
std::optional<AxisType> parse_axis_type(std::string_view name);
std::optional<Stage> parse_stage(std::string_view name);
std::string_view name_of(AxisType axis);
std::string_view name_of(Stage stage);
std::string_view name_of(OpGroup group);

// A set of ops: two words.
class OpSet {
 public:
  constexpr OpSet() = default;
  constexpr OpSet(std::initializer_list<Op> ops) {
    for (Op op : ops) add(op);
  }
  static constexpr OpSet all() {
    OpSet s;
    s.words_ = {~uint64_t(0), ~uint64_t(0)};
    return s;
  }
  constexpr void add(Op op) { words_[size_t(op) / 64] |= uint64_t(1) << (size_t(op) % 64); }
  constexpr bool has(Op op) const { return words_[size_t(op) / 64] >> (size_t(op) % 64) & 1; }
  constexpr int size() const { return std::popcount(words_[0]) + std::popcount(words_[1]); }
  constexpr bool operator==(const OpSet&) const = default;

 private:
  std::array<uint64_t, 2> words_{};
};
static_assert(kOpCount <= 128);

}  // namespace weft
