// What differs between releases of PyTorch, from 2.11 on.
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
