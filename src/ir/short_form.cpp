// Expressions the way people write them, with no more parentheses than needed.
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/node.h"
#include "ir/print.h"
#include "ir/scalar.h"

namespace weft {
namespace {

struct Infix {
  std::string_view text;
  int precedence;  // higher binds tighter
};

Infix infix_of(UOp n) {
  if (n.src_count() != 2) return {"", 0};  // illegal, and shown as a call
  switch (n.op()) {
    case Op::MUL: return {"*", 9};
    case Op::FDIV: return {"/", 9};
    case Op::IDIV: return {"//", 9};
    case Op::MOD: return {"%", 9};
    case Op::ADD: return {" + ", 8};
    case Op::SUB: return {" - ", 8};
    case Op::SHL: return {" << ", 7};
    case Op::SHR: return {" >> ", 7};
    case Op::AND: return {" & ", 6};
    case Op::XOR: return {" ^ ", 5};
    case Op::OR: return {" | ", 4};
    case Op::CMPLT: return {" < ", 3};
    case Op::CMPEQ: return {" == ", 3};
    case Op::CMPNE: return {" != ", 3};
    default: return {"", 0};
  }
}

constexpr int kAtom = 100;

// What is left to write: a piece of text, or a node in a place that needs a precedence.
struct Piece {
  std::string text;
  UOp node;
  int needs = 0;
};

std::string leaf(UOp n) {
  switch (n.op()) {
    case Op::CONST: return text_of_bits(n.dtype(), n.bits());
    case Op::VARIABLE:
    case Op::SPECIAL:
    case Op::DEVICE: return std::string(n.name());
    case Op::RANGE: return fmt::format("r{}", n.range_id());
    case Op::BUFFER: return fmt::format("buf{}", n.number());
    case Op::DEFINE_GLOBAL: return fmt::format("data{}", n.number());
    case Op::DEFINE_LOCAL: return fmt::format("local{}", n.number());
    case Op::DEFINE_REG: return fmt::format("reg{}", n.number());
    default: return "";
  }
}

std::string call_name(UOp n) {
  std::string name;
  for (const char c : name_of(n.op())) name += char(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  const ArgKind kind = info(n.op()).arg;
  const bool has_op = kind == ArgKind::MaybeOp && n.arg_word() != 0;
  if (kind == ArgKind::Op || kind == ArgKind::OpInts || has_op)
    name += fmt::format(".{}", name_of(n.arg_op()));
  if (kind == ArgKind::Ints || kind == ArgKind::OpInts) {
    name += fmt::format("[{}]", fmt::join(n.ints().begin(), n.ints().end(), ","));
  }
  if (n.is(Op::CAST) || n.is(Op::BITCAST)) name += "." + n.dtype().name();
  return name;
}

// The pieces of one node, in order.
std::vector<Piece> pieces_of(UOp n, int needs) {
  if (std::string text = leaf(n); !text.empty()) return {{std::move(text), {}, 0}};
  std::vector<Piece> out;
  if (const Infix infix = infix_of(n); infix.precedence > 0) {
    const bool wrap = infix.precedence < needs;
    if (wrap) out.push_back({"(", {}, 0});
    // Comparisons do not chain; the others group to the left.
    const int left = infix.precedence == 3 ? 4 : infix.precedence;
    out.push_back({"", n.src(0), left});
    out.push_back({std::string(infix.text), {}, 0});
    out.push_back({"", n.src(1), infix.precedence + 1});
    if (wrap) out.push_back({")", {}, 0});
    return out;
  }
  const bool subscript = n.is(Op::INDEX) && n.src_count() > 0;
  if (subscript) {
    out.push_back({"", n.src(0), kAtom});
  } else {
    out.push_back({call_name(n), {}, 0});
  }
  out.push_back({subscript ? "[" : "(", {}, 0});
  for (size_t i = subscript ? 1 : 0; i < n.src_count(); i++) {
    if (i > (subscript ? 1u : 0u)) out.push_back({", ", {}, 0});
    out.push_back({"", n.src(i), 0});
  }
  out.push_back({subscript ? "]" : ")", {}, 0});
  return out;
}

}  // namespace

std::string short_form(UOp root, size_t most) {
  std::string out;
  std::vector<Piece> todo{{"", root, 0}};
  while (!todo.empty()) {
    const Piece piece = std::move(todo.back());
    todo.pop_back();
    if (!piece.node) {
      out += piece.text;
    } else if (todo.size() > 4 * most + 64) {  // what is waiting fills the text already
      out += "...";
    } else {
      std::vector<Piece> parts = pieces_of(piece.node, piece.needs);
      todo.insert(todo.end(), std::make_move_iterator(parts.rbegin()),
                  std::make_move_iterator(parts.rend()));
    }
    if (out.size() > most) return out.substr(0, most) + "...";
  }
  return out;
}

}  // namespace weft
