// Places, from the base upwards along first sources.
#include "ir/place.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ir/arena.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/shape.h"

namespace weft {
namespace {

struct PlaceTable : Facts {
  static constexpr FactSlot kSlot = FactSlot::kPlaces;
  std::unordered_map<uint32_t, Place> of;  // few nodes are targets: by id, not dense

  size_t bytes() const override { return of.size() * (sizeof(Place) + 4 * sizeof(void*)); }
};

bool is_cast_of_pointer(UOp n) { return n.is(Op::CAST) && n.dtype().is_pointer(); }

// Whether n names a part of the memory that its first source names.
bool looks_through(UOp n) {
  return n.src_count() > 0 &&
         (is_view(n.op()) || n.is(Op::AFTER) || n.is(Op::INDEX) || is_cast_of_pointer(n));
}

bool repeats_elements(UOp expand) {
  const Shape from = shape_of(expand.src(0)), to = shape_of(expand);
  for (size_t i = 0; i < from.size() && i < to.size(); i++) {
    if (from[i] != to[i]) return true;
  }
  return false;
}

Place place_above(UOp n, const Place& below) {
  Place p{n, below.base, below.is_indexed || n.is(Op::INDEX)};
  if (!is_view(n.op())) return p;
  p.version = below.version;
  p.is_expanded = below.is_expanded || (n.is(Op::EXPAND) && repeats_elements(n));
  p.is_padded = below.is_padded || n.is(Op::PAD);
  return p;
}

}  // namespace

bool is_view(Op op) { return is_movement(op) || op == Op::BITCAST; }

Place place_of(UOp n) {
  auto& table = n.arena().facts<PlaceTable>();
  std::vector<UOp> path;
  UOp at = n;
  while (looks_through(at) && !table.of.contains(at.id())) {
    path.push_back(at);
    at = at.src(0);
  }
  const auto known = table.of.find(at.id());
  Place place = known != table.of.end() ? known->second : Place{at, at};
  for (size_t i = path.size(); i-- > 0;) {
    place = place_above(path[i], place);
    table.of.emplace(path[i].id(), place);
  }
  return place;
}

bool is_register(UOp n) {
  const Place place = place_of(n);
  const bool is_cell = place.base.is(Op::DEFINE_REG) ||
                       (place.base.is(Op::DEFINE_GLOBAL) && !place.base.dtype().is_pointer());
  return is_cell && !place.is_indexed && place.version == n;
}

}  // namespace weft
