// Shapes of tensor graphs, sources first.
#include "ir/shape.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "ir/arena.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/walk.h"

namespace weft {
namespace {

constexpr size_t kFirstChunk = 16, kLargestChunk = 1024;  // dimensions

struct ShapeTable : Facts {
  static constexpr FactSlot kSlot = FactSlot::kShapes;
  std::vector<Shape> of;                // data() is null: not computed
  std::deque<std::vector<Dim>> chunks;  // shapes that no source already has
  size_t chunk_dims = 0;                // of all chunks

  size_t bytes() const override { return of.capacity() * sizeof(Shape) + chunk_dims * sizeof(Dim); }
  bool has(UOp n) const { return n.id() < of.size() && of[n.id()].data() != nullptr; }
  void put(UOp n, Shape s) {
    static const Dim kNoDim = 0;
    if (n.id() >= of.size()) of.resize(std::max<size_t>(n.arena().size(), of.size() * 3 / 2));
    of[n.id()] = s.empty() ? Shape(&kNoDim, 0) : s;
  }
  // Memory of a new shape, which stays where it is.
  std::span<Dim> room(size_t rank) {
    if (chunks.empty() || chunks.back().capacity() - chunks.back().size() < rank) {
      const size_t size = std::clamp(chunk_dims, kFirstChunk, kLargestChunk);
      chunks.emplace_back().reserve(std::max(size, rank));
      chunk_dims += chunks.back().capacity();
    }
    std::vector<Dim>& chunk = chunks.back();
    chunk.resize(chunk.size() + rank, Dim(0));
    return std::span(chunk).last(rank);
  }
  Shape keep(std::span<const UOp> dims) {
    const std::span<Dim> out = room(dims.size());
    std::ranges::copy(dims, out.begin());
    return out;
  }
};

Shape compute(UOp n, ShapeTable& t) {
  if (n.src_count() < info(n.op()).least_sources) return {};
  auto src = [&](size_t i) { return t.of[n.src(i).id()]; };
  Arena& arena = n.arena();
  const std::span<const UOp> rest = n.src_count() > 0 ? n.srcs().subspan(1) : n.srcs();
  if (is_elementwise(n.op()) || n.is(Op::INDEX)) {  // scalars broadcast
    Shape widest;
    for (size_t i = n.is(Op::INDEX) ? 1 : 0; i < n.src_count(); i++) {
      if (src(i).size() > widest.size()) widest = src(i);
    }
    return widest;
  }
  switch (n.op()) {
    case Op::IOTA:
    case Op::BUFFER: return t.keep(n.srcs().first(1));
    case Op::RESHAPE:
    case Op::EXPAND: return t.keep(rest);
    case Op::PERMUTE: {
      const Shape of = src(0);
      const std::span<Dim> out = t.room(n.ints().size());
      size_t rank = 0;
      for (int64_t axis : n.ints()) {
        if (axis >= 0 && size_t(axis) < of.size()) out[rank++] = of[size_t(axis)];
      }
      return out.first(rank);
    }
    case Op::PAD:
    case Op::SHRINK: {
      const Shape of = src(0);
      const size_t past = rest.size() > of.size() ? rest.size() - of.size() : 0;
      const std::span<Dim> out = t.room(std::min(of.size(), past));
      for (size_t i = 0; i < out.size(); i++) {
        const Dim first = rest[i], second = rest[of.size() + i];
        out[i] = n.is(Op::PAD) ? add(arena, add(arena, of[i], first), second)
                               : sub(arena, second, first);
      }
      return out;
    }
    case Op::VIEW: return t.keep(rest.first((rest.size() - 1) / 2));
    case Op::REDUCE_AXIS: {
      const Shape of = src(0);
      const std::span<Dim> out = t.room(of.size());
      std::ranges::copy(of, out.begin());
      for (int64_t axis : n.ints()) {
        if (axis >= 0 && size_t(axis) < out.size()) out[size_t(axis)] = 1;
      }
      return out;
    }
    case Op::BUFFERIZE: {
      const std::span<Dim> out = t.room(rest.size());
      for (size_t i = 0; i < rest.size(); i++) {
        const bool is_range = rest[i].is(Op::RANGE) && rest[i].src_count() > 0;
        out[i] = is_range ? Dim(rest[i].src(0)) : Dim(1);
      }
      return out;
    }
    case Op::FLIP:
    case Op::CONTIGUOUS:
    case Op::CONTIGUOUS_BACKWARD:
    case Op::DETACH:
    case Op::COPY:
    case Op::STORE:
    case Op::AFTER: return src(0);
    default: return {};
  }
}

}  // namespace

Shape shape_of(UOp root) {
  auto& table = root.arena().facts<ShapeTable>();
  visit_missing(
      root, [&](UOp n) { return table.has(n); }, [&](UOp n) { table.put(n, compute(n, table)); });
  return table.of[root.id()];
}

}  // namespace weft
