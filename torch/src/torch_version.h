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

// The gradient of attention had no function of shapes once, which torch.compile needs.
#define WEFT_SHAPES_OF_ATTENTION (TORCH_VERSION_MINOR < 12)
