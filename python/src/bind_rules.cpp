// Patterns, rules and rule sets made at run time.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "convert.h"
#include "core.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"
#include "rewrite/rule_set.h"
#include "rules.h"
#include "symbolic/simplify.h"

namespace weft::python {
namespace {

// ---------------------------------------------------------------------------------------- patterns

// A cell as weft/_patterns.py writes it: kind, slot (-1: no name), arity, ops, dtypes, value.
using CellData = std::tuple<std::string, int, int, std::vector<Op>, std::vector<DType>, int64_t>;

CellKind kind_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, CellKind>, 10> kinds = {{
      {"node", CellKind::kNode},
      {"nonconst", CellKind::kNonConst},
      {"const", CellKind::kConst},
      {"int", CellKind::kLiteral},
      {"float", CellKind::kDouble},
      {"op", CellKind::kOp},
      {"ops", CellKind::kOpSet},
      {"rest", CellKind::kRest},
      {"either", CellKind::kEither},
      {"fold", CellKind::kFold},
  }};
  for (const auto& [text, kind] : kinds) {
    if (text == name) return kind;
  }
  type_error(fmt::format("there is no pattern {}", name));
}

Cell cell_of(const CellData& data) {
  const auto& [kind, slot, arity, ops, dtype_list, value] = data;
  Cell c{.kind = kind_of(kind),
         .slot = slot < 0 ? kNoSlot : uint8_t(slot),
         .arity = uint8_t(arity),
         .value = uint64_t(value)};
  for (const Op op : ops) c.ops.add(op);
  if (c.kind == CellKind::kOp) c.op = ops.at(0);
  if (!dtype_list.empty()) {
    c.dtypes = 0;
    for (const DType t : dtype_list) c.dtypes |= set_of(t.scalar);
  }
  return c;
}

// The cells of a subtree with its names bound from left to right, as Pattern::append does it; a
// cell without a name shares the slot `hidden`, which nothing compares.
class PatternBuilder {
 public:
  PatternBuilder(std::span<const CellData> cells, int hidden_node, int hidden_const)
      : cells_(cells), hidden_node_(hidden_node), hidden_const_(hidden_const) {}

  Pattern build() {
    if (cells_.size() > kMaxCells) {
      throw nb::value_error(
          fmt::format("this pattern has {} parts; at most {} are allowed", cells_.size(), kMaxCells)
              .c_str());
    }
    subtree();
    return pattern_;
  }

 private:
  void subtree() {
    Cell c = cell_of(cells_[at_++]);
    const bool is_node = c.kind == CellKind::kNode || c.kind == CellKind::kNonConst;
    const bool is_hidden = c.slot == kNoSlot && (is_node || c.kind == CellKind::kConst);
    if (is_hidden) c.slot = uint8_t(is_node ? hidden_node_ : hidden_const_);
    pattern_.push(c);
    if (is_hidden) pattern_.cells[pattern_.size - 1].bound = false;
    if (c.kind != CellKind::kEither) {
      for (int i = 0; i < c.arity; i++) subtree();
      return;
    }
    const uint32_t before = pattern_.binds;
    subtree();
    const uint32_t first = pattern_.binds;
    pattern_.binds = before;
    subtree();
    pattern_.binds &= first;
  }

