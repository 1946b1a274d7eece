// Memory and Storages over time, kept for `weft explain`.
#pragma once

#include <cstdint>

#include <nlohmann/json_fwd.hpp>

namespace weft {

// On: forgets what was kept before.
void keep_memory_events(bool is_on);

// As explanations() has them: times from `begin` on.
nlohmann::json memory_events_json(uint64_t begin);
nlohmann::json storage_events_json(uint64_t begin);

}  // namespace weft
