// Arenas: which one new leaves go to, and how many live.
#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include <nanobind/nanobind.h>

#include "core.h"
#include "ir/arena.h"

namespace weft::python {
namespace {

std::atomic<size_t> live_count{0};

// Of one thread: the arenas of its `with` blocks, and the one that leaves outside of them went to.
struct Places {
  std::vector<std::shared_ptr<Arena>> entered;
  std::weak_ptr<Arena> last;
};
Places& places() {
  thread_local Places instance;
  return instance;
}

void leave(const ArenaScope& scope) {
  std::vector<std::shared_ptr<Arena>>& entered = places().entered;
  if (entered.empty() || entered.back() != scope.arena) {
    throw nb::value_error("[arena] this is not the arena that was entered last");
  }
  entered.pop_back();
}

}  // namespace

std::shared_ptr<Arena> make_arena() {
  std::shared_ptr<Arena> arena(new Arena, [](Arena* a) {
    delete a;
    live_count--;
  });
  live_count++;
  return arena;
}

std::shared_ptr<Arena> current_arena() {
  Places& here = places();
  if (!here.entered.empty()) return here.entered.back();
  std::shared_ptr<Arena> arena = here.last.lock();
  if (!arena) {
    arena = make_arena();
    here.last = arena;
  }
  return arena;
}

void bind_arena(nb::module_& m) {
  nb::class_<ArenaScope>(
      m, "Arena",
      R"(The memory of graphs. Nodes of one arena are freed together, when no UOp holds it any more.

Leaves (UOp.const, UOp.range, parse, ...) made inside `with Arena():` go there; outside of any, they
go to an arena of the thread that lives as long as one of its UOps. One thread at a time uses an
arena.

>>> with Arena() as arena:
...     u = UOp.variable("n", 1, 9) + 1
>>> arena.size
4
>>> u.arena == arena
True
)")
      .def("__init__", [](ArenaScope* self) { new (self) ArenaScope{make_arena()}; })
      .def_prop_ro(
          "size", [](const ArenaScope& a) { return a.arena->size(); }, "How many nodes it holds.")
      .def_prop_ro(
          "bytes", [](const ArenaScope& a) { return a.arena->bytes(); }, "The memory of its nodes.")
      .def_prop_ro(
          "side_table_bytes", [](const ArenaScope& a) { return a.arena->side_table_bytes(); },
          "The memory of shapes, bounds and other facts about its nodes.")
      .def(
          "fresh_id", [](const ArenaScope& a) { return a.arena->fresh_id(); },
          "An id for a definition or range that nothing in the arena has.")
      .def(
          "__enter__",
          [](nb::object self) {
            places().entered.push_back(nb::cast<ArenaScope&>(self).arena);
            return self;
          },
          nb::sig("def __enter__(self) -> Arena"))
      .def(
          "__exit__", [](const ArenaScope& a, const nb::args&) { leave(a); },
          nb::sig("def __exit__(self, *exception: object) -> None"))
      .def(
          "__eq__", [](const ArenaScope& a, const ArenaScope& b) { return a.arena == b.arena; },
          nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def(
          "__hash__", [](const ArenaScope& a) { return size_t(a.arena.get()) >> 4; },
          nb::sig("def __hash__(self) -> int"))
      .def("__repr__", [](const ArenaScope& a) {
        return nb::str("Arena({} nodes, {} bytes)").format(a.arena->size(), a.arena->bytes());
      });
  m.def(
      "live_arenas", [] { return live_count.load(); },
      "How many arenas of Python graphs exist now.");
}

}  // namespace weft::python
