// Memory of somebody outside of weft, as storages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/ref.h"
#include "ir/dtype.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "value/storage.h"
#include "value/value.h"

namespace weft {

// Where an element of foreign memory is. A storage of bools holds 0 or 1 in each byte, which others
// need not keep to: bools of theirs are a view of a storage of bytes.
struct ForeignPlace {
  Ref<Storage> storage;
  int64_t offset;
};

// The place of the first of `count` elements that lie at `first`, in the process, for a device
// whose memory is there. Memory that lies within that of an earlier import, whose storage lives and
// has its content there, is that storage: `lender` is let go. Throws DeviceError when it lies there
// in part, or between elements.
ForeignPlace import_foreign(Device& device, DType dtype, void* first, int64_t count,
                            std::unique_ptr<Buffer::Lender> lender);

// A write to a storage: made before it, and finished after it. Where others see the memory they see
// the write then; Values that hold the old content keep it.
class WriteThrough {
 public:
  explicit WriteThrough(Storage& storage);
  void finish();

 private:
  Storage& storage_;
  Ref<Value> before_;  // null: nobody else sees the memory
};
// The same for a storage that had this version before, on such memory. Not while a function is
// captured.
void write_through(Storage& storage, const Ref<Value>& before);

}  // namespace weft
