// Patterns compiled for matching, and one rule tried on one node. Nothing here allocates until a
// replacement is built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/node.h"
#include "rewrite/rule.h"

namespace weft {

// A pattern as a list of steps. Each looks at one node, then goes on to the next one in pre-order;
// nodes still to come wait on a small stack.
class MatchProgram {
 public:
  explicit MatchProgram(const Rule& rule);

  const Rule& rule() const { return *rule_; }

  // What the rule makes of n, or null.
  UOp apply(UOp n, void* context) const;

  // Hashed ops that the sources of the root may have (see src_bit), and those that must be below.
  struct Need {
    uint64_t ops = ~uint64_t(0);
    uint64_t below = 0;
    bool admits(uint64_t op, uint64_t mask) const { return (ops & op) && !(below & ~mask); }
  };
  Need need_of_source(size_t i) const;

  // What can be seen of a node without running the program.
  struct Glance {
    enum class What : uint8_t { kNothing, kSameSources, kLiteral };
    What what = What::kNothing;
    uint64_t value = 0;  // of a constant that one of the first two sources must be

    bool admits(UOp n) const {
      if (what == What::kNothing) return true;
      if (n.src_count() < 2) return false;
      const UOp a = n.src(0), b = n.src(1);
      if (what == What::kSameSources) return a == b;
      return is_value(a) || is_value(b);
    }
    bool is_value(UOp n) const {
      return n.is_const() && (n.arg_word() == value || n.dtype().is_float());
    }
  };
  Glance glance() const;

 private:
  enum class Do : uint8_t {
    kBind,         // the node takes a name, or is the one that has it
    kBindConst,    // likewise, a constant
    kLiteral,      // a constant of this value
    kDouble,       // a float constant
    kSources,      // the op, then its sources in order
    kEitherOrder,  // the op, then its two sources in an order that is still to be tried
    kInSet,        // one of a set of ops, then its sources
    kCheckDType,   // does not go on
    kEither,       // goes on with the next step, or with step `data`
    kJump,         // to step `data`
    kDone,
  };
  struct Step {
    uint64_t next_ops;  // kEitherOrder: those of its second source
    Do what;
    Op op;
    uint8_t slot;
    uint8_t arity;
    bool bound;
    bool has_rest;
    uint32_t data;
  };
  class Run;

  size_t compile(const Pattern& p, size_t at);
  void emit(const Step& s) { steps_.push_back(s); }

  const Rule* rule_;
  std::vector<Step> steps_;
  std::vector<uint64_t> values_;  // of literals
  std::vector<OpSet> sets_;
};

// Builds what a rule's replacement says, or null when a fold has no value.
UOp build_replacement(Match& m);
// Whether the rule's condition holds; false when it has no value.
bool condition_holds(Match& m);

}  // namespace weft
