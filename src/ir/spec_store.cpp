// The rules of STORE, the one write:
//   STORE(view of a version, value)                void, the shape of the view    tensor graphs
//   STORE(INDEX(view, indices...), value)          void, the shape of indices     tensor graphs
//   STORE(INDEX(value, indices...), value, gate?)  void                           rangeified
//   STORE(INDEX(pointer, offset), value, gate?)    void                           kernels, programs
//   STORE(register, value, gate?)                  the dtype of the register      kernels, programs
// A register is a DEFINE_REG, or a DEFINE_GLOBAL without a size, which is one element.
// In tensor graphs and rangeified ones it may combine what is there with the value, by an op.
#include <algorithm>
#include <span>
#include <string_view>

#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/shape.h"
#include "ir/spec_rules.h"

namespace weft::spec {
namespace {

Found check_value_dtype(UOp n, DType needed) {
  if (Found f = check_operand(n, 1)) return f;
  if (n.src(1).dtype() == needed) return {};
  return bad_dtype("the value has dtype {}; the target takes {}", n.src(1).dtype().name(),
                   needed.name());
}

Found check_has_no_gate(UOp n, std::string_view target) {
  if (n.src_count() == 2) return {};
  return bad_structure("it has a gate; a write to {} has none", target);
}

Found check_optional_gate(UOp n) {
  return n.src_count() == 3 ? check_gate(n, 2, n.src(1).dtype().lanes) : Found();
}

Found check_register_store(UOp n) {
  const DType type = n.src(0).dtype();
  if (n.dtype() != type) {
    return bad_dtype("the dtype is {}; a write to the register {} has its dtype, {}",
                     n.dtype().name(), brief(place_of(n.src(0)).base), type.name());
  }
  if (Found f = check_value_dtype(n, type)) return f;
  return check_optional_gate(n);
}

Found check_pointer_store(UOp n) {
  const UOp target = n.src(0);
  if (!place_of(target).is_indexed) {
    const UOp base = place_of(target).base;
    const bool is_of_one =
        base.is(Op::DEFINE_GLOBAL) && base.src(0).is_const() && base.src(0).const_int() == 1;
    return bad_structure("the target is {}, a whole buffer; INDEX it to say which element{}",
                         brief(target),
                         is_of_one ? ", or define it without a size: that is one element, which is "
                                     "written like a register"
                                   : "");
  }
  if (Found f = check_void(n)) return f;
  if (Found f = check_value_dtype(n, target.dtype().pointee())) return f;
  return check_optional_gate(n);
}

Found check_value_shape(UOp n) {
  const Shape view = shape_of(n.src(0)), value = shape_of(n.src(1));
  if (value.empty() || std::ranges::equal(view, value)) return {};
  return bad_shape("the value has shape {}, the target {}", text_of(value), text_of(view));
}

Found check_element_store(UOp n) {
  if (Found f = check_void(n)) return f;
  if (Found f = check_value_dtype(n, n.src(0).dtype())) return f;
  if (Found f = check_value_shape(n)) return f;
  return check_optional_gate(n);
}

// Values that no storage holds.
constexpr OpSet kNoVersion = {Op::VARIABLE,     Op::BIND,   Op::RANGE,      Op::SPECIAL,
                              Op::DEVICE,       Op::INDEX,  Op::LOAD,       Op::VECTORIZE,
                              Op::GEP,          Op::REDUCE, Op::DEFINE_REG, Op::DEFINE_GLOBAL,
                              Op::DEFINE_LOCAL, Op::LANE,   Op::WMMA};

Found check_view_is_writable(UOp n) {
  const UOp view = n.src(0).is(Op::INDEX) ? n.src(0).src(0) : n.src(0);
  const Place place = place_of(view);
  const UOp version = place.version;
  if (kNoVersion.has(version.op()) || kEffects.has(version.op()) || !is_value(version.dtype())) {
    return bad_structure(
        "the target is {}; allowed are a view of a value, an INDEX and a register",
        version == view ? with_article(version.op()) : "a view of " + with_article(version.op()));
  }
  if (place.is_padded) {
    return bad_structure("the target is a padded view, whose padding is not in memory");
  }
  if (place.is_expanded && !n.accumulates() && !shape_of(n.src(1)).empty()) {
    return bad_structure(
        "the target is an expanded view, which repeats elements; it takes a scalar");
  }
  return {};
}

Found check_view_store(UOp n) {
  if (Found f = check_view_is_writable(n)) return f;
  if (Found f = check_void(n)) return f;
  if (Found f = check_value_dtype(n, n.src(0).dtype())) return f;
  if (Found f = check_value_shape(n)) return f;
  return check_has_no_gate(n, "a tensor");
}

Found check_combines(UOp n) {
  constexpr OpSet allowed = {Op::ADD, Op::MUL, Op::MAX, Op::MIN};
  const UOp target = n.src(0);
  if (!allowed.has(n.arg_op())) {
    return bad_structure("it combines by {}; allowed are ADD, MUL, MAX and MIN",
                         name_of(n.arg_op()));
  }
  if (target.dtype().is_pointer() || is_register(target)) {
    return bad_structure("it combines by {}; a write to a pointer or a register does not",
                         name_of(n.arg_op()));
  }
  const UOp view = target.is(Op::INDEX) ? target.src(0) : target;
  const DType stored = place_of(view).version.dtype();
  if (stored != target.dtype()) {
    return bad_dtype("it combines elements of {} in memory of {}", target.dtype().name(),
                     stored.name());
  }
  if (accepts(n.arg_op(), target.dtype())) return {};
  return bad_dtype("{} is not defined on {}", name_of(n.arg_op()), target.dtype().name());
}

Found check_store(UOp n) {
  const UOp target = n.src(0);
  if (n.accumulates()) {
    if (Found f = check_combines(n)) return f;
  }
  if (target.dtype().is_pointer()) return check_pointer_store(n);
  if (is_register(target)) return check_register_store(n);
  return target.is(Op::INDEX) ? check_element_store(n) : check_view_store(n);
}

constexpr NodeRule kStoreRules[] = {
    {{Op::STORE}, check_store},
};

}  // namespace

Found check_scatter(UOp n) {
  if (!n.src(0).is(Op::INDEX)) return {};
  if (Found f = check_view_is_writable(n)) return f;
  return check_has_no_gate(n, "elements of a tensor");
}

std::span<const NodeRule> store_rules() { return kStoreRules; }

}  // namespace weft::spec
