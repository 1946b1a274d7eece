// See the public header.
#pragma once

#include "weft/ref.h"  // IWYU pragma: export
