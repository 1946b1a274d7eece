// Programs -> PTX. A vector is its lanes: registers of their own, `%f0, %f1` in texts.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "codegen/target.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "render/ptx_ops.h"
#include "render/render.h"
#include "render/renderer.h"
#include "rewrite/pattern.h"

namespace weft {
namespace {

using Lanes = std::vector<std::string>;

constexpr size_t kStaticLocalBytes = 48 << 10;  // past it, local memory is the launch's to give
constexpr size_t kMostMemoryBytes = 16;         // of one access

// Registers by what they hold; integers narrower than 32 bits are in words.
enum class Register : uint8_t { kPredicate, kShort, kWord, kLong, kFloat, kDouble };
struct RegisterKind {
  const char *type, *name;
};
constexpr RegisterKind kRegisters[] = {{"pred", "p"}, {"b16", "h"}, {"b32", "r"},
                                       {"b64", "rd"}, {"f32", "f"}, {"f64", "fd"}};

Register kind_of(DType t) {
  t = held_as(t);
  if (t.is_bool()) return Register::kPredicate;
  if (t.is_float()) return t.bits() == 64 ? Register::kDouble : Register::kFloat;
  return t.bits() == 64 ? Register::kLong : Register::kWord;
}

// s32, u64, f32: the type of instructions on registers that hold a dtype.
std::string type_in_registers(DType t) {
  t = held_as(t);
  return fmt::format("{}{}",
                     t.is_float()    ? 'f'
                     : t.is_signed() ? 's'
                                     : 'u',
                     t.bits() == 64 ? 64 : 32);
}

// u8, s16, b32: the type of a dtype in memory, and what extends it in a register.
std::string type_in_memory(DType t) {
  t = held_as(t);
  if (t.is_bool()) return "u8";
  if (t.bits() >= 32) return fmt::format("b{}", t.bits());
  return fmt::format("{}{}", t.is_signed() ? 's' : 'u', t.bits());
}

std::string literal(DType t, uint64_t bits) {
  t = held_as(t);
  if (t.is_float()) {
    return t.bits() == 64 ? fmt::format("0d{:016X}", bits) : fmt::format("0f{:08X}", bits);
  }
  return t.is_unsigned() ? fmt::format("{}", bits) : fmt::format("{}", int64_t(bits));
}

std::string join(const Lanes& lanes) {
  std::string out;
  for (const std::string& lane : lanes) out += (out.empty() ? "" : ", ") + lane;
  return out;
}

Lanes split(std::string_view text) {
  Lanes out;
  while (true) {
    const size_t cut = text.find(", ");
    out.emplace_back(text.substr(0, cut));
    if (cut == text.npos) return out;
    text.remove_prefix(cut + 2);
  }
}

class PtxRenderer : public Renderer {
 public:
  explicit PtxRenderer(UOp linear) : Renderer(linear) {}

  std::string run(std::string_view name, PtxLevel level) {
    unique(std::string(name));
    bind_arguments();
    walk();
    line("ret;");
    std::string out = fmt::format(".version {}\n.target {}\n.address_size 64\n\n",
                                  level == PtxLevel::kSm90 ? "7.8" : "7.0",
                                  level == PtxLevel::kSm90 ? "sm_90" : "sm_80");
    if (!shared_.empty() && is_dynamic()) out += shared_;
    out += fmt::format(".visible .entry {}({})\n.maxntid {}\n{{\n", name, parameters_, threads());
    for (const auto& [kind, count] : counts_) {
      const RegisterKind& r = kRegisters[size_t(kind)];
      out += fmt::format("  .reg .{} %{}<{}>;\n", r.type, r.name, count);
    }
    if (!is_dynamic()) out += shared_;
    return out + body_ + "}\n";
  }

 protected:
  std::string constant(UOp n) override {
    if (!n.dtype().is_bool()) {
      return join(Lanes(n.dtype().lanes, literal(n.dtype().element(), n.bits())));
    }
    const std::string p = make(Register::kPredicate);
    line(fmt::format("mov.pred {}, {};", p, n.bits() != 0 ? 1 : 0));
    return join(Lanes(n.dtype().lanes, p));
  }

