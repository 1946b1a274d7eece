// From each access backwards, along the ways that a thread may have come, to the nearest barriers.
#include "codegen/insert_barriers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/print.h"

namespace weft {
namespace {

constexpr size_t kNone = SIZE_MAX;

// An entry of the list.
struct Item {
  UOp node{};  // null: a barrier that is put in
  UOp memory{};
  bool is_write = false;
  size_t loop = kNone;   // the innermost loop around it, as the number of its RANGE
  size_t other = kNone;  // of a RANGE its END, of an END the outermost RANGE that it closes
  bool in_if = false;
};

class Barriers {
 public:
  explicit Barriers(UOp linear) : arena_(linear.arena()), linear_(linear) {}

  UOp run() {
    if (!uses_local_memory()) return linear_;
    list_.assign(linear_.srcs().begin(), linear_.srcs().end());
    for (bool is_new = true; is_new;) {
      is_new = false;
      look();
      for (size_t i = 0; i < items_.size() && !is_new; i++) {
        if (!items_[i].memory) continue;
        if (const std::optional<size_t> earlier = unguarded(i)) {
          insert(place_before(i, *earlier));
          is_new = true;
        }
      }
    }
    return listed();
  }

 private:
  bool uses_local_memory() const {
    return std::ranges::any_of(linear_.srcs(), [](UOp n) {
      return n.is(Op::STORE) && place_of(n.src(0)).base.is(Op::DEFINE_LOCAL);
    });
  }

  void look() {
    items_.clear();
    std::vector<size_t> open;
    std::unordered_map<UOp, size_t> number;
    size_t ifs = 0;
    for (size_t i = 0; i < list_.size(); i++) {
      const UOp n = list_[i];
      Item item{.node = n, .loop = open.empty() ? kNone : open.back(), .in_if = ifs > 0};
      if (n && (n.is(Op::LOAD) || n.is(Op::STORE))) {
        const UOp base = place_of(n.src(0)).base;
        if (base.is(Op::DEFINE_LOCAL)) item.memory = base, item.is_write = n.is(Op::STORE);
      }
      if (n && n.is(Op::END)) {
        for (size_t left = n.src_count() - 1; left > 0; left--) {
          item.other = open.back();
          items_[open.back()].other = i;
          open.pop_back();
        }
      }
      items_.push_back(item);
      if (n && n.is(Op::RANGE)) open.push_back(i);
      if (n && n.is(Op::IF)) ifs++;
      if (n && n.is(Op::ENDIF)) ifs--;
    }
  }

  bool is_barrier(size_t i) const { return !items_[i].node || items_[i].node.is(Op::BARRIER); }

  // An access that other threads may still be at, or have ahead of them, when one is at i.
  std::optional<size_t> unguarded(size_t i) const {
    const Item& at = items_[i];
    std::vector<bool> seen(items_.size());
    std::vector<size_t> todo;
    const auto come_from = [&](size_t p) {  // what may come before p
      if (p > 0) todo.push_back(p - 1);
      const Item& item = items_[p];
      const bool opens = item.node && item.node.is(Op::RANGE);
      if (opens && item.other != kNone) todo.push_back(item.other);
    };
    come_from(i);
    while (!todo.empty()) {
      const size_t p = todo.back();
      todo.pop_back();
      if (seen[p] || is_barrier(p)) continue;
      seen[p] = true;
      const Item& item = items_[p];
      const bool meets = item.memory && item.memory == at.memory && (item.is_write || at.is_write);
      // One write in a loop is of other elements each time.
      if (meets && p != i) return p;
      come_from(p);
      // Past a loop that is not entered at all: it may be empty.
      if (item.node && item.node.is(Op::END) && item.other > 0) todo.push_back(item.other - 1);
    }
    return {};
  }

  bool stands_in(size_t i, size_t loop) const {
    for (size_t l = items_[i].loop; l != kNone; l = items_[l].loop) {
      if (l == loop) return true;
    }
    return false;
  }

  // What comes after i in the list came before it in an earlier iteration: then at its end.
  size_t place_before(size_t i, size_t earlier) const {
    size_t at = i;
    if (earlier > i) {
      size_t loop = items_[i].loop;
      while (!stands_in(earlier, loop)) loop = items_[loop].loop;
      return items_[loop].other;
    }
    for (size_t l = items_[i].loop; l != kNone && !stands_in(earlier, l); l = items_[l].loop)
      at = l;
    if (items_[at].in_if) {
      throw InternalError(
          "[insert_barriers] threads would wait in a block that not all of them run\n" +
          neighbourhood(items_[i].node));
    }
    return at;
  }

  void insert(size_t at) { list_.insert(list_.begin() + ptrdiff_t(at), UOp()); }

  // Each BARRIER waits for the effect before it.
  UOp listed() {
    std::vector<UOp> before{UOp()};  // the last effect, by block
    for (UOp& n : list_) {
      if (!n) {
        UOp last;
        for (UOp b : before) last = b ? b : last;
        n = arena_.make(Op::BARRIER, dtypes::void_, {last});
      }
      if (n.is(Op::RANGE) || n.is(Op::IF)) before.emplace_back();
      if (n.is(Op::END)) before.resize(before.size() - (n.src_count() - 1));
      if (n.is(Op::ENDIF)) before.pop_back();
      if (is_effect(n.op()) && !n.is(Op::IF)) before.back() = n;
    }
    return arena_.make(Op::LINEAR, dtypes::void_, list_);
  }

  Arena& arena_;
  UOp linear_;
  std::vector<UOp> list_;
  std::vector<Item> items_;
};

}  // namespace

UOp insert_barriers(UOp linear, const Target& target) {
  return target.groups.threads == 0 ? linear : Barriers(linear).run();
}

}  // namespace weft
