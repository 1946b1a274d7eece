// Sources first: the lanes of every vector, as scalars.
#include "codegen/devectorize.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "codegen/replace_ranges.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/walk.h"
#include "symbolic/linear.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

using Lanes = std::vector<UOp>;

// A number that divides the index whatever the loops are at.
int64_t divisor_of(UOp index) {
  const std::optional<LinearSum> sum = linear_sum(index);
  if (!sum) return 1;
  int64_t out = sum->constant;
  for (const Term& t : sum->terms) out = std::gcd(out, t.coefficient);
  return out == 0 ? int64_t(1) << 20 : out;
}

class Devectorizer {
 public:
  Devectorizer(UOp sink, const Target& target)
      : sink_(sink), arena_(sink.arena()), target_(target) {
    for (UOp n : toposort(sink)) {
      if (n.is(Op::STORE) && n.src(1).is(Op::WMMA)) whole_.insert(place_of(n.src(0)).base);
    }
  }

  UOp run() {
    return rebuild(sink_, [&](UOp n, std::vector<UOp>& srcs) {
      if (n.is(Op::END) && srcs[0].is(Op::SINK)) return ends(n, srcs);
      const bool has_lanes = n.dtype().is_vector() || std::ranges::any_of(n.srcs(), [](UOp s) {
                               return s.dtype().is_vector();
                             });
      return has_lanes ? make(n, srcs) : flattened(n, srcs);
    });
  }

 private:
  // The lanes of source i of n; a scalar is the same in all of them.
  Lanes lanes_of(UOp n, size_t i, std::span<const UOp> srcs, size_t count) {
    const auto found = lanes_.find(n.src(i));
    if (found != lanes_.end()) return found->second;
    if (n.src(i).is_const()) {
      const DType type = n.src(i).dtype().element();
      return Lanes(count, arena_.make(Op::CONST, type, {}, Arg::bits(n.src(i).bits())));
    }
    return Lanes(count, srcs[i]);
  }

  // What stands for a vector in the new graph is never used: its lanes are.
  UOp keep(UOp n, Lanes lanes) {
    const UOp first = lanes[0];
    lanes_[n] = std::move(lanes);
    return first;
  }

  UOp make(UOp n, std::vector<UOp>& srcs) {
    if (n.dtype().is_pointer()) return arena_.with_srcs(n, srcs);  // of an access
    if (n.is(Op::WMMA)) return product(n, srcs);
    if (is_whole(n)) return arena_.with_srcs(n, srcs);
    if (n.is(Op::STORE) && is_whole(n.src(0))) {
      const UOp value = n.src(1).is_const() ? n.src(1) : srcs[1];
      return arena_.with_srcs(n, std::vector{srcs[0], value});
    }
    if (n.is_const()) return keep(n, lanes_of_constant(n));
    if (n.is(Op::LOAD)) return keep(n, load_lanes(n, srcs));
    if (n.is(Op::STORE)) return is_register(n.src(0)) ? store_register(n, srcs) : store(n, srcs);
    if (n.is(Op::FETCH)) return fetch(n, srcs);
    if (n.is(Op::DEFINE_REG)) return keep(n, registers(n));
    if (n.is(Op::AFTER)) return keep(n, after_lanes(n, srcs));
    if (n.is(Op::VECTORIZE)) return keep(n, joined(n, srcs));
    if (n.is(Op::GEP)) {
      Lanes out;
      if (is_whole(n.src(0))) {
        for (const int64_t lane : n.ints()) out.push_back(gep(srcs[0], std::array{lane}));
        return n.dtype().is_vector() ? keep(n, out) : out[0];
      }
      const Lanes from = lanes_of(n, 0, srcs, n.src(0).dtype().lanes);
      for (const int64_t lane : n.ints()) out.push_back(from[size_t(lane)]);
      return n.dtype().is_vector() ? keep(n, out) : out[0];
    }
    if (!is_elementwise(n.op())) return flattened(n, srcs);  // END, SINK: of effects
    return keep(n, by_lane(n, srcs));
  }