  void open_loop(UOp range) override {
    const std::string i = make(kind_of(range.dtype())), p = make(Register::kPredicate);
    const std::string t = type_in_registers(range.dtype()), size = text(range.src(0));
    const Loop loop{unique(next("loop")), unique(next("done"))};
    loops_.emplace(range, loop);
    line(fmt::format("mov.{} {}, 0;", t, i));
    label(loop.begin);
    line(fmt::format("setp.ge.{} {}, {}, {};", t, p, i, size));
    line(fmt::format("@{} bra {};", p, loop.end));
    bind(range, i);
  }

  void close_loop(UOp range) override {
    const Loop& loop = loops_.at(range);
    line(fmt::format("add.{0} {1}, {1}, 1;", type_in_registers(range.dtype()), text(range)));
    line(fmt::format("bra {};", loop.begin));
    label(loop.end);
  }

  void open_if(UOp n) override {
    ifs_.push_back(unique(next("endif")));
    line(fmt::format("@!{} bra {};", text(n.src(0)), ifs_.back()));
  }

  void close_if(UOp) override {
    label(ifs_.back());
    ifs_.pop_back();
  }

  // A later write does not change what was read.
  void read_register(UOp after, UOp reg) override {
    const DType t = after.dtype();
    if (reg.is(Op::DEFINE_GLOBAL)) return bind(after, join(read({"global", text(reg)}, t, {}, {})));
    const Lanes to = make_lanes(t), from = split(text(reg));
    for (size_t k = 0; k < to.size(); k++) move(t, to[k], from[k]);
    bind(after, join(to));
  }

  void write_register(UOp store, UOp reg) override {
    const DType t = store.src(1).dtype();
    const Lanes from = split(text(store.src(1)));
    if (reg.is(Op::DEFINE_GLOBAL)) return write({"global", text(reg)}, t, from, {});
    const Lanes to = split(text(reg));
    for (size_t k = 0; k < to.size(); k++) move(t, to[k], from[k]);
  }

  void address(UOp n) override {
    UOp i = n.src(1);
    const int64_t bytes = int64_t(n.dtype().item_bytes()) * n.dtype().lanes;
    auto [base, offset] = parts(text(n.src(0)));
    if (i.is(Op::ADD) && i.src(1).is_const() && never_wraps(i)) {
      offset += i.src(1).const_int() * bytes;
      i = i.src(0);
    }
    if (i.is_const()) return bind(n, plus(base, offset + i.const_int() * bytes));
    const std::string at = make(Register::kLong), index = text(i);
    const bool is_long = i.dtype().bits() == 64;
    const char sign = i.dtype().is_unsigned() ? 'u' : 's';
    line(fmt::format("mad.{}.{}{} {}, {}, {}, {};", is_long ? "lo" : "wide", sign,
                     is_long ? 64 : 32, at, index, bytes, base));
    const bool is_near = offset >= INT32_MIN && offset <= INT32_MAX;
    if (is_near) return bind(n, plus(at, offset));
    line(fmt::format("add.s64 {0}, {0}, {1};", at, offset));
    bind(n, at);
  }

  void load(UOp n) override {
    Lanes gates, otherwise;
    if (n.src_count() > 1) {
      gates = split(text(n.src(1)));
      otherwise = split(text(n.src(2)));
    }
    bind(n, join(read(place(n.src(0)), n.dtype(), gates, otherwise)));
  }

  void store(UOp n) override {
    const Lanes value = split(text(n.src(1)));
    write(place(n.src(0)), n.src(1).dtype(), value,
          n.src_count() > 2 ? split(text(n.src(2))) : Lanes{});
  }

