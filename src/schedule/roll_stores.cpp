// stub for now
#include "schedule/roll_stores.h"

namespace weft {
RolledStores roll_stores(UOp sink, const std::string&, const KernelLimits&) { return {sink, {}}; }
}  // namespace weft