  // A copy of memory, or of lanes as the vector that they are.
  UOp fetch(UOp n, std::span<const UOp> srcs) {
    const DType type = n.src(1).dtype();
    if (type.is_pointer()) return flattened(n, srcs);
    const UOp value = arena_.make(Op::VECTORIZE, type, lanes_of(n, 1, srcs, type.lanes));
    return arena_.with_srcs(n, std::vector{srcs[0], value});
  }

  // Sums and factors that are put together of lanes are the vectors that they are.
  UOp product(UOp n, std::vector<UOp>& srcs) {
    for (size_t i = 0; i < 2; i++) {
      const UOp was = n.src(i);
      if (was.dtype().is_pointer() || is_whole(was)) continue;
      srcs[i] = was.is_const() ? was
                               : arena_.make(Op::VECTORIZE, was.dtype(),
                                             lanes_of(n, i, srcs, was.dtype().lanes));
    }
    return arena_.with_srcs(n, srcs);
  }

  // The sums of a WMMA, which stay in one register.
  bool is_whole(UOp n) const {
    return n.is(Op::WMMA) ||
           ((n.is(Op::DEFINE_REG) || n.is(Op::AFTER)) && whole_.contains(place_of(n).base));
  }

  Lanes lanes_of_constant(UOp n) {
    return Lanes(n.dtype().lanes,
                 arena_.make(Op::CONST, n.dtype().element(), {}, Arg::bits(n.bits())));
  }

