// The names of PyTorch's operators, at::_ops::*: without the rest of ATen.
#pragma once

#include <ATen/Operators.h>  // IWYU pragma: export
