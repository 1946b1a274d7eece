// Tensor graphs: every node an array, sources first, freed after its last use.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/interrupt.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/dtype.h"
#include "ir/evaluate_parts.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/scalar.h"

namespace weft::evaluator {
namespace {

// The ops from a store's target down to the version that it is a view of, which stays out.
std::vector<UOp> view_chain(UOp store, UOp version) {
  std::vector<UOp> chain;
  const UOp target = store.src(0);
  for (UOp n = target.is(Op::INDEX) ? target.src(0) : target; n != version; n = n.src(0)) {
    if (!is_movement(n.op()) && !n.is(Op::BITCAST) && !n.is(Op::DETACH)) {
      fail(store, "its target is no view of what it stands AFTER");
    }
    chain.push_back(n);
  }
  return chain;
}

// What must be evaluated before n. A STORE is evaluated by the AFTER above it.
void dependencies(UOp n, std::vector<UOp>& out) {
  switch (n.op()) {
    case Op::VARIABLE:
    case Op::DEVICE:
    case Op::STORE: return;
    case Op::BUFFER:
    case Op::COPY: out.push_back(n.src(0)); return;
    case Op::BIND: out.push_back(n.src(1)); return;
    case Op::AFTER:
      out.push_back(n.src(0));
      for (UOp effect : n.srcs().subspan(1)) {
        if (!effect.is(Op::STORE)) fail(n, "its effects are not all STOREs");
        for (UOp v : effect.srcs().subspan(1)) out.push_back(v);
        if (effect.src(0).is(Op::INDEX)) {
          for (UOp i : effect.src(0).srcs().subspan(1)) out.push_back(i);
        }
        for (UOp view : view_chain(effect, n.src(0))) {
          for (UOp size : view.srcs().subspan(1)) out.push_back(size);
        }
      }
      return;
    default: out.insert(out.end(), n.srcs().begin(), n.srcs().end());
  }
}

class TensorEvaluator {
 public:
  TensorEvaluator(Arena& arena, const std::map<int64_t, Array>& buffers, const Variables& variables)
      : slots_(arena), buffers_(buffers), variables_(variables) {}

  std::vector<Array> run(std::span<const UOp> roots) {
    std::vector<UOp> order;
    visit_dependencies_first(roots, dependencies, [&](UOp n) {
      order.push_back(n);
      slots_.put_number(n, order.size());
    });
    values_.resize(order.size());
    uses_.resize(order.size());
    std::vector<UOp> found;
    auto for_dependencies = [&](UOp n, auto&& call) {
      found.clear();
      dependencies(n, found);
      for (UOp d : found) call(d);
    };
    for (UOp n : order) for_dependencies(n, [&](UOp d) { uses_[slot(d)]++; });
    for (UOp r : roots) uses_[slot(r)]++;
    for (UOp n : order) {
      check_interrupt();
      values_[slot(n)] = compute(n);
      for_dependencies(n, [&](UOp d) {
        if (--uses_[slot(d)] == 0) values_[slot(d)] = {};
      });
    }
    std::vector<Array> results;
    for (UOp r : roots) results.push_back(value(r));
    return results;
  }

 private:
  size_t slot(UOp n) const { return slots_.number(n) - 1; }
  const Array& value(UOp n) const { return values_[slot(n)]; }
  // n's value, for its only user left without a copy.
  Array take(UOp n) {
    if (uses_[slot(n)] == 1) return std::move(values_[slot(n)]);
    return value(n);
  }

  Array compute(UOp n) {
    if (is_elementwise(n.op())) return elementwise(n);
    if (is_movement(n.op())) return moved(n);
    switch (n.op()) {
      case Op::CONST: return Array::scalar(n.dtype(), n.bits());
      case Op::VARIABLE:
        return Array::scalar(n.dtype(), bits_of_int(n.dtype(), value_of_variable(n, variables_)));
      case Op::BIND: return take(n.src(1));
      case Op::IOTA: return iota(n);
      case Op::BUFFER: return read_buffer(n);
      case Op::CONTIGUOUS:
      case Op::CONTIGUOUS_BACKWARD:
      case Op::DETACH:
      case Op::COPY: return take(n.src(0));
      case Op::REDUCE_AXIS: return reduced(n);
      case Op::SCAN: return scanned(n);
      case Op::INDEX: return gathered(n);
      case Op::AFTER: return with_stores(n);
      case Op::DEVICE:
      case Op::STORE: return Array::nothing();
      default: fail(n, "it is no op of a tensor graph");
    }
  }

  Array iota(UOp n) const {
    Array result = Array::zeros(n.dtype(), {number(n.src(0))});
    for (size_t i = 0; i < result.data.size(); i++) {
      result.data[i] = bits_of_int(n.dtype(), int64_t(i));
    }
    return result;
  }

