// The functions that WGSL text calls: 64-bit integers as vec2<u32>, narrow floats as their bits,
// conversions, and floats where the language leaves open what they do.
#pragma once

#include <string>
#include <string_view>

namespace weft {

// Those that `text` calls, and those that they call, in front of it.
std::string with_wgsl_functions(std::string_view text);

}  // namespace weft
