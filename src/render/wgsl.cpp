// Programs -> WGSL. Vectors are taken apart: each lane is a scalar of its own.
//
// Bindings of group 0: 0 is a uniform buffer of vec4<u32>, the first all zeros, then one for each
// VARIABLE with its low and high word in front; then the DEFINE_GLOBALs of the program, in order.
// The entry point is `main`.
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/bounds.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scalar.h"
#include "render/render.h"
#include "render/renderer.h"
#include "render/wgsl_functions.h"
#include "render/wgsl_loops.h"
#include "render/wgsl_ops.h"

namespace weft {
namespace {

constexpr size_t kLongestFold = 64;  // characters of an expression without a name
constexpr int kWordBytes = 4;

// Of float32: what rounds, and what compilers know rules about.
constexpr OpSet kRounded = {Op::ADD,   Op::SUB,   Op::MUL,  Op::FDIV,  Op::RECIP,  Op::SQRT,
                            Op::TRUNC, Op::FLOOR, Op::CEIL, Op::ROUND, Op::MULACC, Op::CAST};

bool is_long(DType t) { return t.is_int() && t.bits() == 64; }
// Several to a word in memory.
bool is_packed(DType t) { return t.item_bytes() < kWordBytes; }

size_t lanes_of(DType t) { return t.lanes; }

// A name, a number, a call or something in brackets: what stands as an operand as it is.
bool is_atom(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    if (c == '(') depth++;
    if (c == ')' && --depth == 0 && i + 1 < text.size()) return false;
    const bool is_plain = std::isalnum((unsigned char)c) != 0 || c == '_' || c == '.';
    const bool is_of_type = c == '<' || c == '>';  // vec2<u32>(...), without spaces
    if (depth == 0 && c != '(' && c != ')' && !is_plain && !is_of_type) return false;
  }
  return true;
}

std::string in_brackets(std::string text) {
  return is_atom(text) ? text : fmt::format("({})", text);
}

class WgslRenderer : public Renderer {
 public:
  WgslRenderer(UOp linear, WgslDriver driver) : Renderer(linear), driver_(driver) {}

  std::string run() {
    find_packed_stores();
    find_folds();
    find_computed_with();
    if (driver_.iterations > 0) copies_ = loop_copies(linear_, driver_.iterations);
    bind_arguments();
    walk();
    std::string out = declarations_;
    out += fmt::format("@compute @workgroup_size({}, {}, {})\n", threads_[0], threads_[1],
                       threads_[2]);
    out +=
        "fn main(@builtin(workgroup_id) group: vec3<u32>,\n"
        "        @builtin(local_invocation_id) thread: vec3<u32>) {\n";
    out = with_wgsl_functions(out + registers_ + body_ + "}\n");
    if (out.find("arguments[") == out.npos) return out;
    return fmt::format("@group(0) @binding(0) var<uniform> arguments: array<vec4<u32>, {}>;\n",
                       signature_.variables.size() + 1) +
           out;
  }

 protected:
  // Sums with 0 and products with it are what compilers simplify against IEEE 754.
  std::string constant(UOp n) override {
    std::string text = wgsl_constant(n.dtype(), n.bits());
    if (!driver_.simplifies || n.dtype().scalar != Scalar::kFloat32) return text;
    const double value = double_of_bits(n.dtype().element(), n.bits());
    return value == 0 || !std::isfinite(value) ? fmt::format("opaque({})", text) : text;
  }

  void special(UOp n) override {
    const auto dimension = size_t(n.name().back() - '0');
    const bool is_thread = n.name().starts_with('l');
    if (is_thread) threads_.at(dimension) = n.src(0).const_int();
    const std::string from = fmt::format("{}.{}", is_thread ? "thread" : "group", "xyz"[dimension]);
    name_value(n,
               is_long(n.dtype()) ? fmt::format("vec2<u32>({}, 0u)", from)
                                  : fmt::format("{}({})", wgsl_type(n.dtype()), from),
               unique(std::string(n.name())));
  }

  // Memory of both kinds: what is in front of a barrier may be a store to either.
  void barrier(UOp) override {
    line("workgroupBarrier();");
    line("storageBarrier();");
  }

