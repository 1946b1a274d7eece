// What the binding files share: handles on nodes, the arena that new leaves go to, and the parts of
// the module.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nanobind/nanobind.h>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/walk.h"

namespace weft::python {

namespace nb = nanobind;

// A Python UOp is a Graph: a node and what keeps its arena alive.
using UOpClass = nb::class_<Graph>;

// ---- arenas (bind_arena.cpp)

// A Python Arena.
struct ArenaScope {
  std::shared_ptr<Arena> arena;
};

// Arenas of Python graphs are made here, and counted while they live.
std::shared_ptr<Arena> make_arena();

// Where leaves go: the innermost `with Arena():` of this thread; else the one that this thread used
// last, for as long as something keeps it alive; else a new one.
std::shared_ptr<Arena> current_arena();

// ---- handles

inline Graph handle(UOp n) { return {n.arena().shared_from_this(), n}; }

// `n` in the arena of `into`: itself, or a copy.
inline UOp import_into(Arena& into, const Graph& n) { return import_graph(into, n.root); }

// The nodes as a tuple or a list of handles.
nb::tuple tuple_of(const std::shared_ptr<Arena>& arena, std::span<const UOp> nodes);

// Text that may hold bytes which are no UTF-8 (a name, cut in the middle of a character).
nb::str text(std::string_view bytes);

// "GLOBAL" of "global": the members of Python's enums.
std::string upper(std::string_view name);

// Throws TypeError.
[[noreturn]] void type_error(std::string_view message);

// "int", "UOp": what a message calls the type of a value.
std::string_view type_text(nb::handle value);

// ---- the parts of the module, one per file

void bind_errors();
void bind_signals();
void bind_types(nb::module_& m);
void bind_dtype(nb::module_& m);
void bind_default_dtypes(nb::module_& m);
void bind_arena(nb::module_& m);
void bind_node(nb::module_& m, UOpClass& c);
void bind_definitions(UOpClass& c);
void bind_operators(UOpClass& c);
void bind_tensor_ops(UOpClass& c);
void bind_memory_ops(UOpClass& c);
void bind_walks(nb::module_& m, UOpClass& c);
void bind_rules(nb::module_& m);
void bind_trace(nb::module_& m);
void bind_rewrite(nb::module_& m, UOpClass& c);
void bind_evaluate(nb::module_& m, UOpClass& c);
void bind_device(nb::module_& m);
void bind_schedule(nb::module_& m);
void bind_codegen(nb::module_& m);
void bind_passes(nb::module_& m);
void bind_pipeline(nb::module_& m);
void bind_explain(nb::module_& m);
void bind_jit(nb::module_& m);
void bind_recording(nb::module_& m);
void bind_function(nb::module_& m);
void bind_custom_kernel(nb::module_& m);
void bind_mapped_file(nb::module_& m);

}  // namespace weft::python
