// The rules of ranges, memory and order; STORE has a file of its own.
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

#include "ir/box.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scope.h"
#include "ir/shape.h"
#include "ir/spec_rules.h"

namespace weft::spec {
namespace {

// ------------------------------------------------------------------------------- ranges and
// buffers

Found check_reduce(UOp n) {
  if (Found f = check_keeps_dtype(n)) return f;
  if (Found f = check_reduction(n)) return f;
  if (n.src_count() == 1) return bad_structure("it names no RANGE to reduce over");
  return check_ranges(n, 1);
}

Found check_bufferize(UOp n) {
  if (Found f = check_keeps_dtype(n)) return f;
  if (n.dtype().is_index()) return bad_dtype("memory does not hold elements of index");
  for (size_t i = 1; i < n.src_count(); i++) {
    const UOp r = n.src(i);
    const bool is_unit_axis = r.is_const() && r.dtype() == dtypes::index && r.const_int() == 0;
    if (is_unit_axis) continue;
    if (!r.is(Op::RANGE)) {
      return bad_structure("source {} is {}; it must be a RANGE, or 0 for an axis of size 1", i,
                           with_article(r.op()));
    }
    if (!ranges_of(r.src(0)).empty()) {
      return bad_structure("the size of {} changes with {}; memory is made before loops", brief(r),
                           brief(ranges_of(r.src(0)).front()));
    }
    for (size_t j = 1; j < i; j++) {
      if (n.src(j) == r) return bad_structure("{} occurs twice", brief(r));
    }
  }
  return {};
}

Found check_kernel(UOp n) {
  if (Found f = check_void(n)) return f;
  if (!n.src(0).is(Op::SINK)) {
    return bad_structure("source 0 is {}; the ast of a kernel is a SINK",
                         with_article(n.src(0).op()));
  }
  constexpr OpSet scalars = {Op::BIND, Op::VARIABLE, Op::CONST};
  for (size_t i = 1; i < n.src_count(); i++) {
    const Place place = place_of(n.src(i));
    const bool is_buffer = place.base.is(Op::BUFFER) && place.version == n.src(i);
    if (is_buffer || scalars.has(n.src(i).op())) continue;
    return bad_structure(
        "source {} is {}; an argument is a BUFFER, one AFTER effects, or a BIND, VARIABLE or CONST",
        i, with_article(n.src(i).op()));
  }
  return {};
}

// ---------------------------------------------------------------------------------------------
// memory

Found check_index_of_pointer(UOp n) {
  if (n.src_count() != 2) {
    return bad_structure("a pointer takes 1 index; given are {}", n.src_count() - 1);
  }
  if (place_of(n.src(0)).is_indexed) {
    return bad_structure("source 0 is {}, an element; an INDEX is of the whole memory",
                         brief(n.src(0)));
  }
  if (n.dtype() == n.src(0).dtype()) return {};
  return bad_dtype("the dtype is {}; an INDEX of {} has the same", n.dtype().name(),
                   n.src(0).dtype().name());
}

Found check_index_of_value(UOp n) {
  if (Found f = check_operand(n, 0)) return f;
  const Shape shape = shape_of(n.src(0));
  if (n.src_count() - 1 != shape.size()) {
    return bad_shape("{} takes {} indices; given are {}", text_of(shape), shape.size(),
                     n.src_count() - 1);
  }
  const Shape result = shape_of(n);
  for (UOp i : n.srcs().subspan(1)) {
    const Shape own = shape_of(i);
    if (own.empty() || std::ranges::equal(own, result)) continue;
    return bad_shape("an index has shape {}, another one {}; allowed are one shape and scalars",
                     text_of(own), text_of(result));
  }
  if (n.dtype() == n.src(0).dtype()) return {};
  return bad_dtype("the dtype is {}; an element has {}", n.dtype().name(), n.src(0).dtype().name());
}

Found check_index(UOp n) {
  for (size_t i = 1; i < n.src_count(); i++) {
    if (Found f = check_operand(n, i)) return f;
    const DType type = n.src(i).dtype();
    if (type != dtypes::index && type != dtypes::int32 && type != dtypes::int64) {
      return bad_dtype("the index {} has dtype {}; allowed are index, int32 and int64",
                       brief(n.src(i)), type.name());
    }
  }
  return n.src(0).dtype().is_pointer() ? check_index_of_pointer(n) : check_index_of_value(n);
}

Found check_load(UOp n) {
  const UOp pointer = n.src(0);
  if (!pointer.dtype().is_pointer()) {
    return bad_dtype("source 0 has dtype {}; a LOAD reads through a pointer",
                     pointer.dtype().name());
  }
  if (!place_of(pointer).is_indexed) {
    return bad_structure("source 0 is {}, a whole buffer; a LOAD reads an INDEX of it",
                         brief(pointer));
  }
  if (n.dtype() != pointer.dtype().pointee()) {
    return bad_dtype("the dtype is {}; through {} it is {}", n.dtype().name(),
                     pointer.dtype().name(), pointer.dtype().pointee().name());
  }
  if (n.src_count() == 1) return {};
  if (n.src_count() == 2) return bad_structure("it has a gate, but no value for where it is false");
  if (Found f = check_gate(n, 1, n.dtype().lanes)) return f;
  if (Found f = check_operand(n, 2)) return f;
  if (n.src(2).dtype() == n.dtype()) return {};
  return bad_dtype("the value for a false gate has dtype {}; it must be {}",
                   n.src(2).dtype().name(), n.dtype().name());
}

// ----------------------------------------------------------------------------------------------
// order

Found check_after(UOp n) {
  const UOp x = n.src(0);
  if (kEffects.has(x.op()) || x.dtype().is_void()) {
    return bad_structure("source 0 is {}; only what has a value is read after effects",
                         with_article(x.op()));
  }
  if (n.dtype() != x.dtype()) {
    return bad_dtype("the dtype is {}, that of its source {}", n.dtype().name(), x.dtype().name());
  }
  for (size_t i = 1; i < n.src_count(); i++) {
    const Op op = n.src(i).op();
    if (kEffects.has(op) || op == Op::RANGE || op == Op::AFTER) continue;
    return bad_structure("source {} is {}; it must be an effect, a RANGE or an AFTER", i,
                         with_article(op));
  }
  return {};
}

std::string text_of_ranges(std::span<const UOp> ranges) {
  std::string out;
  for (UOp r : ranges) out += (out.empty() ? "" : ", ") + brief(r);
  return out.empty() ? "none" : out;
}

Found check_end(UOp n) {
  if (Found f = check_void(n)) return f;
  if (Found f = check_effect(n, 0)) return f;
  if (n.src_count() == 1) return bad_structure("it names no RANGE to close");
  if (Found f = check_ranges(n, 1)) return f;
  for (UOp r : n.srcs().subspan(1)) {
    if (!is_in_scope(r, n.src(0))) {
      return bad_structure("{} is not open in its effect; open there: {}", brief(r),
                           text_of_ranges(ranges_of(n.src(0))));
    }
  }
  return {};
}

Found check_effects_from(UOp n, size_t first) {
  if (Found f = check_void(n)) return f;
  for (size_t i = first; i < n.src_count(); i++) {
    if (Found f = check_effect(n, i)) return f;
  }
  return {};
}

Found check_barrier(UOp n) { return check_effects_from(n, 0); }

Found check_if(UOp n) {
  if (Found f = check_gate(n, 0)) return f;
  return check_effects_from(n, 1);
}

Found check_endif(UOp n) {
  if (Found f = check_void(n)) return f;
  if (n.src(0).is(Op::IF)) return {};
  return bad_structure("source 0 is {}; it must be an IF", with_article(n.src(0).op()));
}

// A FETCH's place: an INDEX of memory of that space, as a pointer to vectors.
Found check_fetched(UOp n, size_t i, AddrSpace space) {
  const DType type = n.src(i).dtype();
  if (type.space != space || !place_of(n.src(i)).is_indexed) {
    return bad_structure("source {} is {}; it must be an INDEX of {} memory", i, brief(n.src(i)),
                         name_of(space));
  }
  const int bytes = type.pointee().item_bytes() * type.lanes;
  if (bytes == 16) return {};
  return bad_dtype("source {} points to {} bytes; it copies 16", i, bytes);
}

Found check_fetch(UOp n) {
  if (Found f = check_void(n)) return f;
  if (Found f = check_fetched(n, 0, AddrSpace::kLocal)) return f;
  if (const DType value = n.src(1).dtype();
      !value.is_pointer()) {  // one lane of it in a loop of lanes
    const DType place = n.src(0).dtype().pointee();
    const bool is_lane = value == place.element();
    if ((value == place || is_lane) && n.src_count() == 2) return {};
    return bad_dtype("it puts {} into a place of {}", value.name(), place.name());
  }
  if (Found f = check_fetched(n, 1, AddrSpace::kGlobal)) return f;
  if (n.src(0).dtype().pointee() != n.src(1).dtype().pointee()) {
    return bad_dtype("it copies {} to {}; they must be the same", n.src(1).dtype().name(),
                     n.src(0).dtype().name());
  }
  return n.src_count() == 3 ? check_gate(n, 2) : Found();
}

Found check_box(UOp n) {
  const Box box = Box::of(n);
  if (n.ints().size() != 3 + 2 * (n.src_count() - kBoxAt)) {
    return bad_structure("it has {} numbers for a place of {} axes", n.ints().size(),
                         n.src_count() - kBoxAt);
  }
  if (box.rows < 1 || box.row_axis < 1 || size_t(box.row_axis) >= box.axes.size() ||
      box.offset < 0 || box.axes[0].step != 1) {
    return bad_structure("rows follow each other along an axis after the first, whose step is 1");
  }
  for (const Box::Axis& axis : box.axes) {
    if (axis.size < 1 || axis.step < 1) return bad_structure("sizes and steps are positive");
  }
  return {};
}

Found check_fetch_box(UOp n) {
  if (Found f = check_void(n)) return f;
  const UOp to = n.src(kBoxTo), from = n.src(kBoxFrom);
  if (to.dtype().space != AddrSpace::kLocal || !place_of(to).is_indexed) {
    return bad_structure("source 0 is {}; it must be an INDEX of local memory", brief(to));
  }
  if (!from.is(Op::DEFINE_GLOBAL) || !from.dtype().is_pointer()) {
    return bad_structure("source 1 is {}; it must be a DEFINE_GLOBAL of an array", brief(from));
  }
  if (to.dtype().pointee() != from.dtype().pointee()) {
    return bad_dtype("it copies {} to {}; they must be the same", from.dtype().name(),
                     to.dtype().name());
  }
  for (size_t i = kBoxThread; i < n.src_count(); i++) {
    const DType type = n.src(i).dtype();
    if (i != kBoxGate && (type.is_vector() || !(type.is_int() || type.is_index()))) {
      return bad_dtype("source {} is {}; it must be an integer", i, type.name());
    }
  }
  if (Found f = check_gate(n, kBoxGate)) return f;
  return check_box(n);
}

Found check_commit(UOp n) {
  for (UOp s : n.srcs()) {
    const bool is_by_lanes = s.is(Op::END) && s.src(0).is(Op::FETCH);
    if (!s.is(Op::FETCH) && !s.is(Op::FETCH_BOX) && !is_by_lanes) {
      return bad_structure("it groups {}; it must be FETCHes and FETCH_BOXes",
                           with_article(s.op()));
    }
  }
  return check_void(n);
}

Found check_wait(UOp n) {
  for (size_t i = 0; i < n.src_count(); i++) {
    if (n.src(i).is(Op::RANGE)) continue;
    if (Found f = check_effect(n, i)) return f;
  }
  return check_void(n);
}

constexpr NodeRule kMemoryRules[] = {
    {{Op::REDUCE}, check_reduce},
    {{Op::BUFFERIZE}, check_bufferize},
    {{Op::KERNEL}, check_kernel},
    {{Op::INDEX}, check_index},
    {{Op::LOAD}, check_load},
    {{Op::AFTER}, check_after},
    {{Op::END}, check_end},
    {{Op::BARRIER}, check_barrier},
    {{Op::IF}, check_if},
    {{Op::ENDIF}, check_endif},
    {{Op::FETCH}, check_fetch},
    {{Op::FETCH_BOX}, check_fetch_box},
    {{Op::COMMIT}, check_commit},
    {{Op::WAIT}, check_wait},
    {{Op::SINK, Op::LINEAR}, check_void},
};

}  // namespace

std::span<const NodeRule> memory_rules() { return kMemoryRules; }

}  // namespace weft::spec
