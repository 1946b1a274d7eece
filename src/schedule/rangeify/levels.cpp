// Levels, from the sources up.
#include "schedule/rangeify/levels.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "schedule/rangeify/stored_values.h"
#include "schedule/schedule.h"

namespace weft {
namespace {

class Finder {
 public:
  Finder(const std::vector<StoredValue>& values, Arena& arena, const KernelLimits& limits)
      : values_(values), limits_(limits), numbers_(arena), after_(arena) {
    statements_.resize(values.size());
    memories_.resize(values.size());
    has_register_.resize(values.size());
    levels_.of.resize(values.size());
    levels_.together.resize(values.size());
  }

  Levels run() {
    for (size_t i = 0; i < values_.size();) {
      size_t end = i + 1;  // the writes of one version have one level
      while (values_[i].is_write && end < values_.size() && values_[end].is_write &&
             values_[end].version == values_[i].version) {
        end++;
      }
      uint32_t level = 1;
      for (size_t k = i; k < end; k++) level = std::max(level, level_of(uint32_t(k)));
      for (size_t k = i; k < end; k++) {
        levels_.of[k] = level;
        numbers_.put_number(values_[k].node, k + 1);
        std::erase_if(levels_.together[k], [&](uint32_t f) { return levels_.of[f] != level; });
      }
      if (values_[i].is_write) after_.put_number(values_[i].version, level);
      i = end;
    }
    return std::move(levels_);
  }

 private:
  uint32_t level_of(uint32_t k) {
    const StoredValue& v = values_[k];
    uint32_t level = 1;
    if (v.is_write) level = level_of_base(v.store().src(0).src(0));
    std::vector<UOp> reads;
    visit_computation(v.roots(), [&](UOp n) {
      if (n.is(Op::DEFINE_REG)) has_register_[k] = true;
      if (is_read(n)) {
        reads.push_back(n);
      } else {
        statements_[k]++;
      }
    });
    for (UOp read : reads) {
      if (std::find(memories_[k].begin(), memories_[k].end(), read.src(0)) == memories_[k].end()) {
        memories_[k].push_back(read.src(0));
      }
    }
    for (UOp read : reads) level = std::max(level, level_of_read(read, k));
    return level;
  }

  // Writes may follow the making of the memory in the same kernel.
  uint32_t level_of_base(UOp memory) const {
    if (memory.is(Op::AFTER)) return uint32_t(after_.number(memory)) + 1;
    const uint64_t number = numbers_.number(memory);
    return number == 0 ? 1 : levels_.of[number - 1];
  }

  uint32_t level_of_read(UOp read, uint32_t k) {
    const UOp memory = read.src(0);
    if (memory.is(Op::AFTER)) return uint32_t(after_.number(memory)) + 1;
    const uint64_t number = numbers_.number(memory);
    if (number == 0) return 1;
    const uint32_t source = uint32_t(number - 1);
    if (!values_[source].must_store) return levels_.of[source];
    // A loop with a register is computed in one place only: others read what it stores.
    if (values_[k].must_store && !values_[k].is_serial() && !has_register_[source] &&
        reads_own_place(read, memory) && has_same_loops(values_[k], values_[source]) &&
        add_together(k, source)) {
      return levels_.of[source];
    }
    return levels_.of[source] + 1;
  }

  // Adds what `source` is computed with, too; not if the kernel would grow past its limits.
  bool add_together(uint32_t k, uint32_t source) {
    std::vector<uint32_t> together = levels_.together[k];
    const auto add = [&](uint32_t v) {
      if (std::find(together.begin(), together.end(), v) == together.end()) together.push_back(v);
    };
    add(source);
    for (const uint32_t further : levels_.together[source]) add(further);
    size_t statements = statements_[k];
    std::vector<UOp> memories = memories_[k];
    for (const uint32_t v : together) {
      statements += statements_[v];
      for (UOp m : memories_[v]) {
        if (std::find(memories.begin(), memories.end(), m) == memories.end()) memories.push_back(m);
      }
    }
    const size_t arguments = memories.size() + together.size() + 1;  // what is written, too
    if (statements > limits_.statements || arguments > limits_.buffers) return false;
    levels_.together[k] = std::move(together);
    return true;
  }

  const std::vector<StoredValue>& values_;
  KernelLimits limits_;
  std::vector<size_t> statements_;
  std::vector<bool> has_register_;
  std::vector<std::vector<UOp>> memories_;  // that each reads
  NodeMap numbers_, after_;
  Levels levels_;
};

}  // namespace

Levels find_levels(const std::vector<StoredValue>& values, Arena& arena,
                   const KernelLimits& limits) {
  return Finder(values, arena, limits).run();
}

bool reads_own_place(UOp read, UOp stored) {
  const std::span<const UOp> at = read.srcs().subspan(1), ranges = stored.srcs().subspan(1);
  return std::equal(at.begin(), at.end(), ranges.begin(), ranges.end());
}

bool has_same_loops(const StoredValue& a, const StoredValue& b) {
  const auto loops = [](const StoredValue& v) {
    std::vector<UOp> out;
    for (UOp r : v.ranges()) {
      if (r.is(Op::RANGE)) out.push_back(r);
    }
    return out;
  };
  return loops(a) == loops(b);
}

}  // namespace weft
