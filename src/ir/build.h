// Building graphs with checks: every function throws ShapeError, DTypeError or SpecError, naming
// itself, when its operands do not fit. Arena::make builds anything.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>

#include "ir/arena.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/node.h"

namespace weft {

// ---- constants, variables, definitions
UOp constant(Arena& arena, DType type, int64_t value);  // must fit into an integer dtype
UOp constant(Arena& arena, DType type, int value);
UOp constant(Arena& arena, DType type, double value);  // floats only, rounded to the dtype
UOp constant_bits(Arena& arena, DType type, uint64_t bits);
UOp index_const(Arena& arena, int64_t value);
UOp bool_const(Arena& arena, bool value);
UOp variable(Arena& arena, std::string_view name, int64_t lo, int64_t hi,
             DType type = dtypes::index);
UOp bind(UOp variable, UOp value);
UOp range(Arena& arena, Dim size, int64_t id, AxisType axis = AxisType::kLoop);
UOp special(Arena& arena, std::string_view name, Dim size);
UOp device(Arena& arena, std::string_view name);
UOp buffer(Arena& arena, DType type, Dim size, std::string_view device, int64_t id);
UOp define_global(Arena& arena, DType element, Dim size, int64_t id);
UOp define_global(Arena& arena, DType element, int64_t id);  // one element, used like a register
UOp define_local(Arena& arena, DType element, Dim size, int64_t id);
UOp define_reg(Arena& arena, DType type, int64_t id);

// ---- elementwise: operands of one dtype, of one shape or scalar
UOp unary(Op op, UOp x);
UOp binary(Op op, UOp x, UOp y);
UOp where(UOp condition, UOp x, UOp y);
UOp mulacc(UOp x, UOp y, UOp z);
UOp cast(UOp x, DType type);
UOp bitcast(UOp x, DType type);
UOp operator+(UOp x, UOp y);
UOp operator-(UOp x, UOp y);
UOp operator*(UOp x, UOp y);
UOp operator/(UOp x, UOp y);  // integers round down
UOp operator%(UOp x, UOp y);
UOp operator<(UOp x, UOp y);
UOp operator&(UOp x, UOp y);
UOp operator|(UOp x, UOp y);
UOp operator-(UOp x);
UOp operator~(UOp x);
UOp operator+(UOp x, int64_t y);
UOp operator-(UOp x, int64_t y);
UOp operator*(UOp x, int64_t y);
UOp operator/(UOp x, int64_t y);
UOp operator%(UOp x, int64_t y);
UOp operator<(UOp x, int64_t y);
UOp max(UOp x, UOp y);
UOp min(UOp x, UOp y);
UOp equal(UOp x, UOp y);
UOp not_equal(UOp x, UOp y);

// ---- movement
UOp reshape(UOp x, Shape sizes);
UOp permute(UOp x, std::span<const int64_t> order);
UOp expand(UOp x, Shape sizes);
UOp pad(UOp x, std::span<const std::pair<Dim, Dim>> before_after);
UOp shrink(UOp x, std::span<const std::pair<Dim, Dim>> begin_end);
UOp flip(UOp x, std::span<const int64_t> axes);
UOp strided_view(UOp x, Shape sizes, Shape strides, Dim offset);

// ---- tensor graph and ranges
UOp reduce_axis(Op op, UOp x, std::span<const int64_t> axes);
UOp iota(Arena& arena, DType type, Dim size);
UOp contiguous(UOp x);
UOp detach(UOp x);
UOp copy_to(UOp x, std::string_view device);
UOp reduce(Op op, UOp x, std::span<const UOp> ranges);
UOp bufferize(UOp x, std::span<const UOp> ranges, AddrSpace space);

// ---- memory and order; the write is UOp::assign
UOp index(UOp x, std::span<const UOp> indices);
UOp index(UOp x, UOp i);
UOp load(UOp pointer);
UOp load(UOp pointer, UOp gate, UOp otherwise);
UOp after(UOp x, std::span<const UOp> effects);
UOp after(UOp x, UOp effect);
UOp end(UOp effect, std::span<const UOp> ranges);
UOp end(UOp effect, UOp range);
UOp barrier(std::span<const UOp> effects);
UOp sink(Arena& arena, std::span<const UOp> srcs);
UOp sink(UOp a);
UOp sink(UOp a, UOp b);

// ---- vectors
UOp vectorize(std::span<const UOp> lanes);
UOp gep(UOp x, std::span<const int64_t> lanes);

}  // namespace weft
