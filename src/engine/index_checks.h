// Checks of indices that nobody knows before they are computed.
#pragma once

#include <span>
#include <string>

#include "base/ref.h"
#include "runtime/buffer.h"
#include "value/closure.h"
#include "value/import.h"

namespace weft {

// When the graph has run, before slots are filled: what the closure stores and was computed with an
// index out of range has failed. Gives the text of the first that was asked for; null: none has.
// The lock of the graph is held.
const std::string* mark_failures(const Closure& closure, const Imported& imported,
                                 std::span<const Ref<Buffer>> outputs);

}  // namespace weft
