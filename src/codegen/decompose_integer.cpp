// What integers and bool need: ops in terms of others, and small integers in int32.
#include <cstdint>
#include <span>
#include <vector>

#include "codegen/decompose_rules.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"

namespace weft {
namespace {
using namespace names;

UOp all_ones(UOp x) { return bits_like(x, ~uint64_t(0)); }  // of bool: true

UOp negated(Match& m) { return bits_like(m[x], 0) - m[x]; }
UOp flipped(Match& m) { return bit_xor(m[x], all_ones(m[x])); }
UOp larger(Match& m) { return where(m[x] < m[y], m[y], m[x]); }
UOp smaller(Match& m) { return where(m[y] < m[x], m[y], m[x]); }
UOp multiply_accumulate(Match& m) { return m[x] * m[y] + m[z]; }

UOp either_holds(Match& m) { return m[x] | m[y]; }
UOp both_hold(Match& m) { return m[x] & m[y]; }
UOp differ(Match& m) { return bit_xor(m[x], m[y]); }
UOp agree(Match& m) { return bit_xor(bit_xor(m[x], m[y]), all_ones(m[x])); }
UOp only_second(Match& m) { return bit_xor(m[x], all_ones(m[x])) & m[y]; }

// Every result of int32 has the low bits that the small dtype asks for; only a right shift past the
// small width still shows the sign.
UOp in_int32(Match& m) {
  const UOp n = m.root();
  const DType small = n.src(0).dtype(), wide = like(small, dtypes::int32);
  if (!m.context<Decomposition>().can(n.op(), wide)) return {};
  std::vector<UOp> srcs;
  for (UOp s : n.srcs()) srcs.push_back(cast(s, wide));
  const UOp out = m.arena().make(n.op(), yields_bool(n.op()) ? n.dtype() : wide, srcs);
  if (!n.is(Op::SHR) || !small.is_signed()) return cast(out, n.dtype());
  const UOp is_within = srcs[1] < bits_like(srcs[1], uint64_t(small.bits()));
  return cast(where(is_within, out, bits_like(out, 0)), n.dtype());
}

constexpr OpSet kArithmetic = {Op::ADD,  Op::SUB, Op::MUL, Op::AND,   Op::OR,    Op::XOR,  Op::CDIV,
                               Op::CMOD, Op::SHL, Op::SHR, Op::CMPLT, Op::CMPEQ, Op::CMPNE};

// clang-format off
constexpr Rule kIntegerRules[] = {
    rule("integer-neg",    op(Op::NEG, x),          negated).when(is_missing),
    rule("integer-not",    op(Op::NOT, x),          flipped).when(is_missing),
    rule("integer-max",    op(Op::MAX, x, y),       larger).when(is_missing),
    rule("integer-min",    op(Op::MIN, x, y),       smaller).when(is_missing),
    rule("integer-mulacc", op(Op::MULACC, x, y, z), multiply_accumulate).when(is_missing),
};
constexpr Rule kSmallRules[] = {
    rule("small-integer",  op(kArithmetic, x, y),   in_int32).when(is_missing),
};
constexpr Rule kBoolRules[] = {
    rule("bool-not",       op(Op::NOT, x),                flipped).when(is_missing),
    rule("bool-or",        op({Op::ADD, Op::MAX}, x, y),  either_holds).when(is_missing),
    rule("bool-and",       op({Op::MUL, Op::MIN}, x, y),  both_hold).when(is_missing),
    rule("bool-equal",     op(Op::CMPEQ, x, y),           agree).when(is_missing),
    rule("bool-not-equal", op(Op::CMPNE, x, y),           differ).when(is_missing),
    rule("bool-less",      op(Op::CMPLT, x, y),           only_second).when(is_missing),
};
// clang-format on

constexpr DTypeSet kSmallIntegers = set_of(Scalar::kInt8) | set_of(Scalar::kInt16) |
                                    set_of(Scalar::kUInt8) | set_of(Scalar::kUInt16);

constexpr RuleTable kTables[] = {
    {"integer", kMachineInts, kIntegerRules},
    {"small-integer", kSmallIntegers, kSmallRules},
    {"bool", kBools, kBoolRules},
};

}  // namespace

std::span<const RuleTable> integer_tables() { return kTables; }

}  // namespace weft
