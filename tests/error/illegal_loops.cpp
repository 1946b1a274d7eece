// Illegal sizes, loops, and memory of graphs that are scheduled.
#include <span>

#include "tests/error/illegal.h"

namespace weft::test {
namespace {

// clang-format off
constexpr Illegal kIllegalLoops[] = {
    // sizes
    {"memory_of_a_size_that_a_loop_changes", kKernel, "%a = DEFINE_GLOBAL ptr<float32, global> (%r) 7",
     "DEFINE_GLOBAL: the size r0 changes with r0, a loop; memory is made before loops"},
    {"local_memory_of_a_size_that_a_loop_changes", kKernel, "%a = DEFINE_LOCAL ptr<float32, local> (%r) 7",
     "DEFINE_LOCAL: the size r0 changes with r0, a loop; memory is made before loops"},
    {"a_buffer_of_a_size_that_is_read", kRangeified,
     "%v = INDEX float32 (%buf, %zero)\n%k = CAST index (%v)\n%a = BUFFER float32 (%k, %cpu) 7",
     "BUFFER: the size cast.index(buf0[0]) is read from memory; it must be known before"},
    {"memory_of_a_size_that_is_reduced", kKernel,
     "%k = CAST int32 (%r)\n%m = REDUCE int32 (%k, %r) MAX\n%a = DEFINE_GLOBAL ptr<float32, global> (%m) 7",
     "DEFINE_GLOBAL: the size reduce.MAX(cast.int32(r0), r0) is reduced over r0, a loop; memory is made before loops"},
    {"a_place_of_hardware_in_a_loop", kKernel, "%a = SPECIAL index (%r) \"lidx0\"",
     "SPECIAL: the size r0 changes with r0, a loop"},
    {"lanes_without_a_number", kKernel, "%a = RANGE index (%n) 7:lane",
     "RANGE: the size is n; of axis type lane it is a constant from 1 to 1024"},
    {"no_lanes", kKernel, "%a = RANGE index (%zero) 7:lane",
     "RANGE: the size is 0; of axis type lane it is a constant from 1 to 1024"},
    {"a_loop_as_long_as_the_lane_says", kKernel, "%l = RANGE index (%two) 7:lane\n%a = RANGE index (%l) 8:loop",
     "RANGE: the size r7 changes with r7, which is of axis type lane"},
    {"a_view_of_a_size", kTensor, "%a = RESHAPE index (%n)",
     "RESHAPE: source 0 is n of dtype index, which no tensor has"},
    {"bind_to_a_loop", kRangeified, "%a = BIND index (%n, %r)",
     "BIND: n is r0, which changes with r0; it has one value in a call"},

    // loops
    {"a_value_in_two_ranges_of_lanes", kKernel,
     "%k = RANGE index (%two) 7:lane\n%m = RANGE index (%four) 8:lane\n%a = ADD index (%k, %m)",
     "ADD: it stands in two ranges of lanes, r7 and r8"},
    {"a_register_carried_through_lanes", kKernel,
     "%k = RANGE index (%two) 7:lane\n%w = STORE float32 (%reg, %f)\n%a = AFTER float32 (%reg, %w, %k)",
     "AFTER: reg0 is carried into r7, whose places are lanes"},
    {"the_end_of_no_loop", kKernel, "%w = STORE void (%outr, %f)\n%e = END void (%w, %r)\n%a = END void (%e)",
     "END: it names no RANGE to close"},
    {"loops_closed_in_the_wrong_order", kKernel,
     "%k = RANGE index (%r) 7:loop\n%m = INDEX ptr<float32, global> (%out, %k)\n%w = STORE void (%m, %f)\n"
     "%a = END void (%w, %k, %r)",
     "END: the size of r7 changes with r0, which comes after it: inside of it"},
    {"bufferize_over_a_size_that_a_loop_changes", kRangeified,
     "%k = RANGE index (%r) 7:loop\n%a = BUFFERIZE float32 (%f, %r, %k) global",
     "BUFFERIZE: the size of r7 changes with r0; memory is made before loops"},
    {"bufferize_in_an_open_loop", kRangeified,
     "%v = INDEX float32 (%buf, %r)\n%a = BUFFERIZE float32 (%v, %s) global",
     "BUFFERIZE: r0 is open in bufferize(buf0[r0], r1); memory is written in loops that are closed"},
    {"a_write_in_an_open_loop", kRangeified,
     "%t = INDEX float32 (%buf, %r)\n%w = STORE void (%t, %f)\n%a = AFTER float32 (%buf, %w)",
     "AFTER: r0 is open in store(buf0[r0], 1.5); memory is written in loops that are closed"},
    {"reduce_over_nothing", kRangeified, "%a = REDUCE float32 (%f) ADD",
     "REDUCE: it names no RANGE to reduce over"},
    {"reduce_of_an_index", kRangeified, "%a = REDUCE index (%r, %r) ADD",
     "REDUCE: the dtype is index; what a kernel reduces has a width"},

    // memory
    {"index_of_an_element", kKernel, "%a = INDEX ptr<float32, global> (%outr, %r)",
     "INDEX: source 0 is data0[r0], an element; an INDEX is of the whole memory"},
    {"arithmetic_on_memory_without_axes", kRangeified,
     "%b = BUFFERIZE float32 (%f) global\n%a = NEG float32 (%b)",
     "NEG: source 0 is memory; its elements are read by an INDEX"},
    {"store_of_memory_without_axes", kRangeified,
     "%b = BUFFERIZE float32 (%f) global\n%t = INDEX float32 (%buf, %zero)\n%a = STORE void (%t, %b)",
     "STORE: source 1 is memory; its elements are read by an INDEX"},
    {"after_a_write_to_another_version", kRangeified,
     "%t = INDEX float32 (%buf, %zero)\n%w = STORE void (%t, %f)\n%b = AFTER float32 (%buf, %w)\n"
     "%a = AFTER float32 (%b, %w)",
     "AFTER: store(buf0[0], 1.5) writes to buf0, not to source 0, after(buf0, store(buf0[0], 1.5))"},
    {"after_nothing", kRangeified, "%a = AFTER float32 (%buf)",
     "AFTER: it names no effect that it comes after"},
    {"one_element_before_kernels", kRangeified, "%a = DEFINE_GLOBAL float32 7",
     "DEFINE_GLOBAL: the dtype is float32, one element; such arguments are for kernels"},
    {"a_register_that_nobody_has_written", kKernel,
     "%g = AFTER float32 (%reg, %r)\n%a = NEG float32 (%g)",
     "NEG: source 0 reads after(reg0, r0) before any STORE"},
    {"local_memory_at_the_end", kRangeified,
     "%b = BUFFERIZE float32 (%f) local\n%a = SINK void (%b)",
     "SINK: source 0 is bufferize(1.5), which is no memory that stays"},
    {"a_number_at_the_end", kRangeified, "%a = SINK void (%f)",
     "SINK: source 0 is 1.5, which is no memory that stays"},
    {"an_element_of_what_is_computed_by_an_index", kTensor,
     "%v = NEG float32 (%buf)\n%a = INDEX float32 (%v, %one)",
     "INDEX: the index 1 has dtype index; of a tensor that is computed it is int32 or int64"},
};
// clang-format on

}  // namespace

std::span<const Illegal> illegal_loops() { return kIllegalLoops; }

}  // namespace weft::test
