// The exact text form, and Graphviz.
#include "ir/print.h"

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "ir/arena.h"
#include "ir/argument_text.h"
#include "ir/node.h"
#include "ir/scalar.h"
#include "ir/walk.h"

namespace weft {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (std::isprint(static_cast<unsigned char>(c)) != 0) {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return out + '"';
}

std::string list(std::span<const int64_t> ints) {
  return fmt::format("[{}]", fmt::join(ints.begin(), ints.end(), ", "));
}

}  // namespace

std::string argument_text(UOp n) {
  switch (info(n.op()).arg) {
    case ArgKind::None: return "";
    case ArgKind::Const: return text_of_bits(n.dtype(), n.bits());
    case ArgKind::Int: return fmt::format("{}", n.number());
    case ArgKind::Name: return quoted(n.name());
    case ArgKind::Range: return fmt::format("{}:{}", n.range_id(), name_of(n.axis()));
    case ArgKind::Op: return std::string(name_of(n.arg_op()));
    case ArgKind::MaybeOp: return n.arg_word() == 0 ? "" : std::string(name_of(n.arg_op()));
    case ArgKind::Space: return std::string(name_of(n.space()));
    case ArgKind::Ints: return list(n.ints());
    case ArgKind::OpInts: return fmt::format("{} {}", name_of(n.arg_op()), list(n.ints()));
  }
  return "";
}

namespace {

template <class NameSource>
std::string line(UOp n, NameSource&& name_source) {
  std::string out = fmt::format("{} {}", name_of(n.op()), n.dtype().name());
  if (n.src_count() > 0) {
    out += " (";
    std::string_view separator;
    for (UOp s : n.srcs()) {
      out += separator;
      out += name_source(s);
      separator = ", ";
    }
    out += ")";
  }
  const std::string arg = argument_text(n);
  return arg.empty() ? out : out + " " + arg;
}

}  // namespace

std::string print(UOp root) {
  NodeMap numbers(root.arena());
  std::string out;
  uint64_t next = 0;
  for (UOp n : toposort(root)) {
    out += fmt::format("%{} = {}\n", next,
                       line(n, [&](UOp s) { return fmt::format("%{}", numbers.number(s) - 1); }));
    numbers.put_number(n, ++next);
  }
  return out;
}

std::string describe(UOp n) {
  return line(n, [](UOp s) { return short_form(s, 40); });
}

std::string neighbourhood(UOp n) {
  constexpr size_t most = 8;
  std::string out = "  " + describe(n) + "\n";
  for (size_t i = 0; i < n.src_count() && i < most; i++) {
    out += fmt::format("    source {}: {}\n", i, describe(n.src(i)));
  }
  if (n.src_count() > most) out += fmt::format("    ... {} sources\n", n.src_count());
  return out;
}

std::string to_dot(UOp root) {
  constexpr std::string_view colours[] = {"#e8e8e8", "#cfe2f3", "#d9d2e9", "#fff2cc", "#f4cccc",
                                          "#d9ead3", "#d9ead3", "#d9ead3", "#fce5cd"};
  NodeMap numbers(root.arena());
  std::string out =
      "digraph weft {\n  rankdir=BT;\n  node [shape=box, style=\"filled,rounded\", "
      "fontname=\"monospace\"];\n";
  uint64_t next = 0;
  for (UOp n : toposort(root)) {
    std::string label = fmt::format("{}\n{}", name_of(n.op()), n.dtype().name());
    if (const std::string arg = argument_text(n); !arg.empty()) label += "\n" + arg;
    // quoted() writes the line breaks as \x0a: Graphviz wants \n
    const std::string text = quoted(label);
    std::string escaped;
    for (size_t from = 0, at = 0; at != std::string::npos; from = at + 4) {
      at = text.find("\\x0a", from);
      escaped.append(text, from, at - from);
      if (at != std::string::npos) escaped += "\\n";
    }
    out += fmt::format("  n{} [label={}, fillcolor=\"{}\"];\n", next, escaped,
                       colours[size_t(info(n.op()).group)]);
    size_t slot = 0;
    for (UOp s : n.srcs()) {
      out += fmt::format("  n{} -> n{} [label=\"{}\"];\n", numbers.number(s) - 1, next, slot++);
    }
    numbers.put_number(n, ++next);
  }
  return out + "}\n";
}

}  // namespace weft
