// Arithmetic on narrow floats (float16, bfloat16, fp8) in float32, rounded back after every op.
// float32 has more than twice their precision: rounding + - * / and the square root a second time
// gives what rounding once would.
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

UOp in_float32(Match& m) {
  const auto& d = m.context<Decomposition>();
  const UOp n = m.root();
  std::vector<UOp> srcs;
  for (UOp s : n.srcs()) srcs.push_back(widened(d, s));
  const DType type = yields_bool(n.op()) ? n.dtype() : like(n.dtype(), dtypes::float32);
  return cast(m.arena().make(n.op(), type, srcs), n.dtype());
}

UOp flip_sign(Match& m) {
  const UOp bits = bitcast(m[x], unsigned_of(m[x].dtype()));
  const UOp sign = bits_like(bits, uint64_t(1) << (m[x].dtype().bits() - 1));
  return bitcast(bit_xor(bits, sign), m[x].dtype());
}

constexpr OpSet kUnaryOps = {Op::RECIP, Op::SQRT, Op::EXP2,  Op::LOG2,  Op::EXP,  Op::LOG,
                             Op::SIN,   Op::COS,  Op::TRUNC, Op::FLOOR, Op::CEIL, Op::ROUND};
constexpr OpSet kBinaryOps = {Op::ADD, Op::SUB,   Op::MUL,   Op::FDIV, Op::MAX,
                              Op::MIN, Op::CMPLT, Op::CMPEQ, Op::CMPNE};

// clang-format off
constexpr Rule kRules[] = {
    rule("narrow-neg",    op(Op::NEG, x),         flip_sign ).when(is_missing),
    rule("narrow-unary",  op(kUnaryOps, x),       in_float32).when(is_missing),
    rule("narrow-binary", op(kBinaryOps, x, y),   in_float32).when(is_missing),
};
// clang-format on

constexpr RuleTable kTables[] = {{"narrow", kNarrowFloats, kRules}};

}  // namespace

std::span<const RuleTable> narrow_float_tables() { return kTables; }

}  // namespace weft
