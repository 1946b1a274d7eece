// Rules as text: for the prover, for the documentation, and for people.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rewrite/pattern.h"
#include "rewrite/rule.h"

namespace weft {

// A pattern as one expression that a program reads:
//   (add (mul x c0) c1)                     ops in lower case, names as in the rule
//   0  -1  -0.0                             literals; a float has a point, an exponent or a letter
//   ({add mul} x y)                         a set of ops
//   (nonconst x)  (as w (add x y))  (either a b)  (fold e)  (lower x)  (upper x)  rest
//   x:index  (add x y):int|uint             only these dtypes
std::string sexpr_of(const Pattern& p);

// A rule as a person writes it:
//   x // c0 -> 0  when lower(x) > -1 and upper(x) < c0
//   (x + c0) + y -> (x + y) + c0  (y not constant)
//   x + y -> C++
std::string infix_of(const Rule& rule);

// The classes of a set, among index, int, uint, bool and float; the dtypes of a class of which the
// set has only a part, by their own names.
std::vector<std::string> class_names(DTypeSet set);

// The file of a rule from the root of the repository: src/symbolic/fold.cpp.
std::string source_file_of(const Rule& rule);

// A JSON list of {table, domain, name, file, line, declarative, lhs, rhs, when, dtypes}: the
// patterns as sexpr_of() writes them or null where there is none, dtypes by the names that are
// limited to some.
std::string rules_json(std::span<const RuleTable> tables);

}  // namespace weft
