// Rules indexed by op, ready to run. Immutable once made: threads may share one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/node.h"
#include "ir/op.h"
#include "rewrite/matcher.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"
#include "rewrite/statistics.h"

namespace weft {

class RuleSet {
 public:
  // Names must be unique: two rules of one name are an internal error.
  RuleSet(std::string_view name, std::initializer_list<RuleTable> tables)
      : RuleSet(name, std::span(tables.begin(), tables.size())) {}
  RuleSet(std::string_view name, std::span<const RuleTable> tables);

  std::string_view name() const { return name_; }
  std::span<const Rule* const> rules() const { return rules_; }
  bool has_rules_for(Op op) const { return index_number_[size_t(op)] != kNoIndex; }

  struct Rewrite {
    UOp result;  // null: no rule applies
    const Rule* rule = nullptr;
  };
  // The first rule that applies to n, in the order of the tables. Counting::kOn adds to `counts`,
  // one entry per rule.
  enum class Counting : uint8_t { kOff, kOn };
  template <Counting counting = Counting::kOff>
  Rewrite rewrite(UOp n, void* context, RuleCount* counts = nullptr) const;

 private:
  // A rule that the ops of a node and of its first two sources do not rule out.
  struct Candidate {
    // ops that must be below the first and second source, in this order and in the other
    uint64_t left_below, right_below;
    bool straight, flipped;
    DTypeSet domain;
    MatchProgram::Glance glance;
    uint16_t number;  // in rules() and programs_

    bool admits(uint64_t mask0, uint64_t mask1) const {
      return (straight && !(left_below & ~mask0) && !(right_below & ~mask1)) ||
             (flipped && !(left_below & ~mask1) && !(right_below & ~mask0));
    }
  };
  // Ops that no rule of one root op tells apart as sources are one class; candidates are listed by
  // the classes of the first two sources.
  struct Index {
    std::array<uint8_t, kOpCount + 1> class_of{};  // the last is "no such source"
    size_t classes = 0;
    std::vector<std::vector<Candidate>> lists;
  };
  struct Entry {
    MatchProgram::Need left, right;
    Candidate candidate;
  };
  static Index index_of(const std::vector<Entry>& entries);

  std::string name_;
  std::vector<const Rule*> rules_;
  std::vector<MatchProgram> programs_;
  std::vector<Index> indices_;                  // of the ops that have rules
  std::array<uint8_t, kOpCount> index_number_;  // which one; kNoIndex for none
  static constexpr uint8_t kNoIndex = 255;
};

}  // namespace weft
