// Every tile is a guess at cycles in closed form: the multiplications of one step of the sum,
// beside the reads that they need, as often as there are steps and tiles. The cheapest that applies
// is it.
#include "codegen/opt/tile_products.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include "codegen/opt/kernel_loops.h"
#include "codegen/opt/loop_facts.h"
#include "codegen/opt/loops.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scope.h"
#include "ir/walk.h"

namespace weft {
namespace {

// Cycles, of a core that starts a multiplication and two reads of half a vector in each.
constexpr double kLatency = 4;      // of an addition, which the next one to the same sum waits for
constexpr double kStep = 1;         // of a loop, for each iteration
constexpr double kBeside = 0.1;     // of a read or a multiplication that others hide
constexpr double kTile = 25;        // to begin and end a tile
constexpr double kGathered = 1;     // a lane that is read or written alone
constexpr double kUnaligned = 1.6;  // a vector of memory as it lies, by one that is packed
constexpr double kFarVector = 4;    // the same where the next step of the sum is in another page
constexpr int64_t kFarBytes = 1024;
constexpr int64_t kWays = 8;     // lines that a cache keeps of one address modulo its size
constexpr double kPacked = 1.3;  // to pack an element
constexpr double kPackedInOrder = 0.4;
constexpr size_t kPanelCaches = 8;         // a packed panel is at most so many caches
constexpr double kReused = 3;              // uses of an element of memory that a tile is for
constexpr double kThreadCycles = 1 << 15;  // that are worth a thread
constexpr size_t kTried = 4;               // the cheapest tiles
constexpr std::array<int64_t, 12> kCopies{2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 24};

int64_t ceiled(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Factor {
  UOp value, read;
  int64_t argument = 0;
  double work = 0;      // operations on what is read
  double elements = 0;  // of its memory
};

// A loop of the products.
struct Axis {
  UOp loop;
  int64_t id = 0, size = 0;
  bool is_const = false, is_written_in_order = false;
  int64_t lanes = 1;              // of a full vector
  std::vector<int64_t> counts{};  // of copies that are worth a try
  int64_t most_copies = 256;      // whose writes do not push each other out of the cache
  std::array<bool, 2> in{};       // whether a factor depends on it
  std::array<std::optional<int64_t>, 2> step{};
};

struct Tile {
  bool is_along_sum = false;  // lanes are steps of the sum
  size_t lane_axis = 0;       // in free axes, or in those of the sum
  int64_t lanes = 1, vectors = 1;
  struct Copies {
    size_t axis = 0;
    int64_t count = 1;
  };
  std::array<Copies, 2> copies{};
  int packed = -1;  // a factor
  double cycles = 0;
};

class Products {
 public:
  Products(KernelLoops& kernel, UOp sum) : k_(kernel), sum_(sum) {}

  bool is_worth_it() {
    for (size_t f = 0; f < 2; f++) {
      Factor& factor = factors_[f];
      factor.value = sum_.src(0).src(f);
      factor.read = only_load(factor.value);
      if (!factor.read) return false;
      const UOp base = place_of(factor.read.src(0)).base;
      if (!base.is(Op::DEFINE_GLOBAL)) return false;
      factor.argument = base.number();
      factor.elements = double(base.src(0).is_const() ? base.src(0).const_int() : 1);
      for (UOp n : toposort(factor.value)) {
        const bool is_value = !n.dtype().is_index() && !n.dtype().is_pointer() &&
                              !n.dtype().is_bool() && is_elementwise(n.op());
        factor.work += is_value ? 1 : 0;
      }
    }
    if (factors_[0].read == factors_[1].read) return false;
    for (UOp r : k_.parallel()) {
      if (is_in_scope(r, sum_)) free_.push_back(axis_of(r));
    }
    for (UOp r : sum_.srcs().subspan(1)) {
      if (!r.is(Op::RANGE)) return false;
      sums_.push_back(axis_of(r));
      steps_ *= double(std::max<int64_t>(sums_.back().size, 1));
    }
    for (UOp r : k_.loops_of_end()) {
      const auto at = std::ranges::find(free_, r.range_id(), &Axis::id);
      if (at != free_.end()) outer_first_.push_back(size_t(at - free_.begin()));
    }
    for (const Axis& a : free_) results_ *= double(std::max<int64_t>(a.size, 1));
    const auto has_own = [&](size_t f) {
      return std::ranges::any_of(
          free_, [&](const Axis& a) { return a.in[f] && !a.in[1 - f] && a.size > 1; });
    };
    const bool is_window = std::ranges::any_of(factors_, [&](const Factor& f) {
      return f.elements > 1 && results_ * steps_ >= kReused * f.elements;
    });
    const bool all = std::ranges::all_of(factors_, [&](const Factor& f) {
      return f.elements > 1 && results_ * steps_ >= kReused * f.elements;
    });
    return (has_own(0) && has_own(1)) || (is_window && all);
  }

  bool tile() {
    find_tiles();
    for (size_t i = 0; i < tiles_.size(); i++) {
      const KernelLoops::State before = k_.state();
      if (tiles_[i].is_along_sum ? apply_along_sum(tiles_[i]) : apply(tiles_[i])) return true;
      k_.go_back(before);
    }
    return false;
  }

 private:
  Axis axis_of(UOp r) const {
    Axis a{r, r.range_id(), most_places(r), r.src(0).is_const(), k_.writes_in_order(r)};
    for (size_t f = 0; f < 2; f++) {
      a.in[f] = is_in_scope(r, factors_[f].value);
      a.step[f] = a.in[f] ? step_of(factors_[f].read, r) : std::optional<int64_t>(0);
    }
    a.lanes = std::max<int64_t>(k_.lanes_in(r), 1);
    for (UOp n : k_.accesses()) {
      if (!n.is(Op::STORE) || !is_in_scope(r, n)) continue;
      const int64_t step = std::abs(step_of(n, r).value_or(kFarBytes));
      if (step * n.src(1).dtype().item_bytes() >= kFarBytes) a.most_copies = kWays;
    }
    a.counts = counts_of(a);
    return a;
  }

  // ---- candidates

  void find_tiles() {
    for (size_t v = 0; v < free_.size(); v++) {
      const Axis& a = free_[v];
      if (a.size < 2 || !(a.in[0] || a.in[1])) continue;
      const int64_t full = a.lanes;
      for (int64_t lanes = full; lanes >= kLeastLanes; lanes /= 2) {
        // Narrower ones are for what they fill better.
        const bool is_fuller =
            ceiled(a.size, lanes) * lanes < ceiled(a.size, 2 * lanes) * 2 * lanes;
        if (lanes < full && (!a.is_const || !is_fuller)) continue;
        for (const int packed : {-1, 0, 1}) {
          if (packed >= 0 && !may_pack(size_t(packed), v)) continue;
          for (int64_t vectors = 1; vectors <= std::min<int64_t>(8, ceiled(a.size, lanes));
               vectors++) {
            add_copies({.lane_axis = v, .lanes = lanes, .vectors = vectors, .packed = packed});
          }
        }
      }
    }
    for (size_t v = 0; v < sums_.size(); v++) {
      const Axis& a = sums_[v];
      const bool is_in_order = a.step[0] == 1 && a.step[1] == 1;
      const bool is_packed = a.step[0] == 1 || a.step[1] == 1;
      if (!a.is_const || a.size < kLeastLanes || !is_packed || !a.in[0] || !a.in[1]) continue;
      const int packed = is_in_order ? -1 : a.step[0] == 1 ? 1 : 0;
      if (packed >= 0 && !a.step[size_t(packed)]) continue;
      add_copies(
          {.is_along_sum = true, .lane_axis = v, .lanes = k_.lanes_for(a.loop), .packed = packed});
    }
  }

  void add_copies(const Tile& tile) {
    add(tile);
    for (size_t r = 0; r < free_.size(); r++) {
      if (!may_copy(tile, r)) continue;
      for (const int64_t n : free_[r].counts) {
        Tile one = tile;
        one.copies[0] = {r, n};
        if (!fits(one)) break;
        add(one);
        for (size_t q = r + 1; q < free_.size(); q++) {
          if (!may_copy(tile, q)) continue;
          for (const int64_t m : free_[q].counts) {
            Tile two = one;
            two.copies[1] = {q, m};
            if (!fits(two)) break;
            add(two);
          }
        }
      }
    }
  }

  bool may_copy(const Tile& t, size_t axis) const {
    return free_[axis].size > 1 && (t.is_along_sum || axis != t.lane_axis);
  }

  // All that are worth a try: parts without a rest, and few of a long loop.
  static std::vector<int64_t> counts_of(const Axis& a) {
    std::vector<int64_t> out;
    for (const int64_t n : kCopies) {
      const bool is_worth_it = a.size % n == 0 || a.size >= 4 * n;
      if (n <= std::min(a.size, a.most_copies) && is_worth_it) out.push_back(n);
    }
    return out;
  }

  // Vectors of a factor in one step.
  int64_t reads_of(const Tile& t, size_t f) const {
    int64_t n = !t.is_along_sum && free_[t.lane_axis].in[f] ? t.vectors : 1;
    for (const auto& [axis, count] : t.copies) {
      if (count > 1 && free_[axis].in[f]) n *= count;
    }
    return n;
  }
  static int64_t sums_of(const Tile& t) {
    return t.vectors * t.copies[0].count * t.copies[1].count;
  }

  bool fits(const Tile& t) const {
    const int64_t held = std::min(reads_of(t, 0), reads_of(t, 1)) + 1;
    return sums_of(t) + held <= int64_t(k_.target().vector_registers);
  }

  void add(Tile t) {
    if (!fits(t)) return;
    t.cycles = cycles_of(t);
    if (tiles_.size() == kTried && tiles_.back().cycles <= t.cycles) return;
    if (tiles_.size() == kTried) tiles_.pop_back();
    tiles_.insert(std::ranges::upper_bound(tiles_, t.cycles, {}, &Tile::cycles), t);
  }

  // What is packed is read in all loops that are left around what it is packed in.
  bool may_pack(size_t f, size_t v) const {
    if (!free_[v].in[f] || !free_[v].is_const) return false;
    const bool is_constant = std::ranges::all_of(sums_, &Axis::is_const) &&
                             std::ranges::all_of(free_, [&](const Axis& a) { return a.is_const; });
    const double panel = steps_ * double(free_[v].lanes * 4) * 4;
    return is_constant && panel <= double(kPanelCaches * k_.target().cache_bytes);
  }

  // ---- cycles

  // A vector of so many lanes, by a full one.
  double width(const Tile& t) const {
    const Axis& a = t.is_along_sum ? sums_[t.lane_axis] : free_[t.lane_axis];
    const double share = double(t.lanes) / double(a.lanes);
    return k_.target().halves_vectors ? std::max(share, 0.5) : 1;
  }

  double cycles_of(const Tile& t) const {
    const double wide = width(t);
    const Axis& lane = t.is_along_sum ? sums_[t.lane_axis] : free_[t.lane_axis];
    double reads = 0, work = 0, pack = 0;
    for (size_t f = 0; f < 2; f++) {
      const auto count = double(reads_of(t, f));
      const bool is_packed = t.packed == int(f);
      double each = 0.5;  // to all lanes
      if (lane.in[f]) {
        const bool is_near = is_packed || lane.step[f] == 1;
        each = !is_near ? double(t.lanes) * kGathered : is_packed ? wide : wide * vector_of(t, f);
      }
      reads += count * each;
      const double computed = count * factors_[f].work * wide;
      work += is_packed ? 0 : is_filled(t, f) ? computed / double(t.lanes) : computed;
      if (is_packed) pack = packed_elements(f) * (lane.step[f] == 1 ? kPackedInOrder : kPacked);
    }
    const double sums = double(sums_of(t));
    const double multiplied = sums * wide + work;
    const double step =
        std::max({multiplied, reads, kLatency}) + kBeside * (multiplied + reads) + kStep;
    double tiles = 1, steps = steps_;
    for (size_t i = 0; i < free_.size(); i++) {
      int64_t at_once = 1;
      if (!t.is_along_sum && i == t.lane_axis) at_once = t.lanes * t.vectors;
      for (const auto& [axis, count] : t.copies) {
        if (axis == i && count > 1) at_once = count;
      }
      tiles *= double(ceiled(std::max<int64_t>(free_[i].size, 1), at_once));
    }
    double end = lane.is_written_in_order ? wide : double(t.lanes) * kGathered;
    if (t.is_along_sum) {
      steps = steps / double(lane.size) * double(ceiled(lane.size, t.lanes));
      end = 3 * std::log2(double(t.lanes));
    }
    const double all = tiles * (steps * step + sums * end + kTile) + pack;
    return all > kThreadCycles ? all * unshared(t) : all;
  }

  // What is computed of a factor beside a packed one is computed once for each tile.
  bool is_filled(const Tile& t, size_t f) const {
    return t.packed == int(1 - f) && !t.is_along_sum && factors_[f].work > 0 &&
           !free_[t.lane_axis].in[f] && t.vectors > 1;
  }

  // A vector of memory as it lies.
  double vector_of(const Tile& t, size_t f) const {
    if (t.is_along_sum) return kUnaligned;
    int64_t least = INT64_MAX;
    for (const Axis& a : sums_) {
      if (a.in[f]) least = std::min(least, std::abs(a.step[f].value_or(kFarBytes)));
    }
    const bool is_far = least != INT64_MAX && least * 4 >= kFarBytes && steps_ >= 32;
    return is_far ? kFarVector : kUnaligned;
  }

  double packed_elements(size_t f) const {
    double n = steps_;
    for (const Axis& a : free_) n *= a.in[f] ? double(a.size) : 1;
    return n;
  }

  // How many times longer it takes where no loop has an iteration for every core: of those outside
  // of the one that packs, or all but those that are cut with a rest.
  double unshared(const Tile& t) const {
    const auto cores = double(k_.target().cores);
    double most = 1;
    for (const size_t i : outer_first_) {
      const Axis* const axis = &free_[i];
      const bool is_lanes = !t.is_along_sum && i == t.lane_axis;
      int64_t at_once = is_lanes ? t.lanes * t.vectors : 1;
      for (const auto& [copied, count] : t.copies)
        at_once = copied == i && count > 1 ? count : at_once;
      const bool is_inside = t.packed >= 0 && !t.is_along_sum && !axis->in[size_t(t.packed)];
      const bool is_cut = !is_lanes && axis->size % at_once != 0;
      if (!is_inside && !is_cut) most = std::max(most, double(ceiled(axis->size, at_once)));
      if (is_lanes && t.packed >= 0) break;
    }
    return most >= cores ? 1 : cores / most;
  }

  // ---- a tile

  bool apply(const Tile& t) {
    const Axis& lane = free_[t.lane_axis];
    std::array<int64_t, 2> ids{free_[t.copies[0].axis].id, free_[t.copies[1].axis].id};
    const int64_t whole = t.lanes * t.vectors;
    if (lane.is_const && lane.size % whole != 0 && !k_.attempt(OptKind::kPad, lane.id, whole))
      return false;
    std::vector<int64_t> inner;
    if (t.packed >= 0) {
      // Loops that what is packed does not depend on, inside of the one that packs.
      for (UOp r : k_.loops_of_end()) {
        if (r.range_id() == lane.id) break;
        if (is_in_scope(r, factors_[size_t(t.packed)].value)) continue;
        const int64_t next = free_range_id(k_.sink());
        if (most_places(r) < 2) continue;
        if (!k_.attempt(OptKind::kTile, r.range_id(), most_places(r))) return false;
        for (int64_t& id : ids) id = id == r.range_id() ? next : id;
      }
    }
    put_rests_inside(t, ids);
    if (!k_.attempt(OptKind::kVector, lane.id, t.lanes)) return false;
    if (t.vectors > 1 && !k_.attempt(OptKind::kUpcast, lane.id, t.vectors)) return false;
    if (!copy(t, ids)) return false;
    k_.thread({});
    if (t.packed < 0) return true;
    // The lanes may be all done in one go: then the loop around them is the one that fills.
    UOp loop = k_.range(lane.id);
    for (size_t i = 0; !loop && i < 2; i++) loop = k_.loop_around(ids[i]);
    if (!loop || !k_.attempt(OptKind::kStage, factors_[size_t(t.packed)].argument, loop.range_id()))
      return false;
    if (is_filled(t, size_t(1 - t.packed))) fill_other(t, ids);
    return true;
  }

  // The other factor's memory is filled in vectors, in the loop around the copies of a tile.
  void fill_other(const Tile& t, const std::array<int64_t, 2>& ids) {
    const Factor& other = factors_[size_t(1 - t.packed)];
    for (size_t i = 2; i-- > 0;) {
      if (t.copies[i].count < 2 || !k_.range(ids[i])) continue;
      const int64_t next = free_range_id(k_.sink());
      if (!k_.attempt(OptKind::kStage, other.argument, ids[i])) continue;
      for (int64_t id = free_range_id(k_.sink()); id-- > next;) {
        if (k_.attempt(OptKind::kVector, id, t.lanes)) return;
      }
      return;
    }
  }

  // A loop with a rest is two: inside of the others, which threads share.
  void put_rests_inside(const Tile& t, std::array<int64_t, 2>& ids) {
    for (size_t i = 0; i < 2; i++) {
      const Axis& a = free_[t.copies[i].axis];
      if (t.copies[i].count < 2 || !a.is_const || ids[i] != a.id || a.size % t.copies[i].count == 0)
        continue;
      const int64_t next = free_range_id(k_.sink());
      if (k_.attempt(OptKind::kTile, a.id, a.size)) ids[i] = next;
    }
  }

  bool copy(const Tile& t, const std::array<int64_t, 2>& ids) {
    for (size_t i = 0; i < 2; i++) {
      if (t.copies[i].count > 1 && !k_.attempt(OptKind::kUpcast, ids[i], t.copies[i].count))
        return false;
    }
    return true;
  }

  bool apply_along_sum(const Tile& t) {
    const Axis& along = sums_[t.lane_axis];
    std::array<int64_t, 2> ids{free_[t.copies[0].axis].id, free_[t.copies[1].axis].id};
    if (along.size % t.lanes != 0 && !k_.attempt(OptKind::kPad, along.id, t.lanes)) return false;
    put_rests_inside(t, ids);
    if (!k_.attempt(OptKind::kVector, along.id, t.lanes)) return false;
    if (!copy(t, ids)) return false;
    k_.thread({});
    return true;
  }

  KernelLoops& k_;
  UOp sum_;
  std::array<Factor, 2> factors_;
  std::vector<Axis> free_, sums_;
  std::vector<size_t> outer_first_;  // free axes as the last END has them
  double steps_ = 1, results_ = 1;
  std::vector<Tile> tiles_;  // the cheapest so far, in order
};

}  // namespace

bool tile_products(KernelLoops& kernel) {
  if (kernel.target().vector_bytes == 0) return false;
  std::vector<UOp> sums;
  std::ranges::copy_if(kernel.order(), std::back_inserter(sums), is_sum_of_products);
  std::ranges::stable_sort(sums,
                           [](UOp a, UOp b) { return places_of(a.src(0)) > places_of(b.src(0)); });
  for (UOp sum : sums) {
    Products products(kernel, sum);
    if (products.is_worth_it() && products.tile()) return true;
  }
  return false;
}

}  // namespace weft
