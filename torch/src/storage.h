// The memory behind a tensor of the device: the context of its DataPtr holds one weft Storage,
// which all of its aliases share. PyTorch keeps sizes, strides and offsets; they are the View.
//
// A DataPtr's address is one of its own in a range that nobody may touch: everything that compares
// addresses works, and what reads one faults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>

#include "base/ref.h"
#include "value/storage.h"
#include "value/value.h"
#include "weft/dtype.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {

c10::Allocator& allocator();
// The device of weft that does the work.
Device& weft_device();

// New tensors, with nothing in them.
at::Tensor empty(c10::IntArrayRef sizes, c10::ScalarType type);
at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType type);

// ---- reading

// A handle on what the tensor sees. A read through it is of the moment of the read. Of a complex
// tensor: reals, with a last axis of 2.
weft::Tensor handle(const at::TensorBase& tensor);
// The same for an operand: one on the CPU that has no axes is the number that it holds now. Throws
// where tensors of two devices meet.
weft::Tensor operand(const at::TensorBase& tensor);
// ... cast to this type, with which weft computes.
weft::Tensor operand(const at::TensorBase& tensor, c10::ScalarType type);
// What an operand is now.
Ref<Value> value_of(const at::TensorBase& tensor);
weft::Tensor number(const c10::Scalar& scalar, c10::ScalarType type);

// ---- writing

// `value`, cast and broadcast to `tensor`, is what the tensor sees from now on. Throws where that
// would write several numbers to one element of memory.
void put(const at::TensorBase& tensor, weft::Tensor value);
void put(const at::TensorBase& tensor, Ref<Value> value);
// A new tensor of these values, contiguous.
at::Tensor give(weft::Tensor value, c10::ScalarType type);
at::Tensor give(Ref<Value> value, c10::ScalarType type);

// A storage of PyTorch's around one of weft, and a tensor that sees a view of it.
c10::Storage storage_around(Ref<Storage> storage);
at::Tensor tensor_on(c10::Storage storage, const View& view, c10::ScalarType type);

// The bytes of a CPU tensor that is contiguous, from and to one of the device.
void copy_in(const at::TensorBase& to, const at::TensorBase& from);
void copy_out(const at::TensorBase& to, const at::TensorBase& from);

// realloc: what was there stays, up to the smaller size.
void resize_bytes(c10::StorageImpl& storage, size_t bytes);

// ---- what waits. Past a bound on what is pending everything is computed.

// Storages that live.
int64_t live_storages();
bool is_pending(const at::TensorBase& tensor);
// Computes what this tensor is to hold.
void realize(const at::TensorBase& tensor);
// ... and every tensor of which that can be computed: whoever reads another is told why it cannot.
void realize_all();
// The same, and waits until it is done.
void synchronize();

}  // namespace weft::pytorch
