// Random tensor graphs: views of views, reductions, gathers, writes through views and to elements
// that integers name, several results.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/scalar.h"
#include "ir/shape.h"
#include "tests/fuzz/choices.h"

namespace weft::fuzz {

// A SINK, and what its BUFFERs hold.
struct GraphAndBuffers {
  UOp sink;
  std::map<int64_t, Array> buffers;
};

class RandomTensorGraph {
 public:
  RandomTensorGraph(Arena& arena, Choices& choices) : arena_(arena), c_(choices) {}

  GraphAndBuffers make() {
    wide_ = c_.one_in(2);
    for (int64_t id = 1, last = 1 + int64_t(c_.below(3)); id <= last; id++) add_buffer(id);
    for (uint64_t i = 2 + c_.below(14); i > 0; i--) add(step());
    std::vector<UOp> outputs;
    for (uint64_t i = 1 + c_.below(3); i > 0; i--) outputs.push_back(contiguous(pick()));
    for (UOp v : versions_) {
      if (c_.one_in(2)) outputs.push_back(v);
    }
    if (c_.one_in(4)) outputs.push_back(outputs[c_.below(outputs.size())]);
    if (c_.one_in(8)) outputs.push_back(old_[c_.below(old_.size())]);
    return {sink(arena_, outputs), std::move(buffers_)};
  }

 private:
  using Sizes = std::vector<Dim>;
  using Axes = std::vector<int64_t>;

  DType type() {
    switch (c_.below(wide_ ? 10 : 3)) {
      case 0: return dtypes::float32;
      case 1:
      case 2:
      case 3: return dtypes::int32;
      case 4: return dtypes::int8;
      case 5: return dtypes::uint64;
      case 6: return dtypes::float16;
      case 7: return dtypes::uint32;
      case 8: return dtypes::bool_;
      default: return dtypes::float64;
    }
  }

  void add_buffer(int64_t id) {
    static constexpr int64_t kSizes[] = {1, 2, 4, 6, 6, 8, 12, 12, 12, 16, 24, 0};
    const int64_t size = kSizes[c_.below(std::size(kSizes))];
    const DType dtype = type();
    std::vector<int64_t> numbers;
    const int64_t least = dtype.is_signed() || dtype.is_float() ? -9 : 0;
    for (int64_t i = 0; i < size; i++) {
      numbers.push_back(c_.between(least, dtype.is_bool() ? 1 : 9));
    }
    buffers_[id] = Array::of_ints(dtype, {size}, numbers);
    const UOp b = buffer(arena_, dtype, size, "REF", id);
    versions_.push_back(b);
    old_.push_back(b);
    add(b);
    add(reshaped(b));
  }

  void add(UOp n) {
    if (size_of_shape(n) <= 200 && shape_of(n).size() <= 5) values_.push_back(n);
  }
  static int64_t size_of_shape(UOp n) {
    int64_t size = 1;
    for (const Dim d : shape_of(n)) size *= d.value();
    return size;
  }
  UOp pick() {
    // Newer ones more often.
    const size_t back = std::min(c_.below(values_.size()), c_.below(values_.size()));
    return values_[values_.size() - 1 - back];
  }
  static Sizes sizes(UOp n) { return {shape_of(n).begin(), shape_of(n).end()}; }

  UOp step() {
    switch (c_.below(17)) {
      case 0: return unary_step(pick());
      case 1:
      case 2:
      case 3: return binary_step(pick());
      case 4: return where_step(pick());
      case 5:
      case 6: return view_step(pick());
      case 7: return view_step(view_step(pick()));
      case 8:
      case 9: return reduce_step(pick());
      case 10: return c_.one_in(3) ? contiguous(pick()) : expand_step(pick());
      case 11: return iota_step();
      case 12:
        if (c_.one_in(3)) return chain_step(pick());
        return c_.one_in(2) ? bit_step(pick()) : other_loop_step();
      case 13: return gather_step(pick());
      default: return write_step();
    }
  }

