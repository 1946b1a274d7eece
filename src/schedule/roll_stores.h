// Long chains of writes as loops.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/node.h"
#include "schedule/schedule.h"

namespace weft {

struct RolledStores {
  UOp sink;
  std::map<int64_t, std::vector<uint64_t>> tables;  // contents of BUFFERs that were made, by id
};

RolledStores roll_stores(UOp sink, const std::string& device, const KernelLimits& limits);

}  // namespace weft
