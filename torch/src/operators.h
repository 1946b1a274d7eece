// The names of PyTorch's operators, at::_ops::*: without the rest of ATen.
#pragma once

// IWYU pragma: always_keep
#include <ATen/Operators.h>  // IWYU pragma: export