  void open_loop(UOp range) override {
    const std::string name = unique(fmt::format("r{}", range.range_id()));
    const UOp size = range.src(0);
    const bool is_wide = is_long(range.dtype());
    const bool is_short = bounds(size).hi <= std::numeric_limits<int32_t>::max();
    bind(range, name);
    Loop loop;
    std::string start, head;
    if (is_wide && !is_short) {
      start = fmt::format("var {} = vec2<u32>(0u, 0u)", name);
      loop.condition = fmt::format("lt_i64({}, {})", name, operand(size, 0));
      loop.step = fmt::format("{0} = add_u64({0}, vec2<u32>(1u, 0u))", name);
    } else {
      const std::string count = is_wide ? unique(name + "_count") : name;
      const std::string end = size.is_const() ? fmt::format("{}", size.const_int())
                              : is_wide       ? fmt::format("i32({}.x)", operand(size, 0))
                                              : operand(size, 0);
      start = fmt::format("var {}: {} = 0", count, is_wide ? "i32" : wgsl_type(range.dtype()));
      loop.condition = fmt::format("{} < {}", count, end);
      loop.step = fmt::format("{}++", count);
      if (is_wide) head = fmt::format("let {} = vec2<u32>(u32({}), 0u);", name, count);
    }
    if (const auto found = copies_.find(range); found != copies_.end()) loop.copies = found->second;
    line(fmt::format("for ({}; {}; {}) {{", start, loop.condition,
                     loop.copies > 1 ? std::string() : loop.step));
    depth_++;
    loop.first = body_.size();
    if (!head.empty()) line(head);
    loops_.push_back(std::move(loop));
  }

  // Copies of a body are blocks one after the other, each if there is still something to do.
  void close_loop(UOp) override {
    const Loop loop = std::move(loops_.back());
    loops_.pop_back();
    if (loop.copies > 1) {
      const std::string once = body_.substr(loop.first);
      body_.resize(loop.first);
      for (int64_t k = 0; k < loop.copies; k++) {
        line(fmt::format("if ({}) {{", loop.condition));
        body_ += once;
        line(fmt::format("  {};", loop.step));
        line("}");
      }
    }
    close();
  }
  void open_if(UOp n) override {
    line(fmt::format("if ({}) {{", operand(n.src(0), 0)));
    depth_++;
  }
  void close_if(UOp) override { close(); }

  void read_register(UOp after, UOp reg) override {
    std::vector<std::string> lanes;
    lanes.reserve(lanes_of(after.dtype()));
    for (size_t k = 0; k < lanes_of(after.dtype()); k++) {
      lanes.push_back(reg.is(Op::DEFINE_REG) ? register_lane(reg, k) : loaded(reg, "0u", k));
    }
    name_lanes(after, std::move(lanes));
  }

  void write_register(UOp store, UOp reg) override {
    const bool is_gated = store.src_count() > 2;
    if (is_gated) line(fmt::format("if ({}) {{", operand(store.src(2), 0)));
    depth_ += is_gated ? 1 : 0;
    for (size_t k = 0; k < lanes_of(reg.dtype()); k++) {
      const std::string value = operand(store.src(1), k);
      if (reg.is(Op::DEFINE_REG)) {
        line(fmt::format("{} = {};", register_lane(reg, k), value));
      } else {
        write(reg, "0u", k, value);
      }
    }
    if (is_gated) close();
  }

  void address(UOp n) override {
    const UOp i = n.src(1);
    std::string index = is_long(i.dtype()) ? in_brackets(operand(i, 0)) + ".x" : operand(i, 0);
    if (i.is_const())
      index = fmt::format("{}u", uint32_t(i.const_int()));  // negative behind a gate
    const int lanes = n.dtype().lanes;
    if (lanes > 1) {
      const bool is_signed = !i.is_const() && i.dtype().is_signed() && !is_long(i.dtype());
      index = fmt::format("{} * {}{}", in_brackets(index), lanes, is_signed ? "i" : "u");
    }
    if (!is_atom(index)) index = named(std::move(index));
    addresses_[n] = index;
    bind(n, text(n.src(0)));
  }