  // Elements of x, by integers that may be out of range: one for each axis, of one shape.
  UOp gather_step(UOp x) {
    const DType type = c_.one_in(4) ? dtypes::int64 : dtypes::int32;
    UOp first = pick();
    if (c_.one_in(4)) first = iota(arena_, type, int64_t(1 + c_.below(8)));
    if (first.dtype() != type) first = cast(first, type);
    std::vector<UOp> indices;
    for (size_t i = 0; i < shape_of(x).size(); i++) {
      UOp at = i == 0 ? first : partner(first);
      if (c_.one_in(2)) at = max(at, constant(arena_, type, 0));
      indices.push_back(at);
    }
    if (indices.empty()) return gather_step(reshape(x, Sizes{1}));
    return index(x, indices);
  }

  UOp unary_step(UOp x) {
    if (x.dtype().is_bool()) return ~x;
    return c_.one_in(2) ? -x : cast(x, type());
  }

  UOp number(DType dtype) {
    if (dtype.is_bool()) return bool_const(arena_, c_.one_in(2));
    if (dtype.is_float()) return constant(arena_, dtype, double(c_.between(-3, 3)));
    return constant_of(dtype, c_.between(-3, 3));
  }

  // Something of x's shape and dtype.
  UOp partner(UOp x) {
    if (c_.one_in(4)) return number(x.dtype());
    for (int tries = 0; tries < 6; tries++) {
      UOp y = pick();
      for (int moves = 0; moves < 2 && sizes(y) != sizes(x); moves++) {
        if (size_of_shape(y) == size_of_shape(x)) {
          y = reshape(y, sizes(x));
        } else {
          y = view_step(y);
        }
      }
      if (sizes(y) != sizes(x)) continue;
      return y.dtype() == x.dtype() ? y : cast(y, x.dtype());
    }
    return x;
  }

  UOp binary_step(UOp x) {
    const UOp y = partner(x);
    if (x.dtype().is_bool()) return c_.one_in(2) ? x & y : x | y;
    switch (c_.below(6)) {
      case 0: return x + y;
      case 1: return x - y;
      case 2: return x * y;
      case 3: return max(x, y);
      case 4: return c_.one_in(2) ? x + y : x < y;
      default: return x + y;
    }
  }

  UOp where_step(UOp x) {
    const UOp y = partner(x);
    const UOp condition = x.dtype().is_bool() ? x : x < partner(x);
    if (shape_of(condition).empty() != shape_of(x).empty() && shape_of(x).empty()) return x;
    return where(condition, x, y);
  }

  UOp iota_step() {
    const UOp n = iota(arena_, dtypes::int32, int64_t(1 + c_.below(8)));
    return c_.one_in(2) ? n : view_step(n);
  }

  UOp reshaped(UOp x) {
    int64_t left = size_of_shape(x);
    if (left == 0) return x;
    Sizes out;
    while (left > 1 && out.size() < 3) {
      std::vector<int64_t> divisors;
      for (int64_t d = 1; d <= left; d++) {
        if (left % d == 0) divisors.push_back(d);
      }
      const int64_t d = divisors[c_.below(divisors.size())];
      out.push_back(d);
      left /= d;
    }
    if (left > 1) out.push_back(left);
    if (c_.one_in(3)) out.insert(out.begin() + ptrdiff_t(c_.below(out.size() + 1)), Dim(1));
    return reshape(x, out);
  }

  UOp view_step(UOp x) {
    const Sizes s = sizes(x);
    const size_t rank = s.size();
    if (rank == 0) return reshape(x, Sizes{1});
    switch (c_.below(7)) {
      case 0: return reshaped(x);
      case 1: {
        std::vector<int64_t> order(rank);
        for (size_t i = 0; i < rank; i++) order[i] = int64_t(i);
        for (size_t i = rank; i-- > 1;) std::swap(order[i], order[c_.below(i + 1)]);
        return permute(x, order);
      }
      case 2: {
        std::vector<std::pair<Dim, Dim>> box;
        for (const Dim d : s) {
          const int64_t begin = c_.one_in(2) ? 0 : c_.between(0, d.value());
          const int64_t end = c_.one_in(2) ? d.value() : c_.between(begin, d.value());
          box.emplace_back(begin, end);
        }
        return shrink(x, box);
      }
      case 3: {
        std::vector<std::pair<Dim, Dim>> padding;
        for (size_t i = 0; i < rank; i++) {
          const bool pads = c_.one_in(2);
          padding.emplace_back(pads ? c_.between(0, 2) : 0, pads ? c_.between(0, 2) : 0);
        }
        return pad(x, padding);
      }
      case 4: {
        std::vector<int64_t> axes;
        for (size_t i = 0; i < rank; i++) {
          if (c_.one_in(2)) axes.push_back(int64_t(i));
        }
        return flip(x, axes);
      }
      case 5: return strided_step(x);
      default: return expand_step(x);
    }
  }