  Lanes joined(UOp n, std::span<const UOp> srcs) {
    Lanes out;
    for (size_t i = 0; i < n.src_count(); i++) {
      const Lanes part = lanes_of(n, i, srcs, n.src(i).dtype().lanes);
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }

  Lanes by_lane(UOp n, std::span<const UOp> srcs) {
    const size_t count = n.dtype().lanes;
    std::vector<Lanes> operands;
    operands.reserve(n.src_count());
    for (size_t i = 0; i < n.src_count(); i++) operands.push_back(lanes_of(n, i, srcs, count));
    Lanes out;
    out.reserve(count);
    for (size_t l = 0; l < count; l++) {
      std::vector<UOp> of_lane;
      of_lane.reserve(operands.size());
      for (const Lanes& o : operands) of_lane.push_back(o[l]);
      out.push_back(arena_.with_srcs(n, of_lane, n.dtype().element()));
    }
    return out;
  }

  // The loops around each of several effects.
  UOp ends(UOp n, std::vector<UOp>& srcs) {
    const UOp effects = srcs[0];
    std::vector<UOp> all;
    for (UOp effect : effects.srcs()) {
      srcs[0] = effect;
      all.push_back(arena_.with_srcs(n, srcs));
    }
    return arena_.make(Op::SINK, dtypes::void_, all);
  }

  // ---- registers

  Lanes registers(UOp n) {
    Lanes out;
    for (size_t l = 0; l < n.dtype().lanes; l++) {
      out.push_back(
          arena_.make(Op::DEFINE_REG, n.dtype().element(), {}, Arg::integer(arena_.fresh_id())));
    }
    return out;
  }

  Lanes after_lanes(UOp n, std::span<const UOp> srcs) {
    const Lanes from = lanes_of(n, 0, srcs, n.dtype().lanes);
    Lanes out;
    for (UOp lane : from) {
      std::vector<UOp> all(srcs.begin(), srcs.end());
      all[0] = lane;
      const UOp shape = arena_.with_srcs(n, all, lane.dtype());
      out.push_back(flattened(shape, all));
    }
    return out;
  }

  UOp store_register(UOp n, std::span<const UOp> srcs) {
    const size_t count = n.src(0).dtype().lanes;
    const Lanes targets = lanes_of(n, 0, srcs, count), values = lanes_of(n, 1, srcs, count);
    std::vector<UOp> all;
    for (size_t l = 0; l < count; l++) {
      std::vector<UOp> of_lane{targets[l], values[l]};
      if (n.src_count() == 3) of_lane.push_back(lanes_of(n, 2, srcs, count)[l]);
      all.push_back(arena_.with_srcs(n, of_lane, targets[l].dtype()));
    }
    return arena_.make(Op::SINK, dtypes::void_, all);
  }

  // ---- memory

  // Where a vector lies: CAST(INDEX(memory, first)).
  struct Address {
    UOp memory, first;
    int64_t together;  // lanes that can be one access
  };
  Address address_of(UOp pointer, DType type) const {
    UOp at = pointer;
    while (at.is(Op::CAST)) at = at.src(0);
    const auto most = int64_t(target_.memory_vector_bytes) / type.item_bytes();
    const int64_t divisor = divisor_of(at.src(1));
    int64_t together = 1;
    while (together * 2 <= most && divisor % (together * 2) == 0) together *= 2;
    return {at.src(0), at.src(1), together};
  }

  UOp pointer(const Address& a, int64_t lane, int64_t count) const {
    const UOp at = simplify(a.first + lane, nullptr, Loads::kStay);
    const UOp one = arena_.make(Op::INDEX, a.memory.dtype(), {a.memory, at});
    return count == 1 ? one : arena_.make(Op::CAST, a.memory.dtype().vec(uint16_t(count)), {one});
  }

  // How many lanes from `lane` on can be one access: of one gate.
  static int64_t step_from(size_t lane, int64_t together, const Lanes& gates, size_t count) {
    int64_t step = together;
    while (int64_t(lane) % step != 0 || lane + size_t(step) > count) step /= 2;
    const auto is_uniform = [&](int64_t n) {
      return gates.empty() ||
             std::all_of(gates.begin() + ptrdiff_t(lane), gates.begin() + ptrdiff_t(lane) + n,
                         [&](UOp g) { return g == gates[lane]; });
    };
    while (!is_uniform(step)) step /= 2;
    return step;
  }

  static UOp vector_of(std::span<const UOp> lanes) {
    return lanes[0].arena().make(Op::VECTORIZE, lanes[0].dtype().vec(uint16_t(lanes.size())),
                                 lanes);
  }

  Lanes load_lanes(UOp n, std::span<const UOp> srcs) {
    const size_t count = n.dtype().lanes;
    const Address address = address_of(srcs[0], n.dtype().element());
    const bool has_gate = n.src_count() == 3;
    const Lanes gates = has_gate ? lanes_of(n, 1, srcs, count) : Lanes();
    const Lanes others = has_gate ? lanes_of(n, 2, srcs, count) : Lanes();
    Lanes out;
    for (size_t l = 0; l < count;) {
      const int64_t step = step_from(l, address.together, gates, count);
      std::vector<UOp> of_part{pointer(address, int64_t(l), step)};
      if (has_gate) {
        of_part.push_back(gates[l]);
        of_part.push_back(step == 1 ? others[l] : vector_of(std::span(others).subspan(l, step)));
      }
      const UOp part = arena_.with_srcs(n, of_part, n.dtype().element().vec(uint16_t(step)));
      for (int64_t k = 0; k < step; k++) out.push_back(step == 1 ? part : gep(part, std::array{k}));
      l += size_t(step);
    }
    return out;
  }

  UOp store(UOp n, std::span<const UOp> srcs) {
    const size_t count = n.src(1).dtype().lanes;
    const Lanes values = lanes_of(n, 1, srcs, count);
    const bool has_gate = n.src_count() == 3;
    const Lanes gates = has_gate ? lanes_of(n, 2, srcs, count) : Lanes();
    const Address address = address_of(srcs[0], n.src(1).dtype().element());
    std::vector<UOp> all;
    for (size_t l = 0; l < count;) {
      const int64_t step = step_from(l, address.together, gates, count);
      std::vector<UOp> of_part{
          pointer(address, int64_t(l), step),
          step == 1 ? values[l] : vector_of(std::span(values).subspan(l, step))};
      if (has_gate) of_part.push_back(gates[l]);
      all.push_back(arena_.with_srcs(n, of_part));
      l += size_t(step);
    }
    return all.size() == 1 ? all[0] : arena_.make(Op::SINK, dtypes::void_, all);
  }

  UOp sink_;
  Arena& arena_;
  const Target& target_;
  std::unordered_set<UOp> whole_;         // registers
  std::unordered_map<UOp, Lanes> lanes_;  // of vectors of the graph as it was
};

}  // namespace

UOp devectorize(UOp sink, const Target& target) {
  return target.vector_arithmetic ? sink : Devectorizer(sink, target).run();
}

}  // namespace weft