  std::span<const CellData> cells_;
  int hidden_node_, hidden_const_;
  size_t at_ = 0;
  Pattern pattern_;
};

// ------------------------------------------------------------------------------------------- rules

nb::object value_of(const Parameter& p, const Match& m) {
  switch (p.kind) {
    case Parameter::kNode: return nb::cast(handle(m.node(p.slot)));
    case Parameter::kConst: return nb::cast(handle(m.constant(p.slot)));
    case Parameter::kRest: return tuple_of(m.arena().shared_from_this(), m.rest());
    case Parameter::kRoot: return nb::cast(handle(m.root()));
    case Parameter::kContext: break;
  }
  return m.context<CallContext>().context;
}

// The body of every rule that has a function.
UOp call_function(Match& m) {
  const auto& rule = *static_cast<const PythonRule*>(m.rule().data);
  std::vector<nb::object> values;
  std::vector<PyObject*> arguments{nullptr};  // room that the call may use
  for (const Parameter& p : rule.parameters) {
    arguments.push_back(values.emplace_back(value_of(p, m)).ptr());
  }
  const nb::object result =
      nb::steal(PyObject_Vectorcall(rule.function.ptr(), arguments.data() + 1,
                                    PY_VECTORCALL_ARGUMENTS_OFFSET, rule.keywords.ptr()));
  if (!result.is_valid()) throw nb::python_error();
  if (result.is_none()) return UOp();
  const UOp made =
      import_into(m.arena(), graph_of(result, fmt::format("what the rule {} returns", rule.name)));
  if (m.context<CallContext>().legal != nullptr) m.context<CallContext>().legal->require(made);
  return made;
}

Parameter parameter_of(std::string_view kind, int slot) {
  constexpr std::array<std::string_view, 5> kinds = {"node", "const", "rest", "ctx", "root"};
  for (size_t i = 0; i < kinds.size(); i++) {
    if (kinds[i] == kind) return {Parameter::Kind(i), uint8_t(slot)};
  }
  type_error(fmt::format("there is no parameter {}", kind));
}

using Cells = std::vector<CellData>;
using ParameterData =
    std::vector<std::tuple<std::string, std::string, int>>;  // keyword, kind, slot

void make_rule(PythonRule* self, std::string name, std::string file, uint32_t line,
               bool is_anonymous, const Cells& pattern, std::pair<int, int> hidden,
               const std::optional<Cells>& replacement, nb::object function,
               const ParameterData& parameters) {
  Rule rule;
  rule.lhs = PatternBuilder(pattern, hidden.first, hidden.second).build();
  const CellKind root = rule.lhs.root().kind;
  if (root != CellKind::kOp && root != CellKind::kOpSet) {
    throw nb::value_error("the pattern of a rule must start with an op");
  }
  if (replacement) {
    rule.rhs = PatternBuilder(*replacement, hidden.first, hidden.second).build();
    if (rule.rhs.binds & ~rule.lhs.binds) {
      throw nb::value_error("the replacement uses a name that the pattern does not bind");
    }
  } else {
    rule.body = call_function;
  }
  auto* out = new (self) PythonRule;
  out->name = std::move(name);
  out->file = std::move(file);
  out->is_anonymous = is_anonymous;
  out->function = std::move(function);
  out->rule = rule;
  out->rule.line = line;
  out->rule.name = out->name;
  out->rule.file = out->file.c_str();
  out->rule.data = out;
  nb::list keywords;
  for (const auto& [keyword, kind, slot] : parameters) {
    keywords.append(nb::steal(PyUnicode_InternFromString(keyword.c_str())));
    out->parameters.push_back(parameter_of(kind, slot));
  }
  out->keywords = nb::tuple(keywords);
}

// Names of nodes and constants that a pattern surely binds: bits as in Pattern::binds.
uint32_t bound_names(const Cells& pattern, std::pair<int, int> hidden) {
  return PatternBuilder(pattern, hidden.first, hidden.second).build().binds;
}

// --------------------------------------------------------------------------------------- rule sets

void add_part(std::vector<PythonRuleSet::Part>& parts, const PythonRuleSet::Part& part) {
  for (const PythonRuleSet::Part& p : parts) {
    const bool same = part.rule.is_valid()
                          ? p.rule.is(part.rule)
                          : !p.rule.is_valid() && p.table.rules.data() == part.table.rules.data();
    if (same) return;
  }
  parts.push_back(part);
}

std::vector<PythonRuleSet::Part> parts_of(nb::handle rules) {
  std::vector<PythonRuleSet::Part> parts;
  for (const nb::handle h : rules) {
    if (nb::isinstance<PythonRule>(h)) {
      add_part(parts, {nb::borrow(h), {}});
    } else if (nb::isinstance<PythonRuleSet>(h)) {
      for (const auto& part : nb::inst_ptr<PythonRuleSet>(h)->parts) add_part(parts, part);
    } else {
      type_error(fmt::format("a RuleSet is made of rules and sets, not of {}", type_text(h)));
    }
  }
  return parts;
}

}  // namespace

void LegalNodes::require(UOp root) {
  auto known = [&](UOp n) { return n.id() < seen_.size() && seen_[n.id()]; };
  visit_missing(root, known, [&](UOp n) {
    if (const std::optional<Violation> v = find_violation_at(n)) {
      throw SpecError(fmt::format("{}\n{}", v->message, neighbourhood(n)));
    }
    if (n.id() >= seen_.size()) seen_.resize(std::max<size_t>(n.arena().size(), n.id() + 1));
    seen_[n.id()] = true;
  });
}

PythonRuleSet::PythonRuleSet(std::string set_name, std::vector<Part> all)
    : name(std::move(set_name)), parts(std::move(all)) {
  rules.reserve(parts.size());  // tables point into it
  std::unordered_set<std::string_view> taken;
  std::vector<RuleTable> tables;
  auto take = [&](std::string_view rule) {
    if (!taken.insert(rule).second) {
      throw nb::value_error(fmt::format("the set {} has two rules named {}", name, rule).c_str());
    }
  };
  for (const Part& part : parts) {
    if (!part.rule.is_valid()) {
      for (const Rule& r : part.table.rules) take(r.name);
      tables.push_back(part.table);
      continue;
    }
    const auto& from = *nb::inst_ptr<PythonRule>(part.rule);
    Rule& rule = rules.emplace_back(from.rule);
    for (int n = 2; from.is_anonymous && taken.contains(rule.name); n++) {
      rule.name = names.emplace_back(fmt::format("{}-{}", from.name, n));
    }
    take(rule.name);
    tables.push_back({name, kAnyDType, std::span(&rule, 1)});
  }
  set = std::make_unique<RuleSet>(name, tables);
}

