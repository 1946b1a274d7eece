// See the public header.
#pragma once

#include "weft/small_vector.h"  // IWYU pragma: export
