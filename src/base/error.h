// The kinds of error that weft raises: see the public header.
#pragma once

#include "weft/error.h"  // IWYU pragma: export
