// What the bindings of passes share.
#pragma once

#include <string_view>

#include "codegen/target.h"

namespace weft::python {

// The target of a name that Python gives, on this machine; throws ValueError.
Target target_named(std::string_view name);

}  // namespace weft::python