  void value(UOp n) override {
    Lanes out;
    if (n.is(Op::VECTORIZE)) {
      for (UOp s : n.srcs()) out.push_back(text(s));
      return bind(n, join(out));
    }
    std::vector<Lanes> operands;
    for (UOp s : n.srcs()) operands.push_back(split(text(s)));
    if (n.is(Op::GEP)) {
      const Lanes& from = operands[0];
      for (const int64_t lane : n.ints()) out.push_back(from.at(size_t(lane)));
      return bind(n, join(out));
    }
    for (size_t k = 0; k < n.dtype().lanes; k++) {
      Lanes lane;
      for (const Lanes& o : operands) lane.push_back(o[k]);
      out.push_back(one_value(n, lane));
    }
    bind(n, join(out));
  }

  void special(UOp n) override {
    const bool is_thread = n.name().starts_with('l');
    const std::string word = make(Register::kWord);
    line(
        fmt::format("mov.u32 {}, %{}.{};", word, is_thread ? "tid" : "ctaid", "xyz"[dimension(n)]));
    if (n.dtype().bits() == 32) return bind(n, word);
    const std::string wide = make(Register::kLong);
    line(fmt::format("cvt.u64.u32 {}, {};", wide, word));
    bind(n, wide);
  }

  void barrier(UOp) override { line("bar.sync 0;"); }

 private:
  struct Loop {
    std::string begin, end;
  };
  struct Address {
    std::string space, at;
    bool is_aligned = true;  // to the whole vector
  };

  static size_t dimension(UOp special) { return size_t(special.name().back() - '0'); }

  // ---------------------------------------------------------------------------------- memory

  Address place(UOp pointer) {
    return {pointer.dtype().space == AddrSpace::kLocal ? "shared" : "global", text(pointer),
            is_aligned(pointer)};
  }

  // `%rd1+16`
  static std::pair<std::string, int64_t> parts(const std::string& at) {
    const size_t cut = at.find('+');
    if (cut == at.npos) return {at, 0};
    return {at.substr(0, cut), std::stoll(at.substr(cut + 1))};
  }
  static std::string plus(const std::string& at, int64_t more) {
    const auto [base, offset] = parts(at);
    return offset + more == 0 ? base : fmt::format("{}+{}", base, offset + more);
  }

  // Neighbours that one access takes: a power of two of them, in 16 bytes at most.
  static size_t together(size_t left, size_t item_bytes) {
    const size_t most = std::min<size_t>(4, kMostMemoryBytes / item_bytes);
    size_t count = 1;
    while (count * 2 <= most && left % (count * 2) == 0) count *= 2;
    return count;
  }

  void access(std::string_view what, const Address& a, std::string_view type, size_t offset,
              const Lanes& registers, const std::string& gate) {
    const std::string at = fmt::format("[{}]", plus(a.at, int64_t(offset)));
    const std::string vector =
        registers.size() > 1 ? fmt::format(".v{}", registers.size()) : std::string();
    std::string values = join(registers);
    if (registers.size() > 1) values = fmt::format("{{{}}}", values);
    const std::string guard = gate.empty() ? "" : fmt::format("@{} ", gate);
    const bool is_load = what == "ld";
    line(fmt::format("{}{}.{}{}.{} {}, {};", guard, what, a.space, vector, type,
                     is_load ? values : at, is_load ? at : values));
  }

  // Elements narrower than a word that fill whole words.
  static bool is_packed(DType t) {
    const int bytes = t.item_bytes();
    return t.is_vector() && bytes < 4 && bytes * t.lanes % 4 == 0;
  }

  // One gate for all lanes, one for each, or none.
  static std::string gate_of(const Lanes& gates, size_t lane) {
    return gates.empty() ? "" : gates[gates.size() > 1 ? lane : 0];
  }