  Array read_buffer(UOp n) const {
    const auto bound = buffers_.find(n.number());
    if (bound == buffers_.end()) {
      throw Error(fmt::format("[evaluate] buffer {} has no binding", n.number()));
    }
    const Array& array = bound->second;
    const int64_t size = number(n.src(0));
    if (array.dtype != n.dtype() || size < 0 || array.size() < size) {
      throw Error(fmt::format("[evaluate] buffer {} is {} {}, the graph says {} ({})", n.number(),
                              array.dtype.name(), text_of_sizes(array.shape), n.dtype().name(),
                              size));
    }
    return {n.dtype(), {size}, {array.data.begin(), array.data.begin() + size}};
  }

  Array elementwise(UOp n) const {
    std::vector<const Array*> sources;
    const Array* widest = nullptr;
    for (UOp s : n.srcs()) {
      sources.push_back(&value(s));
      if (widest == nullptr || sources.back()->shape.size() > widest->shape.size()) {
        widest = sources.back();
      }
    }
    for (const Array* s : sources) {
      if (s->shape.empty() || s->shape == widest->shape) continue;
      throw ShapeError(fmt::format("[evaluate] {}: shapes {} and {}\n{}", name_of(n.op()),
                                   text_of_sizes(widest->shape), text_of_sizes(s->shape),
                                   neighbourhood(n)));
    }
    Array result = Array::zeros(n.dtype(), widest->shape);
    std::vector<uint64_t> operands(sources.size());
    for (size_t i = 0; i < result.data.size(); i++) {
      for (size_t k = 0; k < sources.size(); k++) {
        operands[k] = sources[k]->data[sources[k]->shape.empty() ? 0 : i];
      }
      const auto bits = evaluate_scalar(n.op(), operand_type(n), n.dtype(), operands);
      if (!bits) fail_without_result(n);
      result.data[i] = *bits;
    }
    return result;
  }

  int64_t number(UOp n) const {
    if (value(n).data.size() != 1) fail(n, "it is no number");
    return int64_t(value(n).data[0]);
  }
  // The values of n's sources from the second on.
  std::vector<int64_t> numbers(UOp n) const {
    std::vector<int64_t> out;
    for (UOp s : n.srcs().subspan(1)) out.push_back(number(s));
    return out;
  }

  Array moved(UOp n) const {
    const Array& source = value(n.src(0));
    ElementMap map = map_elements(n, source.shape, numbers(n));
    Array result{n.dtype(), std::move(map.shape), {}};
    result.data.reserve(map.from.size());
    for (const int64_t from : map.from) {
      result.data.push_back(from == ElementMap::kZero ? 0 : source.data[size_t(from)]);
    }
    return result;
  }

  Array reduced(UOp n) const {
    const Array& source = value(n.src(0));
    const std::optional<uint64_t> identity = identity_of(n);
    if (!identity) fail(n, "there is no reduction by this op");
    Array result{n.dtype(), source.shape, {}};
    for (const int64_t axis : n.ints()) {
      if (axis < 0 || size_t(axis) >= result.shape.size()) fail(n, "no such axis");
      result.shape[size_t(axis)] = 1;
    }
    result.data.assign(size_t(result.size()), *identity);
    if (source.data.empty()) return result;
    std::vector<int64_t> strides = row_major_strides(result.shape);
    for (const int64_t axis : n.ints()) strides[size_t(axis)] = 0;
    std::vector<int64_t> at(source.shape.size(), 0);
    size_t from = 0;
    do {
      const int64_t to = std::inner_product(at.begin(), at.end(), strides.begin(), int64_t(0));
      const uint64_t operands[] = {result.data[size_t(to)], source.data[from++]};
      const auto bits = evaluate_scalar(n.arg_op(), n.dtype(), n.dtype(), operands);
      if (!bits) fail_without_result(n);
      result.data[size_t(to)] = *bits;
    } while (advance(at, source.shape));
    return result;
  }

  Array scanned(UOp n) const {
    const Array& source = value(n.src(0));
    const Array* factor = n.src_count() > 1 ? &value(n.src(1)) : nullptr;
    const DType wide = scan_dtype(n.arg_op(), n.dtype());
    const std::optional<uint64_t> identity = identity_bits(n.arg_op(), wide);
    if (!identity) fail(n, "there is no scan by this op");
    Array result{n.dtype(), source.shape, std::vector<uint64_t>(source.data.size())};
    const auto axis = size_t(n.ints()[0]);
    const int64_t step = row_major_strides(source.shape)[axis], size = source.shape[axis];
    const auto apply = [&](Op op, DType from, DType to, std::initializer_list<uint64_t> operands) {
      const auto bits = evaluate_scalar(op, from, to, {operands.begin(), operands.size()});
      if (!bits) fail_without_result(n);
      return *bits;
    };
    const auto element = [&](const Array& a, size_t i) {
      return apply(Op::CAST, n.dtype(), wide, {a.data[a.shape.empty() ? 0 : i]});
    };
    for (size_t i = 0; i < source.data.size(); i++) {
      const int64_t at = int64_t(i) / step % size;
      if (at != 0) continue;
      uint64_t held = *identity;
      for (size_t k = i; k < i + size_t(step * size); k += size_t(step)) {
        if (factor != nullptr) held = apply(Op::MUL, wide, wide, {held, element(*factor, k)});
        held = apply(n.arg_op(), wide, wide, {held, element(source, k)});
        result.data[k] = apply(Op::CAST, wide, n.dtype(), {held});
      }
    }
    return result;
  }

