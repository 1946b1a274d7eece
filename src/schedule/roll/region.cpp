// Movement ops on sizes, strides and an offset.
#include "schedule/roll/region.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <vector>

#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/shape.h"

namespace weft {
namespace {

bool has_const_numbers(UOp n) {
  return std::ranges::all_of(n.srcs().subspan(1), [](UOp s) { return s.is_const(); });
}

}  // namespace

bool Region::add(Axis axis) {
  if (rank_ == kMostAxes) return false;
  axes_[rank_++] = axis;
  return true;
}

std::optional<Region> Region::whole(UOp memory) {
  Region out;
  for (const Dim d : shape_of(memory)) {
    if (!d.is_int() || !out.add({d.value(), 1})) return {};
  }
  for (size_t i = out.rank_; i-- > 1;) {
    out.axes_[i - 1].stride = out.axes_[i].stride * out.axes_[i].size;
  }
  return out;
}

int64_t Region::numel() const {
  int64_t count = 1;
  for (const Axis& a : axes()) count *= a.size;
  return count;
}

bool Region::operator==(const Region& other) const {
  const auto is_equal = [](const Axis& a, const Axis& b) {
    return a.size == b.size && (a.size == 1 || a.stride == b.stride);
  };
  return offset_ == other.offset_ && std::equal(axes().begin(), axes().end(), other.axes().begin(),
                                                other.axes().end(), is_equal);
}

bool Region::is_injective() const {
  std::vector<Axis> moving;
  for (const Axis& a : axes()) {
    if (a.size > 1) moving.push_back({a.size, std::abs(a.stride)});
  }
  std::ranges::sort(moving, {}, &Axis::stride);
  int64_t reach = 0;  // of the axes so far
  for (const Axis& a : moving) {
    if (a.stride <= reach) return false;
    reach += a.stride * (a.size - 1);
  }
  return true;
}

Region Region::joined() const {
  Region out;
  out.offset_ = offset_;
  for (const Axis& a : axes()) {
    if (a.size == 1) continue;
    if (out.rank_ > 0 && out.axes_[out.rank_ - 1].stride == a.stride * a.size) {
      Axis& last = out.axes_[out.rank_ - 1];
      last = {last.size * a.size, a.stride};
    } else {
      out.add(a);
    }
  }
  return out;
}

bool Region::apply(UOp n) {
  if (info(n.op()).arg != ArgKind::Ints && !has_const_numbers(n)) return false;
  const std::span<const UOp> args = n.srcs().subspan(1);
  if (n.is(Op::RESHAPE)) {
    std::vector<int64_t> sizes;
    for (UOp s : args) sizes.push_back(s.const_int());
    return reshape(sizes);
  }
  if (n.is(Op::PERMUTE)) {
    const std::array<Axis, kMostAxes> old = axes_;
    for (size_t i = 0; i < rank_; i++) axes_[i] = old[size_t(n.ints()[i])];
    return true;
  }
  if (n.is(Op::EXPAND)) {
    if (args.size() != rank_) return false;
    for (size_t i = 0; i < rank_; i++) {
      if (axes_[i].size != args[i].const_int()) axes_[i] = {args[i].const_int(), 0};
    }
    return true;
  }
  if (n.is(Op::SHRINK)) {
    for (size_t i = 0; i < rank_; i++) {
      const int64_t begin = args[i].const_int(), past = args[rank_ + i].const_int();
      offset_ += begin * axes_[i].stride;
      axes_[i].size = past - begin;
    }
    return true;
  }
  if (n.is(Op::FLIP)) {
    for (const int64_t axis : n.ints()) {
      Axis& a = axes_[size_t(axis)];
      offset_ += a.stride * (a.size - 1);
      a.stride = -a.stride;
    }
    return true;
  }
  return n.is(Op::VIEW) && apply_view(args);
}

// A strided view of the elements in row-major order: they must lie in one row.
bool Region::apply_view(std::span<const UOp> args) {
  const Region row = joined();
  const size_t rank = args.size() / 2;
  if (row.rank_ > 1 || rank > kMostAxes) return false;
  const int64_t step = row.rank_ == 0 ? 1 : row.axes_[0].stride;
  Region out;
  out.offset_ = offset_ + args[2 * rank].const_int() * step;
  for (size_t i = 0; i < rank; i++) {
    out.add({args[i].const_int(), args[rank + i].const_int() * step});
  }
  *this = out;
  return true;
}

Region Region::moved_to(int64_t offset) const {
  Region out = *this;
  out.offset_ = offset;
  return out;
}

// Splits the joined axes into the new ones, from the last to the first.
bool Region::reshape(std::span<const int64_t> sizes) {
  int64_t count = 1;
  for (const int64_t wanted : sizes) count *= wanted;
  if (sizes.size() > kMostAxes || count != numel() || count == 0) return false;
  const Region from = joined();
  Region out;
  out.offset_ = offset_;
  out.rank_ = sizes.size();
  size_t left = from.rank_;
  int64_t size = 1, stride = 1;  // of what is left of the current axis
  for (size_t i = sizes.size(); i-- > 0;) {
    const int64_t wanted = sizes[i];
    if (wanted == 1) {
      out.axes_[i] = {1, 0};
      continue;
    }
    if (size == 1) {
      if (left == 0) return false;
      size = from.axes_[--left].size;
      stride = from.axes_[left].stride;
    }
    if (size % wanted != 0) return false;
    out.axes_[i] = {wanted, stride};
    size /= wanted;
    stride *= wanted;
  }
  *this = out;
  return true;
}

}  // namespace weft