  void load(UOp n) override {
    const auto [base, at] = find_address(n.src(0));
    std::vector<std::string> lanes;
    const std::vector<std::string> words = whole_words(n, base, at);
    for (size_t k = 0; k < lanes_of(n.dtype()); k++) {
      if (n.src_count() == 1) {
        lanes.push_back(words.empty() ? loaded(base, at, k) : part(base, words, k));
        continue;
      }
      const std::string gate = gate_name(n.src(1), k);
      const std::string place = named(fmt::format("select(0u, {}, {})", word_at(at, k), gate));
      lanes.push_back(
          fmt::format("select({}, {}, {})", operand(n.src(2), k), loaded(base, place, 0), gate));
    }
    name_lanes(n, std::move(lanes));
  }

  void store(UOp n) override {
    const auto [base, at] = find_address(n.src(0));
    const bool is_gated = n.src_count() > 2;
    const bool is_masked = is_gated && n.src(2).dtype().is_vector();
    const DType type = n.src(1).dtype();
    if (is_gated && !is_masked) {
      line(fmt::format("if ({}) {{", operand(n.src(2), 0)));
      depth_++;
    }
    if (!is_masked && is_whole(n.src(0), type)) {
      write_words(n, base, at);
    } else {
      for (size_t k = 0; k < lanes_of(type); k++) {
        if (is_masked) {
          line(fmt::format("if ({}) {{", operand(n.src(2), k)));
          depth_++;
        }
        write(base, at, k, operand(n.src(1), k));
        if (is_masked) close();
      }
    }
    if (is_gated && !is_masked) close();
  }

  void value(UOp n) override {
    if (uses(n) == 0) return;
    std::vector<std::string> lanes;
    lanes.reserve(lanes_of(n.dtype()));
    for (size_t k = 0; k < lanes_of(n.dtype()); k++) lanes.push_back(lane_value(n, k));
    if (n.is(Op::VECTORIZE) || n.is(Op::GEP)) return bind_lanes(n, std::move(lanes));
    name_lanes(n, std::move(lanes));
  }

 private:
  struct Loop {
    std::string condition, step;
    int64_t copies = 1;
    size_t first = 0;  // of its body
  };

  // ----------------------------------------------------------------------------------- memory

  // Buffers that parts of words are written to, by one thread among others.
  void find_packed_stores() {
    for (UOp n : linear_.srcs()) {
      if (!n.is(Op::STORE)) continue;
      const UOp base = place_of(n.src(0)).base;
      if (base.is(Op::DEFINE_REG) || !is_packed(element_of(base))) continue;
      const bool is_masked = n.src_count() > 2 && n.src(2).dtype().is_vector();
      if (is_masked || !is_whole(n.src(0), n.src(1).dtype())) atomics_.insert(base);
    }
  }

  static DType element_of(UOp base) { return base.dtype().element(); }

  // A vector of small elements that fills words.
  static bool is_whole(UOp pointer, DType type) {
    const int bytes = type.item_bytes();
    return bytes < kWordBytes && type.lanes * bytes % kWordBytes == 0 && is_aligned(pointer);
  }

  std::pair<UOp, std::string> find_address(UOp pointer) {
    UOp n = pointer;
    while (n.is(Op::AFTER) || n.is(Op::CAST)) n = n.src(0);
    const auto found = addresses_.find(n);
    const UOp base = place_of(pointer).base;
    return {base, found == addresses_.end() ? "0u" : found->second};
  }

  // The index of lane k, and the same in u32.
  static std::string element_at(const std::string& at, size_t k) {
    return k == 0 ? at : fmt::format("{} + {}u", word_at(at, 0), k);
  }
  static std::string word_at(const std::string& at, size_t k) {
    if (k > 0) return element_at(at, k);
    const bool is_number = std::isdigit((unsigned char)at[0]) != 0;
    return is_number ? at : fmt::format("u32({})", at);
  }

  std::string word(UOp base, const std::string& index) {
    const std::string at = fmt::format("{}[{}]", text(base), index);
    return atomics_.contains(base) ? fmt::format("atomicLoad(&{})", at) : at;
  }