  Lanes read(const Address& a, DType t, const Lanes& gates, const Lanes& otherwise) {
    const size_t bytes = size_t(t.item_bytes());
    const bool by_lane = gates.size() > 1 || !a.is_aligned;
    if (is_packed(t) && !by_lane) return read_packed(a, t, gates, otherwise);
    Lanes held;
    for (size_t k = 0; k < t.lanes; k++) {
      held.push_back(make(t.is_bool() ? Register::kWord : kind_of(t)));
      if (gates.empty()) continue;
      if (t.is_bool()) {
        line(fmt::format("selp.b32 {}, 1, 0, {};", held[k], otherwise[k]));
      } else {
        move(t, held[k], otherwise[k]);
      }
    }
    for (size_t k = 0, count = 1; k < t.lanes; k += count) {
      count = by_lane ? 1 : together(t.lanes, bytes);
      access("ld", a, type_in_memory(t), k * bytes,
             Lanes(held.begin() + ptrdiff_t(k), held.begin() + ptrdiff_t(k + count)),
             gate_of(gates, k));
    }
    return t.is_bool() ? booleans(held) : held;
  }

  Lanes read_packed(const Address& a, DType t, const Lanes& gates, const Lanes& otherwise) {
    const size_t bytes = size_t(t.item_bytes()), words = bytes * t.lanes / 4;
    const std::string gate = gates.empty() ? "" : gates[0];
    Lanes held, out;
    for (size_t w = 0; w < words; w++) {
      held.push_back(make(Register::kWord));
      if (!gates.empty()) line(fmt::format("mov.b32 {}, 0;", held[w]));
    }
    for (size_t w = 0, count = 1; w < words; w += count) {
      count = together(words, 4);
      access("ld", a, "b32", w * 4,
             Lanes(held.begin() + ptrdiff_t(w), held.begin() + ptrdiff_t(w + count)), gate);
    }
    const char sign = held_as(t).is_signed() ? 's' : 'u';
    for (size_t k = 0; k < t.lanes; k++) {
      out.push_back(make(Register::kWord));
      line(fmt::format("bfe.{}32 {}, {}, {}, {};", sign, out[k], held[k * bytes / 4],
                       k * bytes % 4 * 8, bytes * 8));
    }
    if (t.is_bool()) out = booleans(out);
    if (gates.empty()) return out;
    for (size_t k = 0; k < t.lanes; k++) out[k] = choose(t, gate, out[k], otherwise[k]);
    return out;
  }

  void write(const Address& a, DType t, Lanes value, const Lanes& gates) {
    const size_t bytes = size_t(t.item_bytes());
    const bool by_lane = gates.size() > 1 || !a.is_aligned;
    if (t.is_bool()) {
      for (std::string& lane : value) {
        const std::string word = make(Register::kWord);
        line(fmt::format("selp.b32 {}, 1, 0, {};", word, lane));
        lane = word;
      }
    }
    const bool packs = is_packed(t) && !by_lane;
    if (packs) value = packed(value, bytes);
    const size_t unit = packs ? 4 : bytes;
    for (size_t k = 0, count = 1; k < value.size(); k += count) {
      count = by_lane ? 1 : together(value.size(), unit);
      access("st", a, packs ? "b32" : type_in_memory(t), k * unit,
             Lanes(value.begin() + ptrdiff_t(k), value.begin() + ptrdiff_t(k + count)),
             gate_of(gates, k));
    }
  }

  // Each bit of a word is inserted: what lies above a lane does not matter.
  Lanes packed(const Lanes& value, size_t bytes) {
    Lanes out;
    for (size_t k = 0; k < value.size(); k++) {
      const size_t bit = k * bytes % 4 * 8;
      const std::string word = make(Register::kWord);
      if (bit == 0) {
        line(fmt::format("mov.b32 {}, {};", word, value[k]));
        out.push_back(word);
      } else {
        line(
            fmt::format("bfi.b32 {}, {}, {}, {}, {};", word, value[k], out.back(), bit, bytes * 8));
        out.back() = word;
      }
    }
    return out;
  }

  Lanes booleans(const Lanes& words) {
    Lanes out;
    for (const std::string& word : words) {
      out.push_back(make(Register::kPredicate));
      line(fmt::format("setp.ne.u32 {}, {}, 0;", out.back(), word));
    }
    return out;
  }

