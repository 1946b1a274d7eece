// Which device PyTorch calls its accelerator, and the threads of autograd.
#pragma once

#include <c10/core/Device.h>

namespace weft::pytorch {

// PyTorch has one accelerator, whose streams autograd follows and which pins memory; a device that
// registers a name becomes it, and the gradients of CUDA tensors then fail. yield_accelerator()
// leaves that place to the accelerator that PyTorch was built with: weft, whose streams are all
// one, is to autograd what the CPU is. It comes before the name is registered, and does nothing
// where PyTorch was built without an accelerator. False where it cannot be done.
bool yield_accelerator();

// The same, whatever PyTorch was built with: weft is then no accelerator, and there may be none.
bool stop_being_accelerator();

// Autograd makes a thread for each device at the first backward() of a process, and has none in a
// process that is forked later. weft's is made when a tensor of the device is first part of a graph
// of autograd, which enter_autograd() is told: before, there is no device of weft's to autograd,
// and backward() and fork() are as without weft.
void enter_autograd() noexcept;
c10::DeviceIndex devices_in_autograd() noexcept;

}  // namespace weft::pytorch