  std::string loaded(UOp base, const std::string& at, size_t k) {
    const DType type = element_of(base);
    if (!is_packed(type)) return word(base, element_at(at, k));
    const std::string i = named_word(word_at(at, k));
    const int each = kWordBytes / type.item_bytes();
    return taken(type, word(base, fmt::format("{} >> {}u", i, each / 2)),
                 fmt::format("({} & {}u) * {}u", i, each - 1, 8 * type.item_bytes()));
  }

  // An element out of a word.
  static std::string taken(DType type, const std::string& word, const std::string& shift) {
    const int bits = 8 * type.item_bytes();
    if (type.is_signed()) {
      return fmt::format("extractBits(bitcast<i32>({}), {}, {}u)", word, shift, bits);
    }
    const std::string out = fmt::format("extractBits({}, {}, {}u)", word, shift, bits);
    return type.is_bool() ? fmt::format("{} != 0u", out) : out;
  }

  // The words of a vector of small elements, by name; none where it may begin inside of one.
  std::vector<std::string> whole_words(UOp load, UOp base, const std::string& at) {
    std::vector<std::string> words;
    const DType type = load.dtype();
    if (load.src_count() > 1 || !is_whole(load.src(0), type)) return words;
    const int each = kWordBytes / type.item_bytes();
    const std::string first = named(fmt::format("{} >> {}u", word_at(at, 0), each / 2));
    for (int w = 0; w < type.lanes / each; w++) {
      words.push_back(named(word(base, w == 0 ? first : fmt::format("{} + {}u", first, w))));
    }
    return words;
  }

  static std::string part(UOp base, const std::vector<std::string>& words, size_t k) {
    const DType type = element_of(base);
    const auto each = size_t(kWordBytes / type.item_bytes());
    return taken(type, words[k / each], fmt::format("{}u", k % each * 8 * type.item_bytes()));
  }

  // A value of a small dtype as the low bits of a word, the others 0.
  static std::string as_bits(DType type, const std::string& value) {
    if (type.is_bool()) return fmt::format("select(0u, 1u, {})", value);
    if (type.is_signed()) {
      return fmt::format("(bitcast<u32>({}) & {:#x}u)", value, (1U << type.bits()) - 1);
    }
    return value;
  }

  void write(UOp base, const std::string& at, size_t k, const std::string& value) {
    const DType type = element_of(base);
    if (!is_packed(type)) {
      return line(fmt::format("{}[{}] = {};", text(base), element_at(at, k), value));
    }
    const std::string i = named_word(word_at(at, k));
    const int bits = 8 * type.item_bytes(), each = 32 / bits;
    const std::string shift = named(fmt::format("({} & {}u) * {}u", i, each - 1, bits));
    const std::string to = fmt::format("&{}[{} >> {}u]", text(base), i, each / 2);
    line(fmt::format("atomicAnd({}, ~({:#x}u << {}));", to, (1U << bits) - 1, shift));
    line(fmt::format("atomicOr({}, {} << {});", to, as_bits(type, value), shift));
  }

  void write_words(UOp store, UOp base, const std::string& at) {
    const DType type = store.src(1).dtype();
    const int bits = 8 * type.item_bytes(), each = 32 / bits;
    const std::string first = named(fmt::format("{} >> {}u", word_at(at, 0), each / 2));
    for (int w = 0; w < type.lanes / each; w++) {
      std::string all;
      for (int k = 0; k < each; k++) {
        std::string one =
            as_bits(type, operand(store.src(1), size_t(w) * size_t(each) + size_t(k)));
        if (k > 0) one = fmt::format(" | ({} << {}u)", one, k * bits);
        all += one;
      }
      const std::string to =
          fmt::format("{}[{}]", text(base), w == 0 ? first : fmt::format("{} + {}u", first, w));
      line(atomics_.contains(base) ? fmt::format("atomicStore(&{}, {});", to, all)
                                   : fmt::format("{} = {};", to, all));
    }
  }

  // ----------------------------------------------------------------------------------- values

