// What differs between the releases of PyTorch that the device is built for: 2.11 to 2.13.
#pragma once

#include <torch/version.h>

// Outputs of shape functions had names for their axes once.
#if TORCH_VERSION_MINOR < 12
#define WEFT_NAMES_PARAMETER , at::DimnameList names = {}
#define WEFT_NAMES_ARGUMENT , names
#else
#define WEFT_NAMES_PARAMETER
#define WEFT_NAMES_ARGUMENT
#endif
