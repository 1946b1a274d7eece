// graph_rewrite and simplify.
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "core.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "rewrite/graph_rewrite.h"
#include "rewrite/trace.h"
#include "rules.h"
#include "symbolic/simplify.h"
#include "trace.h"

namespace weft::python {
namespace {

Order order_of(std::string_view name) {
  if (name == "bottom-up") return Order::kBottomUp;
  if (name == "top-down") return Order::kTopDown;
  throw nb::value_error(
      fmt::format("[graph_rewrite] an order is bottom-up or top-down, not {}", name).c_str());
}

bool call_gate(UOp n, void* context) {
  const nb::object answer = static_cast<CallContext*>(context)->gate(handle(n));
  const int truth = PyObject_IsTrue(answer.ptr());
  if (truth < 0) throw nb::python_error();
  return truth != 0;
}

// The trace of C++, which from now on keeps the arena and the rules.
Trace* record(PythonTrace* trace, const Graph& g, nb::object rules) {
  if (trace == nullptr) return nullptr;
  trace->arenas.push_back(g.arena);
  if (rules.is_valid()) trace->rules.push_back(std::move(rules));
  return &trace->trace;
}

Graph rewrite(const Graph& g, const nb::object& rules, nb::object context, std::string_view order,
              nb::object gate, PythonTrace* trace, const std::optional<std::string>& name) {
  if (!nb::isinstance<PythonRuleSet>(rules)) {
    type_error(fmt::format("[graph_rewrite] a RuleSet is needed, not {}", type_text(rules)));
  }
  const auto& set = *nb::inst_ptr<PythonRuleSet>(rules);
  CallContext call{std::move(context), std::move(gate)};
  LegalNodes legal;
  if (set.has_tables()) {
    legal.require(g.root);
    call.legal = &legal;
  }
  const UOp result = graph_rewrite(g.root, *set.set,
                                   {.order = order_of(order),
                                    .context = &call,
                                    .descend = call.gate.is_none() ? nullptr : call_gate,
                                    .trace = record(trace, g, rules),
                                    .pass = name ? std::string_view(*name) : std::string_view()});
  return {g.arena, result};
}

#define WEFT_REWRITE_PARAMETERS                                        \
  "rules: RuleSet, ctx: typing.Any = None, order: str = 'bottom-up', " \
  "gate: collections.abc.Callable[[UOp], bool] | None = None, "        \
  "trace: Trace | None = None, name: str | None = None) -> UOp"

constexpr const char* kRewriteDoc =
    R"(The graph with the rules applied to every node until none applies.

Bottom-up, sources come to rest before the rules see a node; top-down, the rules see a node first.
Rules with a parameter `ctx` are given ctx. Where gate(node) is false, the sources of the node stay
as they are. Raises RewriteLoopError when the rules never come to rest.

>>> x, c = Pat.var("x"), Pat.const("c")
>>> shift = rule(x * c, lambda x, c: x << 3 if c.arg == 8 else None, name="mul-to-shift")
>>> print(graph_rewrite(UOp.range(4, 0) * 8, RuleSet([shift])))
r0 << 3
)";

}  // namespace

void bind_rewrite(nb::module_& m, UOpClass& c) {
  m.def("graph_rewrite", rewrite, nb::arg("root"), nb::arg("rules"), nb::arg("ctx") = nb::none(),
        nb::arg("order") = "bottom-up", nb::arg("gate") = nb::none(), nb::arg("trace") = nb::none(),
        nb::arg("name") = nb::none(),
        nb::sig("def graph_rewrite(root: UOp, " WEFT_REWRITE_PARAMETERS), kRewriteDoc);
  c.def("rewrite", rewrite, nb::arg("rules"), nb::arg("ctx") = nb::none(),
        nb::arg("order") = "bottom-up", nb::arg("gate") = nb::none(), nb::arg("trace") = nb::none(),
        nb::arg("name") = nb::none(), nb::sig("def rewrite(self, " WEFT_REWRITE_PARAMETERS),
        "graph_rewrite() of this graph.")
      .def(
          "simplify",
          [](const Graph& g, PythonTrace* trace) {
            LegalNodes().require(g.root);
            return Graph{g.arena, simplify(g.root, record(trace, g, nb::object()))};
          },
          nb::arg("trace") = nb::none(),
          nb::sig("def simplify(self, trace: Trace | None = None) -> UOp"),
          R"(The graph with its integer arithmetic in its simplest form.

>>> x = UOp.variable("x", 0, 99)
>>> print((x//4*4 + x%4).simplify())
x
)");
}

}  // namespace weft::python
