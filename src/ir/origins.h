// Which lines of users' programs nodes come from.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "ir/node.h"

namespace weft {

// A line of a program, by number: 0 is none.
struct Site {
  std::string file;
  int line = 0;

  std::string text() const;  // "train.py:12"
};
uint32_t site_number(std::string_view file, int line);
Site site_of(uint32_t number);
uint32_t site_count();  // numbers so far, that of none among them

// The sites of nodes, in whatever arena: a node that a pass makes of another one has its sites.
class Origins {
 public:
  void add(UOp n, uint32_t site);
  void add(UOp n, std::span<const uint32_t> sites);
  void follow(UOp from, UOp to);
  std::span<const uint32_t> of(UOp n) const;
  // Of what was added so far, in order: programs with other lines have other keys.
  Hash128 key() const { return key_; }

 private:
  std::unordered_map<const Node*, std::vector<uint32_t>> sites_;
  Hash128 key_{};
};

namespace detail {
extern std::atomic<int> origins_in_use;
void follow_origin(UOp from, UOp to);
}  // namespace detail

// For the time of the object, passes of this thread note here what becomes of nodes; null: nowhere.
class OriginsScope {
 public:
  explicit OriginsScope(Origins* origins);
  OriginsScope(const OriginsScope&) = delete;
  OriginsScope& operator=(const OriginsScope&) = delete;
  ~OriginsScope();

 private:
  Origins* outer_;
};
Origins* origins_of_thread();

// `to`, which a pass has made of `from`. Costs nothing measurable where nobody wants to know.
inline UOp followed(UOp from, UOp to) {
  if (detail::origins_in_use.load(std::memory_order_relaxed) != 0 && from != to) [[unlikely]] {
    detail::follow_origin(from, to);
  }
  return to;
}

}  // namespace weft
