// Products of tiles in local memory, and the copies that fill it. A copy is done as late as it may
// be, when it is waited for.
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ir/box.h"
#include "ir/dtype.h"
#include "ir/evaluate_memory.h"
#include "ir/evaluate_parts.h"
#include "ir/evaluate_plan.h"
#include "ir/evaluate_thread.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"

namespace weft::evaluator {
namespace {

constexpr int64_t kSide = 64;  // of a block, which lies in row-major order

// Element (i, k) of a tile whose blocks follow each other along i; transposed, k is the row.
int64_t offset_of(int64_t i, int64_t k, bool is_transposed) {
  const int64_t block = i / kSide * kSide * kSide, at = i % kSide;
  return block + (is_transposed ? k * kSide + at : at * kSide + k);
}

}  // namespace

Value Thread::lane(const Step& step) {
  const Value& from = operand(step, 0);
  const int64_t at = size(step, 1);
  if (at < 0 || size_t(at) >= from.lanes.size()) fail(step.node, "no such lane");
  return {Value::kPlain, {from.lanes[size_t(at)]}, {}};
}

// Lane l of thread t has row t/32*16 + l/2%2*8 + t%32/4 and column l/4*8 + t%4*2 + l%2.
Value Thread::product(const Step& step) {
  const UOp n = step.node;
  Value result = operand(step, 0);
  result.kind = Value::kPlain;
  const Value &a = source(step, 1), &b = source(step, 2);
  const int64_t thread = size(step, 3);
  const bool a_transposed = n.ints()[1] != 0, b_transposed = n.ints()[2] != 0;
  const bool is_held = !n.src(1).dtype().is_pointer();
  const DType factor = n.src(1).dtype().element();
  const auto factor_at = [&](const Place& place, int64_t offset) {
    const Lane lane = read(place, offset, n);
    if (lane.fault) raise(lane.fault);
    return *evaluate_scalar(Op::CAST, factor, dtypes::float32, std::array{lane.bits});
  };
  const size_t columns = result.lanes.size() / 2;  // of this thread, in two rows
  std::vector<uint64_t> of_b(columns);
  for (int64_t k = 0; k < kSide; k++) {
    std::array<uint64_t, 2> of_a{};
    if (is_held) of_a = held_factor(step, k);
    for (size_t i = 0; i < 2 && !is_held; i++) {
      const int64_t row = thread / 32 * 16 + int64_t(i) * 8 + thread % 32 / 4;
      of_a[i] = factor_at(a.place, offset_of(row, k, a_transposed));
    }
    for (size_t i = 0; i < columns; i++) {
      const int64_t column = int64_t(i / 2) * 8 + thread % 4 * 2 + int64_t(i % 2);
      of_b[i] = factor_at(b.place, offset_of(column, k, b_transposed));
    }
    for (size_t l = 0; l < result.lanes.size(); l++) {
      Lane& sum = result.lanes[l];
      if (sum.fault) continue;
      const std::array bits = {of_a[l / 2 % 2], of_b[l / 4 * 2 + l % 2], sum.bits};
      sum.bits = *evaluate_scalar(Op::MULACC, dtypes::float32, dtypes::float32, bits);
    }
  }
  return result;
}

// Column k of the rows of this thread, which four threads share.
std::array<uint64_t, 2> Thread::held_factor(const Step& step, int64_t k) const {
  const UOp n = step.node;
  const size_t owner = number_ / 4 * 4 + size_t(k % 8 / 2);
  if (owner >= group_.threads.size()) fail(n, "the threads that hold its factor do not run");
  const std::vector<Lane>& held = group_.threads[owner]->held_[(held_count_ - 1) % 2];
  std::array<uint64_t, 2> out{};
  for (size_t i = 0; i < 2; i++) {
    const Lane& lane = held.at(size_t(k / 8 * 4) + i * 2 + size_t(k % 2));
    if (lane.fault) raise(lane.fault);
    out[i] = *evaluate_scalar(Op::CAST, n.src(1).dtype().element(), dtypes::float32,
                              std::array{lane.bits});
  }
  return out;
}

void Thread::fetch(const Step& step) {
  const UOp n = step.node;
  Fetch fetch{n, source(step, 0).place, {}};
  if (!n.src(1).dtype().is_pointer()) {
    for (const Lane& lane : source(step, 1).lanes) {
      if (lane.fault) raise(lane.fault);
      fetch.lanes.push_back(lane);
    }
    fetches_.back().push_back(std::move(fetch));
    return;
  }
  const Lane gate = n.src_count() > 2 ? number(step, 2) : Lane{1};
  if (gate.fault) raise(gate.fault);
  for (size_t l = 0; l < n.src(0).dtype().lanes; l++) {
    const Lane lane = gate.bits != 0 ? read(source(step, 1).place, int64_t(l), n) : Lane{0};
    if (lane.fault) raise(lane.fault);
    fetch.lanes.push_back(lane);
  }
  fetches_.back().push_back(std::move(fetch));
}

void Thread::fetch_box(const Step& step) {
  const UOp n = step.node;
  const Lane gate = number(step, kBoxGate);
  if (gate.fault) raise(gate.fault);
  if (size(step, kBoxThread) != 0 || gate.bits == 0) return;
  const Box box = Box::of(n);
  Fetch fetch{n, source(step, kBoxTo).place, {}};
  std::vector<int64_t> first(box.axes.size());
  for (size_t i = 0; i < first.size(); i++) first[i] = size(step, kBoxAt + i);
  for (int64_t row = 0; row < box.rows; row++) {
    for (int64_t column = 0; column < kBoxWidth; column++) {
      std::vector<int64_t> at = first;
      at[size_t(box.row_axis)] += row;
      at[0] += column;
      int64_t place = box.offset;
      bool is_inside = true;
      for (size_t i = 0; i < at.size(); i++) {
        place += at[i] * box.axes[i].step;
        is_inside = is_inside && at[i] >= 0 && at[i] < box.axes[i].size;
      }
      const Lane lane = is_inside ? read(source(step, kBoxFrom).place, place, n) : Lane{0};
      if (lane.fault) raise(lane.fault);
      fetch.lanes.push_back(lane);
    }
  }
  fetches_.back().push_back(std::move(fetch));
}

void Thread::commit() { fetches_.emplace_back(); }

void Thread::wait(size_t left) {
  while (fetches_.size() > left + 1) {
    for (const Fetch& f : fetches_.front()) {
      for (size_t l = 0; l < f.lanes.size(); l++) {
        if (const Fault fault = write(f.to, int64_t(l), f.lanes[l].bits, f.node)) raise(fault);
      }
    }
    fetches_.erase(fetches_.begin());
  }
}

}  // namespace weft::evaluator