namespace {

int traverse_rule(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<PythonRule>(self)->function.ptr());
  return 0;
}
int clear_rule(PyObject* self) {
  nb::inst_ptr<PythonRule>(self)->function.reset();
  return 0;
}
int traverse_set(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  for (const auto& part : nb::inst_ptr<PythonRuleSet>(self)->parts) Py_VISIT(part.rule.ptr());
  return 0;
}
int clear_set(PyObject* self) {
  nb::inst_ptr<PythonRuleSet>(self)->parts.clear();
  return 0;
}

PyType_Slot rule_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_rule)},
                            {Py_tp_clear, reinterpret_cast<void*>(clear_rule)},
                            {0, nullptr}};
PyType_Slot set_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_set)},
                           {Py_tp_clear, reinterpret_cast<void*>(clear_set)},
                           {0, nullptr}};

nb::list names_of(const PythonRuleSet& s) {
  nb::list out;
  for (const Rule* r : s.set->rules()) out.append(r->name);
  return out;
}

}  // namespace

void bind_rules(nb::module_& m) {
  nb::class_<PythonRule>(m, "Rule", nb::type_slots(rule_slots),
                         "A named rewrite of what a pattern matches; rule() makes one.")
      .def("__init__", make_rule, nb::arg("name"), nb::arg("file"), nb::arg("line"),
           nb::arg("is_anonymous"), nb::arg("pattern"), nb::arg("hidden"),
           nb::arg("replacement").none(), nb::arg("function").none(), nb::arg("parameters"))
      .def_ro("name", &PythonRule::name, "What statistics, traces and errors call it.")
      .def_ro("file", &PythonRule::file, "Where it was made.")
      .def_prop_ro("line", [](const PythonRule& r) { return r.rule.line; })
      .def("__repr__", [](const PythonRule& r) {
        return nb::str("Rule({}, {}:{})").format(r.name, r.file, r.rule.line);
      });
  nb::class_<PythonRuleSet>(m, "RuleSet", nb::type_slots(set_slots),
                            R"(Rules in the order in which they are tried. Sets add up.

>>> x = Pat.var("x")
>>> rules = RuleSet([rule(x.max(x + 1), x + 1, name="max-of-next")])
>>> (rules + symbolic).names[0]
'max-of-next'
)")
      .def(
          "__init__",
          [](PythonRuleSet* self, nb::handle rules, std::string name) {
            new (self) PythonRuleSet(std::move(name), parts_of(rules));
          },
          nb::arg("rules"), nb::arg("name") = "rules",
          nb::sig("def __init__(self, rules: collections.abc.Iterable[Rule | RuleSet], "
                  "name: str = 'rules') -> None"))
      .def_ro("name", &PythonRuleSet::name, "What traces and errors call a pass with these rules.")
      .def_prop_ro("names", names_of, nb::sig("def names(self) -> list[str]"),
                   "The names of the rules, in order.")
      .def("__len__", [](const PythonRuleSet& s) { return s.set->rules().size(); })
      .def(
          "__add__",
          [](nb::object a, nb::handle b) -> nb::object {
            if (!nb::isinstance<PythonRuleSet>(b)) return nb::borrow(Py_NotImplemented);
            const auto& [first, second] =
                std::tie(*nb::inst_ptr<PythonRuleSet>(a), *nb::inst_ptr<PythonRuleSet>(b));
            return nb::type<PythonRuleSet>()(nb::make_tuple(a, b), first.name + "+" + second.name);
          },
          nb::is_operator(), nb::sig("def __add__(self, other: RuleSet, /) -> RuleSet"))
      .def("__repr__", [](const PythonRuleSet& s) {
        return nb::str("RuleSet({}, {} rules)").format(s.name, s.set->rules().size());
      });
  m.attr("MOST_NODE_NAMES") = kMaxNodeNames;
  m.attr("MOST_CONST_NAMES") = kMaxConstNames;
  m.def("bound_names", bound_names, nb::arg("pattern"), nb::arg("hidden"));
  m.def(
      "symbolic_rules",
      [] {
        std::vector<PythonRuleSet::Part> parts;
        for (const RuleTable& table : symbolic_tables()) parts.push_back({nb::object(), table});
        return new PythonRuleSet("symbolic", std::move(parts));
      },
      nb::rv_policy::take_ownership);
}

}  // namespace weft::python