  std::string choose(DType t, const std::string& gate, const std::string& x,
                     const std::string& otherwise) {
    const std::string out = make(kind_of(t));
    if (!t.is_bool()) {
      line(fmt::format("selp.b{} {}, {}, {}, {};", held_as(t).bits() == 64 ? 64 : 32, out, x,
                       otherwise, gate));
    } else {
      move(t, out, otherwise);
      line(fmt::format("@{} mov.pred {}, {};", gate, out, x));
    }
    return out;
  }

  // ----------------------------------------------------------------------------- elementwise

  std::string one_value(UOp n, const Lanes& operands) {
    DType from = n.srcs().back().dtype().element(), to = n.dtype().element();
    if (is_cast_of_bool(n.op(), from, to)) {
      from = held_as(from), to = held_as(to);
    } else if (n.is(Op::BITCAST)) {
      return expand(n, ptx_bitcast(from, to), operands, from, to);
    } else if (!n.is(Op::CAST)) {
      return expand(n, ptx_row(n), operands, from, to);
    }
    std::string x = operands[0];
    DType at = from;
    for (const DType next : ptx_cast_path(from, to)) {
      x = expand(n, ptx_cast(at, next), {x}, at, next);
      at = next;
    }
    return x;
  }

  // The instructions of a row; the register that they write.
  std::string expand(UOp n, const PtxRow* row, const Lanes& operands, DType from, DType to) {
    if (row == nullptr) no_text(n);
    if (row->text.empty()) return operands[0];
    const std::string out = make(kind_of(to));
    std::map<char, std::string> own;
    std::string_view rows = row->text;
    while (true) {
      const size_t cut = rows.find('\n');
      line(fill(rows.substr(0, cut), own, out, operands, from, to) + ";");
      if (cut == rows.npos) break;
      rows.remove_prefix(cut + 1);
    }
    const bool is_small = to.is_int() && to.bits() < 32;
    if (row->wraps && is_small && !never_wraps_in(n)) {
      line(fmt::format("cvt.{0}.{1} {2}, {2};", type_in_registers(to), type_in_memory(to), out));
    }
    return out;
  }

  static bool never_wraps_in(UOp n) {
    const bool is_sum = n.is(Op::ADD) || n.is(Op::SUB) || n.is(Op::MUL) || n.is(Op::NEG);
    return is_sum && !n.dtype().is_vector() && never_wraps(n);
  }

  std::string fill(std::string_view row, std::map<char, std::string>& own, const std::string& out,
                   const Lanes& operands, DType from, DType to) {
    std::string text;
    const int width = held_as(from).bits() == 64 ? 64 : 32;
    for (size_t i = 0; i < row.size(); i++) {
      if (row[i] == '%') {
        std::string& name = own[row[++i]];
        if (name.empty()) name = make(kind_of_name(row[i], from, to));
        text += name;
        continue;
      }
      if (row[i] != '$') {
        text += row[i];
        continue;
      }
      switch (row[++i]) {
        case 'd': text += out; break;
        case 't': text += type_in_registers(from); break;
        case 'r': text += type_in_registers(to); break;
        case 'w': text += type_in_memory(to); break;
        case 'b': text += fmt::format("b{}", width); break;
        case 'W': text += fmt::format("{}", from.bits()); break;
        case 's': text += width == 64 ? "0x8000000000000000" : "0x80000000"; break;
        case 'z': text += literal(from, 0); break;
        case 'm': text += literal(to, least_bits(to)); break;
        case 'g': text += literal(to, greatest_bits(to)); break;
        default: text += operands[size_t(row[i] - '0')];
      }
    }
    return text;
  }

  static Register kind_of_name(char name, DType from, DType to) {
    switch (name) {
      case 'p':
      case 'q': return Register::kPredicate;
      case 'n': return Register::kWord;
      case 'l': return Register::kLong;
      case 'h': return Register::kShort;
      case 'f': return Register::kFloat;
      case 'e': return Register::kDouble;
      case 'z': return kind_of(to);
      default: return kind_of(from);
    }
  }

  // ---------------------------------------------------------------------------- the function

