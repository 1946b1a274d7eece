// Rules and rule sets that Python made, on the engine's own.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include "core.h"
#include "rewrite/rule.h"
#include "rewrite/rule_set.h"

namespace weft::python {

// What a keyword of a rule's function is given.
struct Parameter {
  enum Kind : uint8_t { kNode, kConst, kRest, kContext, kRoot } kind;
  uint8_t slot;
};

// A rule with a function of Python, or a replacement that is data. Its address is Rule::data.
struct PythonRule {
  std::string name, file;
  bool is_anonymous = false;  // the name may be changed to be unique in a set
  Rule rule;                  // its strings are the ones above
  nb::object function;
  nb::object keywords;  // a tuple, in the order of `parameters`
  std::vector<Parameter> parameters;
};

// What Python calls a RuleSet. It is built of rules of Python and of tables of C++.
struct PythonRuleSet {
  struct Part {
    nb::object rule;  // a Rule, or nothing
    RuleTable table;  // of C++, when there is no rule
  };
  std::string name;
  std::vector<Part> parts;
  std::deque<std::string> names;  // of anonymous rules
  std::vector<Rule> rules;        // of Python
  std::unique_ptr<RuleSet> set;

  PythonRuleSet(std::string name, std::vector<Part> parts);
  bool has_tables() const { return rules.size() < parts.size(); }
};

// The rules of C++ take for granted what holds at every stage: makes sure of it, each node once.
class LegalNodes {
 public:
  // Throws SpecError when root, or a node under it that was not seen before, is illegal.
  void require(UOp root);

 private:
  std::vector<bool> seen_;  // by id
};

// What runs of graph_rewrite hand to gates and to functions of rules, as Match::context.
struct CallContext {
  nb::object context;
  nb::object gate;
  LegalNodes* legal = nullptr;  // where rules of C++ run beside those of Python
};

}  // namespace weft::python
