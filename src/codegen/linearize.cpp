// Loop by loop: what stands in a loop is put in order as nodes and inner loops, then the inner
// loops are opened in turn.
#include "codegen/linearize.h"

#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "codegen/loop_region.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"

namespace weft {
namespace {

class Linearizer {
 public:
  explicit Linearizer(UOp sink)
      : arena_(sink.arena()),
        made_(arena_),
        has_loop_(arena_),
        is_listed_(arena_),
        closed_by_(arena_) {
    std::vector<Closing> wanted;
    for (UOp root : sink.srcs()) wanted.push_back({root, Closing::kWhole});
    open_.push_back({order_region({}, wanted, arena_)});
  }

  UOp run() {
    while (!open_.empty()) {
      Frame& frame = open_.back();
      if (frame.next == frame.items.size()) {
        close();
        continue;
      }
      const RegionItem item = std::move(frame.items[frame.next++]);
      if (item.is_loop()) {
        open(item);
      } else {
        add_with_block(item);
      }
    }
    return arena_.make(Op::LINEAR, dtypes::void_, list_);
  }

 private:
  struct Frame {
    std::vector<RegionItem> items;
    size_t next = 0;
    RegionItem loop{};
    UOp range{};   // as listed
    UOp effect{};  // the last one listed in it
  };

  void open(const RegionItem& loop) {
    const UOp range = loop.range();
    UOp listed = arena_.with_srcs(range, std::vector{made_of(range.src(0), range)});
    if (has_loop_.has(range)) {  // a second loop of this RANGE
      listed = arena_.make(Op::RANGE, range.dtype(), listed.srcs(),
                           Arg::range(arena_.fresh_id(), range.axis()));
    }
    has_loop_.put_number(range, 1);
    made_.put(range, listed);
    list_.push_back(listed);
    std::vector<Closing> inside;
    inside.reserve(loop.closing.size());
    for (const Closing& c : loop.closing) inside.push_back(c.next());
    open_.push_back({order_region(range, inside, arena_), 0, loop, listed});
  }

  void close() {
    const Frame frame = std::move(open_.back());
    open_.pop_back();
    if (open_.empty()) return;
    if (!frame.effect) {
      throw InternalError(
          fmt::format("[linearize] nothing is done in {}", short_form(frame.range)));
    }
    const UOp end = arena_.make(Op::END, dtypes::void_, {frame.effect, frame.range});
    list_.push_back(end);
    open_.back().effect = end;
    for (const Closing& c : frame.loop.closing) {
      if (c.level == 0) made_.put(c.node, end);
    }
  }

  // IF(gate), what only the write needs, the write, ENDIF.
  void add_with_block(const RegionItem& item) {
    if (item.block.empty()) return add(item.node);
    const UOp n = item.node;
    UOp opened = arena_.make(Op::IF, dtypes::void_, {made_of(n.src(2), n)});
    while (const UOp earlier = closed_by_.get(opened)) {  // a further block of this gate
      opened = arena_.make(Op::IF, dtypes::void_, {opened.src(0), earlier});
    }
    list_.push_back(opened);
    for (UOp inside : item.block) add(inside);
    const UOp write =
        arena_.make(Op::STORE, n.dtype(), {made_of(n.src(0), n), made_of(n.src(1), n)});
    list_.push_back(write);
    made_.put(n, write);
    const UOp closed = arena_.make(Op::ENDIF, dtypes::void_, {opened});
    closed_by_.put(opened, closed);
    list_.push_back(closed);
    open_.back().effect = closed;
  }

  void add(UOp n) {
    std::vector<UOp> srcs;
    for (UOp s : n.srcs()) srcs.push_back(made_of(s, n));
    const UOp made = arena_.with_srcs(n, srcs);
    made_.put(n, made);
    // What waits for two effects of one loop waits for its one END.
    if (is_listed_.has(made) && !is_effect(n.op())) return;
    is_listed_.put_number(made, 1);
    list_.push_back(made);
    if (is_effect(n.op())) open_.back().effect = made;
  }

  UOp made_of(UOp n, UOp user) const {
    if (const UOp made = made_.get(n)) return made;
    throw InternalError(fmt::format("[linearize] {} is used by {} outside of its loop",
                                    short_form(n), short_form(user)));
  }

  Arena& arena_;
  NodeMap made_;
  NodeMap has_loop_;
  NodeMap is_listed_;
  NodeMap closed_by_;  // the ENDIF of an IF
  std::vector<Frame> open_;
  std::vector<UOp> list_;
};

}  // namespace

UOp linearize(UOp sink) { return Linearizer(sink).run(); }

}  // namespace weft
