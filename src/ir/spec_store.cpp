// The rules of STORE, the one write:
//   STORE(view of a version, value)                void, the shape of the view    tensor graphs
//   STORE(INDEX(value, indices...), value, gate?)  void                           rangeified
//   STORE(INDEX(pointer, offset), value, gate?)    void                           kernels, programs
//   STORE(register, value, gate?)                  the dtype of the register      kernels, programs
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
    return bad_structure("the target is {}, a whole buffer; INDEX it to say which element",
                         brief(target));
  }
  if (Found f = check_void(n)) return f;
  if (Found f = check_value_dtype(n, target.dtype().pointee())) return f;
  return check_optional_gate(n);
}

Found check_element_store(UOp n) {
  if (Found f = check_void(n)) return f;
  if (Found f = check_value_dtype(n, n.src(0).dtype())) return f;
  return check_optional_gate(n);
}

// Values that no storage holds.
constexpr OpSet kNoVersion = {Op::VARIABLE,    Op::BIND,   Op::RANGE,      Op::SPECIAL,
                              Op::DEVICE,      Op::INDEX,  Op::LOAD,       Op::VECTORIZE,
                              Op::GEP,         Op::REDUCE, Op::DEFINE_REG, Op::DEFINE_GLOBAL,
                              Op::DEFINE_LOCAL};

Found check_view_is_writable(UOp n) {
  const Place place = place_of(n.src(0));
  const UOp version = place.version;
  if (kNoVersion.has(version.op()) || kEffects.has(version.op()) || !is_value(version.dtype())) {
    return bad_structure("the target is {}; allowed are a view of a value, an INDEX and a register",
                         version == n.src(0) ? with_article(version.op())
                                             : "a view of " + with_article(version.op()));
  }
  if (place.is_padded) {
    return bad_structure("the target is a padded view, whose padding is not in memory");
  }
  if (place.is_expanded && !shape_of(n.src(1)).empty()) {
    return bad_structure(
        "the target is an expanded view, which repeats elements; it takes a scalar");
  }
  return {};
}

Found check_view_store(UOp n) {
  if (Found f = check_view_is_writable(n)) return f;
  if (Found f = check_void(n)) return f;
  if (Found f = check_value_dtype(n, n.src(0).dtype())) return f;
  const Shape view = shape_of(n.src(0)), value = shape_of(n.src(1));
  if (!value.empty() && !std::equal(view.begin(), view.end(), value.begin(), value.end())) {
    return bad_shape("the value has shape {}, the target {}", text_of(value), text_of(view));
  }
  return check_has_no_gate(n, "a tensor");
}

Found check_store(UOp n) {
  const UOp target = n.src(0);
  if (target.dtype().is_pointer()) return check_pointer_store(n);
  if (is_register(target)) return check_register_store(n);
  return target.is(Op::INDEX) ? check_element_store(n) : check_view_store(n);
}

constexpr NodeRule kStoreRules[] = {
    {{Op::STORE}, check_store},
};

}  // namespace

std::span<const NodeRule> store_rules() { return kStoreRules; }

}  // namespace weft::spec
