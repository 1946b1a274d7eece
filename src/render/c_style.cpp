// Statements of a C-like language.
#include "render/c_style.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scalar.h"
#include "render/renderer.h"

namespace weft {
namespace {

constexpr size_t kLongestFold = 64;    // characters of an expression without a name,
constexpr size_t kLongestStored = 96;  // and of one that is all that a statement stores

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return out;
}

bool has_mask(UOp n) {
  const size_t gate = n.is(Op::LOAD) ? 1 : 2;
  return n.src_count() > gate && n.src(gate).dtype().is_vector();
}

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) found++;
  return found;
}

// The other operand gives a small literal its type.
bool is_plain(UOp n, size_t i, const CRow& r) {
  const UOp c = n.src(i);
  if (!r.is_plain || n.src_count() != 2 || n.src(1 - i).is_const() || !c.is_const()) return false;
  return c.dtype().is_int() && !c.dtype().is_vector() && c.bits() <= uint64_t(INT32_MAX);
}
std::string plain_number(UOp c) { return fmt::format("{}", c.const_int()); }

}  // namespace

std::string c_integer(DType t, uint64_t bits, std::string_view suffix_of_64_bits) {
  const std::string_view suffix = t.bits() == 64 ? suffix_of_64_bits : "";
  if (t.is_unsigned()) return fmt::format("{}u{}", bits, suffix);
  const auto value = int64_t(bits);
  if (t.bits() >= 32 && bits == least_bits(t)) {  // -2147483648 is no literal
    return fmt::format("(-{}{} - 1)", -(value + 1), suffix);
  }
  return fmt::format("{}{}", value, suffix);
}

// Short decimals for numbers that are one, else the digits of the bits.
std::string c_float(DType t, uint64_t bits) {
  const char* suffix = t.scalar == Scalar::kFloat32 ? "f" : "";
  const double value = double_of_bits(t, bits), scaled = value * 64;
  if (std::fabs(value) < 1e6 && scaled == std::floor(scaled)) {
    std::string text = fmt::format("{}", value);
    if (text.find('.') == std::string::npos) text += ".0";
    return text + suffix;
  }
  return fmt::format("{:a}{}", value, suffix);
}

CStyleRenderer::CStyleRenderer(UOp linear) : Renderer(linear) {}

// ---------------------------------------------------------------------------------------- folding

// A value that is read once, in its own block, stands in the expression that reads it, unless
// memory or the register that it reads may change in between. What folds into a folded value moves
// with it.
void CStyleRenderer::find_folds() {
  const std::span<const UOp> list = linear_.srcs();
  std::unordered_map<UOp, size_t> reader;
  std::vector<size_t> block(list.size()), stores(list.size() + 1);
  std::unordered_map<UOp, std::vector<size_t>> writes;  // of a register
  std::vector<size_t> open{0};
  for (size_t p = 0, last = 0; p < list.size(); p++) {
    const UOp n = list[p];
    for (size_t i = 0; i < n.src_count(); i++) {
      if (reads_source(n, i)) reader[n.src(i)] = p;
    }
    if (n.is(Op::END)) open.resize(open.size() - (n.src_count() - 1));
    if (n.is(Op::ENDIF)) open.pop_back();
    block[p] = open.back();
    if (n.is(Op::RANGE) || n.is(Op::IF)) open.push_back(++last);
    const bool writes_register = n.is(Op::STORE) && n.src(0).dtype().space == AddrSpace::kNone;
    const UOp target = n.is(Op::STORE) ? place_of(n.src(0)).base : UOp();
    if (writes_register) writes[target].push_back(p);
    const bool writes_memory =
        n.is(Op::STORE) && (!writes_register || target.is(Op::DEFINE_GLOBAL));
    // A block in between may hold stores: it counts as one itself. At a barrier others store.
    const bool opens = n.is(Op::RANGE) || n.is(Op::IF);
    stores[p + 1] = stores[p] + (writes_memory || opens || n.is(Op::BARRIER) ? 1 : 0);
    if (opens) {
      for (UOp r : signature_.registers) writes[r].push_back(p);
    }
  }
  std::unordered_map<UOp, size_t> place;  // where a value is computed at the latest
  for (size_t p = list.size(); p-- > 0;) {
    const UOp n = list[p];
    place[n] = p;
    if (uses(n) != 1 || n.is(Op::RANGE)) continue;
    const UOp user = list[reader[n]];
    if (block[reader[n]] != block[p] || !may_fold_into(n, user)) continue;
    const size_t at = place[user];
    if (n.is(Op::LOAD) && stores[at] != stores[p]) continue;
    if (n.is(Op::AFTER) && is_register(n)) {
      const UOp reg = place_of(n).base;
      if (!reg.is(Op::DEFINE_REG)) continue;
      const std::vector<size_t>& w = writes[reg];
      const auto first = std::upper_bound(w.begin(), w.end(), p);
      if (first != w.end() && *first < at) continue;
    }
    folds_[n] = user;
    place[n] = at;
  }
}

