// All of weft's public C++ interface.
#pragma once

#include "weft/beam.h"              // IWYU pragma: export
#include "weft/counters.h"          // IWYU pragma: export
#include "weft/device.h"            // IWYU pragma: export
#include "weft/dtype.h"             // IWYU pragma: export
#include "weft/error.h"             // IWYU pragma: export
#include "weft/gradient.h"          // IWYU pragma: export
#include "weft/indexed.h"           // IWYU pragma: export
#include "weft/interrupt.h"         // IWYU pragma: export
#include "weft/jit.h"               // IWYU pragma: export
#include "weft/scheduled_kernel.h"  // IWYU pragma: export
#include "weft/tensor.h"            // IWYU pragma: export
#include "weft/variable.h"          // IWYU pragma: export
#include "weft/view.h"              // IWYU pragma: export
