// What has to stand still while the process forks.
#pragma once

#include <cstdint>

namespace weft {

// Whose locks are taken before whose: a thread that holds one may wait for those below it.
enum class ForkOrder : uint8_t { kTensor, kEngine, kCompiler, kMemory, kOpenCl, kCount };

// `before` runs before every fork, in the order above, and takes locks or waits; `after` runs in
// the parent and in the child, the other way round. Each place is taken once: InternalError when it
// is. Called while the library is loaded: of what a thread registers during a fork the child would
// have the lock held, and nobody to release it.
void at_fork(ForkOrder order, void (*before)(), void (*after)());

}  // namespace weft
