// Shapes of tensor graphs, sources first.
#include "ir/shape.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/walk.h"

namespace weft {
namespace {

using Dims = std::vector<Dim>;

struct ShapeTable : Facts {
  static constexpr FactSlot kSlot = FactSlot::kShapes;
  std::vector<Shape> of;
  std::vector<bool> known;
  std::deque<Dims> memory;  // shapes that no source already has

  size_t bytes() const override {
    size_t total = of.capacity() * sizeof(Shape) + known.capacity() / 8;
    for (const Dims& d : memory) total += sizeof(Dims) + d.capacity() * sizeof(Dim);
    return total;
  }
  bool has(UOp n) const { return n.id() < known.size() && known[n.id()]; }
  void put(UOp n, Shape s) {
    if (n.id() >= of.size()) {
      of.resize(std::max<size_t>(n.arena().size(), of.size() * 3 / 2));
      known.resize(of.size());
    }
    of[n.id()] = s;
    known[n.id()] = true;
  }
  Shape keep(Dims dims) {
    if (dims.empty()) return {};
    return memory.emplace_back(std::move(dims));
  }
};

// Sources first + i*stride ... as dimensions.
Dims dims_of(std::span<const UOp> srcs) { return {srcs.begin(), srcs.end()}; }

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
    case Op::BUFFER: return t.keep({Dim(n.src(0))});
    case Op::RESHAPE:
    case Op::EXPAND: return t.keep(dims_of(rest));
    case Op::PERMUTE: {
      Dims out;
      for (int64_t axis : n.ints()) {
        if (axis >= 0 && size_t(axis) < src(0).size()) out.push_back(src(0)[size_t(axis)]);
      }
      return t.keep(out);
    }
    case Op::PAD:
    case Op::SHRINK: {
      const size_t rank = src(0).size();
      Dims out;
      for (size_t i = 0; i < rank && rank + i < rest.size(); i++) {
        const Dim first = rest[i], second = rest[rank + i];
        out.push_back(n.is(Op::PAD) ? add(arena, add(arena, src(0)[i], first), second)
                                    : sub(arena, second, first));
      }
      return t.keep(out);
    }
    case Op::VIEW: return t.keep(dims_of(rest.first((rest.size() - 1) / 2)));
    case Op::REDUCE_AXIS: {
      Dims out(src(0).begin(), src(0).end());
      for (int64_t axis : n.ints()) {
        if (axis >= 0 && size_t(axis) < out.size()) out[size_t(axis)] = 1;
      }
      return t.keep(out);
    }
    case Op::BUFFERIZE: {
      Dims out;
      for (UOp r : rest)
        out.push_back(r.is(Op::RANGE) && r.src_count() > 0 ? Dim(r.src(0)) : Dim(1));
      return t.keep(out);
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
