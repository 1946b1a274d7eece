// Passes of users in Python: functions and rules around weft's own passes.
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "convert.h"
#include "core.h"
#include "interpreter.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "rewrite/graph_rewrite.h"
#include "rewrite/trace.h"
#include "rewrite/user_passes.h"
#include "rules.h"

namespace weft::python {
namespace {

// A function of Python that threads without the interpreter may hold and let go.
class HeldFunction {
 public:
  explicit HeldFunction(nb::object function) : function_(std::move(function)) {}
  HeldFunction(const HeldFunction&) = delete;
  HeldFunction& operator=(const HeldFunction&) = delete;
  ~HeldFunction() {
    if (Py_IsInitialized() == 0) {  // nobody is left to let it go
      function_.release();
      return;
    }
    const InterpreterTaken taken;
    function_.reset();
  }

  UOp operator()(const std::string& name, UOp graph, Stage stage, Trace* trace) const {
    const InterpreterTaken taken;
    const nb::tuple result = nb::cast<nb::tuple>(function_(handle(graph), stage));
    if (!nb::isinstance<PythonRuleSet>(result[0])) {
      const Graph& made = graph_of(result[0], fmt::format("what the pass {} returns", name));
      return import_into(graph.arena(), made);
    }
    const auto& rules = *nb::inst_ptr<PythonRuleSet>(result[0]);
    CallContext call{result[1], nb::none()};
    LegalNodes legal;
    if (rules.has_tables()) {
      legal.require(graph);
      call.legal = &legal;
    }
    return graph_rewrite(graph, *rules.set, {.context = &call, .trace = trace, .pass = name});
  }

 private:
  nb::object function_;
};

// name, pass of weft, is it before that, file and line, and
//     function(graph, stage) -> (graph,) or (rules, context)
using Row = std::tuple<std::string, std::string, bool, nb::object, std::string, int>;

struct PassesHandle {
  std::shared_ptr<const UserPasses> passes;
};

PassesHandle* make_passes(const std::vector<Row>& rows) {
  std::vector<UserPass> list;
  for (const auto& [name, beside, is_before, function, file, line] : rows) {
    auto held = std::make_shared<const HeldFunction>(function);
    static std::vector<std::unique_ptr<const std::string>>& files =
        *new std::vector<std::unique_ptr<const std::string>>;  // that rules name, for ever
    files.push_back(std::make_unique<const std::string>(file));
    UserPass pass{.name = name,
                  .beside = beside,
                  .where = is_before ? UserPass::Where::kBefore : UserPass::Where::kAfter,
                  .run = [held, own = name](UOp graph, Stage stage, Trace* trace) {
                    const UOp made = (*held)(own, graph, stage, trace);
                    if (trace != nullptr) trace->owners.push_back(held);  // it has the rules
                    return made;
                  }};
    pass.rule.file = files.back()->c_str();
    pass.rule.line = uint32_t(line);
    list.push_back(std::move(pass));
  }
  return new PassesHandle{std::make_shared<const UserPasses>(std::move(list))};
}

// Scopes of this thread, innermost last. `with` blocks of Python end in order.
std::vector<std::unique_ptr<UserPassesScope>>& scopes() {
  thread_local std::vector<std::unique_ptr<UserPassesScope>> list;
  return list;
}

}  // namespace

void bind_pipeline(nb::module_& m) {
  nb::class_<PassesHandle>(m, "UserPasses", "A list of passes of users, as it is compiled with.")
      .def("__len__", [](const PassesHandle& p) { return p.passes->list.size(); });
  m.def("make_user_passes", make_passes, nb::arg("rows"), nb::rv_policy::take_ownership)
      .def(
          "enter_user_passes",
          [](const PassesHandle& p) {
            scopes().push_back(std::make_unique<UserPassesScope>(p.passes));
          },
          nb::arg("passes"))
      .def("leave_user_passes",
           [] {
             if (scopes().empty()) throw nb::value_error("no passes were entered");
             scopes().pop_back();
           })
      .def(
          "set_user_passes",
          [](const PassesHandle* p) { set_user_passes(p == nullptr ? nullptr : p->passes); },
          nb::arg("passes").none());
}

}  // namespace weft::python