bool CStyleRenderer::may_fold_into(UOp n, UOp user) {
  if (n.dtype().is_pointer()) return true;  // an address
  const bool is_statement = user.is(Op::AFTER) || user.is(Op::RANGE) || user.is(Op::GEP);
  if (is_statement) return false;
  if (user.is(Op::LOAD) || user.is(Op::STORE)) return !has_mask(user);
  if (user.is(Op::INDEX)) return uses(user) == 1;
  if (!is_elementwise(user.op())) return true;
  const CRow r = row(user);
  for (size_t i = 0; i < user.src_count(); i++) {
    const std::string_view text =
        user.dtype().is_vector() && r.vector.size() > 1 ? r.vector : r.text;
    const bool by_lane = user.src(i).dtype().is_vector() && r.vector.empty();
    if (user.src(i) == n) return by_lane || count(text, fmt::format("${}", i)) == 1;
  }
  return false;
}

void CStyleRenderer::define(UOp n, std::string text, Precedence precedence) {
  const auto fold = folds_.find(n);
  const size_t most =
      fold != folds_.end() && fold->second.is(Op::STORE) ? kLongestStored : kLongestFold;
  if (fold != folds_.end() && text.size() <= most) {
    precedence_[n] = precedence;
    return bind(n, std::move(text));
  }
  const std::string name = unique(next("t"));
  line(fmt::format("{} {} = {};", type(n.dtype()), name, text));
  bind(n, name);
}

// ------------------------------------------------------------------------------------- statements

void CStyleRenderer::open_loop(UOp range) {
  const std::string name = unique(fmt::format("r{}", range.range_id()));
  const std::string t = type(range.dtype());
  if (range.axis() == AxisType::kThread) {
    line(fmt::format("for ({0} {1} = ({0})first; {1} < ({0})last; {1}++) {{", t, name));
  } else {
    const UOp size = range.src(0);
    const std::string end =
        size.is_const() ? fmt::format("{}", size.const_int()) : operand(size, kShift);
    line(fmt::format("for ({0} {1} = 0; {1} < {2}; {1}++) {{", t, name, end));
  }
  bind(range, name);
  depth_++;
}

void CStyleRenderer::close_loop(UOp) {
  depth_--;
  line("}");
}

void CStyleRenderer::open_if(UOp n) {
  line(fmt::format("if ({}) {{", text(n.src(0))));
  depth_++;
}

void CStyleRenderer::close_if(UOp) {
  depth_--;
  line("}");
}

void CStyleRenderer::read_register(UOp after, UOp reg) { define(after, text(reg), kAtom); }

void CStyleRenderer::write_register(UOp store, UOp reg) {
  line(fmt::format("{} = {};", text(reg), text(store.src(1))));
}

void CStyleRenderer::address(UOp n) {
  UOp i = n.src(1);
  std::string index = text(i);
  const int lanes = n.dtype().lanes;
  if (lanes > 1) {
    index = fmt::format("{} * {}", operand(i, kProduct), lanes);
  }
  const bool is_atom = lanes == 1 && (i.is_const() || !folds_.contains(i));
  if (uses(n) > 1 && !is_atom) {
    const std::string name = unique(next("t"));
    line(fmt::format("{} {} = {};", type(i.dtype()), name, index));
    index = name;
  }
  addresses_[n] = {text(n.src(0)), index};
  bind(n, fmt::format("({} + {})", text(n.src(0)), index));
}

namespace {

UOp without_casts(UOp pointer) {
  while (pointer.is(Op::AFTER) || pointer.is(Op::CAST)) pointer = pointer.src(0);
  return pointer;
}

}  // namespace

std::string CStyleRenderer::start_of(UOp pointer) { return text(without_casts(pointer)); }

