// The rules of constants, variables, ranges, devices and memory; and the checks that all tables
// share.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "ir/bounds.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/reads.h"
#include "ir/scalar.h"
#include "ir/scope.h"
#include "ir/spec_rules.h"
#include "ir/walk.h"

namespace weft::spec {
namespace {

// ------------------------------------------------------------------------- constants and variables

Found check_const(UOp n) {
  if (!is_value(n.dtype())) {
    return bad_dtype("the dtype is {}; a constant has a dtype of values", n.dtype().name());
  }
  const uint64_t canonical = bits_of_uint(n.dtype(), n.bits());
  if (n.bits() == canonical) return {};
  return bad_dtype("the bits {:#x} are not canonical in {}; they would be {:#x}", n.bits(),
                   n.dtype().name(), canonical);
}

Found check_variable(UOp n) {
  if (!n.dtype().is_int() || n.dtype().is_vector() || n.dtype().is_pointer()) {
    return bad_dtype("{} has dtype {}; allowed are integers", n.name(), n.dtype().name());
  }
  if (n.name().starts_with('$')) {  // the simplifier's own stand-ins
    return bad_structure("{} starts with $; such names are kept for weft", n.name());
  }
  for (UOp bound : n.srcs()) {
    if (!bound.is_const()) {
      return bad_structure("{} has {} for a bound; allowed are constants", n.name(),
                           with_article(bound.op()));
    }
    if (bound.dtype() != n.dtype()) {
      return bad_dtype("{} has dtype {}, its bound {} has {}", n.name(), n.dtype().name(),
                       brief(bound), bound.dtype().name());
    }
  }
  const bool is_empty = n.dtype().is_unsigned() ? n.src(0).bits() > n.src(1).bits()
                                                : n.src(0).const_int() > n.src(1).const_int();
  if (!is_empty) return {};
  return bad_shape("{} has no value: its bounds are {} to {}", n.name(), brief(n.src(0)),
                   brief(n.src(1)));
}

Found check_bind(UOp n) {
  const UOp variable = n.src(0), value = n.src(1);
  if (!variable.is(Op::VARIABLE)) {
    return bad_structure("source 0 is {}; only a VARIABLE is bound", with_article(variable.op()));
  }
  if (n.dtype() != variable.dtype() || value.dtype() != variable.dtype()) {
    return bad_dtype("{} has dtype {}, its value {}, the result {}", variable.name(),
                     variable.dtype().name(), value.dtype().name(), n.dtype().name());
  }
  if (Found f = check_operand(n, 1)) return f;
  if (!ranges_of(value).empty()) {
    return bad_structure("{} is {}, which changes with {}; it has one value in a call",
                         variable.name(), brief(value), brief(ranges_of(value).front()));
  }
  const Interval allowed = bounds(variable), given = bounds(value);
  if (given.lo <= allowed.hi && allowed.lo <= given.hi) return {};
  return bad_structure("{} is {}, outside of its bounds {} to {}", variable.name(), brief(value),
                       allowed.lo, allowed.hi);
}

// --------------------------------------------------------------------------------- ranges, devices

Found check_loop_index(UOp n) {
  if (n.dtype() != dtypes::index && n.dtype() != dtypes::int32 && n.dtype() != dtypes::int64) {
    return bad_dtype("the dtype is {}; allowed are index, int32 and int64", n.dtype().name());
  }
  constexpr std::array k_side_by_side = {AxisType::kUpcast, AxisType::kUnroll, AxisType::kLane,
                                         AxisType::kGroupReduce, AxisType::kLocal};
  constexpr int64_t k_most = 1024;  // copies, lanes or threads
  if (Found f = check_size(n, 0, n.dtype())) return f;
  const UOp size = n.src(0);
  if (n.is(Op::SPECIAL)) {
    if (ranges_of(size).empty()) return {};
    return bad_structure("the size {} changes with {}, a loop", brief(size),
                         brief(ranges_of(size).front()));
  }
  for (UOp r : ranges_of(size)) {
    constexpr std::array k_copied = {AxisType::kUpcast, AxisType::kUnroll, AxisType::kLane,
                                     AxisType::kGroupReduce};
    if (r == n || std::ranges::find(k_copied, r.axis()) == k_copied.end()) continue;
    return bad_structure("the size {} changes with {}, which is of axis type {}", brief(size),
                         brief(r), name_of(r.axis()));
  }
  if (std::ranges::find(k_side_by_side, n.axis()) == k_side_by_side.end()) return {};
  if (size.is_const() && size.const_int() >= 1 && size.const_int() <= k_most) return {};
  return bad_structure("the size is {}; of axis type {} it is a constant from 1 to {}", brief(size),
                       name_of(n.axis()), k_most);
}

// -------------------------------------------------------------------------------------------
// memory

Found check_stored_dtype(DType element) {
  if (!element.is_void() && !element.is_index()) return {};
  return bad_dtype("memory does not hold elements of {}", element.name());
}

// Memory is there before a kernel runs: no loop, and nothing that is read, changes its size.
Found check_memory_size(UOp n, DType type) {
  if (Found f = check_size(n, 0, type)) return f;
  const UOp size = n.src(0);
  if (!ranges_of(size).empty()) {
    return bad_structure("the size {} changes with {}, a loop; memory is made before loops",
                         brief(size), brief(ranges_of(size).front()));
  }
  if (reads_memory(size)) {
    return bad_structure("the size {} is read from memory; it must be known before", brief(size));
  }
  if (size.is_const()) return {};
  const std::vector<UOp> order = toposort(size);
  const auto reduce = std::ranges::find_if(order, [](UOp m) { return m.is(Op::REDUCE); });
  if (reduce == order.end()) return {};
  return bad_structure("the size {} is reduced over {}, a loop; memory is made before loops",
                       brief(size), brief(reduce->src(1)));
}

Found check_iota(UOp n) {
  if (!n.dtype().is_int() || n.dtype().is_index() || n.dtype().is_pointer()) {
    return bad_dtype("the dtype is {}; allowed are integers", n.dtype().name());
  }
  return check_size(n, 0, dtypes::index);
}

Found check_buffer(UOp n) {
  if (n.dtype().is_pointer()) {
    return bad_dtype("the dtype is {}; a BUFFER has the dtype of its elements", n.dtype().name());
  }
  if (Found f = check_stored_dtype(n.dtype())) return f;
  if (Found f = check_memory_size(n, dtypes::index)) return f;
  if (n.src(1).is(Op::DEVICE)) return {};
  return bad_structure("source 1 is {}; it must be a DEVICE", with_article(n.src(1).op()));
}

Found check_pointer_definition(UOp n, AddrSpace space) {
  if (n.dtype().space != space) {
    return bad_dtype("the dtype is {}; it must be a pointer to {} memory", n.dtype().name(),
                     name_of(space));
  }
  if (Found f = check_stored_dtype(n.dtype().pointee())) return f;
  const DType size = n.src(0).dtype();
  const bool has_width = size == dtypes::int32 || size == dtypes::int64;
  return check_memory_size(n, has_width ? size : dtypes::index);
}

Found check_define_global(UOp n) {
  if (n.src_count() == 1) return check_pointer_definition(n, AddrSpace::kGlobal);
  if (n.dtype().is_pointer()) {
    return bad_structure("the dtype is {} without a size; a pointer has a size for its source",
                         n.dtype().name());
  }
  return check_stored_dtype(n.dtype());
}

Found check_define_local(UOp n) { return check_pointer_definition(n, AddrSpace::kLocal); }

Found check_define_reg(UOp n) {
  if (is_value(n.dtype())) return {};
  return bad_dtype("the dtype is {}; a register holds a value", n.dtype().name());
}

constexpr NodeRule kDefinitionRules[] = {
    {{Op::CONST}, check_const},
    {{Op::VARIABLE}, check_variable},
    {{Op::BIND}, check_bind},
    {{Op::RANGE, Op::SPECIAL}, check_loop_index},
    {{Op::DEVICE}, check_void},
    {{Op::IOTA}, check_iota},
    {{Op::BUFFER}, check_buffer},
    {{Op::DEFINE_GLOBAL}, check_define_global},
    {{Op::DEFINE_LOCAL}, check_define_local},
    {{Op::DEFINE_REG}, check_define_reg},
};

}  // namespace

std::span<const NodeRule> definition_rules() { return kDefinitionRules; }

// ----------------------------------------------------------------------------------- shared checks

Found check_operand(UOp n, size_t i) {
  const UOp s = n.src(i);
  if (kEffects.has(s.op())) {
    return bad_structure("source {} is {}, an effect; values are read AFTER it", i,
                         with_article(s.op()));
  }
  if (s.is(Op::DEFINE_REG)) {
    return bad_structure("source {} reads {} before any STORE; a register is read AFTER one", i,
                         brief(s));
  }
  if (s.dtype().is_pointer()) {
    return bad_dtype("source {} is a pointer, {}; its value is read by a LOAD", i,
                     s.dtype().name());
  }
  if (s.dtype().is_void()) {
    return bad_dtype("source {} is {}, which has no value", i, with_article(s.op()));
  }
  return {};
}

Found check_effect(UOp n, size_t i) {
  if (kEffects.has(n.src(i).op())) return {};
  return bad_structure("source {} is {}, which is no effect", i, with_article(n.src(i).op()));
}

Found check_void(UOp n) {
  if (n.dtype() == dtypes::void_) return {};
  return bad_dtype("the dtype is {}; it must be void", n.dtype().name());
}

Found check_keeps_dtype(UOp n) {
  if (Found f = check_operand(n, 0)) return f;
  if (n.dtype() == n.src(0).dtype()) return {};
  return bad_dtype("the dtype is {}, that of its source {}", n.dtype().name(),
                   n.src(0).dtype().name());
}

Found check_gate(UOp n, size_t i, uint16_t lanes) {
  const DType given = n.src(i).dtype();
  if (given == dtypes::bool_ || given == dtypes::bool_.vec(lanes)) return check_operand(n, i);
  return bad_dtype("the gate has dtype {}; it must be {}", given.name(),
                   lanes == 1 ? "bool" : "bool or " + dtypes::bool_.vec(lanes).name());
}

Found check_size(UOp n, size_t i, DType type, std::string_view what) {
  const UOp size = n.src(i);
  if (size.dtype() != type) {
    return bad_dtype("the {} {} has dtype {}; it must be {}", what, brief(size),
                     size.dtype().name(), type.name());
  }
  if (Found f = check_operand(n, i)) return f;
  if (bounds(size).hi < 0) return bad_shape("the {} {} is negative", what, brief(size));
  if (size.is_const() && Dim(size).value() != size.const_int()) {
    return bad_shape("the {} {} is not below 2^62", what, brief(size));
  }
  return {};
}

Found check_ranges(UOp n, size_t first) {
  for (size_t i = first; i < n.src_count(); i++) {
    const UOp r = n.src(i);
    if (!r.is(Op::RANGE)) {
      return bad_structure("source {} is {}; it must be a RANGE", i, with_article(r.op()));
    }
    for (size_t j = first; j < i; j++) {
      if (n.src(j) == r) return bad_structure("{} occurs twice", brief(r));
      if (is_in_scope(r, n.src(j))) {
        return bad_structure("the size of {} changes with {}, which comes after it: inside of it",
                             brief(n.src(j)), brief(r));
      }
    }
  }
  return {};
}

Found check_reduction(UOp n) {
  const Op op = n.arg_op();
  if (!is_associative(op)) {
    return bad_structure("cannot reduce by {}; allowed are ADD, MUL, MAX, MIN, AND, OR, XOR",
                         name_of(op));
  }
  if (accepts(op, n.dtype())) return {};
  return bad_dtype("cannot reduce {} by {}; it takes {}", n.dtype().name(), name_of(op),
                   accepted_dtypes(op));
}

std::string with_article(Op op) {
  constexpr std::string_view vowels = "AEIO";
  const std::string_view name = name_of(op);
  const bool vowel = vowels.find(name.front()) != std::string_view::npos;
  return fmt::format("{} {}", vowel ? "an" : "a", name);
}

std::string brief(UOp n) { return short_form(n, 40); }

}  // namespace weft::spec
