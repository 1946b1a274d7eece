// Constants: an op on constants is a constant.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"
#include "symbolic/tables.h"

namespace weft {
namespace {
using namespace names;

// Exact or correctly rounded everywhere: folding gives what every device gives. The transcendental
// ones are left to the device.
constexpr OpSet kUnaryOps = {Op::CAST, Op::BITCAST, Op::NEG,   Op::NOT,  Op::RECIP,
                             Op::SQRT, Op::TRUNC,   Op::FLOOR, Op::CEIL, Op::ROUND};
constexpr OpSet kBinaryOps = {Op::ADD,   Op::SUB,   Op::MUL,   Op::FDIV,    Op::IDIV,
                              Op::MOD,   Op::CDIV,  Op::CMOD,  Op::MAX,     Op::MIN,
                              Op::AND,   Op::OR,    Op::XOR,   Op::SHL,     Op::SHR,
                              Op::CMPLT, Op::CMPEQ, Op::CMPNE, Op::THREEFRY};

UOp fold_constants(Match& m) {
  const UOp n = m.root();
  if (n.dtype().is_void() || n.dtype().lanes != n.src(0).dtype().lanes) return UOp();
  std::array<uint64_t, 3> values{};
  for (size_t i = 0; i < n.src_count(); i++) values[i] = n.src(i).bits();
  const std::optional<uint64_t> bits =
      evaluate_scalar(n.op(), n.src(0).dtype(), n.dtype(), std::span(values.data(), n.src_count()));
  if (!bits) return UOp();  // exact arithmetic overflows
  return m.arena().make(Op::CONST, n.dtype(), {}, Arg::bits(*bits));
}

// clang-format off
constexpr Rule kFold[] = {
    rule("fold-unary",    op(kUnaryOps, c0),              fold_constants),
    rule("fold-binary",   op(kBinaryOps, c0, c1),         fold_constants),
    rule("fold-mulacc",   op(Op::MULACC, c0, c1, c2),     fold_constants),
};
// clang-format on

constexpr RuleTable kTables[] = {{"fold", kAnyDType, kFold}};

}  // namespace

std::span<const RuleTable> fold_tables() { return kTables; }

}  // namespace weft
