// The rules of movement ops and of the other ops of tensor graphs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
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
#include "ir/shape.h"
#include "ir/spec_rules.h"

namespace weft::spec {
namespace {

__extension__ using Wide = __int128;

Interval bounds_of_dim(Dim d) {
  return d.is_int() ? Interval{d.value(), d.value()} : bounds(d.node());
}

std::string text_of_ints(std::span<const int64_t> ints) {
  return fmt::format("[{}]", fmt::join(ints.begin(), ints.end(), ", "));
}

// ------------------------------------------------------------------------------- numbers of
// elements

// A product of sizes: an integer times symbols. `least` and `most` bound the symbols' product.
struct Count {
  Wide factor = 1;
  std::vector<UOp> symbols;  // by id

  static constexpr Wide kEndless = Wide(std::numeric_limits<int64_t>::max());

  void times(Wide v) { factor = std::min(factor * std::min(v, kEndless), kEndless); }
  bool is_endless() const { return factor >= kEndless; }
  Wide least() const {
    Count c{factor, {}};
    for (UOp s : symbols) c.times(std::max<int64_t>(bounds(s).lo, 0));
    return c.factor;
  }
  Wide most() const {
    Count c{factor, {}};
    for (UOp s : symbols) c.times(std::max<int64_t>(bounds(s).hi, 0));
    return c.factor;
  }
};

Count count_of(Shape shape) {
  Count count;
  std::vector<Dim> todo(shape.begin(), shape.end());
  while (!todo.empty()) {
    const Dim d = todo.back();
    todo.pop_back();
    if (d.is_int()) {
      count.times(std::max<int64_t>(d.value(), 0));
    } else if (d.node().is(Op::MUL) && d.node().src_count() == 2) {
      todo.insert(todo.end(), {Dim(d.node().src(0)), Dim(d.node().src(1))});
    } else {
      count.symbols.push_back(d.node());
    }
  }
  std::sort(count.symbols.begin(), count.symbols.end(),
            [](UOp a, UOp b) { return a.id() < b.id(); });
  return count;
}

std::string text_of_count(const Count& count) {
  std::string out;
  for (UOp s : count.symbols) out += (out.empty() ? "" : "*") + brief(s);
  if (out.empty()) return fmt::format("{}", count.factor);
  return count.factor == 1 ? out : fmt::format("{}*{}", count.factor, out);
}

// Whether two shapes cannot have equally many elements. Symbols that both have cancel.
bool surely_differ(Count a, Count b) {
  const auto by_id = [](UOp x, UOp y) { return x.id() < y.id(); };
  Count left{a.factor, {}}, right{b.factor, {}};
  std::set_difference(a.symbols.begin(), a.symbols.end(), b.symbols.begin(), b.symbols.end(),
                      std::back_inserter(left.symbols), by_id);
  std::set_difference(b.symbols.begin(), b.symbols.end(), a.symbols.begin(), a.symbols.end(),
                      std::back_inserter(right.symbols), by_id);
  return left.most() < right.least() || right.most() < left.least();
}

// ---------------------------------------------------------------------------------- shared by
// several

// The sources past the first are `what`: "size" or another number that is not negative.
Found check_sizes(UOp n, std::string_view what, size_t count) {
  for (size_t i = 1; i <= count; i++) {
    if (Found f = check_size(n, i, dtypes::index, what)) return f;
  }
  return {};
}

Found check_is_countable(UOp n) {
  if (!count_of(shape_of(n)).is_endless()) return {};
  return bad_shape("{} has more elements than 63 bits count", text_of(shape_of(n)));
}

Found check_axis(UOp n, int64_t axis) {
  const Shape shape = shape_of(n.src(0));
  if (axis >= 0 && size_t(axis) < shape.size()) return {};
  return bad_shape("axis {} is not one of the {} of {}", axis, shape.size(), text_of(shape));
}

// --------------------------------------------------------------------------------------- movement
// ops

Found check_reshape(UOp n) {
  if (Found f = check_sizes(n, "size", n.src_count() - 1)) return f;
  if (Found f = check_is_countable(n)) return f;
  const Shape from = shape_of(n.src(0)), to = shape_of(n);
  const Count before = count_of(from), after = count_of(to);
  if (!surely_differ(before, after)) return {};
  return bad_shape("cannot view {} as {}: {} elements against {}", text_of(from), text_of(to),
                   text_of_count(before), text_of_count(after));
}

Found check_permute(UOp n) {
  const Shape shape = shape_of(n.src(0));
  std::vector<bool> seen(shape.size());
  bool is_permutation = n.ints().size() == shape.size();
  for (size_t i = 0; is_permutation && i < shape.size(); i++) {
    const int64_t axis = n.ints()[i];
    is_permutation = axis >= 0 && size_t(axis) < shape.size() && !seen[size_t(axis)];
    if (is_permutation) seen[size_t(axis)] = true;
  }
  if (is_permutation) return {};
  return bad_shape("{} is not an order of the {} axes of {}", text_of_ints(n.ints()), shape.size(),
                   text_of(shape));
}

Found check_expand(UOp n) {
  if (Found f = check_sizes(n, "size", n.src_count() - 1)) return f;
  const Shape from = shape_of(n.src(0)), to = shape_of(n);
  if (from.size() != to.size()) {
    return bad_shape("cannot expand {} to {}: {} axes against {}", text_of(from), text_of(to),
                     from.size(), to.size());
  }
  for (size_t i = 0; i < from.size(); i++) {
    if (from[i] != to[i] && !from[i].is(1)) {
      return bad_shape("cannot expand {} to {}: axis {} has size {}, and only 1 is repeated",
                       text_of(from), text_of(to), i, from[i].text());
    }
  }
  return check_is_countable(n);
}

Found check_pairs(UOp n) {
  const size_t rank = shape_of(n.src(0)).size();
  if (n.src_count() == 1 + 2 * rank) return {};
  return bad_shape("{} has {} axes, which take {} numbers; given are {}",
                   text_of(shape_of(n.src(0))), rank, 2 * rank, n.src_count() - 1);
}

Found check_pad(UOp n) {
  if (Found f = check_pairs(n)) return f;
  if (Found f = check_sizes(n, "padding", n.src_count() - 1)) return f;
  return check_is_countable(n);
}

Found check_shrink(UOp n) {
  if (Found f = check_pairs(n)) return f;
  if (Found f = check_sizes(n, "bound", n.src_count() - 1)) return f;
  const Shape shape = shape_of(n.src(0));
  for (size_t i = 0; i < shape.size(); i++) {
    const Dim begin = n.src(1 + i), end = n.src(1 + shape.size() + i);
    const bool is_reversed = bounds_of_dim(begin).lo > bounds_of_dim(end).hi;
    const bool is_outside = bounds_of_dim(end).lo > bounds_of_dim(shape[i]).hi;
    if (is_reversed || is_outside) {
      return bad_shape("cannot take {} to {} of axis {} of {}", begin.text(), end.text(), i,
                       text_of(shape));
    }
  }
  return {};
}

Found check_flip(UOp n) {
  std::vector<bool> seen(shape_of(n.src(0)).size());
  for (const int64_t axis : n.ints()) {
    if (Found f = check_axis(n, axis)) return f;
    if (seen[size_t(axis)]) return bad_shape("axis {} occurs twice", axis);
    seen[size_t(axis)] = true;
  }
  return {};
}

// -----------------------------------------------------------------------------------------------
// VIEW

// The first and last element that a view with these sizes reads; empty when that is not known, or
// when it reads none.
struct Reach {
  Wide first, last;
};
std::optional<Reach> reach_of(Shape sizes, std::span<const UOp> strides, Dim offset) {
  if (!offset.is_int()) return {};
  Reach reach{offset.value(), offset.value()};
  for (size_t i = 0; i < sizes.size(); i++) {
    const Dim stride = strides[i];
    if (!sizes[i].is_int() || !stride.is_int() || sizes[i].is(0)) return {};
    const Wide span = Wide(stride.value()) * (sizes[i].value() - 1);
    (span < 0 ? reach.first : reach.last) += span;
  }
  return reach;
}

Found check_strided_view(UOp n) {
  if (n.src_count() % 2 != 0) {
    return bad_shape(
        "given are {} numbers; a view of k axes takes k sizes, k strides and an offset",
        n.src_count() - 1);
  }
  const size_t rank = n.src_count() / 2 - 1;
  if (Found f = check_sizes(n, "size", rank)) return f;
  for (size_t i = 1 + rank; i < n.src_count(); i++) {
    if (n.src(i).dtype() != dtypes::index) {
      return bad_dtype("{} {} has dtype {}; it must be index",
                       i + 1 == n.src_count() ? "the offset" : "the stride", brief(n.src(i)),
                       n.src(i).dtype().name());
    }
  }
  if (Found f = check_is_countable(n)) return f;
  const std::span<const UOp> strides = n.srcs().subspan(1 + rank, rank);
  const Dim offset = n.srcs().back();
  const std::optional<Reach> reach = reach_of(shape_of(n), strides, offset);
  const Count source = count_of(shape_of(n.src(0)));
  if (!reach || !source.symbols.empty()) return {};
  if (reach->first >= 0 && reach->last < source.factor) return {};
  const std::vector<Dim> stride_dims(strides.begin(), strides.end());
  return bad_shape("sizes {} with strides {} from {} read elements {} to {} of {}",
                   text_of(shape_of(n)), text_of(stride_dims), offset.text(), reach->first,
                   reach->last, source.factor);
}

// --------------------------------------------------------------------------------- other tensor
// ops

Found check_copy(UOp n) {
  if (n.src(1).is(Op::DEVICE)) return {};
  return bad_structure("source 1 is {}; it must be a DEVICE", with_article(n.src(1).op()));
}

Found check_reduce_axis(UOp n) {
  for (size_t i = 0; i < n.ints().size(); i++) {
    if (Found f = check_axis(n, n.ints()[i])) return f;
    if (i > 0 && n.ints()[i] <= n.ints()[i - 1]) {
      return bad_shape("the axes are {}; they must ascend", text_of_ints(n.ints()));
    }
  }
  return {};
}

Found check_scan(UOp n) {
  constexpr OpSet k_scans = {Op::ADD, Op::MUL, Op::MAX, Op::MIN};
  if (!k_scans.has(n.arg_op())) {
    return bad_structure("cannot scan by {}; allowed are ADD, MUL, MAX, MIN", name_of(n.arg_op()));
  }
  if (n.ints().size() != 1) return bad_shape("it runs along {} axes, not one", n.ints().size());
  if (Found f = check_axis(n, n.ints()[0])) return f;
  if (n.src_count() == 1) return {};
  if (n.arg_op() != Op::ADD)
    return bad_structure("a scan by {} has one source", name_of(n.arg_op()));
  if (n.src(1).dtype() != n.dtype()) {
    return bad_dtype("source 1 is {}, source 0 {}", n.src(1).dtype().name(), n.dtype().name());
  }
  if (shape_of(n.src(1)).empty() || std::ranges::equal(shape_of(n.src(0)), shape_of(n.src(1)))) {
    return {};
  }
  return bad_shape("source 1 has the shape {}, source 0 {}", text_of(shape_of(n.src(1))),
                   text_of(shape_of(n.src(0))));
}

// A size or an index is arithmetic, not a tensor.
Found check_is_no_index(UOp n) {
  if (!n.dtype().is_index()) return {};
  return bad_dtype("source 0 is {} of dtype index, which no tensor has", brief(n.src(0)));
}

constexpr NodeRule kMovementRules[] = {
    {ops_in({OpGroup::Movement, OpGroup::Tensor}), check_keeps_dtype},
    {ops_in({OpGroup::Movement, OpGroup::Tensor}), check_is_no_index},
    {{Op::RESHAPE}, check_reshape},
    {{Op::PERMUTE}, check_permute},
    {{Op::EXPAND}, check_expand},
    {{Op::PAD}, check_pad},
    {{Op::SHRINK}, check_shrink},
    {{Op::FLIP}, check_flip},
    {{Op::VIEW}, check_strided_view},
    {{Op::COPY}, check_copy},
    {{Op::REDUCE_AXIS}, check_reduction},
    {{Op::REDUCE_AXIS}, check_reduce_axis},
    {{Op::SCAN}, check_reduction},
    {{Op::SCAN}, check_scan},
};

}  // namespace

std::span<const NodeRule> movement_rules() { return kMovementRules; }

}  // namespace weft::spec