std::string CStyleRenderer::element(UOp pointer) {
  const UOp at = without_casts(pointer);
  const auto found = addresses_.find(at);
  if (found == addresses_.end()) return fmt::format("{}[0]", text(at));
  return fmt::format("{}[{}]", found->second.base, found->second.index);
}

std::string CStyleRenderer::lane_of(UOp pointer, std::string_view lane) {
  return fmt::format("{}[{}]", text(pointer), lane);
}

std::string CStyleRenderer::read_vector(UOp pointer) {
  return fmt::format("*({}*){}", memory_type(pointer.dtype().pointee()), start_of(pointer));
}

std::string CStyleRenderer::write_vector(UOp pointer, const std::string& value) {
  return fmt::format("{} = {};", read_vector(pointer), value);
}

void CStyleRenderer::load(UOp n) {
  if (has_mask(n)) return bind(n, masked_load(n));
  const bool is_vector = n.dtype().is_vector();
  const std::string at = is_vector ? read_vector(n.src(0)) : element(n.src(0));
  if (n.src_count() == 1) return define(n, at, is_vector ? kPrefix : kPostfix);
  const std::string t = type(n.dtype());
  const bool is_cast = is_vector && t != memory_type(n.dtype());  // both ways give one type
  define(n,
         fmt::format("{} ? {} : {}", operand(n.src(1), kBits),
                     is_cast ? fmt::format("({}){}", t, at) : at, operand(n.src(2), kChoice)),
         kChoice);
}

void CStyleRenderer::store(UOp n) {
  if (has_mask(n)) return masked_store(n);
  const std::string value = text(n.src(1));
  const std::string write = n.src(1).dtype().is_vector()
                                ? write_vector(n.src(0), value)
                                : fmt::format("{} = {};", element(n.src(0)), value);
  if (n.src_count() == 2) return line(write);
  line(fmt::format("if ({}) {}", text(n.src(2)), write));
}

std::string CStyleRenderer::masked_load(UOp n) {
  const std::string gate = named(n.src(1)), name = unique(next("t"));
  line(fmt::format("{} {} = {};", type(n.dtype()), name, text(n.src(2))));
  line(fmt::format("for (int k = 0; k < {}; k++) if ({}[k]) {}[k] = {};", n.dtype().lanes, gate,
                   name, lane_of(n.src(0), "k")));
  return name;
}

// A vector whose lanes can be taken: constants have no name of their own.
std::string CStyleRenderer::named(UOp vector) {
  if (!vector.is_const()) return text(vector);
  const std::string name = unique(next("t"));
  line(fmt::format("{} {} = {};", type(vector.dtype()), name, text(vector)));
  return name;
}

void CStyleRenderer::masked_store(UOp n) {
  const std::string from = named(n.src(1)), gate = named(n.src(2));
  line(fmt::format("for (int k = 0; k < {}; k++) if ({}[k]) {} = {}[k];", n.src(1).dtype().lanes,
                   gate, lane_of(n.src(0), "k"), from));
}

// ------------------------------------------------------------------------------------- values

void CStyleRenderer::value(UOp n) {
  if (n.is(Op::VECTORIZE)) return define(n, vectorize(n), kPostfix);
  if (n.is(Op::GEP)) return define(n, shuffle(n), kPostfix);
  const CRow r = row(n);
  if (r.text.empty()) no_text(n);
  const DType source = n.srcs().back().dtype();
  const bool is_vector = n.dtype().is_vector();
  const bool by_lane = is_vector && r.vector.empty();
  std::vector<std::string> operands;
  for (size_t i = 0; i < n.src_count(); i++) {
    const auto least = Precedence(by_lane                     ? kAny
                                  : i == 0 || r.takes == kAny ? r.takes
                                                              : r.takes + 1);
    operands.push_back(is_plain(n, i, r) ? plain_number(n.src(i)) : operand(n.src(i), least));
  }
  if (by_lane) return define(n, call_by_lane(n, r, operands), kPostfix);
  const std::string_view pattern = is_vector && r.vector != "=" ? r.vector : r.text;
  const std::string_view body = is_vector ? r.vector_body : r.body;
  std::string out = fill(pattern, n, operands, n.dtype(), source);
  if (!body.empty()) define_function(out.substr(0, out.find('(')), n, body, n.dtype(), source);
  define(n, std::move(out), r.gives);
}

