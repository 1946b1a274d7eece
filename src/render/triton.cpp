// Programs -> Triton. A program of Triton is a workgroup: what depends on the thread is a block
// with an element per thread, the rest are scalars. Where threads part ways there are masks.
#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "codegen/target.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scalar.h"
#include "render/render.h"
#include "render/renderer.h"
#include "render/triton_ops.h"
#include "rewrite/pattern.h"

namespace weft {
namespace {

bool is_thread(UOp n) { return n.is(Op::SPECIAL) && n.name().starts_with('l'); }
size_t dimension(UOp special) { return size_t(special.name().back() - '0'); }

// Narrow floats are held as unsigned integers, bool in memory as a byte.
std::string type(DType t) {
  t = held_as(t);
  if (t.is_bool()) return "tl.int1";
  return fmt::format("tl.{}{}", t.is_float() ? "float" : t.is_signed() ? "int" : "uint", t.bits());
}
std::string bits_type(DType t) { return fmt::format("tl.uint{}", held_as(t).bits()); }

// A number of Python that is exactly the constant in its dtype, or "".
std::string number(DType t, uint64_t bits) {
  t = held_as(t);
  if (t.is_bool()) return "";
  if (t.is_unsigned()) return fmt::format("{}", bits);
  if (!t.is_float()) return fmt::format("{}", int64_t(bits));
  const double value = double_of_bits(t, bits);
  if (!std::isfinite(value) || (value == 0 && std::signbit(value))) return "";
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

// A scalar of the dtype. Triton makes +0 of -0, and some NaN of a NaN: those go by their bits.
std::string scalar(DType t, uint64_t bits) {
  if (t.is_bool()) return fmt::format("tl.full([], {}, tl.int1)", bits != 0 ? "True" : "False");
  const std::string plain = number(t, bits);
  if (!plain.empty()) return fmt::format("tl.full([], {}, {})", plain, type(t));
  return fmt::format("tl.full([], {}, {}).to({}, bitcast=True)", bits, bits_type(t), type(t));
}

class TritonRenderer : public Renderer {
 public:
  explicit TritonRenderer(UOp linear) : Renderer(linear) {}

  std::string run(std::string_view name) {
    unique(std::string(name));
    for (const char* taken : {"tl", "triton", "range", "float"}) unique(taken);
    for (const Signature::Local& local : signature_.locals) no_text(local.definition);
    find_blocks();
    bind_arguments();
    bind_threads();
    walk();
    if (body_.empty()) line("pass");
    return fmt::format(
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef {}({}):\n{}", name,
        parameters_, body_);
  }

 protected:
  std::string constant(UOp n) override {
    if (n.dtype().is_vector()) no_text(n);
    return scalar(n.dtype(), n.bits());
  }

  void open_loop(UOp range) override {
    const UOp size = range.src(0);
    const std::string r = unique(fmt::format("r{}", range.range_id()));
    const std::string i = unique(fmt::format("i{}", range.range_id()));
    const std::string all = size.is_const()  ? fmt::format("{}", size.const_int())
                            : is_block(size) ? fmt::format("tl.max({}, axis=0)", text(size))
                                             : text(size);
    line(fmt::format("for {} in range(0, {}):", i, all));
    depth_++;
    line(fmt::format("{} = tl.full([], {}, {})", r, i, type(range.dtype())));
    bind(range, r);
    masks_.push_back(is_block(size) ? named(fmt::format("{} < {}", r, text(size))) : "");
  }

  void close_loop(UOp) override {
    masks_.pop_back();
    depth_--;
  }

  void open_if(UOp n) override {
    const bool by_mask = is_block(n.src(0));
    masks_.push_back(by_mask ? named(text(n.src(0))) : "");
    if (by_mask) return;
    line(fmt::format("if {}:", text(n.src(0))));
    depth_++;
    empty_.push_back(body_.size());
  }

  void close_if(UOp n) override {
    masks_.pop_back();
    if (is_block(n.src(0))) return;
    if (body_.size() == empty_.back()) line("pass");
    empty_.pop_back();
    depth_--;
  }

  void read_register(UOp after, UOp reg) override {
    if (reg.is(Op::DEFINE_GLOBAL)) return bind(after, named(loaded(reg, after, {})));
    bind(after, named(text(reg)));
  }

  void write_register(UOp n, UOp reg) override {
    const UOp value = n.src(1);
    if (reg.is(Op::DEFINE_GLOBAL)) return line(stored(reg, value, {}));
    std::string x = text(value);
    if (is_block(reg) && !is_block(value)) x = in_block(x);
    const std::string mask = joined_mask({});
    if (!mask.empty()) x = fmt::format("tl.where({}, {}, {})", mask, x, text(reg));
    line(fmt::format("{} = {}", text(reg), x));
  }

  void address(UOp n) override {
    if (n.dtype().is_vector()) no_text(n);
    const UOp i = n.src(1);
    const std::string index = i.is_const() ? fmt::format("{}", i.const_int()) : text(i);
    bind(n, fmt::format("{} + {}", text(n.src(0)), index));
  }

  void load(UOp n) override {
    if (n.dtype().is_vector()) no_text(n);
    const UOp gate = n.src_count() > 1 ? n.src(1) : UOp();
    bind(n, named(loaded(n.src(0), n, gate)));
  }

  void store(UOp n) override {
    if (n.src(1).dtype().is_vector()) no_text(n);
    line(stored(n.src(0), n.src(1), n.src_count() > 2 ? n.src(2) : UOp()));
  }

  void value(UOp n) override {
    if (n.dtype().is_vector() || n.src(0).dtype().is_vector()) no_text(n);
    const DType from = n.srcs().back().dtype(), to = n.dtype();
    std::vector<std::string> operands;
    const TritonRow* row = triton_row(n);
    const bool is_infix = row != nullptr && row->text.find("tl.") == std::string_view::npos &&
                          row->text.find(".to(") == std::string_view::npos;
    for (size_t i = 0; i < n.src_count(); i++) {
      const UOp s = n.src(i);
      const bool is_plain = is_infix && i == 1 && s.is_const() && !n.src(0).is_const();
      const std::string plain = is_plain ? number(s.dtype(), s.bits()) : "";
      operands.push_back(plain.empty() ? text(s) : plain);
    }
    if (row != nullptr && row->text.empty()) return bind(n, operands[0]);
    if (row == nullptr && n.is(Op::CAST)) {
      const DType single = dtypes::float32;
      const TritonRow *first = triton_cast(from, single), *second = triton_cast(single, to);
      if (first == nullptr || second == nullptr) no_text(n);
      const std::string middle = named(fill(first->text, operands, from, single));
      return bind(n, named(fill(second->text, {middle}, single, to)));
    }
    if (row == nullptr) no_text(n);
    bind(n, named(fill(row->text, operands, from, to)));
  }

  void special(UOp n) override {
    const std::string name = unique(std::string(n.name()));
    const std::string wide = n.dtype().bits() == 64 ? ".to(tl.int64)" : "";
    if (!is_thread(n)) {
      line(fmt::format("{} = tl.program_id({}){}", name, dimension(n), wide));
    } else {
      std::string place = "threads";
      if (strides_[dimension(n)] > 1) place += fmt::format(" // {}", strides_[dimension(n)]);
      if (n.src(0).const_int() * strides_[dimension(n)] < threads_) {
        place = fmt::format("{} % {}", place, n.src(0).const_int());
      }
      line(fmt::format("{} = {}", name, wide.empty() ? place : fmt::format("({}){}", place, wide)));
    }
    bind(n, name);
  }

  void barrier(UOp) override { line("tl.debug_barrier()"); }

 private:
  // ---------------------------------------------------------------------------------- blocks

  bool is_block(UOp n) const { return n && blocks_.contains(n); }

  // To a fixed point: a register is a block where one is written to it, and is read before, too.
  void find_blocks() {
    size_t before = 0;
    do {
      before = blocks_.size();
      std::vector<bool> open{false};
      for (UOp n : linear_.srcs()) {
        if (n.is(Op::END)) open.resize(open.size() - (n.src_count() - 1));
        if (n.is(Op::ENDIF)) open.pop_back();
        if (n.is(Op::RANGE) || n.is(Op::IF)) open.push_back(open.back() || is_block(n.src(0)));
        if (has_block(n, open.back())) blocks_.insert(n);
        if (n.is(Op::STORE) && is_register(n.src(0)) && (open.back() || is_block(n.src(1)))) {
          blocks_.insert(place_of(n.src(0)).base);
        }
      }
    } while (blocks_.size() != before);
  }

  bool has_block(UOp n, bool in_masked_region) const {
    if (n.is(Op::RANGE) || n.is(Op::STORE)) return false;
    if (is_thread(n)) return true;
    if (n.is(Op::AFTER) && is_register(n)) return is_block(place_of(n).base);
    if (n.is(Op::LOAD) && in_masked_region) return true;
    for (size_t i = 0; i < n.src_count(); i++) {
      if (reads_source(n, i) && is_block(n.src(i))) return true;
    }
    return false;
  }

  std::string in_block(const std::string& x) const {
    return fmt::format("tl.broadcast_to({}, [{}])", x, width_);
  }

  // ---------------------------------------------------------------------------------- memory

  bool is_masked() const {
    return std::ranges::any_of(masks_, [](const std::string& m) { return !m.empty(); });
  }

  // Of the regions around, and of what is given.
  std::string joined_mask(std::vector<std::string> more) const {
    for (const std::string& m : masks_) {
      if (!m.empty()) more.push_back(m);
    }
    std::string out;
    for (const std::string& m : more) out += (out.empty() ? "" : " & ") + m;
    return out;
  }

  // A pointer as a block where the access is one; threads past the group's take no part.
  std::string pointer(UOp at, bool block, std::vector<std::string>& masks) {
    if (block && width_ != threads_) masks.emplace_back("active");
    if (!block || is_block(at)) return text(at);
    return fmt::format("{} + tl.full([{}], 0, tl.int32)", text(at), width_);
  }

  std::string loaded(UOp at, UOp n, UOp gate) {
    std::vector<std::string> masks;
    const std::string p = pointer(at, is_block(n), masks);
    if (gate) masks.push_back(named(text(gate)));
    const std::string mask = joined_mask(masks);
    const bool is_bool = n.dtype().is_bool();
    std::string other = "0";
    if (gate) other = is_bool ? fmt::format("({}).to(tl.uint8)", text(n.src(2))) : text(n.src(2));
    const std::string out = mask.empty()
                                ? fmt::format("tl.load({})", p)
                                : fmt::format("tl.load({}, mask={}, other={})", p, mask, other);
    return is_bool ? out + " != 0" : out;
  }

  std::string stored(UOp at, UOp value, UOp gate) {
    std::vector<std::string> masks;
    const bool block = is_block(at) || is_block(value) || is_block(gate) || is_masked();
    const std::string p = pointer(at, block, masks);
    if (gate) masks.push_back(named(text(gate)));
    const std::string mask = joined_mask(masks);
    const std::string x =
        value.dtype().is_bool() ? fmt::format("({}).to(tl.uint8)", text(value)) : text(value);
    return mask.empty() ? fmt::format("tl.store({}, {})", p, x)
                        : fmt::format("tl.store({}, {}, mask={})", p, x, mask);
  }

  // ------------------------------------------------------------------------------ expressions

  static std::string fill(std::string_view row, const std::vector<std::string>& operands,
                          DType from, DType to) {
    std::string out;
    const int width = held_as(from).bits();
    const double end = to.is_int() ? std::ldexp(1.0, to.bits() - (to.is_signed() ? 1 : 0)) : 0;
    for (size_t i = 0; i < row.size(); i++) {
      if (row[i] != '$') {
        out += row[i];
        continue;
      }
      switch (row[++i]) {
        case 'T': out += type(to); break;
        case 'S': out += type(from); break;
        case 'I': out += bits_type(from); break;
        case 'W': out += std::to_string(width); break;
        case 'M': out += std::to_string(width - 1); break;
        case 's': out += fmt::format("{}", uint64_t(1) << (width - 1)); break;
        case 'A': out += all_bits(from); break;
        case 'm': out += scalar(to, least_bits(to)); break;
        case 'g': out += scalar(to, greatest_bits(to)); break;
        case 'l':
          out += number(dtypes::float64, std::bit_cast<uint64_t>(to.is_signed() ? -end : 0.0));
          break;
        case 'h': out += number(dtypes::float64, std::bit_cast<uint64_t>(end)); break;
        default: out += operands[size_t(row[i] - '0')];
      }
    }
    return out;
  }

  static std::string all_bits(DType t) {
    if (t.is_bool()) return scalar(t, 1);
    return number(t, t.is_unsigned() ? greatest_bits(t) : ~uint64_t(0));
  }

  // ------------------------------------------------------------------------------ the function

  void bind_arguments() {
    const auto add = [&](const std::string& name) {
      parameters_ += (parameters_.empty() ? "" : ", ") + name;
      return name;
    };
    for (UOp n : signature_.globals) {
      bind(n, add(unique(fmt::format("data{}", n.number()))));
    }
    for (UOp n : signature_.variables) {
      std::string wish = "v_";
      for (const char c : n.name()) wish += std::isalnum((unsigned char)c) != 0 ? c : '_';
      const std::string name = add(unique(wish));
      line(fmt::format("{0} = tl.full([], {0}, {1})", name, type(n.dtype())));
      bind(n, name);
    }
  }

  void bind_threads() {
    std::vector<UOp> threads;
    for (UOp n : linear_.srcs()) {
      if (is_thread(n)) threads.push_back(n);
    }
    std::ranges::sort(threads, {}, dimension);
    for (UOp n : threads) {
      strides_[dimension(n)] = threads_;
      threads_ *= n.src(0).const_int();
    }
    width_ = int64_t(std::bit_ceil(uint64_t(threads_)));
    for (const char* taken : {"threads", "active"}) unique(taken);
    if (!threads.empty()) line(fmt::format("threads = tl.arange(0, {})", width_));
    if (width_ != threads_) line(fmt::format("active = threads < {}", threads_));
    for (UOp n : signature_.registers) {
      if (n.dtype().is_vector()) no_text(n);
      const std::string name = unique(fmt::format("acc{}", n.number()));
      const std::string zero = n.dtype().is_bool() ? "False" : "0";
      line(fmt::format("{} = tl.full([{}], {}, {})", name,
                       is_block(n) ? std::to_string(width_) : "", zero, type(n.dtype())));
      bind(n, name);
    }
  }

  std::string named(const std::string& expression) {
    const bool is_name = std::ranges::all_of(
        expression, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    const bool is_temporary = expression.starts_with('t') && is_name;
    if (is_temporary) return expression;
    std::string name = unique(next("t"));
    line(fmt::format("{} = {}", name, expression));
    return name;
  }

  void line(std::string_view text) {
    body_.append(size_t(depth_) * 4, ' ');
    body_ += text;
    body_ += '\n';
  }

  std::string body_, parameters_;
  int depth_ = 1;
  int64_t threads_ = 1, width_ = 1;          // of a group, and the power of two that holds them
  std::array<int64_t, 3> strides_{1, 1, 1};  // of threads, by dimension
  std::unordered_set<UOp> blocks_;
  std::vector<std::string> masks_;  // of the open loops and IFs; "" where all threads go together
  std::vector<size_t> empty_;       // where the bodies of open ifs begin
};

}  // namespace

std::string render_triton(UOp linear, std::string_view name) {
  return TritonRenderer(linear).run(name);
}

Target triton_target() {
  Target out = llvm_target(HalfCasts::kNative);
  out.name = "TRITON";
  // The interpreter rounds fma twice; the compiler flushes float32's subnormals in floor and ceil;
  // the rest has no text.
  for (const Op op : {Op::MULACC, Op::RECIP, Op::TRUNC, Op::ROUND}) out.native[size_t(op)] = 0;
  for (const Op op : {Op::FLOOR, Op::CEIL}) out.native[size_t(op)] = set_of(Scalar::kFloat64);
  out.vector_bytes = 0;
  out.memory_vector_bytes = 0;
  out.vector_arithmetic = false;
  out.narrow_indices = true;
  out.groups.threads = 1024;
  out.groups.local_bytes = 0;
  out.limits.sequences = false;
  return out;
}

}  // namespace weft
