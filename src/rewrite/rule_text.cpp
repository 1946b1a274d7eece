// Walks the cells of a pattern in pre-order; patterns are short, so each walk is one recursion.
#include "rewrite/rule_text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "ir/dtype.h"
#include "ir/op.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"

namespace weft {
namespace {

// ---- leaves

std::string lower_case(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = char(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return out;
}

std::string name_of_cell(const Cell& c) {
  constexpr std::array<std::string_view, kMaxNodeNames> nodes = {"x", "y", "z", "w", "u", "v"};
  if (c.kind == CellKind::kConst) return fmt::format("c{}", c.slot);
  if (c.kind == CellKind::kRest) return "rest";
  return std::string(nodes.at(c.slot));
}

std::string literal_text(const Cell& c) {
  if (c.kind == CellKind::kLiteral) return fmt::format("{}", int64_t(c.value));
  std::string text = fmt::format("{}", std::bit_cast<double>(c.value));
  if (text.find_first_of(".einf") == std::string::npos) text += ".0";
  return text;
}

// The name of an op, or the list of a set.
std::string op_text(const Cell& c) {
  if (c.kind == CellKind::kOp) return lower_case(name_of(c.op));
  std::vector<std::string> names;
  for (size_t o = 0; o < kOpCount; o++) {
    if (c.ops.has(Op(o))) names.push_back(lower_case(name_of(Op(o))));
  }
  return names.size() == 1 ? names[0] : fmt::format("{{{}}}", fmt::join(names, " "));
}

bool is_named_op(const Cell& c) {
  return (c.kind == CellKind::kOp || c.kind == CellKind::kOpSet) && c.slot != kNoSlot;
}

// ---- s-expressions

std::string sexpr(const Cell*& at) {
  const Cell& c = *at++;
  auto list = [&](std::string_view head) {
    std::string out = fmt::format("({}", head);
    for (int i = 0; i < c.arity; i++) out += " " + sexpr(at);
    return out + ")";
  };
  std::string out;
  switch (c.kind) {
    case CellKind::kNode:
    case CellKind::kConst:
    case CellKind::kRest: out = name_of_cell(c); break;
    case CellKind::kNonConst: out = fmt::format("(nonconst {})", name_of_cell(c)); break;
    case CellKind::kLower: out = fmt::format("(lower {})", name_of_cell(c)); break;
    case CellKind::kUpper: out = fmt::format("(upper {})", name_of_cell(c)); break;
    case CellKind::kLiteral:
    case CellKind::kDouble: out = literal_text(c); break;
    case CellKind::kEither: out = list("either"); break;
    case CellKind::kFold: out = list("fold"); break;
    case CellKind::kOp:
    case CellKind::kOpSet:
      out = list(op_text(c));
      if (is_named_op(c)) out = fmt::format("(as {} {})", name_of_cell(c), out);
      break;
  }
  if (c.dtypes != kAnyDType) out += fmt::format(":{}", fmt::join(class_names(c.dtypes), "|"));
  return out;
}

// ---- infix

enum class Use : uint8_t { kValue, kCondition };

struct Infix {
  Op op;
  std::string_view text;
  int precedence;  // higher binds tighter
};
constexpr int kUnary = 10, kAtom = 100;
// Conditions join truth values, patterns bits.
constexpr Infix kJoins[] = {{Op::AND, " and ", 2}, {Op::OR, " or ", 1}};
constexpr Infix kInfix[] = {
    {Op::MUL, " * ", 9},    {Op::FDIV, " / ", 9},   {Op::IDIV, " // ", 9}, {Op::MOD, " % ", 9},
    {Op::ADD, " + ", 8},    {Op::SUB, " - ", 8},    {Op::SHL, " << ", 7},  {Op::SHR, " >> ", 7},
    {Op::AND, " & ", 6},    {Op::XOR, " ^ ", 6},    {Op::OR, " | ", 6},    {Op::CMPLT, " < ", 3},
    {Op::CMPEQ, " == ", 3}, {Op::CMPNE, " != ", 3},
};
const Infix* find(std::span<const Infix> table, Op op) {
  const auto at = std::ranges::find(table, op, &Infix::op);
  return at == table.end() ? nullptr : &*at;
}
const Infix* infix_of(const Cell& c, Use use) {
  if (c.kind != CellKind::kOp || c.arity != 2) return nullptr;
  const Infix* join = use == Use::kCondition ? find(kJoins, c.op) : nullptr;
  return join != nullptr ? join : find(kInfix, c.op);
}

struct Text {
  std::string text;
  int precedence = kAtom;
  bool is_number = false;
  const Infix* joins = nullptr;  // `and` or `or`

  // In a place where only what binds tighter than `than` stands bare.
  std::string below(int than) const { return precedence > than ? text : fmt::format("({})", text); }
};

Text infix(const Cell*& at, Use use) {
  const Cell& c = *at++;
  if (const Infix* op = infix_of(c, use)) {
    const Text left = infix(at, use), right = infix(at, use);
    if (c.op == Op::CMPLT && left.is_number) {  // 0 < x reads better as x > 0
      return {fmt::format("{} > {}", right.below(op->precedence), left.text), op->precedence};
    }
    // a and b and c; values keep their grouping, which the pattern means
    const bool chains = left.joins == op;
    const std::string text = fmt::format("{}{}{}", chains ? left.text : left.below(op->precedence),
                                         op->text, right.below(op->precedence));
    if (is_named_op(c)) return {fmt::format("as({}, {})", name_of_cell(c), text)};
    return {text, op->precedence, false, use == Use::kCondition ? find(kJoins, c.op) : nullptr};
  }
  if (c.kind == CellKind::kOp && (c.op == Op::NEG || c.op == Op::NOT)) {
    const std::string_view sign = c.op == Op::NEG ? "-" : use == Use::kCondition ? "not " : "!";
    return {fmt::format("{}{}", sign, infix(at, use).below(kUnary)), kUnary};
  }
  switch (c.kind) {
    case CellKind::kNode:
    case CellKind::kNonConst:
    case CellKind::kConst: return {name_of_cell(c)};
    case CellKind::kRest: return {"rest..."};
    case CellKind::kLower: return {fmt::format("lower({})", name_of_cell(c))};
    case CellKind::kUpper: return {fmt::format("upper({})", name_of_cell(c))};
    case CellKind::kLiteral:
    case CellKind::kDouble: return {literal_text(c), kAtom, true};
    default: break;
  }
  std::vector<std::string> arguments;
  arguments.reserve(c.arity);
  for (int i = 0; i < c.arity; i++) arguments.push_back(infix(at, use).text);
  const std::string head = c.kind == CellKind::kFold     ? "fold"
                           : c.kind == CellKind::kEither ? "either"
                                                         : op_text(c);
  const std::string text = fmt::format("{}({})", head, fmt::join(arguments, ", "));
  return {is_named_op(c) ? fmt::format("as({}, {})", name_of_cell(c), text) : text};
}

std::string infix_of(const Pattern& p, Use use) {
  const Cell* at = p.begin();
  return infix(at, use).text;
}

// "x: index", "y not constant"
std::vector<std::string> notes_of(const Pattern& p) {
  std::vector<std::string> notes;
  for (size_t i = 0; i < p.size; i++) {
    const Cell& c = p.cells[i];
    if (c.kind == CellKind::kNonConst) notes.push_back(name_of_cell(c) + " not constant");
    if (c.dtypes == kAnyDType) continue;
    const Cell* at = &c;
    notes.push_back(
        fmt::format("{}: {}", infix(at, Use::kValue).text, fmt::join(class_names(c.dtypes), ", ")));
  }
  return notes;
}

}  // namespace

std::string sexpr_of(const Pattern& p) {
  const Cell* at = p.begin();
  return sexpr(at);
}

std::string infix_of(const Rule& rule) {
  std::string out = infix_of(rule.lhs, Use::kValue) + " -> ";
  out += rule.body != nullptr ? "C++" : infix_of(rule.rhs, Use::kValue);
  if (!rule.cond.empty()) out += "  when " + infix_of(rule.cond, Use::kCondition);
  if (rule.test != nullptr) out += "  when C++ says so";
  const std::vector<std::string> notes = notes_of(rule.lhs);
  if (!notes.empty()) out += fmt::format("  ({})", fmt::join(notes, "; "));
  return out;
}

std::vector<std::string> class_names(DTypeSet set) {
  struct Class {
    std::string_view name;
    DTypeSet dtypes;
  };
  constexpr Class classes[] = {{"index", kIndexes},
                               {"int", kSignedInts},
                               {"uint", kUnsignedInts},
                               {"bool", kBools},
                               {"float", kFloats}};
  std::vector<std::string> names;
  for (const Class& c : classes) {
    if ((set & c.dtypes) == c.dtypes) {
      names.emplace_back(c.name);
      continue;
    }
    for (int s = 0; s < kScalarCount; s++) {
      const DTypeSet one = set_of(Scalar(s));
      if (set & c.dtypes & one) names.push_back(DType{Scalar(s)}.name());
    }
  }
  return names;
}

std::string source_file_of(const Rule& rule) {
  const std::string_view file = rule.file;
  for (const std::string_view folder : {"/src/", "/tests/"}) {
    const size_t at = file.rfind(folder);
    if (at != std::string_view::npos) return std::string(file.substr(at + 1));
  }
  return std::string(file);
}

std::string rules_json(std::span<const RuleTable> tables) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  auto text = [](const Pattern& p) {
    return p.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(sexpr_of(p));
  };
  for (const RuleTable& table : tables) {
    for (const Rule& rule : table.rules) {
      nlohmann::ordered_json dtypes = nlohmann::ordered_json::object();
      for (size_t i = 0; i < rule.lhs.size; i++) {
        const Cell& c = rule.lhs.cells[i];
        if (c.dtypes != kAnyDType && c.slot != kNoSlot) {
          dtypes[name_of_cell(c)] = class_names(c.dtypes);
        }
      }
      all.push_back({{"table", table.name},
                     {"domain", class_names(table.domain)},
                     {"name", rule.name},
                     {"file", source_file_of(rule)},
                     {"line", rule.line},
                     {"declarative", rule.is_declarative()},
                     {"lhs", text(rule.lhs)},
                     {"rhs", text(rule.rhs)},
                     {"when", text(rule.cond)},
                     {"dtypes", dtypes}});
    }
  }
  return all.dump(1);
}

}  // namespace weft
