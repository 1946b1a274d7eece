// What a tensor is without its front: a Storage, and a View of it.
#pragma once

#include "base/ref.h"
#include "value/storage.h"
#include "weft/view.h"

namespace weft {

struct StorageView {
  Ref<Storage> storage;
  View view;
};

// The same, owned by somebody else for as long as it is used.
struct SeenStorage {
  Storage* storage;
  const View* view;
};

}  // namespace weft
