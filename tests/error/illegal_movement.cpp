// Movement ops and other ops of tensor graphs that the spec refuses.
#include <span>

#include "tests/error/illegal.h"

namespace weft::test {
namespace {

// clang-format off
constexpr Illegal kIllegalMovements[] = {
    {"reshape_to_more_elements", kTensor, "%a = RESHAPE float32 (%x, %four, %two)",
     "RESHAPE: cannot view (2,3) as (4,2): 6 elements against 8"},
    {"reshape_to_no_axes", kTensor, "%a = RESHAPE float32 (%x)",
     "RESHAPE: cannot view (2,3) as (): 6 elements against 1"},
    {"reshape_to_a_negative_size", kTensor, "%a = RESHAPE float32 (%x, %minus, %six)",
     "RESHAPE: the size -1 is negative"},
    {"reshape_with_a_size_of_another_dtype", kTensor, "%a = RESHAPE float32 (%x, %i, %two)",
     "RESHAPE: the size 3 has dtype int32; it must be index"},
    {"reshape_with_a_size_past_62_bits", kTensor,
     "%h = CONST index 4611686018427387904\n%a = RESHAPE float32 (%x, %h)",
     "RESHAPE: the size 4611686018427387904 is not below 2^62"},
    {"reshape_to_another_factor_of_a_symbol", kTensor,
     "%m = MUL index (%n, %two)\n%b = BUFFER float32 (%m, %cpu) 1\n"
     "%a = RESHAPE float32 (%b, %n, %three)",
     "RESHAPE: cannot view (n*2) as (n,3): 2*n elements against 3*n"},
    {"reshape_past_the_bounds_of_a_symbol", kTensor,
     "%b = BUFFER float32 (%n, %cpu) 1\n%a = RESHAPE float32 (%b, %six)",
     "RESHAPE: cannot view (n) as (6): n elements against 6"},
    {"reshape_into_another_dtype", kTensor, "%a = RESHAPE int32 (%x, %six)",
     "RESHAPE: the dtype is int32, that of its source float32"},
    {"view_of_a_device", kTensor, "%a = RESHAPE void (%cpu, %one)",
     "RESHAPE: source 0 is a DEVICE, which has no value"},

    {"permute_that_repeats_an_axis", kTensor, "%a = PERMUTE float32 (%x) [0, 0]",
     "PERMUTE: [0, 0] is not an order of the 2 axes of (2,3)"},
    {"permute_of_too_few_axes", kTensor, "%a = PERMUTE float32 (%x) [0]",
     "PERMUTE: [0] is not an order of the 2 axes of (2,3)"},
    {"permute_of_an_axis_that_is_not_there", kTensor, "%a = PERMUTE float32 (%x) [0, 2]",
     "PERMUTE: [0, 2] is not an order of the 2 axes of (2,3)"},

    {"expand_of_an_axis_that_is_not_one", kTensor, "%a = EXPAND float32 (%x, %two, %six)",
     "EXPAND: cannot expand (2,3) to (2,6): axis 1 has size 3, and only 1 is repeated"},
    {"expand_to_another_rank", kTensor, "%a = EXPAND float32 (%x, %four, %two, %three)",
     "EXPAND: cannot expand (2,3) to (4,2,3): 2 axes against 3"},
    {"expand_past_what_63_bits_count", kTensor,
     "%h = CONST index 4294967296\n%b = RESHAPE float32 (%buf, %six, %one, %one)\n"
     "%a = EXPAND float32 (%b, %six, %h, %h)",
     "EXPAND: (6,4294967296,4294967296) has more elements than 63 bits count"},

    {"pad_of_too_few_axes", kTensor, "%a = PAD float32 (%x, %one, %one)",
     "PAD: (2,3) has 2 axes, which take 4 numbers; given are 2"},
    {"pad_by_a_negative_number", kTensor, "%a = PAD float32 (%x, %zero, %minus, %zero, %zero)",
     "PAD: the padding -1 is negative"},

    {"shrink_past_the_end", kTensor, "%a = SHRINK float32 (%x, %zero, %zero, %two, %four)",
     "SHRINK: cannot take 0 to 4 of axis 1 of (2,3)"},
    {"shrink_from_the_end_to_the_beginning", kTensor,
     "%a = SHRINK float32 (%x, %one, %zero, %zero, %three)",
     "SHRINK: cannot take 1 to 0 of axis 0 of (2,3)"},
    {"shrink_from_before_the_beginning", kTensor,
     "%a = SHRINK float32 (%x, %minus, %zero, %two, %three)",
     "SHRINK: the bound -1 is negative"},
    {"shrink_of_one_number_too_many", kTensor,
     "%a = SHRINK float32 (%x, %zero, %zero, %two, %three, %three)",
     "SHRINK: (2,3) has 2 axes, which take 4 numbers; given are 5"},

    {"flip_of_an_axis_that_is_not_there", kTensor, "%a = FLIP float32 (%x) [2]",
     "FLIP: axis 2 is not one of the 2 of (2,3)"},
    {"flip_of_an_axis_twice", kTensor, "%a = FLIP float32 (%x) [1, 1]",
     "FLIP: axis 1 occurs twice"},

    {"strided_view_past_the_end", kTensor,
     "%a = VIEW float32 (%buf, %two, %three, %three, %one, %one)",
     "VIEW: sizes (2,3) with strides (3,1) from 1 read elements 1 to 6 of 6"},
    {"strided_view_before_the_beginning", kTensor,
     "%a = VIEW float32 (%buf, %six, %minus, %four)",
     "VIEW: sizes (6) with strides (-1) from 4 read elements -1 to 4 of 6"},
    {"strided_view_without_an_offset", kTensor, "%a = VIEW float32 (%buf, %six, %one)",
     "VIEW: given are 2 numbers; a view of k axes takes k sizes, k strides and an offset"},
    {"strided_view_with_a_stride_of_another_dtype", kTensor,
     "%a = VIEW float32 (%buf, %two, %i, %zero)",
     "VIEW: the stride 3 has dtype int32; it must be index"},

    {"contiguous_into_another_dtype", kTensor, "%a = CONTIGUOUS int32 (%x)",
     "CONTIGUOUS: the dtype is int32, that of its source float32"},
    {"detach_of_an_effect", kTensor, "%w = STORE void (%buf, %f)\n%a = DETACH void (%w)",
     "DETACH: source 0 is a STORE, an effect; values are read AFTER it"},
    {"contiguous_backward_into_another_dtype", kTensor, "%a = CONTIGUOUS_BACKWARD int32 (%x)",
     "CONTIGUOUS_BACKWARD: the dtype is int32, that of its source float32"},
    {"copy_to_what_is_no_device", kTensor, "%a = COPY float32 (%x, %two)",
     "COPY: source 1 is a CONST; it must be a DEVICE"},
    {"reduce_by_an_op_that_does_not_associate", kTensor, "%a = REDUCE_AXIS float32 (%x) SUB [0]",
     "REDUCE_AXIS: cannot reduce by SUB; allowed are ADD, MUL, MAX, MIN, AND, OR, XOR"},
    {"reduce_of_floats_by_bits", kTensor, "%a = REDUCE_AXIS float32 (%x) XOR [0]",
     "REDUCE_AXIS: cannot reduce float32 by XOR; it takes integers and bool"},
    {"reduce_of_axes_out_of_order", kTensor, "%a = REDUCE_AXIS float32 (%x) ADD [1, 0]",
     "REDUCE_AXIS: the axes are [1, 0]; they must ascend"},
    {"reduce_of_an_axis_that_is_not_there", kTensor, "%a = REDUCE_AXIS float32 (%x) ADD [2]",
     "REDUCE_AXIS: axis 2 is not one of the 2 of (2,3)"},
    {"scan_by_an_op_that_does_not_choose_or_add", kTensor, "%a = SCAN float32 (%x) SUB [0]",
     "SCAN: cannot reduce by SUB; allowed are ADD, MUL, MAX, MIN, AND, OR, XOR"},
    {"scan_along_two_axes", kTensor, "%a = SCAN float32 (%x) ADD [0, 1]",
     "SCAN: it runs along 2 axes, not one"},
    {"scan_of_an_axis_that_is_not_there", kTensor, "%a = SCAN float32 (%x) ADD [2]",
     "SCAN: axis 2 is not one of the 2 of (2,3)"},
    {"scan_of_products_with_a_factor", kTensor, "%a = SCAN float32 (%x, %x) MUL [0]",
     "SCAN: a scan by MUL has one source"},
    {"reduce_into_another_dtype", kTensor, "%a = REDUCE_AXIS int32 (%x) ADD [0]",
     "REDUCE_AXIS: the dtype is int32, that of its source float32"},
    {"movement_op_after_ranges", kRangeified, "%a = RESHAPE float32 (%buf, %six)",
     "RESHAPE: it is not legal in the rangeified stage; its stages are tensor"},
};
// clang-format on

}  // namespace

std::span<const Illegal> illegal_movements() { return kIllegalMovements; }

}  // namespace weft::test
