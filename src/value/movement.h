// Values moved: the same elements, or some of them, in another order. What would change nothing
// gives back the Value itself.
#pragma once

#include <span>

#include "base/ref.h"
#include "ir/dtype.h"
#include "value/factor.h"
#include "value/value.h"
#include "weft/view.h"

namespace weft {

Ref<Value> moved(Ref<Value> x, std::span<const Movement> steps);
// A view of a Value whose elements in row-major order are the storage.
Ref<Value> view_of(Ref<Value> x, const View& view);
Ref<Value> reshaped(Ref<Value> x, Ints shape);
// Axes of size 1 repeated; axes are added in front.
Ref<Value> broadcast(Ref<Value> x, Ints shape);
Ref<Value> bits_as(Ref<Value> x, DType dtype);
// The same value: no gradient passes.
Ref<Value> detached(Ref<Value> x);

}  // namespace weft
