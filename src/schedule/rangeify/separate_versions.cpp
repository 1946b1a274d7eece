// One walk, sources first.
#include "schedule/rangeify/separate_versions.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/origins.h"
#include "ir/place.h"
#include "ir/walk.h"

namespace weft {
namespace {

class Separation {
 public:
  Separation(Arena& arena, size_t writes)
      : arena_(arena),
        writes_(std::max<size_t>(writes, 1)),
        written_(arena),
        copies_(arena),
        kept_(arena) {}

  UOp run(UOp sink) {
    for (UOp s : sink.srcs()) kept_.put_number(place_of(s).version, 1);
    return rebuild(sink,
                   [&](UOp n, std::vector<UOp>& srcs) { return followed(n, rebuilt(n, srcs)); });
  }

 private:
  UOp rebuilt(UOp n, std::vector<UOp>& srcs) {
    if (!n.is(Op::AFTER) || is_register(n)) return arena_.with_srcs(n, srcs);
    UOp memory = srcs[0];
    constexpr OpSet k_memory = {Op::BUFFER, Op::AFTER, Op::CONTIGUOUS, Op::COPY};
    const bool is_computed = !k_memory.has(memory.op());  // it is given memory
    if (is_computed || written_.has(memory) || kept_.has(n.src(0))) memory = copy_of(memory);
    written_.put_number(memory, 1);
    const std::span<const UOp> effects = std::span(srcs).subspan(1);
    for (size_t i = 0; i < effects.size(); i += writes_) {
      std::vector<UOp> part{memory};
      for (UOp effect : effects.subspan(i, std::min(writes_, effects.size() - i))) {
        part.push_back(memory == srcs[0] ? effect : on(effect, srcs[0], memory));
      }
      memory = arena_.make(Op::AFTER, memory.dtype(), part);
    }
    return memory;
  }

  // A copy that is no other node: DETACHes, of which the graph has none left, tell copies apart.
  UOp copy_of(UOp memory) {
    const UOp last = copies_.has(memory) ? copies_.get(memory) : memory;
    const UOp value = arena_.make(Op::DETACH, memory.dtype(), {last});
    copies_.put(memory, value);
    return arena_.make(Op::CONTIGUOUS, memory.dtype(), {value});
  }

  // The same write to another memory.
  UOp on(UOp effect, UOp from, UOp to) {
    if (effect.is(Op::END)) {
      std::vector<UOp> srcs(effect.srcs().begin(), effect.srcs().end());
      srcs[0] = on(srcs[0], from, to);
      return arena_.with_srcs(effect, srcs);
    }
    std::vector<UOp> chain;
    for (UOp n = effect.src(0); n != from; n = n.src(0)) chain.push_back(n);
    UOp target = to;
    for (size_t i = chain.size(); i-- > 0;) {
      std::vector<UOp> srcs(chain[i].srcs().begin(), chain[i].srcs().end());
      srcs[0] = target;
      target = arena_.with_srcs(chain[i], srcs);
    }
    std::vector<UOp> srcs(effect.srcs().begin(), effect.srcs().end());
    srcs[0] = target;
    return arena_.with_srcs(effect, srcs);
  }

  Arena& arena_;
  size_t writes_;
  NodeMap written_;
  NodeMap copies_;  // memory -> what its last copy is of
  NodeMap kept_;    // sources of the SINK: they are read at the end
};

}  // namespace

UOp separate_versions(UOp sink, size_t writes) {
  return Separation(sink.arena(), writes).run(sink);
}

}  // namespace weft
