// Writes that the spec refuses: to views, through pointers, to registers.
#include <span>

#include "tests/error/illegal.h"

namespace weft::test {
namespace {

// clang-format off
constexpr Illegal kIllegalStores[] = {
    // to a view of a version
    {"store_without_a_value", kTensor, "%a = STORE void (%x)",
     "STORE: the number of sources is 1; allowed is 2 to 3"},
    {"store_of_another_shape", kTensor, "%a = STORE void (%x, %y)",
     "STORE: the value has shape (3,2), the target (2,3)"},
    {"store_of_a_shape_that_would_broadcast", kTensor,
     "%b = BUFFER float32 (%three, %cpu) 1\n%a = STORE void (%x, %b)",
     "STORE: the value has shape (3), the target (2,3)"},
    {"store_of_another_dtype", kTensor, "%a = STORE void (%x, %i)",
     "STORE: the value has dtype int32; the target takes float32"},
    {"store_to_a_view_with_a_dtype", kTensor, "%a = STORE float32 (%x, %f)",
     "STORE: the dtype is float32; it must be void"},
    {"store_to_a_view_with_a_gate", kTensor, "%a = STORE void (%x, %f, %true)",
     "STORE: it has a gate; a write to a tensor has none"},
    {"store_to_an_expanded_view", kTensor,
     "%b = RESHAPE float32 (%buf, %six, %one)\n%e = EXPAND float32 (%b, %six, %two)\n"
     "%v = CONTIGUOUS float32 (%e)\n%a = STORE void (%e, %v)",
     "STORE: the target is an expanded view, which repeats elements; it takes a scalar"},
    {"store_to_a_view_of_an_expanded_view", kTensor,
     "%b = RESHAPE float32 (%buf, %six, %one)\n%e = EXPAND float32 (%b, %six, %two)\n"
     "%p = PERMUTE float32 (%e) [1, 0]\n%v = CONTIGUOUS float32 (%p)\n%a = STORE void (%p, %v)",
     "STORE: the target is an expanded view, which repeats elements; it takes a scalar"},
    {"store_to_the_bits_of_an_expanded_view", kTensor,
     "%b = RESHAPE float32 (%buf, %six, %one)\n%e = EXPAND float32 (%b, %six, %two)\n"
     "%p = BITCAST int32 (%e)\n%v = CONTIGUOUS int32 (%p)\n%a = STORE void (%p, %v)",
     "STORE: the target is an expanded view, which repeats elements; it takes a scalar"},
    {"store_to_a_padded_view", kTensor,
     "%p = PAD float32 (%buf, %one, %zero)\n%a = STORE void (%p, %f)",
     "STORE: the target is a padded view, whose padding is not in memory"},
    {"store_to_a_device", kTensor, "%a = STORE void (%cpu, %f)",
     "STORE: the target is a DEVICE; allowed are a view of a value, an INDEX and a register"},
    {"store_to_a_variable", kTensor, "%a = STORE void (%n, %two)",
     "STORE: the target is a VARIABLE; allowed are a view of a value, an INDEX and a register"},
    {"store_to_a_store", kTensor, "%w = STORE void (%buf, %f)\n%a = STORE void (%w, %f)",
     "STORE: the target is a STORE; allowed are a view of a value, an INDEX and a register"},
    {"store_to_a_view_of_a_variable", kTensor,
     "%m = CONST int32 0\n%v = VARIABLE int32 (%m, %i) \"m\"\n%w = RESHAPE int32 (%v)\n"
     "%a = STORE void (%w, %i)",
     "STORE: the target is a view of a VARIABLE; allowed are a view of a value, an INDEX and a register"},
    {"store_to_a_range", kKernel, "%a = STORE void (%r, %two)",
     "STORE: the target is a RANGE; allowed are a view of a value, an INDEX and a register"},
    {"store_of_an_effect", kTensor, "%w = STORE void (%buf, %f)\n%a = STORE void (%x, %w)",
     "STORE: source 1 is a STORE, an effect; values are read AFTER it"},

    {"a_sum_into_the_bits_of_a_buffer", kTensor,
     "%bits = BITCAST int32 (%buf)\n%a = STORE void (%bits, %i) ADD",
     "STORE: it combines elements of int32 in memory of float32"},
    {"a_register_written_in_a_loop_that_it_is_not_opened_in", kKernel,
     "%w = STORE float32 (%reg, %f)\n%t = AFTER float32 (%reg, %w)\n%v = LOAD float32 (%inr)\n"
     "%a = STORE float32 (%t, %v)",
     "STORE: reg0 is written in r0, in which it is not opened: the target waits for no r0"},

    // versions
    {"version_of_another_buffer", kTensor,
     "%b = BUFFER float32 (%six, %cpu) 1\n%w = STORE void (%b, %f)\n%a = AFTER float32 (%buf, %w)",
     "AFTER: source 1 writes to a view of buf1, not of source 0, buf0"},
    {"version_of_an_older_version", kTensor,
     "%w = STORE void (%buf, %f)\n%new = AFTER float32 (%buf, %w)\n%a = AFTER float32 (%new, %w)",
     "AFTER: source 1 writes to a view of buf0, not of source 0, after(buf0, store(buf0, 1.5))"},
    {"version_of_a_view", kTensor, "%w = STORE void (%x, %f)\n%a = AFTER float32 (%x, %w)",
     "AFTER: source 0 is a RESHAPE, a view; a write makes the next version of a whole storage"},
    {"version_of_the_bits_of_a_version", kTensor,
     "%bits = BITCAST int32 (%buf)\n%w = STORE void (%bits, %i)\n%a = AFTER int32 (%bits, %w)",
     "AFTER: source 0 is a BITCAST, a view; a write makes the next version of a whole storage"},
    {"version_after_a_version", kTensor,
     "%w = STORE void (%buf, %f)\n%new = AFTER float32 (%buf, %w)\n%a = AFTER float32 (%buf, %new)",
     "AFTER: source 1 is an AFTER; in a tensor graph it must be a STORE"},

    // through a pointer
    {"store_to_a_whole_buffer", kKernel, "%a = STORE void (%out, %f)",
     "STORE: the target is data0, a whole buffer; INDEX it to say which element"},
    {"store_to_a_whole_buffer_of_one", kKernel,
     "%a = DEFINE_GLOBAL ptr<float32, global> (%one) 5\n%b = STORE void (%a, %f)",
     "STORE: the target is data5, a whole buffer; INDEX it to say which element, or define it without a "
     "size: that is one element, which is written like a register"},
    {"store_to_whole_local_memory", kKernel,
     "%l = DEFINE_LOCAL ptr<float32, local> (%four) 0\n%a = STORE void (%l, %f)",
     "STORE: the target is local0, a whole buffer; INDEX it to say which element"},
    {"store_to_a_whole_buffer_after_effects", kKernel,
     "%w = STORE void (%outr, %f)\n%b = AFTER ptr<float32, global> (%out, %w)\n"
     "%a = STORE void (%b, %f)",
     "STORE: the target is after(data0, store(data0[r0], 1.5)), a whole buffer; INDEX it to say which element"},
    {"store_through_a_pointer_of_another_dtype", kKernel, "%a = STORE void (%outr, %i)",
     "STORE: the value has dtype int32; the target takes float32"},
    {"store_through_a_pointer_with_a_dtype", kKernel, "%a = STORE float32 (%outr, %f)",
     "STORE: the dtype is float32; it must be void"},
    {"store_through_a_pointer_of_other_lanes", kKernel,
     "%p = CAST ptr<float32x4, global> (%outr)\n%a = STORE void (%p, %f)",
     "STORE: the value has dtype float32; the target takes float32x4"},
    {"store_with_a_gate_that_is_no_bool", kKernel, "%a = STORE void (%outr, %f, %i)",
     "STORE: the gate has dtype int32; it must be bool"},
    {"store_of_a_pointer", kKernel, "%a = STORE void (%outr, %inr)",
     "STORE: source 1 is a pointer, ptr<float32, global>; its value is read by a LOAD"},

    // to a register
    {"store_to_a_register_without_its_dtype", kKernel, "%a = STORE void (%reg, %f)",
     "STORE: the dtype is void; a write to the register reg0 has its dtype, float32"},
    {"store_to_a_register_of_another_dtype", kKernel, "%a = STORE float32 (%reg, %i)",
     "STORE: the value has dtype int32; the target takes float32"},
    {"store_to_a_register_with_a_gate_that_is_no_bool", kKernel,
     "%a = STORE float32 (%reg, %f, %i)", "STORE: the gate has dtype int32; it must be bool"},
    {"store_to_a_one_element_argument_without_its_dtype", kKernel,
     "%d = DEFINE_GLOBAL int32 2\n%a = STORE void (%d, %i)",
     "STORE: the dtype is void; a write to the register data2 has its dtype, int32"},
    {"store_to_a_register_in_a_loop_with_a_gate_that_is_no_bool", kKernel,
     "%g = AFTER float32 (%reg, %r)\n%a = STORE float32 (%g, %f, %i)",
     "STORE: the gate has dtype int32; it must be bool"},

    // in stages
    {"store_to_a_value_after_ranges", kRangeified, "%a = STORE void (%f, %f)",
     "STORE: the target is a CONST; allowed are a BUFFER, an INDEX and a register"},
    {"store_to_a_value_in_a_kernel", kKernel, "%a = STORE void (%f, %f)",
     "STORE: the target is a CONST; in a kernel it must be an INDEX of a pointer or a register"},
    {"store_to_an_element_of_another_dtype", kRangeified,
     "%e = INDEX float32 (%buf, %r)\n%a = STORE void (%e, %i)",
     "STORE: the value has dtype int32; the target takes float32"},
};
// clang-format on

}  // namespace

std::span<const Illegal> illegal_stores() { return kIllegalStores; }

}  // namespace weft::test