  std::string lane_value(UOp n, size_t k) {
    if (n.is(Op::VECTORIZE)) {
      return is_splat(n) ? operand(n.src(0), 0) : operand(n.src(k), 0);
    }
    if (n.is(Op::GEP)) return operand(n.src(0), size_t(n.ints()[k]));
    std::vector<std::string> operands;
    bool is_constant = true;
    for (UOp s : n.srcs()) {
      operands.push_back(operand(s, k));
      is_constant = is_constant && s.is_const();
    }
    // What overflows, or is divided by zero, before the program runs is an error.
    if (is_constant) operands[0] = named(operands[0]);
    const bool is_twice = n.src_count() == 2 && n.src(0) == n.src(1);
    if (driver_.simplifies && is_twice && (n.is(Op::SUB) || n.is(Op::FDIV)) &&
        n.dtype().is_float()) {
      operands[1] = fmt::format("opaque({})", operands[1]);
    }
    std::string out = wgsl_expression(n, operands, fused());
    if (out.empty()) no_text(n);
    return needs_guard(n) ? fmt::format("opaque({})", out) : out;
  }

  // What is computed next must not become one operation with n.
  bool needs_guard(UOp n) const {
    if (n.dtype().scalar != Scalar::kFloat32 || !computed_with_.contains(n)) return false;
    return driver_.simplifies ? kRounded.has(n.op()) : driver_.contracts && n.is(Op::MUL);
  }
  void find_computed_with() {
    for (UOp n : linear_.srcs()) {
      const bool is_memory = n.is(Op::STORE) && !is_register(n.src(0));
      if (is_memory || n.is(Op::BITCAST)) continue;
      computed_with_.insert(n.srcs().begin(), n.srcs().end());
    }
  }

  // Lane k of a value, as an operand.
  std::string operand(UOp n, size_t k) {
    if (n.is_const()) return constant(n);
    UOp v = n;
    while (v.is(Op::AFTER) && !is_register(v)) v = v.src(0);
    const auto found = lanes_.find(v);
    if (found == lanes_.end()) return text(v);
    return found->second.at(found->second.size() == 1 ? 0 : k);
  }

  std::string gate_name(UOp gate, size_t k) {
    std::string t = operand(gate, gate.dtype().is_vector() ? k : 0);
    const bool is_name = t.find_first_of("( ") == t.npos;
    return is_name ? t : named(std::move(t));
  }

  void bind_lanes(UOp n, std::vector<std::string> lanes) {
    bind(n, lanes[0]);
    lanes_[n] = std::move(lanes);
  }

  // Each lane gets a name, unless it stands in the one expression that uses it.
  void name_lanes(UOp n, std::vector<std::string> lanes) {
    if (lanes.size() == 1 && folds_.contains(n) && lanes[0].size() <= kLongestFold) {
      return bind(n, in_brackets(std::move(lanes[0])));
    }
    for (std::string& lane : lanes) lane = named(std::move(lane));
    bind_lanes(n, std::move(lanes));
  }

  void name_value(UOp n, const std::string& value, const std::string& name) {
    line(fmt::format("let {} = {};", name, value));
    bind(n, name);
  }

  std::string named(std::string value) {
    std::string name = unique(next("t"));
    line(fmt::format("let {} = {};", name, value));
    return name;
  }

  // A name for an index, unless it is a number.
  std::string named_word(const std::string& index) {
    const bool is_number = std::isdigit((unsigned char)index[0]) != 0;
    return is_number ? index : named(index);
  }

  // Values that are computed from others alone, and read once, in the block that they stand in.
  void find_folds() {
    std::unordered_map<UOp, size_t> block;
    std::vector<size_t> open{0};
    size_t last = 0;
    for (UOp n : linear_.srcs()) {
      if (n.is(Op::END)) open.resize(open.size() - (n.src_count() - 1));
      if (n.is(Op::ENDIF)) open.pop_back();
      block[n] = open.back();
      for (size_t i = 0; i < n.src_count(); i++) {
        const UOp s = n.src(i);
        if (!reads_source(n, i) || uses(s) != 1 || !is_elementwise(s.op())) continue;
        if (s.dtype().is_vector() || repeats_operands(n)) continue;
        const auto found = block.find(s);
        if (found != block.end() && found->second == open.back()) folds_.insert(s);
      }
      if (n.is(Op::RANGE) || n.is(Op::IF)) open.push_back(++last);
    }
  }

