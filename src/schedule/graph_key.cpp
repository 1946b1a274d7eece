// Hashing a list of nodes: sources are places in the list.
#include "schedule/graph_key.h"

#include <cstdint>
#include <span>

#include "base/hash.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/walk.h"

namespace weft {

Hash128 graph_key(std::span<const UOp> order) {
  NodeMap places(order.back().arena());
  Hash128 h{};
  uint64_t place = 0;
  for (UOp n : order) {
    places.put_number(n, ++place);
    h = mix(h, uint64_t(n.op()) | uint64_t(n.dtype().packed()) << 8 | n.src_count() << 40);
    const Arg arg = arg_of(n);
    if (arg.kind != ArgKind::None) {
      h = arg.bytes.empty() ? mix(h, arg.word) : mix(h, hash_bytes_128(arg.bytes));
    }
    for (UOp s : n.srcs()) h = mix(h, places.number(s));
  }
  return h;
}

}  // namespace weft