  UOp strided_step(UOp x) {
    const int64_t size = size_of_shape(x);
    if (size == 0) return x;
    const int64_t offset = c_.between(0, size - 1);
    const int64_t stride = c_.between(-3, 3);
    const int64_t room = stride > 0   ? (size - 1 - offset) / stride + 1
                         : stride < 0 ? offset / -stride + 1
                                      : 3;
    return strided_view(x, Sizes{c_.between(1, room)}, Sizes{stride}, offset);
  }

  UOp expand_step(UOp x) {
    Sizes s = sizes(x), wider = s;
    if (c_.one_in(2) && s.size() < 4) {
      const size_t at = c_.below(s.size() + 1);
      s.insert(s.begin() + ptrdiff_t(at), Dim(1));
      wider = s;
      wider[at] = c_.between(1, 4);
      return expand(reshape(x, s), wider);
    }
    for (size_t i = 0; i < s.size(); i++) {
      if (s[i].is(1) && c_.one_in(2)) wider[i] = c_.between(0, 4);
    }
    return expand(x, wider);
  }

  UOp reduce_step(UOp x) {
    std::vector<int64_t> axes;
    for (size_t i = 0; i < shape_of(x).size(); i++) {
      if (c_.one_in(2)) axes.push_back(int64_t(i));
    }
    if (x.dtype().is_bool()) return reduce_axis(Op::OR, x, axes);
    const Op op = c_.one_in(2) ? Op::ADD : c_.one_in(2) ? Op::MAX : Op::MIN;
    const UOp r = reduce_axis(op, x, axes);
    if (c_.one_in(2)) return r;
    return expand(r, sizes(x));  // the way back, as in softmax
  }

  // A view of a version that can be written: no padding, nothing twice.
  UOp target_of(UOp version) {
    UOp t = version;
    for (uint64_t i = c_.below(4); i > 0; i--) {
      const UOp next = view_step(t);
      if (next.is(Op::PAD) || next.is(Op::EXPAND)) continue;
      if (next.is(Op::VIEW) && next.src(2).const_int() == 0) continue;
      t = next;
    }
    return t;
  }

  UOp overlapping(UOp target) {
    const UOp next = c_.one_in(2) ? expand_step(target) : strided_step(target);
    return size_of_shape(next) <= 200 ? next : target;
  }

  // Writes as a loop of a program makes them: at offsets and of constants in progression or not,
  // each perhaps from the value of the one before.
  UOp loop_step() {
    const size_t which = c_.below(versions_.size());
    const UOp old = versions_[which];
    const int64_t size = size_of_shape(old);
    if (size < 4 || old.dtype().is_bool()) return old;
    const UOp flat = reshape(old, Sizes{size});
    const int64_t width = c_.one_in(2) ? 1 : c_.between(1, 3);
    const int64_t stride = c_.one_in(3) ? c_.between(1, 3) : width;
    const UOp other = pick();
    const uint64_t kind = c_.below(5);
    UOp previous = reshape(flat, Sizes{size});
    previous = slice(previous, c_.between(0, size - width), width);
    std::vector<UOp> stores;
    for (int64_t i = 0; i < 12; i++) {
      const int64_t at = c_.one_in(30) ? c_.between(0, size - width) : i * stride;
      if (at + width > size) break;
      const UOp target = slice(flat, at, width);
      const UOp step = constant_of(old.dtype(), c_.one_in(12) ? 7 : i * 2 - 3);
      UOp value = step;
      if (kind == 1 || kind == 4) value = previous + step;
      if (kind == 2 && old.dtype() == other.dtype() && size_of_shape(other) >= at + width) {
        value = slice(reshape(other, Sizes{size_of_shape(other)}), at, width);
      }
      if (kind == 3) value = slice(flat, c_.between(0, size - width), width) * step;
      if (kind == 4) previous = value;
      stores.push_back(target.assign(value));
    }
    if (stores.empty()) return old;
    return versions_[which] = after(old, stores);
  }
  UOp constant_of(DType dtype, int64_t v) {
    if (dtype.is_bool()) return bool_const(arena_, v & 1);
    if (!dtype.is_float()) return constant_bits(arena_, dtype, bits_of_int(dtype, v));
    if (oddness_ > 0 && c_.one_in(6)) {
      constexpr double infinity = std::numeric_limits<double>::infinity();
      constexpr double odd[] = {-0.0, infinity, -infinity, 0.1};
      return constant(arena_, dtype, odd[c_.below(4)]);
    }
    return constant(arena_, dtype, oddness_ == 2 ? double(v) * 0.1 : double(v));
  }
  static UOp slice(UOp flat, int64_t begin, int64_t width) {
    const std::vector<std::pair<Dim, Dim>> box{{begin, begin + width}};
    return shrink(flat, box);
  }