  void bind_arguments() {
    Lanes parameters;
    for (UOp n : signature_.globals) {
      const std::string name = unique(fmt::format("data{}", n.number()));
      const std::string at = make(Register::kLong);
      parameters.push_back(fmt::format("\n  .param .u64 {}", name));
      line(fmt::format("ld.param.u64 {}, [{}];", at, name));
      line(fmt::format("cvta.to.global.u64 {0}, {0};", at));
      bind(n, at);
    }
    for (UOp n : signature_.variables) {
      const std::string name = unique(next("variable")), at = make(kind_of(n.dtype()));
      const std::string t = type_in_registers(n.dtype());
      parameters.push_back(fmt::format("\n  .param .{} {}", t, name));
      line(fmt::format("ld.param.{} {}, [{}];  // {}", t, at, name, identifier(n.name())));
      bind(n, at);
    }
    for (const std::string& p : parameters) parameters_ += (parameters_.empty() ? "" : ",") + p;
    bind_locals();
    for (UOp n : signature_.registers) bind(n, join(make_lanes(n.dtype())));
  }

  bool is_dynamic() const { return signature_.scratch_bytes > kStaticLocalBytes; }

  void bind_locals() {
    if (signature_.locals.empty()) return;
    const std::string name = unique("local");
    shared_ = is_dynamic() ? fmt::format(".extern .shared .align 64 .b8 {}[];\n\n", name)
                           : fmt::format("  .shared .align 64 .b8 {}[{}];\n", name,
                                         signature_.scratch_bytes);
    const std::string at = make(Register::kLong);
    line(fmt::format("mov.u64 {}, {};", at, name));
    for (const auto& [n, offset] : signature_.locals) bind(n, plus(at, int64_t(offset)));
  }

  std::string threads() const {
    std::array<int64_t, 3> sizes{1, 1, 1};
    for (UOp n : linear_.srcs()) {
      if (n.is(Op::SPECIAL) && n.name().starts_with('l'))
        sizes[dimension(n)] = n.src(0).const_int();
    }
    return fmt::format("{}, {}, {}", sizes[0], sizes[1], sizes[2]);
  }

  static std::string identifier(std::string_view name) {
    std::string out(name);
    std::ranges::replace_if(out, [](unsigned char c) { return c < ' ' || c > '~'; }, '_');
    return out;
  }

  // ------------------------------------------------------------------------------------- text

  std::string make(Register kind) {
    return fmt::format("%{}{}", kRegisters[size_t(kind)].name, counts_[kind]++);
  }

  Lanes make_lanes(DType t) {
    Lanes out;
    for (size_t k = 0; k < t.lanes; k++) out.push_back(make(kind_of(t)));
    return out;
  }

  void move(DType t, const std::string& to, const std::string& from) {
    line(fmt::format("mov.{} {}, {};", kRegisters[size_t(kind_of(t))].type, to, from));
  }

  void line(std::string_view text) { body_ += fmt::format("  {}\n", text); }
  void label(const std::string& name) { body_ += name + ":\n"; }

  std::string body_, parameters_, shared_;
  std::map<Register, size_t> counts_;
  std::unordered_map<UOp, Loop> loops_;
  std::vector<std::string> ifs_;
};

}  // namespace

std::string render_ptx(UOp linear, std::string_view name, PtxLevel level) {
  return PtxRenderer(linear).run(name, level);
}

std::string render_ptx(UOp linear, std::string_view name) {
  return render_ptx(linear, name, PtxLevel::kSm80);
}

Target ptx_target() {
  Target out = llvm_target(HalfCasts::kNative);
  out.name = "PTX";
  out.native[size_t(Op::CAST)] |= set_of(Scalar::kBFloat16);
  out.vector_bytes = 0;
  out.memory_vector_bytes = kMostMemoryBytes;
  out.vector_arithmetic = false;
  out.narrow_indices = true;
  out.groups.threads = 1024;
  out.groups.local_bytes = kStaticLocalBytes;
  out.limits.sequences = false;
  return out;
}

}  // namespace weft
