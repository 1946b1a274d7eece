// The rules of a program's list: definition before use, loops and blocks properly nested.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "ir/spec.h"
#include "ir/spec_rules.h"

namespace weft::spec {
namespace {

// Walks the list as the machine would, with the blocks that are open at each point.
class ListChecker {
 public:
  explicit ListChecker(UOp list) : list_(list), block_of_(list.arena()) {}

  std::optional<Violation> run() {
    for (UOp n : list_.srcs()) {
      if (Found f = check(n)) return violation_at(n, *std::move(f));
    }
    if (open_.empty()) return {};
    return violation_at(open_.back().opener, *bad_structure("it is never closed"));
  }

 private:
  struct Block {
    UOp opener;       // a RANGE or an IF
    uint64_t number;  // from 2: 1 is the list itself
  };

  Found check(UOp n) {
    if (block_of_.has(n)) return bad_structure("it stands in the list twice");
    if (Found f = check_sources(n)) return f;
    if (Found f = check_loops(n)) return f;
    if (n.is(Op::RANGE) || n.is(Op::IF)) {
      open_.push_back({n, is_open_.size()});
      is_open_.push_back(true);
    } else if (n.is(Op::END)) {
      if (Found f = close(n.srcs().subspan(1))) return f;
    } else if (n.is(Op::ENDIF)) {
      if (Found f = close(n.srcs())) return f;
    }
    block_of_.put_number(n, open_.empty() ? 1 : open_.back().number);
    return {};
  }

  // Sources come first, and values from blocks that are still open.
  Found check_sources(UOp n) const {
    for (size_t i = 0; i < n.src_count(); i++) {
      const UOp s = n.src(i);
      const uint64_t block = block_of_.number(s);
      if (block == 0) {
        return bad_structure("source {}, {}, does not come before it in the list", i, brief(s));
      }
      const bool is_order = kEffects.has(s.op()) || (n.is(Op::AFTER) && i > 0);
      if (!is_order && !is_open_[block]) {
        return bad_structure("source {}, {}, is of a block that was closed before", i, brief(s));
      }
    }
    return {};
  }

  Found check_loops(UOp n) const {
    if (n.is(Op::RANGE)) return {};
    for (UOp r : ranges_of(n)) {
      if (!is_open_[block_of_.number(r)]) {
        return bad_structure("it stands in the loop {}, which was closed before", brief(r));
      }
    }
    return {};
  }

  // The innermost blocks are exactly those of `openers`, in any order.
  Found close(std::span<const UOp> openers) {
    for (size_t i = 0; i < openers.size(); i++) {
      const UOp inner = open_.empty() ? UOp() : open_.back().opener;
      if (!inner || std::find(openers.begin(), openers.end(), inner) == openers.end()) {
        return bad_structure("it closes {}, but the innermost open block is {}",
                             brief(openers.front()), inner ? brief(inner) : "the list itself");
      }
      is_open_[open_.back().number] = false;
      open_.pop_back();
    }
    return {};
  }

  UOp list_;
  NodeMap block_of_;  // the number of the block that holds a node; none: not listed yet
  std::vector<Block> open_;
  std::vector<bool> is_open_{false, true};  // by number
};

}  // namespace

std::optional<Violation> check_list(UOp root, std::span<const UOp>) {
  return ListChecker(root).run();
}

}  // namespace weft::spec
