// The type of a node: see the public header.
#pragma once

#include "weft/dtype.h"  // IWYU pragma: export
