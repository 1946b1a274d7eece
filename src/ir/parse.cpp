// A line at a time: %name = OP dtype (sources) argument.
#include "ir/parse.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"

namespace weft {
namespace {

class LineParser {
 public:
  LineParser(std::string_view text, size_t number) : text_(text), number_(number) {}

  [[noreturn]] void fail(std::string_view expected) const {
    throw ParseError(fmt::format("[parse] line {}, column {}: expected {}\n  {}\n  {:>{}}", number_,
                                 at_ + 1, expected, text_, '^', at_ + 1));
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') at_++;
  }
  bool done() {
    skip_spaces();
    return at_ == text_.size();
  }
  bool accept(std::string_view token) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail(fmt::format("'{}'", token));
  }
  // Up to a character of `stop` or a space.
  std::string_view word(std::string_view stop = "") {
    skip_spaces();
    const size_t start = at_;
    while (at_ < text_.size() && text_[at_] != ' ' &&
           stop.find(text_[at_]) == std::string_view::npos) {
      at_++;
    }
    return text_.substr(start, at_ - start);
  }
  void back_to(size_t at) { at_ = at; }
  size_t position() const { return at_; }
  std::string_view until(char last) {
    skip_spaces();
    const size_t end = text_.find(last, at_);
    if (end == std::string_view::npos) fail(fmt::format("'{}'", last));
    const std::string_view piece = text_.substr(at_, end + 1 - at_);
    at_ = end + 1;
    return piece;
  }

  int64_t integer(std::string_view stop = "") {
    const size_t start = (skip_spaces(), at_);
    const std::string_view digits = word(stop);
    int64_t value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      back_to(start);
      fail("an integer");
    }
    return value;
  }
  std::vector<int64_t> ints() {
    std::vector<int64_t> out;
    expect("[");
    if (accept("]")) return out;
    do out.push_back(integer(",]"));
    while (accept(","));
    expect("]");
    return out;
  }
  std::string quoted() {
    expect("\"");
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] != '\\') {
        out += text_[at_++];
      } else if (text_.substr(at_).starts_with("\\x") && at_ + 4 <= text_.size()) {
        unsigned code = 0;
        const char* last = text_.data() + at_ + 4;
        if (std::from_chars(text_.data() + at_ + 2, last, code, 16).ptr != last) {
          fail("two hexadecimal digits after '\\x'");
        }
        out += char(code);
        at_ += 4;
      } else {
        if (at_ + 1 >= text_.size()) fail("a character after '\\'");
        out += text_[at_ + 1];
        at_ += 2;
      }
    }
    expect("\"");
    return out;
  }
  template <class Parse>
  auto named(std::string_view what, Parse&& parse_name, std::string_view stop = "") {
    const size_t start = (skip_spaces(), at_);
    auto found = parse_name(word(stop));
    if (!found) {
      back_to(start);
      fail(what);
    }
    return *found;
  }
  DType dtype() {
    const size_t start = (skip_spaces(), at_);
    const std::string_view name = text_.substr(at_).starts_with("ptr<") ? until('>') : word();
    const std::optional<DType> found = parse_dtype(name);
    if (!found) {
      back_to(start);
      fail("a dtype");
    }
    return *found;
  }

 private:
  std::string_view text_;
  size_t number_;
  size_t at_ = 0;
};

std::optional<AddrSpace> parse_space(std::string_view name) {
  for (const AddrSpace s : {AddrSpace::kGlobal, AddrSpace::kLocal, AddrSpace::kReg}) {
    if (name_of(s) == name) return s;
  }
  return std::nullopt;
}

UOp parse_node(Arena& arena, LineParser& line, Op op, DType dtype, const std::vector<UOp>& srcs) {
  auto make = [&](const Arg& arg) { return arena.make(op, dtype, srcs, arg); };
  switch (info(op).arg) {
    case ArgKind::None: return make({});
    case ArgKind::Const:
      return make(Arg::bits(line.named(fmt::format("a value of {}", dtype.name()),
                                       [&](std::string_view t) { return parse_bits(dtype, t); })));
    case ArgKind::Int: return make(Arg::integer(line.integer()));
    case ArgKind::Name: return make(Arg::name(line.quoted()));
    case ArgKind::Range: {
      const size_t start = line.position();
      const int64_t id = line.integer(":");
      if (id < 0 || id >= int64_t(1) << 56) {
        line.back_to(start);
        line.fail("a range id from 0 to 2^56 - 1");
      }
      line.expect(":");
      return make(Arg::range(id, line.named("an axis type", parse_axis_type)));
    }
    case ArgKind::Op: return make(Arg::op(line.named("an op", parse_op)));
    case ArgKind::MaybeOp:
      return line.done() ? make({}) : make(Arg::op(line.named("an op", parse_op)));
    case ArgKind::Space: return make(Arg::space(line.named("an address space", parse_space)));
    case ArgKind::Ints: return make(Arg::ints(line.ints()));
    case ArgKind::OpInts: {
      std::vector<int64_t> list{int64_t(line.named("an op", parse_op))};
      for (const int64_t i : line.ints()) list.push_back(i);
      return make(Arg::op_ints(list));
    }
  }
  line.fail("an argument");
}

}  // namespace

UOp parse(Arena& arena, std::string_view text) {
  std::unordered_map<std::string_view, UOp> named;
  UOp last;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view content = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    LineParser line(content, ++number);
    if (line.done() || line.accept("#")) continue;
    if (!line.accept("%")) line.fail("'%' and a name");
    const std::string_view name = line.word("=");
    line.expect("=");
    const Op op = line.named("an op", parse_op);
    const DType dtype = line.dtype();
    std::vector<UOp> srcs;
    if (line.accept("(")) {
      do {
        line.expect("%");
        const size_t start = line.position();
        const auto found = named.find(line.word(",)"));
        if (found == named.end()) {
          line.back_to(start);
          line.fail("the name of an earlier line");
        }
        srcs.push_back(found->second);
      } while (line.accept(","));
      line.expect(")");
    }
    last = parse_node(arena, line, op, dtype, srcs);
    if (!line.done()) line.fail("the end of the line");
    if (!named.emplace(name, last).second) line.fail("a name that no earlier line has");
  }
  if (!last) throw ParseError("[parse] the text has no node");
  return last;
}

}  // namespace weft