  // Its text may have an operand more than once.
  bool repeats_operands(UOp n) const {
    if (n.is(Op::STORE)) return n.src(1).dtype().is_vector();
    if (!is_elementwise(n.op()) || n.dtype().is_vector()) return true;
    const std::vector<std::string> marks{"\1", "\2", "\3"};
    const std::string out = wgsl_expression(n, marks, fused());
    return std::ranges::any_of(
        marks, [&](const std::string& mark) { return std::ranges::count(out, mark[0]) > 1; });
  }

  // ------------------------------------------------------------------------------ declarations

  void bind_arguments() {
    for (size_t k = 0; k < signature_.globals.size(); k++) {
      const UOp n = signature_.globals[k];
      const std::string name = unique(fmt::format("data{}", n.number()));
      declarations_ +=
          fmt::format("@group(0) @binding({}) var<storage, read_write> {}: array<{}>;\n", k + 1,
                      name, memory_type(n));
      bind(n, name);
    }
    for (const auto& [n, offset] : signature_.locals) {
      const std::string name = unique(fmt::format("local{}", n.number()));
      const DType type = element_of(n);
      const int64_t bytes = n.src(0).const_int() * n.dtype().lanes * type.item_bytes();
      const int64_t each = is_long(type) ? 2 * kWordBytes : kWordBytes;
      declarations_ += fmt::format("var<workgroup> {}: array<{}, {}>;\n", name, memory_type(n),
                                   std::max<int64_t>((bytes + each - 1) / each, 1));
      bind(n, name);
    }
    for (size_t k = 0; k < signature_.variables.size(); k++) {
      const UOp n = signature_.variables[k];
      std::string wish = "v_";
      for (const char c : n.name()) wish += std::isalnum((unsigned char)c) != 0 ? c : '_';
      const std::string words = fmt::format("arguments[{}]", k + 1);
      name_value(n, is_long(n.dtype()) ? words + ".xy" : fmt::format("bitcast<i32>({}.x)", words),
                 unique(wish));
    }
    for (UOp n : signature_.registers) {
      const std::string name = unique(fmt::format("acc{}", n.number()));
      bind(n, name);
      for (size_t k = 0; k < lanes_of(n.dtype()); k++) {
        registers_ +=
            fmt::format("  var {}: {};\n", register_lane(n, k), wgsl_type(n.dtype().element()));
      }
    }
  }

  std::string register_lane(UOp reg, size_t k) {
    return reg.dtype().is_vector() ? fmt::format("{}_{}", text(reg), k) : text(reg);
  }

  std::string memory_type(UOp base) const {
    const DType type = element_of(base);
    if (!is_packed(type)) return wgsl_type(type);
    return atomics_.contains(base) ? "atomic<u32>" : "u32";
  }

  void line(std::string_view text) {
    body_.append(size_t(depth_) * 2, ' ');
    body_ += text;
    body_ += '\n';
  }
  void close() {
    depth_--;
    line("}");
  }

  Fused fused() const { return driver_.fused ? Fused::kYes : Fused::kNo; }

  const WgslDriver driver_;
  std::string declarations_, registers_, body_;
  int depth_ = 1;
  std::array<int64_t, 3> threads_{1, 1, 1};
  std::unordered_set<UOp> atomics_, folds_, computed_with_;
  std::unordered_map<UOp, std::string> addresses_;  // the indices of elements: names or numbers
  std::unordered_map<UOp, int64_t> copies_;         // of loops that do several iterations at a time
  std::vector<Loop> loops_;                         // that are open
  std::unordered_map<UOp, std::vector<std::string>> lanes_;
};

}  // namespace

std::string render_wgsl(UOp linear, std::string_view, WgslDriver driver) {
  return WgslRenderer(linear, driver).run();
}

}  // namespace weft