  // The flat element of an array of this shape that the indices of an INDEX name for element i of
  // its result; nothing when one of them is out of range.
  std::optional<size_t> element_at(UOp n, std::span<const int64_t> shape, size_t i) const {
    int64_t flat = 0;
    for (size_t axis = 0; axis < shape.size(); axis++) {
      const Array& index = value(n.src(1 + axis));
      const auto at = int64_t(index.data[index.shape.empty() ? 0 : i]);
      if (at < 0 || at >= shape[axis]) return {};
      flat = flat * shape[axis] + at;
    }
    return size_t(flat);
  }
  std::vector<int64_t> shape_of_indices(UOp n, size_t rank) const {
    if (n.src_count() - 1 != rank) fail(n, "it has not one index per axis");
    std::vector<int64_t> shape;
    for (UOp i : n.srcs().subspan(1)) {
      const std::vector<int64_t>& own = value(i).shape;
      if (own.empty() || own == shape) continue;
      if (!shape.empty()) fail(n, "its indices have different shapes");
      shape = own;
    }
    return shape;
  }

  Array gathered(UOp n) const {
    const Array& source = value(n.src(0));
    Array result = Array::zeros(n.dtype(), shape_of_indices(n, source.shape.size()));
    for (size_t i = 0; i < result.data.size(); i++) {
      if (const auto at = element_at(n, source.shape, i)) result.data[i] = source.data[*at];
    }
    return result;
  }

  Array with_stores(UOp n) {
    Array result = take(n.src(0));
    for (UOp effect : n.srcs().subspan(1)) apply(effect, n.src(0), result);
    return result;
  }

  // Element i of the store's value goes to the element of `content` that its view has at i.
  void apply(UOp store, UOp version, Array& content) const {
    std::vector<int64_t> to(size_t(content.size())), shape = content.shape;
    std::iota(to.begin(), to.end(), int64_t(0));
    const std::vector<UOp> chain = view_chain(store, version);
    for (size_t i = chain.size(); i-- > 0;) {
      if (!is_movement(chain[i].op())) continue;
      ElementMap map = map_elements(chain[i], shape, numbers(chain[i]));
      for (int64_t& from : map.from) {
        if (from == ElementMap::kZero) fail(store, "its target has padding");
        from = to[size_t(from)];
      }
      to = std::move(map.from);
      shape = std::move(map.shape);
    }
    const UOp target = store.src(0);
    if (target.is(Op::INDEX)) {
      const std::vector<int64_t> from = shape_of_indices(target, shape.size());
      const int64_t count =
          std::accumulate(from.begin(), from.end(), int64_t(1), std::multiplies());
      std::vector<int64_t> chosen(size_t(count), kNowhere);
      for (size_t i = 0; i < chosen.size(); i++) {
        if (const auto at = element_at(target, shape, i)) chosen[i] = to[*at];
      }
      to = std::move(chosen);
      shape = from;
    }
    const Array& stored = value(store.src(1));
    const Array* gate = store.src_count() > 2 ? &value(store.src(2)) : nullptr;
    if ((!stored.shape.empty() && stored.shape != shape) || stored.dtype != store.src(0).dtype()) {
      fail(store, "the value has not the shape and dtype of the target");
    }
    for (size_t i = 0; i < to.size(); i++) {
      if (gate != nullptr && gate->data[gate->shape.empty() ? 0 : i] == 0) continue;
      if (to[i] == kNowhere) continue;
      uint64_t bits[] = {stored.data[stored.shape.empty() ? 0 : i]};
      uint64_t& place = content.data[size_t(to[i])];
      if (store.accumulates()) {
        const uint64_t before[] = {place};
        const uint64_t both[] = {*evaluate_scalar(Op::BITCAST, content.dtype, stored.dtype, before),
                                 bits[0]};
        const auto result = evaluate_scalar(store.arg_op(), stored.dtype, stored.dtype, both);
        if (!result) fail_without_result(store);
        bits[0] = *result;
      }
      place = *evaluate_scalar(Op::BITCAST, stored.dtype, content.dtype, bits);
    }
  }

  static constexpr int64_t kNowhere = -1;  // an index is out of range

  NodeMap slots_;  // 1 + the place in values_
  std::vector<Array> values_;
  std::vector<size_t> uses_;  // left
  const std::map<int64_t, Array>& buffers_;
  const Variables& variables_;
};

}  // namespace

std::vector<Array> evaluate_tensors(std::span<const UOp> roots,
                                    const std::map<int64_t, Array>& buffers,
                                    const Variables& variables) {
  if (roots.empty()) return {};
  return TensorEvaluator(roots[0].arena(), buffers, variables).run(roots);
}

}  // namespace weft::evaluator
