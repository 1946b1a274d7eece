// Shapes of tensor graphs, sources first.
#include "ir/shape.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/huge_vector.h"
#include "ir/arena.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/walk.h"

namespace weft {
namespace {

constexpr uint32_t kNoAxes = 1;                           // in the table of shapes
constexpr size_t kFirstChunk = 16, kLargestChunk = 1024;  // dimensions

struct ShapeTable : Facts {
  static constexpr FactSlot kSlot = FactSlot::kShapes;
  HugeVector<uint32_t> of;              // 0: not computed; else its place in `shapes`
  std::vector<Shape> shapes{{}, {}};    // each node adds one, or has that of a source
  std::deque<std::vector<Dim>> chunks;  // shapes that no source already has
  size_t chunk_dims = 0;                // of all chunks

  size_t bytes() const override {
    return of.capacity() * sizeof(uint32_t) + shapes.capacity() * sizeof(Shape) +
           chunk_dims * sizeof(Dim);
  }
  bool has(UOp n) const { return n.id() < of.size() && of[n.id()] != 0; }
  void put(UOp n, uint32_t shape) {
    if (n.id() >= of.size()) of.resize(std::max<size_t>(n.arena().size(), of.size() * 3 / 2));
    of[n.id()] = shape;
  }
  uint32_t number(Shape s) {
    if (s.empty()) return kNoAxes;
    shapes.push_back(s);
    return uint32_t(shapes.size() - 1);
  }
  Shape get(UOp n) const { return shapes[of[n.id()]]; }
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

// Of these the shape is that of the first source.
constexpr OpSet kSameShape = {Op::FLIP,   Op::SCAN, Op::CONTIGUOUS, Op::CONTIGUOUS_BACKWARD,
                              Op::DETACH, Op::COPY, Op::STORE,      Op::AFTER};

Shape own_shape(UOp n, ShapeTable& t) {
  auto src = [&](size_t i) { return t.get(n.src(i)); };
  Arena& arena = n.arena();
  const std::span<const UOp> rest = n.src_count() > 0 ? n.srcs().subspan(1) : n.srcs();
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
    default: return {};
  }
}

uint32_t compute(UOp n, ShapeTable& t) {
  if (n.src_count() < info(n.op()).least_sources) return kNoAxes;
  if (kSameShape.has(n.op())) return t.of[n.src(0).id()];
  if (!is_elementwise(n.op()) && !n.is(Op::INDEX)) return t.number(own_shape(n, t));
  uint32_t widest = kNoAxes;  // scalars broadcast
  for (size_t i = n.is(Op::INDEX) ? 1 : 0; i < n.src_count(); i++) {
    const uint32_t shape = t.of[n.src(i).id()];
    if (t.shapes[shape].size() > t.shapes[widest].size()) widest = shape;
  }
  return widest;
}

}  // namespace

Shape shape_of(UOp root) {
  auto& table = root.arena().facts<ShapeTable>();
  visit_missing(
      root, [&](UOp n) { return table.has(n); }, [&](UOp n) { table.put(n, compute(n, table)); });
  return table.get(root);
}

}  // namespace weft
