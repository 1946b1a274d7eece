// The CPU that this process runs on.
#pragma once

#include <cstddef>
#include <string>

#include "codegen/target.h"

namespace weft {

// Cores that this process may use.
size_t host_cores();

// Whether float16 <-> float32 are instructions.
bool has_half_casts();

// Sets the sizes of a target: vector registers, cores, caches.
void describe_host(Target& target);

// What tells this CPU from others that run other code, for keys of compiled code.
const std::string& host_identity();

}  // namespace weft