  UOp bit_step(UOp x) {
    if (x.dtype() == dtypes::int32) return bitcast(x, dtypes::uint32);
    if (x.dtype() == dtypes::uint32) return bitcast(x, dtypes::int32);
    return x;
  }
  // Arithmetic as long as a loop of a program makes it.
  UOp chain_step(UOp x) {
    if (x.dtype().is_bool()) return x;
    const int64_t length = 64 + c_.between(0, 70), period = 1 + int64_t(c_.below(4));
    const uint64_t kind = c_.below(5);
    const UOp y = partner(x), two = constant_of(x.dtype(), 2);
    for (int64_t i = 0; i < length; i++) {
      const UOp k = constant_of(x.dtype(), c_.one_in(60) ? 5 : i % period + 1);
      if (kind == 0) x = x + k;
      if (kind == 1) x = i % 2 ? x * two : x - k;
      if (kind == 2) x = i % 3 ? max(x, k) : x + y;
      if (kind == 3) x = i % 2 ? x + y : x * k;
      if (kind == 4) x = x + constant_of(x.dtype(), i);
    }
    return x;
  }

  // The same with reductions, views, other memories and two steps back; numbers that are odd.
  UOp other_loop_step() {
    const size_t which = c_.below(versions_.size());
    const UOp old = versions_[which];
    const int64_t size = size_of_shape(old);
    if (size < 4) return old;
    oddness_ = int(c_.below(3));
    UOp flat = reshape(old, Sizes{size});
    if (c_.one_in(6)) flat = bit_step(flat);
    const int64_t width = c_.one_in(2) ? 1 : c_.between(1, 4);
    int64_t stride = c_.one_in(2) ? c_.between(-4, 4) : width;
    const int64_t start = stride < 0 ? size - width : c_.between(0, 2);
    const DType t = flat.dtype();
    UOp other = pick();
    if (size_of_shape(other) == 0) other = flat;
    const int64_t osize = size_of_shape(other);
    UOp oflat = reshape(other, Sizes{osize});
    if (other.dtype() != t) oflat = cast(oflat, t);
    const uint64_t kind = c_.below(12), tview = c_.below(5);
    const int64_t ostep = c_.between(-2, 3);
    const bool scalar = c_.one_in(3);
    UOp previous = scalar ? constant_of(t, 1) : slice(flat, c_.between(0, size - width), width);
    UOp previous2 = previous;
    std::vector<UOp> stores, stores2;
    UOp old2;
    if (c_.one_in(4)) {
      old2 = versions_[c_.below(versions_.size())];
      if (old2 == old || size_of_shape(old2) < 12 || old2.dtype() != t) old2 = {};
    }
    for (int64_t i = 0; i < 12; i++) {
      const int64_t at = c_.one_in(40) ? c_.between(0, size - width) : start + i * stride;
      if (at < 0 || at + width > size) break;
      UOp target = slice(flat, at, width);
      const UOp step = constant_of(t, c_.one_in(15) ? 7 : i * 2 - 3);
      const int64_t o = (((i * ostep) % std::max<int64_t>(1, osize - width + 1)) + osize) %
                        std::max<int64_t>(1, osize - width + 1);
      const UOp on =
          osize >= width ? slice(oflat, o, width) : expand(slice(oflat, 0, 1), Sizes{width});
      UOp value = step;
      const bool b = t.is_bool();
      const auto add = [&](UOp p, UOp q) { return b ? p | q : p + q; };
      const auto mul = [&](UOp p, UOp q) { return b ? p & q : p * q; };
      switch (kind) {
        case 0: value = step; break;
        case 1:
          value = add(previous, on);
          previous = value;
          break;
        case 2:
          value = add(mul(previous, step), on);
          previous = value;
          break;
        case 3:
          value = reduce_axis(b ? Op::OR : Op::ADD, oflat, Axes{0});
          value = add(mul(expand(value, Sizes{width}), step), on);
          break;
        case 4:
          value = expand(reduce_axis(b ? Op::OR : Op::MAX,
                                     slice(oflat, 0, std::min<int64_t>(osize, 1 + i % 3)), Axes{0}),
                         Sizes{width});
          break;
        case 5: {
          value = expand(
              reduce_axis(b ? Op::OR : Op::ADD, slice(oflat, o, std::min(width, osize)), Axes{0}),
              Sizes{width});
          value = add(value, previous);
          previous = value;
          break;
        }
        case 6:
          value =
              slice(after(contiguous(oflat), slice(contiguous(oflat), o, 1).assign(step)), 0, 1);
          value = expand(value, Sizes{width});
          break;
        case 7: value = add(contiguous(on), step); break;
        case 8: {
          UOp nv = add(previous, previous2);
          previous2 = previous;
          previous = nv;
          value = nv;
          break;
        }
        case 9:
          value = add(flip(previous.op() == Op::CONST ? on : previous, Axes{0}), step);
          previous = value;
          break;
        case 10: value = add(slice(flat, (at + 1) % (size - width + 1), width), step); break;
        default:
          value =
              add(previous, add(step, slice(flat, (at + size - 1) % (size - width + 1), width)));
          previous = value;
          break;
      }
      if (shape_of(value).empty() && c_.one_in(2))
        value = expand(reshape(value, Sizes{1}), Sizes{width});
      switch (tview) {
        case 0: target = flip(target, Axes{0}); break;
        case 1:
          target = reshape(target, Sizes{1, width});
          if (!shape_of(value).empty()) value = reshape(value, Sizes{1, width});
          break;
        default: break;
      }
      stores.push_back(target.assign(value));
      if (old2 && i < size_of_shape(old2) - width)
        stores2.push_back(
            slice(reshape(old2, Sizes{size_of_shape(old2)}), i, width)
                .assign(shape_of(value).size() == 2 ? reshape(value, Sizes{width}) : value));
      if (tview == 1 && shape_of(value).size() == 2 && previous == value)
        previous = reshape(value, Sizes{width});
    }
    oddness_ = 0;
    if (stores.empty()) return old;
    if (stores2.size() > 1)
      for (UOp& v : versions_)
        if (v == old2) {
          v = after(old2, stores2);
          if (c_.one_in(2)) add(v);
          break;
        }
    return versions_[which] = after(old, stores);
  }
  UOp write_step() {
    if (!versions_.empty() && !versions_.back().dtype().is_bool() && c_.one_in(3)) {
      return loop_step();
    }
    if (versions_.empty() || c_.one_in(4)) {
      const UOp x = pick();
      if (x.is(Op::BUFFER)) return x;
      versions_.push_back(contiguous(x));
    }
    const size_t which = c_.one_in(3) ? c_.below(versions_.size()) : versions_.size() - 1;
    const UOp old = versions_[which];
    std::vector<UOp> stores;
    for (uint64_t i = 1 + c_.below(3); i > 0; i--) {
      UOp target = target_of(old);
      const bool accumulates = c_.one_in(3);
      if (accumulates && c_.one_in(3)) target = overlapping(target);
      if (c_.one_in(2)) target = gather_step(target);
      const UOp value = c_.one_in(3) ? number(target.dtype()) : partner(target);
      constexpr Op ops[] = {Op::ADD, Op::MUL, Op::MAX, Op::MIN};
      stores.push_back(accumulates ? target.accumulate(ops[c_.below(4)], value)
                                   : target.assign(value));
    }
    const UOp version = after(old, stores);
    versions_[which] = version;
    return version;
  }

  Arena& arena_;
  Choices& c_;
  std::map<int64_t, Array> buffers_;
  std::vector<UOp> values_, versions_;
  bool wide_ = false;  // dtypes of all kinds
  int oddness_ = 0;    // of constants
  std::vector<UOp> old_;
};

}  // namespace weft::fuzz
