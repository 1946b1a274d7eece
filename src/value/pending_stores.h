// The writes to one storage that have not been realised, by the elements that they touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "base/ref.h"
#include "value/value.h"
#include "weft/view.h"

namespace weft {

// What a read finds.
struct PendingRead {
  enum class Kind : uint8_t {
    kUntouched,  // no write touched it: the base holds it
    kCovered,    // all of it was written by `write`, last
    kMixed,      // neither is sure
  };
  Kind kind;
  Value* write = nullptr;  // kCovered: an AFTER
  std::optional<View> within =
      std::nullopt;  // kCovered: the read as a view of the value that was written
};

class PendingStores {
 public:
  explicit PendingStores(Ref<Value> base) : base_(std::move(base)) {}

  const Ref<Value>& base() const { return base_; }
  size_t segments() const { return segments_.size(); }

  // `write` is the newest write, to a view with elements. Logarithmic, amortised.
  void add(const Ref<Value>& write);
  // Of a view with elements. Logarithmic: a read of more than kMostSegments is mixed.
  static constexpr int kMostSegments = 8;
  PendingRead find(const View& read) const;

 private:
  // From its key to hi - 1. The newest write whose hull has these elements; `hides` when an older
  // one did too, whose elements may show between those of `write`.
  struct Segment {
    int64_t hi;
    Ref<Value> write;
    bool hides;
  };
  std::map<int64_t, Segment> segments_;
  Ref<Value> base_;  // the version before all writes
};

}  // namespace weft
