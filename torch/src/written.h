// Kernels of structured operators that change some elements of self: in place they cost what they
// write, and not the size of self.
//
//   void index_add(const at::Tensor& out, int64_t dim, ...);  // the arguments after self
//   written<at::meta::structured_index_add, index_add, at::_ops::index_add, at::_ops::index_add_,
//           at::_ops::index_add_out>(library);
#pragma once

#include <array>

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "native.h"
#include "storage.h"
#include "structured.h"

namespace weft::pytorch {
namespace detail {

template <class Meta, auto write, class... Arguments>
at::Tensor run_written(Form form, at::Tensor out, const at::Tensor& self,
                       Arguments&&... arguments) {
  Shaping<Meta, 1> shaping(form, {std::move(out)});
  shaping.meta(self, arguments...);
  const at::Tensor& result = shaping.outputs()[0];
  if (result.numel() != 0) {
    if (!result.is_same(self)) put(result, handle(self));
    write(result, arguments...);
  }
  return result;
}

template <class Meta, auto write, class Schema>
struct Written;
template <class Meta, auto write, class... Arguments>
struct Written<Meta, write, at::Tensor(const at::Tensor&, Arguments...)> {
  static at::Tensor functional(const at::Tensor& self, Plain<Arguments>... arguments) {
    return run_written<Meta, write>(Form::kFunctional, {}, self, arguments...);
  }
  static at::Tensor& in_place(at::Tensor& self, Plain<Arguments>... arguments) {
    run_written<Meta, write>(Form::kInPlace, self, self, arguments...);
    return self;
  }
  static at::Tensor& out(const at::Tensor& self, Plain<Arguments>... arguments,
                         at::Tensor& result) {
    run_written<Meta, write>(Form::kOut, result, self, arguments...);
    return result;
  }
};

}  // namespace detail

// The functional form, the one in place, and out=. `write` finds the values of self in its output.
template <class Meta, auto write, class Op, class InPlaceOp, class OutOp>
void written(torch::Library& library) {
  using Kernels = detail::Written<Meta, write, typename Op::schema>;
  native<Op, Kernels::functional>(library);
  native<InPlaceOp, Kernels::in_place>(library);
  native<OutOp, Kernels::out>(library);
}

}  // namespace weft::pytorch
