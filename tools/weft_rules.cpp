// Prints the rules of the simplifier.
//
//   weft_rules                    all of them, as JSON (see rewrite/rule_text.h)
//   weft_rules --wrong            rules that are wrong on purpose, for the tests of the prover
//   weft_rules --markdown         docs/rules.md
//   weft_rules --scalar-samples   what ops give on sample values: a JSON list of
//                                 [op, dtype, dtype of the result, operands, result or null]
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "../tests/rules/wrong_rules.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "rewrite/rule.h"
#include "rewrite/rule_text.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

// ---- documentation

// A cell of a table: a bar would end it.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string markdown(std::span<const RuleTable> tables) {
  size_t declarative = 0, all = 0;
  std::string body;
  for (const RuleTable& table : tables) {
    body += fmt::format("\n## {}\n\nOn {}, in `{}`.\n\n", table.name,
                        fmt::join(class_names(table.domain), ", "),
                        source_file_of(table.rules.front()));
    body += "| rule | form | status |\n| --- | --- | --- |\n";
    for (const Rule& rule : table.rules) {
      body += fmt::format("| {} | `{}` | {} |\n", rule.name, cell(infix_of(rule)),
                          rule.is_declarative() ? "proved" : "C++ body, property-tested");
      declarative += rule.is_declarative() ? 1 : 0;
      all++;
    }
  }
  return fmt::format(
             "# The rules of the simplifier\n\n"
             "`weft_rules --markdown` wrote this page from the tables in `src/symbolic/`; a test "
             "keeps "
             "it current.\n\n"
             "{} rules: {} are data and proved by Z3 for every dtype of their table "
             "(`tests/rules/test_prove.py`), {} have a body in C++ and a property test "
             "(`tests/rules/body_rules.cpp`).\n\n"
             "`x y z w u v` are nodes, `c0 c1 c2 c3` constants. `//` and `%` round down, x // 0 is "
             "0 "
             "and x % 0 is x. `fold(e)` is computed when the rule applies, in the dtype of its "
             "names; "
             "`lower(x)` and `upper(x)` are proven bounds of x. Operands of `+ * & | ^ == != min "
             "max` "
             "match in both orders. A table holds for the dtypes of the last source of the node "
             "matched: of a comparison its operands, of `where` its values.\n",
             all, declarative, all - declarative) +
         body;
}

// ---- scalar samples

constexpr DType kSampled[] = {
    dtypes::index,       dtypes::int8,    dtypes::int16,    dtypes::int32,   dtypes::int64,
    dtypes::uint8,       dtypes::uint16,  dtypes::uint32,   dtypes::uint64,  dtypes::bool_,
    dtypes::float8_e5m2, dtypes::float16, dtypes::bfloat16, dtypes::float32, dtypes::float64};
// The transcendental ops have no exact model, and THREEFRY has no rules.
constexpr OpSet kNotSampled = {Op::EXP2, Op::LOG2, Op::EXP,     Op::LOG,     Op::SIN,
                               Op::COS,  Op::CAST, Op::BITCAST, Op::THREEFRY};
constexpr OpSet kFloatOps = {Op::FDIV, Op::RECIP, Op::SQRT};

class Samples {
 public:
  nlohmann::json all() {
    for (const DType type : kSampled) {
      const std::vector<uint64_t> values = values_of(type);
      for (size_t o = 0; o < kOpCount; o++) {
        const Op op = Op(o);
        const bool has_model = is_elementwise(op) && !kNotSampled.has(op);
        if (has_model && (type.is_float() || !kFloatOps.has(op))) add_op(op, type, values);
      }
      for (const DType to : kSampled) {
        for (const uint64_t v : values) add(Op::CAST, type, to, std::array{v});
      }
    }
    return out_;
  }

 private:
  uint64_t random() { return state_ = state_ * 6364136223846793005u + 1442695040888963407u; }

  // The ends, what is around zero, the width, and some others.
  std::vector<uint64_t> values_of(DType type) {
    std::vector<uint64_t> values;
    if (type.is_bool()) return {0, 1};
    if (type.is_float()) {
      for (const double d : {0.0, -0.0, 1.0, -1.5, 2.5, 0.1, 1e30, -1e-30, 300.0}) {
        values.push_back(bits_of_double(type, d));
      }
      for (const char* text : {"inf", "-inf", "nan"}) values.push_back(*parse_bits(type, text));
      values.push_back(1);  // the smallest above 0
    } else {
      for (const int64_t i : {0, 1, -1, 3, -7, type.bits() - 1, type.bits()}) {
        values.push_back(bits_of_int(type, i));
      }
      values.push_back(least_bits(type));
      values.push_back(greatest_bits(type));
    }
    const int shift = 64 - type.bits();
    for (int i = 0; i < 3; i++) {
      const uint64_t bits = random() >> shift;
      values.push_back(type.is_float() ? bits : bits_of_uint(type, bits));
    }
    return values;
  }

  void add_op(Op op, DType type, std::span<const uint64_t> values) {
    const DType result = yields_bool(op) ? dtypes::bool_ : type;
    if (info(op).least_sources == 1) {
      for (const uint64_t a : values) add(op, type, result, std::array{a});
    } else if (info(op).least_sources == 2) {
      for (const uint64_t a : values) {
        for (const uint64_t b : values) add(op, type, result, std::array{a, b});
      }
    } else {
      for (const uint64_t a : values) {
        const uint64_t b = values[random() % values.size()], c = values[random() % values.size()];
        add(op, type, result, std::array{op == Op::WHERE ? random() & 1 : a, b, c});
      }
    }
  }

  template <size_t n>
  void add(Op op, DType type, DType result, const std::array<uint64_t, n>& operands) {
    const std::optional<uint64_t> bits = evaluate_scalar(op, type, result, operands);
    if (!bits && !type.is_index())
      return;  // no op of this dtype; of index, the result leaves 64 bits
    nlohmann::json numbers = nlohmann::json::array();
    for (size_t i = 0; i < n; i++) {
      const bool is_gate = op == Op::WHERE && i == 0;
      numbers.push_back(number(is_gate ? dtypes::bool_ : type, operands[i]));
    }
    std::string name;
    for (const char c : name_of(op)) name += char(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    out_.push_back({name, type.name(), result.name(), numbers,
                    bits ? number(result, *bits) : nlohmann::json()});
  }

  // Integers as their value, floats as their bits.
  static nlohmann::json number(DType type, uint64_t bits) {
    return type.is_signed() ? nlohmann::json(int64_t(bits)) : nlohmann::json(bits);
  }

  nlohmann::json out_ = nlohmann::json::array();
  uint64_t state_ = 1;
};

int run(std::span<char*> arguments) {
  const std::string_view what = arguments.size() > 1 ? arguments[1] : "";
  if (what.empty()) {
    fmt::print("{}\n", rules_json(symbolic_tables()));
  } else if (what == "--wrong") {
    fmt::print("{}\n", rules_json(wrong::kTables));
  } else if (what == "--markdown") {
    fmt::print("{}", markdown(symbolic_tables()));
  } else if (what == "--scalar-samples") {
    fmt::print("{}\n", Samples().all().dump());
  } else {
    fmt::print(stderr, "usage: weft_rules [--wrong | --markdown | --scalar-samples]\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::run({argv, size_t(argc)}); }
