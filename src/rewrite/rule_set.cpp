// The index over rules, and the loop that tries them.
#include "rewrite/rule_set.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "rewrite/matcher.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"
#include "rewrite/statistics.h"

namespace weft {
namespace {

constexpr uint64_t kAll = ~uint64_t(0);

OpSet root_ops(const Pattern& p) {
  return p.root().kind == CellKind::kOp ? OpSet{p.root().op} : p.root().ops;
}

}  // namespace

RuleSet::RuleSet(std::string_view name, std::span<const RuleTable> tables) : name_(name) {
  std::array<std::vector<Entry>, kOpCount> by_op;
  std::unordered_set<std::string_view> names;
  for (const RuleTable& table : tables) {
    for (const Rule& rule : table.rules) {
      if (!names.insert(rule.name).second) {
        throw InternalError(fmt::format("the rule set {} has two rules named {}", name, rule.name));
      }
      const MatchProgram& program = programs_.emplace_back(rule);
      const MatchProgram::Need left = program.need_of_source(0), right = program.need_of_source(1);
      const Entry entry{left, right,
                        Candidate{.left_below = left.below,
                                  .right_below = right.below,
                                  .straight = true,
                                  .flipped = has_two_orders(rule.lhs.root()),
                                  .domain = table.domain,
                                  .glance = program.glance(),
                                  .number = uint16_t(rules_.size())}};
      const OpSet ops = root_ops(rule.lhs);
      for (size_t o = 0; o < kOpCount; o++) {
        if (ops.has(Op(o))) by_op[o].push_back(entry);
      }
      rules_.push_back(&rule);
    }
  }
  index_number_.fill(kNoIndex);
  for (size_t o = 0; o < kOpCount; o++) {
    if (by_op[o].empty()) continue;
    index_number_[o] = uint8_t(indices_.size());
    indices_.push_back(index_of(by_op[o]));
  }
}

RuleSet::Index RuleSet::index_of(const std::vector<Entry>& entries) {
  // Which entries an op can be the first source of, and the second: equal for all of a class.
  using Signature = std::vector<bool>;
  Index index;
  std::map<Signature, uint8_t> numbers;
  std::vector<Signature> signatures;
  for (size_t o = 0; o <= kOpCount; o++) {
    const uint64_t bit = o < kOpCount ? src_bit(Op(o)) : kAll;  // matching sees what is not there
    Signature s;
    for (const Entry& e : entries) {
      s.push_back(e.left.ops & bit);
      s.push_back(e.right.ops & bit);
    }
    const auto [at, fresh] = numbers.emplace(s, uint8_t(numbers.size()));
    if (fresh) signatures.push_back(s);
    index.class_of[o] = at->second;
  }
  index.classes = numbers.size();
  for (const Signature& a : signatures) {
    for (const Signature& b : signatures) {
      std::vector<Candidate>& list = index.lists.emplace_back();
      for (size_t i = 0; i < entries.size(); i++) {
        Candidate c = entries[i].candidate;
        c.straight = a[2 * i] && b[2 * i + 1];
        c.flipped = c.flipped && b[2 * i] && a[2 * i + 1];
        if (c.straight || c.flipped) list.push_back(c);
      }
    }
  }
  return index;
}

template <RuleSet::Counting counting>
RuleSet::Rewrite RuleSet::rewrite(UOp n, void* context, RuleCount* counts) const {
  const uint8_t number = index_number_[size_t(n.op())];
  if (number == kNoIndex) return {};
  const Index& index = indices_[number];
  // A source that is not there rejects nothing here: matching will.
  size_t op0 = kOpCount, op1 = kOpCount;
  uint64_t mask0 = kAll, mask1 = kAll;
  DType operand = n.dtype();
  if (n.src_count() > 0) {
    op0 = size_t(n.src(0).op());
    mask0 = n.src(0).src_mask();
    operand = n.src(n.src_count() - 1).dtype();
  }
  if (n.src_count() > 1) {
    op1 = size_t(n.src(1).op());
    mask1 = n.src(1).src_mask();
  }
  const DTypeSet domain = set_of(operand.scalar);
  for (const Candidate& c :
       index.lists[index.class_of[op0] * index.classes + index.class_of[op1]]) {
    if (!c.admits(mask0, mask1) || !(c.domain & domain) || !c.glance.admits(n)) continue;
    const uint64_t start = counting == Counting::kOn ? now_ns() : 0;
    const UOp result = programs_[c.number].apply(n, context);
    if constexpr (counting == Counting::kOn) {
      RuleCount& count = counts[c.number];
      count.tried++;
      count.fired += result ? 1 : 0;
      count.nanoseconds += now_ns() - start;
    }
    if (result) return {result, rules_[c.number]};
  }
  return {};
}

template RuleSet::Rewrite RuleSet::rewrite<RuleSet::Counting::kOff>(UOp, void*, RuleCount*) const;
template RuleSet::Rewrite RuleSet::rewrite<RuleSet::Counting::kOn>(UOp, void*, RuleCount*) const;

}  // namespace weft