// The function that a row's text calls: on n's operands, or on one lane of them.
void CStyleRenderer::define_function(const std::string& name, UOp n, std::string_view body,
                                     DType result, DType source) {
  std::string parameters;
  for (size_t i = 0; i < n.src_count(); i++) {
    const DType t = n.src(i).dtype();
    parameters += fmt::format("{}{} {}", i > 0 ? ", " : "", type(t.vec(result.lanes)), "abc"[i]);
  }
  const std::string_view gap = body.starts_with('\n') ? "" : " ";  // lines of its own, or one line
  function(name,
           fmt::format("{0} {1} {2}({3}) {{{5}{4}{5}}}\n", function_start(), type(result), name,
                       parameters, fill(body, n, {"a", "b", "c"}, result, source), gap));
}

// A function that does what the row says of one lane to all of them.
std::string CStyleRenderer::call_by_lane(UOp n, const CRow& r,
                                         const std::vector<std::string>& operands) {
  const DType source = n.srcs().back().dtype();
  std::string name = lower_case(name_of(n.op())) + "_" + type(source), parameters, arguments;
  std::vector<std::string> lanes;
  for (size_t i = 0; i < n.src_count(); i++) {
    const char* comma = i > 0 ? ", " : "";
    parameters += fmt::format("{}{} {}", comma, type(n.src(i).dtype()), "abc"[i]);
    arguments += comma + operands[i];
    lanes.push_back(fmt::format("{}[k]", "abc"[i]));
  }
  const std::string lane = fill(r.text, n, lanes, n.dtype().element(), source.element());
  if (!r.body.empty()) {
    const std::string one = lane.substr(0, lane.find('('));
    define_function(one, n, r.body, n.dtype().element(), source.element());
    name = fmt::format("{}_x{}", one, source.lanes);
  }
  const std::string t = type(n.dtype());
  function(name, fmt::format("static inline {0} {1}({2}) {{\n  {0} r;\n"
                             "  for (int k = 0; k < {3}; k++) r[k] = {4};\n  return r;\n}}\n",
                             t, name, parameters, n.dtype().lanes, lane));
  return fmt::format("{}({})", name, arguments);
}

std::string CStyleRenderer::operand(UOp n, Precedence least) {
  const auto found = precedence_.find(n);
  const std::string t = text(n);
  const bool is_negative = n.is_const() && t.starts_with('-');
  const Precedence has = found != precedence_.end() ? found->second : is_negative ? kPrefix : kAtom;
  return has < least ? fmt::format("({})", t) : t;
}

std::string CStyleRenderer::fill(std::string_view pattern, UOp n,
                                 const std::vector<std::string>& operands, DType result,
                                 DType source) {
  const int bits = source.bits();
  const bool is_wide = bits == 64;
  const auto word = [&](bool is_signed, int width) {
    const int step = width == 8 ? 0 : width == 16 ? 1 : width == 32 ? 2 : 3;
    const Scalar first = is_signed ? Scalar::kInt8 : Scalar::kUInt8;
    return DType{Scalar(int(first) + step), AddrSpace::kNone, result.lanes};
  };
  const int width = source.is_bool() ? 8 : bits;
  const char* suffix = source.scalar == Scalar::kFloat32 ? "f" : "";
  std::string out;
  for (size_t i = 0; i < pattern.size(); i++) {
    if (pattern[i] != '$') {
      out += pattern[i];
      continue;
    }
    switch (pattern[++i]) {
      case 'T': out += type(result); break;
      case 's': out += type(source); break;
      case 'U': out += type(word(false, result.is_vector() || is_wide ? width : 32)); break;
      case 'M': out += type(word(true, width)); break;
      case 'W': out += std::to_string(width); break;
      case 'f': out += suffix; break;
      case 'l': out += fmt::format("-0x1p{}{}", result.bits() - 1, suffix); break;
      case 'h':
        out += fmt::format("0x1p{}{}", result.bits() - (result.is_signed() ? 1 : 0), suffix);
        break;
      case 'm': out += integer(result.element(), least_bits(result)); break;
      case 'g': out += integer(result.element(), greatest_bits(result)); break;
      case 'c': out += fmt::format("{}", n.src(1).const_int()); break;
      default: out += operands[size_t(pattern[i] - '0')];
    }
  }
  return out;
}

// -------------------------------------------------------------------------------------- text

void CStyleRenderer::line(std::string_view text) {
  body_.append(size_t(depth_) * 2, ' ');
  body_ += text;
  body_ += '\n';
}

void CStyleRenderer::function(const std::string& name, const std::string& text) {
  if (defined_.insert(name).second) functions_ += text;
}

}  // namespace weft
