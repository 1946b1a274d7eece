// Values to a tensor graph.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ref.h"
#include "ir/arena.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/origins.h"
#include "runtime/buffer.h"
#include "value/closure.h"
#include "value/value.h"

namespace weft {

// The memory of a BUFFER: where there is none yet, it is to be made before the graph runs.
struct ImportedBuffer {
  Ref<Buffer> memory;
  const Value* of;  // the Value that is read there; null: memory for a chain that writes everything
  Value* value;     // whose memory it is, to be filled; null when it is that of no Value
  DType dtype;
  int64_t count;
  bool is_new = false;  // nothing of the program's is in its memory, which was made for this graph
};

struct Imported {
  std::shared_ptr<Arena> arena;
  UOp sink;                     // of outputs
  std::vector<Value*> outputs;  // source i of the SINK: CONTIGUOUS, or the AFTER
  std::vector<Value*> checks;   // elements of its last source, behind the outputs, if there are any
  std::vector<ImportedBuffer> buffers;  // of BUFFER i
  std::vector<int64_t> dying;           // BUFFERs that nothing reads after this graph
  std::shared_ptr<Origins> origins;     // lines of nodes, where they are noted; else null
};

// The Values that the closure stores, as the sources of a SINK. A Value in memory is a BUFFER under
// its shape; BUFFERs are numbered as they are met, so that the same program gives the same graph.
//
// A chain of writes is AFTER(base, STORE...). The base is the BUFFER itself, to be written in
// place, where its old content is not kept and no other chain takes it; else CONTIGUOUS(x), a copy.
// A chain that writes everything has new memory as its base.
//
// Many checks of indices are one output together: int64s, in this order.
//
// Nothing is allocated and no Value changes. The lock of realise is held.
enum class Sharing : uint8_t {
  kRespected,  // memory that others hold is not written
  kIgnored,    // whoever runs the graph copies it first where it is to be written
};
Imported import_values(const Closure& closure, Sharing sharing = Sharing::kRespected);

}  // namespace weft
