// Lists that are no program: wrong order, loops and blocks that do not nest.
#include <span>

#include "tests/error/illegal.h"

namespace weft::test {
namespace {

// A loop over %k that stores %v: its nodes come in this order.
#define WEFT_LOOP                                    \
  "%c = CONST int32 4\n"                             \
  "%k = RANGE int32 (%c) 0:loop\n"                   \
  "%v = CONST float32 0.0\n"                         \
  "%d = DEFINE_GLOBAL ptr<float32, global> (%c) 0\n" \
  "%p = INDEX ptr<float32, global> (%d, %k)\n"       \
  "%w = STORE void (%p, %v)\n"                       \
  "%e = END void (%w, %k)\n"

// clang-format off
constexpr Illegal kIllegalPrograms[] = {
    {"program_with_index", kProgram, "%a = LINEAR void (%two)",
     "CONST: the dtype is index; in a program integers have a width"},
    {"program_without_a_list", kProgram, "%a = SINK void (%i)",
     "SINK: it is the root; that must be a LINEAR"},
    {"program_with_a_reduction", kProgram, "%a = REDUCE int32 (%i) ADD",
     "REDUCE: it is not legal in the program stage; its stages are rangeified, kernel"},
    {"list_in_a_list", kProgram, "%l = LINEAR void (%i)\n%a = LINEAR void (%l)",
     "LINEAR: source 0 is a LINEAR, which is a root"},
    {"list_with_a_dtype", kProgram, "%a = LINEAR int32 (%i)",
     "LINEAR: the dtype is int32; it must be void"},
    {"list_without_a_source", kProgram, "%m = NEG int32 (%i)\n%a = LINEAR void (%m)",
     "NEG: source 0, 3, does not come before it in the list"},
    {"list_out_of_order", kProgram, "%m = NEG int32 (%i)\n%a = LINEAR void (%m, %i)",
     "NEG: source 0, 3, does not come before it in the list"},
    {"list_with_a_node_twice", kProgram, "%a = LINEAR void (%i, %i)",
     "CONST: it stands in the list twice"},
    {"loop_that_is_never_closed", kProgram,
     WEFT_LOOP "%a = LINEAR void (%c, %v, %d, %k, %p, %w)",
     "RANGE: it is never closed"},
    {"loop_that_closes_another", kProgram,
     WEFT_LOOP "%m = RANGE int32 (%c) 1:loop\n%a = LINEAR void (%c, %v, %d, %k, %m, %p, %w, %e)",
     "END: it closes r0, but the innermost open block is r1"},
    {"loop_index_after_its_loop", kProgram,
     WEFT_LOOP "%m = NEG int32 (%k)\n%a = LINEAR void (%c, %v, %d, %k, %p, %w, %e, %m)",
     "NEG: source 0, r0, is of a block that was closed before"},
    {"value_of_a_loop_after_it", kProgram,
     WEFT_LOOP "%m = NEG float32 (%v)\n%a = LINEAR void (%c, %d, %k, %v, %p, %w, %e, %m)",
     "NEG: source 0, 0.0, is of a block that was closed before"},
    {"effect_of_a_loop_after_it", kProgram,
     WEFT_LOOP "%m = BARRIER void (%w)\n%a = LINEAR void (%c, %v, %d, %k, %p, %w, %e, %m)",
     "BARRIER: it stands in the loop r0, which was closed before"},
    {"if_on_an_integer", kProgram, "%q = IF void (%i)\n%a = LINEAR void (%i, %q)",
     "IF: the gate has dtype int32; it must be bool"},
    {"if_of_a_value", kProgram, "%q = IF void (%true, %i)\n%a = LINEAR void (%true, %i, %q)",
     "IF: source 1 is a CONST, which is no effect"},
    {"if_that_is_never_closed", kProgram, "%q = IF void (%true)\n%a = LINEAR void (%true, %q)",
     "IF: it is never closed"},
    {"endif_of_a_loop", kProgram, "%q = ENDIF void (%i)\n%a = LINEAR void (%i, %q)",
     "ENDIF: source 0 is a CONST; it must be an IF"},
    {"endif_twice", kProgram,
     "%q = IF void (%true)\n%u = IF void (%true, %q)\n%p = ENDIF void (%q)\n"
     "%a = LINEAR void (%true, %q, %u, %p)",
     "ENDIF: it closes if(true), but the innermost open block is if(true, if(true))"},
    {"if_across_a_loop", kProgram,
     WEFT_LOOP "%q = IF void (%true)\n%u = ENDIF void (%q)\n"
     "%a = LINEAR void (%true, %c, %v, %d, %q, %k, %p, %w, %u, %e)",
     "ENDIF: it closes if(true), but the innermost open block is r0"},
    {"store_of_a_value_in_a_program", kProgram, "%w = STORE void (%f, %f)\n%a = LINEAR void (%f, %w)",
     "STORE: the target is a CONST; in a kernel it must be an INDEX of a pointer or a register"},
};
// clang-format on

#undef WEFT_LOOP

}  // namespace

std::span<const Illegal> illegal_programs() { return kIllegalPrograms; }

}  // namespace weft::test
