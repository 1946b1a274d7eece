// Programs -> LLVM IR with opaque pointers, read by LLVM 16 and newer.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "render/llvm_ops.h"
#include "render/llvm_text.h"
#include "render/render.h"
#include "render/renderer.h"

namespace weft {
namespace {

using namespace llvm_text;

class LlvmRenderer : public Renderer {
 public:
  explicit LlvmRenderer(UOp linear) : Renderer(linear) {}

  std::string run(std::string_view name) {
    bind_arguments();
    walk();
    std::string out = fmt::format(
        "define void @{}(ptr %buffers, ptr %variables, ptr %scratch, i64 %first, i64 %last) "
        "nounwind {{\n"
        "entry:\n{}  ret void\n}}\n",
        name, body_);
    for (const std::string& d : declarations_) out += d;
    return out;
  }

 protected:
  std::string constant(UOp n) override { return literal(n.dtype(), n.bits()); }

  void open_loop(UOp range) override {
    const std::string k = std::to_string(loops_.size()), t = type(range.dtype());
    loops_.emplace(range, loops_.size());
    const bool is_thread = range.axis() == AxisType::kThread;
    const std::string from = is_thread ? bound("first", range.dtype()) : "0";
    const std::string to = is_thread ? bound("last", range.dtype()) : text(range.src(0));
    const std::string name = "%" + unique(fmt::format("r{}", range.range_id()));
    line(fmt::format("br label %loop{}", k));
    const std::string before = block_;
    label("loop" + k);
    line(fmt::format("{0} = phi {1} [ {2}, %{3} ], [ {0}.next, %next{4} ]", name, t, from, before,
                     k));
    line(fmt::format("{0}.in = icmp slt {1} {0}, {2}", name, t, to));
    line(fmt::format("br i1 {0}.in, label %body{1}, label %done{1}", name, k));
    label("body" + k);
    bind(range, name);
  }

  void close_loop(UOp range) override {
    const size_t k = loops_.at(range);
    line(fmt::format("br label %next{}", k));
    label(fmt::format("next{}", k));
    line(fmt::format("{0}.next = add nuw nsw {1} {0}, 1", text(range), type(range.dtype())));
    line(fmt::format("br label %loop{}", k));
    label(fmt::format("done{}", k));
  }

  void open_if(UOp n) override {
    ifs_.push_back(next("if"));
    line(fmt::format("br i1 {0}, label %{1}.then, label %{1}.end", text(n.src(0)), ifs_.back()));
    label(ifs_.back() + ".then");
  }

  void close_if(UOp) override {
    line(fmt::format("br label %{}.end", ifs_.back()));
    label(ifs_.back() + ".end");
    ifs_.pop_back();
  }

  void read_register(UOp after, UOp reg) override {
    if (reg.is(Op::DEFINE_GLOBAL)) return bind(after, read(text(reg), after.dtype()));
    bind(after, emit(fmt::format("load {}, ptr {}", type(after.dtype()), text(reg))));
  }

  void write_register(UOp n, UOp reg) override {
    const UOp value = n.src(1);
    if (reg.is(Op::DEFINE_GLOBAL)) return write(text(reg), value);
    line(fmt::format("store {} {}, ptr {}", type(value.dtype()), text(value), text(reg)));
  }

  void address(UOp n) override {
    const UOp i = n.src(1);
    std::string index = text(i);
    if (n.dtype().is_vector()) {
      index = emit(fmt::format("mul {} {}, {}", type(i.dtype()), index, n.dtype().lanes));
    }
    bind(n, emit(fmt::format("getelementptr {}, ptr {}, {} {}", type(stored(n.dtype().element())),
                             text(n.src(0)), type(i.dtype()), index)));
  }

  void load(UOp n) override {
    const std::string at = text(n.src(0));
    if (n.src_count() == 1) return bind(n, read(at, n.dtype()));
    const bool is_masked = n.src(1).dtype().is_vector();
    const std::string gate = is_masked ? any_lane(n.src(1)) : text(n.src(1));
    const std::string k = next("gate"), before = block_;
    line(fmt::format("br i1 {0}, label %{1}.on, label %{1}.end", gate, k));
    label(k + ".on");
    const std::string value = is_masked ? masked_load(n) : read(at, n.dtype());
    line(fmt::format("br label %{}.end", k));
    label(k + ".end");
    bind(n, emit(fmt::format("phi {} [ {}, %{}.on ], [ {}, %{} ]", type(n.dtype()), value, k,
                             text(n.src(2)), before)));
  }

  void store(UOp n) override {
    if (n.src_count() == 2) return write(text(n.src(0)), n.src(1));
    if (n.src(2).dtype().is_vector()) return masked_store(n);
    const std::string k = next("gate");
    line(fmt::format("br i1 {0}, label %{1}.on, label %{1}.end", text(n.src(2)), k));
    label(k + ".on");
    write(text(n.src(0)), n.src(1));
    line(fmt::format("br label %{}.end", k));
    label(k + ".end");
  }

  void value(UOp n) override {
    if (n.is(Op::VECTORIZE)) return bind(n, vectorize(n));
    if (n.is(Op::GEP)) return bind(n, shuffle(n));
    const DType from = n.srcs().back().dtype();
    if (n.is(Op::CAST) && from != n.dtype() && has_half(from, n.dtype()))
      return bind(n, half_cast(n));
    const LlvmRow* row = llvm_row(n);
    if (row == nullptr) no_text(n);
    std::vector<std::string> operands;
    for (UOp s : n.srcs()) operands.push_back(text(s));
    const char* wrap = !never_wraps_in(n) ? "" : from.is_unsigned() ? " nuw" : " nsw";
    bind(n, expand(row->text, operands, from, n.dtype(), wrap));
  }

 private:
  static bool never_wraps_in(UOp n) {
    const bool is_sum = n.is(Op::ADD) || n.is(Op::SUB) || n.is(Op::MUL);
    return is_sum && !n.dtype().is_vector() && never_wraps(n);
  }

  // ------------------------------------------------------------------------------ memory

  // Memory is aligned to its elements.
  std::string read(const std::string& at, DType t) {
    const DType m = stored(t);
    const std::string value =
        emit(fmt::format("load {}, ptr {}, align {}", type(m), at, t.item_bytes()));
    return t.is_bool() ? emit(fmt::format("trunc {} {} to {}", type(m), value, type(t))) : value;
  }

  std::string as_stored(UOp value) {
    const DType t = value.dtype();
    if (!t.is_bool()) return text(value);
    return emit(fmt::format("zext {} {} to {}", type(t), text(value), type(stored(t))));
  }

  void write(const std::string& at, UOp value) {
    const DType t = value.dtype();
    const std::string v = as_stored(value);
    line(fmt::format("store {} {}, ptr {}, align {}", type(stored(t)), v, at, t.item_bytes()));
  }

  // A read of no lanes is skipped: where it would leave the memory of the process, the processor
  // takes long to find that no lane does.
  std::string any_lane(UOp mask) {
    const std::string lanes = type(mask.dtype());
    const std::string name = fmt::format("@llvm.vector.reduce.or.v{}i1", mask.dtype().lanes);
    declarations_.insert(fmt::format("declare i1 {}({})\n", name, lanes));
    return emit(fmt::format("call i1 {}({} {})", name, lanes, text(mask)));
  }

  std::string masked_load(UOp n) {
    const DType t = n.dtype(), m = stored(t), gate = n.src(1).dtype();
    const std::string name = fmt::format("@llvm.masked.load.{}.p0", suffix(m));
    declarations_.insert(
        fmt::format("declare {0} {1}(ptr, i32, {2}, {0})\n", type(m), name, type(gate)));
    const std::string otherwise = as_stored(n.src(2));
    const std::string value =
        emit(fmt::format("call {0} {1}(ptr {2}, i32 {3}, {4} {5}, {0} {6})", type(m), name,
                         text(n.src(0)), t.item_bytes(), type(gate), text(n.src(1)), otherwise));
    return t.is_bool() ? emit(fmt::format("trunc {} {} to {}", type(m), value, type(t))) : value;
  }

  void masked_store(UOp n) {
    const UOp value = n.src(1);
    const DType m = stored(value.dtype()), gate = n.src(2).dtype();
    const std::string name = fmt::format("@llvm.masked.store.{}.p0", suffix(m));
    declarations_.insert(
        fmt::format("declare void {}({}, ptr, i32, {})\n", name, type(m), type(gate)));
    const std::string v = as_stored(value);
    line(fmt::format("call void {}({} {}, ptr {}, i32 {}, {} {})", name, type(m), v, text(n.src(0)),
                     value.dtype().item_bytes(), type(gate), text(n.src(2))));
  }

  // ----------------------------------------------------------------------------- vectors

  std::string splat(DType t, const std::string& one) {
    const std::string first =
        emit(fmt::format("insertelement {} poison, {} {}, i32 0", type(t), type(t.element()), one));
    return emit(fmt::format("shufflevector {0} {1}, {0} poison, <{2} x i32> zeroinitializer",
                            type(t), first, t.lanes));
  }

  std::string vectorize(UOp n) {
    const DType t = n.dtype();
    const auto srcs = n.srcs();
    if (std::all_of(srcs.begin(), srcs.end(), [](UOp s) { return s.is_const(); })) {
      std::string lanes;
      for (UOp s : srcs) {
        lanes += fmt::format("{}{} {}", lanes.empty() ? "" : ", ", type(s.dtype()), text(s));
      }
      return fmt::format("<{}>", lanes);
    }
    if (is_splat(n)) return splat(t, text(srcs[0]));
    std::string v = "poison";
    for (size_t k = 0; k < srcs.size(); k++) {
      v = emit(fmt::format("insertelement {} {}, {} {}, i32 {}", type(t), v, type(t.element()),
                           text(srcs[k]), k));
    }
    return v;
  }

  std::string shuffle(UOp n) {
    const UOp from = n.src(0);
    const std::string t = type(from.dtype());
    if (!from.dtype().is_vector()) return splat(n.dtype(), text(from));
    if (n.ints().size() == 1) {
      return emit(fmt::format("extractelement {} {}, i32 {}", t, text(from), n.ints()[0]));
    }
    std::string lanes;
    for (const int64_t lane : n.ints())
      lanes += fmt::format("{}i32 {}", lanes.empty() ? "" : ", ", lane);
    return emit(fmt::format("shufflevector {0} {1}, {0} poison, <{2} x i32> <{3}>", t, text(from),
                            n.ints().size(), lanes));
  }

  // ------------------------------------------------------------------------------ elementwise

  // The lines of a row; what its last one gives.
  std::string expand(std::string_view rows, const std::vector<std::string>& operands, DType from,
                     DType to, std::string_view wrap) {
    if (rows.empty()) return operands[0];
    const std::string name = next("v");
    while (true) {
      const size_t cut = rows.find('\n');
      std::string_view row = rows.substr(0, cut);
      std::string target = "%" + name;
      if (row.substr(1, 3) == " = ") {
        target += fmt::format(".{}", row[0]);
        row.remove_prefix(4);
      }
      line(fmt::format("{} = {}", target,
                       row.starts_with("call ") ? call(row.substr(5), operands, from)
                                                : fill(row, name, operands, from, to, wrap)));
      if (cut == rows.npos) return "%" + name;
      rows.remove_prefix(cut + 1);
    }
  }

  std::string call(std::string_view what, const std::vector<std::string>& operands, DType t) {
    const std::string name = fmt::format("@llvm.{}.{}", what, suffix(t));
    std::string arguments, parameters;
    for (size_t i = 0; i < operands.size(); i++) {
      const char* comma = i > 0 ? ", " : "";
      arguments += fmt::format("{}{} {}", comma, type(t), operands[i]);
      parameters += comma + type(t);
    }
    declarations_.insert(fmt::format("declare {} {}({})\n", type(t), name, parameters));
    return fmt::format("call {} {}({})", type(t), name, arguments);
  }

  static std::string fill(std::string_view row, const std::string& name,
                          const std::vector<std::string>& operands, DType from, DType to,
                          std::string_view wrap) {
    std::string out;
    for (size_t i = 0; i < row.size(); i++) {
      if (row[i] == '%') {
        out += fmt::format("%{}.", name);
        continue;
      }
      if (row[i] != '$') {
        out += row[i];
        continue;
      }
      const double end = std::ldexp(1.0, to.bits() - (to.is_signed() ? 1 : 0));
      switch (row[++i]) {
        case 'T': out += type(from); break;
        case 'R': out += type(to); break;
        case 'B': out += type(dtypes::bool_.vec(from.lanes)); break;
        case 'I': out += type(integer_of_width(from)); break;
        case 'z': out += literal(from, 0); break;
        case 'o': out += literal(from, bits_of_int(from, 1)); break;
        case 'n': out += literal(from, bits_of_int(from, -1)); break;
        case 'W': out += literal(from, uint64_t(from.bits())); break;
        case 'm': out += literal(to, least_bits(to)); break;
        case 'g': out += literal(to, greatest_bits(to)); break;
        case 'l': out += literal(from, bits_of_double(from, -end)); break;
        case 'h': out += literal(from, bits_of_double(from, end)); break;
        case 'w': out += wrap; break;
        default: out += operands[size_t(row[i] - '0')];
      }
    }
    return out;
  }

  // -------------------------------------------------------------------------- float16

  static bool has_half(DType a, DType b) {
    return a.scalar == Scalar::kFloat16 || b.scalar == Scalar::kFloat16;
  }

  // Between float16, held as its bits, and any other dtype, through float32, which has room for it:
  // an integer that float32 rounds is infinite in float16 anyway; a float64 is cut to float32's
  // digits with the last one set where any was lost, so that only the second rounding counts.
  std::string half_cast(UOp n) {
    const DType from = n.src(0).dtype(), to = n.dtype();
    const DType single = dtypes::float32.vec(from.lanes);
    const DType half = {Scalar::kFloat16, AddrSpace::kNone, from.lanes};
    const std::string h = from.is_vector() ? fmt::format("<{} x half>", from.lanes) : "half";
    const auto step = [&](Op op, const std::string& x, DType a, DType b) {
      const LlvmRow* row = llvm_row(op, a, b);
      if (row == nullptr) no_text(n);
      return expand(row->text, {x}, a, b, "");
    };
    if (from.scalar == Scalar::kFloat16) {
      const std::string x = emit(fmt::format("bitcast {} {} to {}", type(from), text(n.src(0)), h));
      const std::string wide = emit(fmt::format("fpext {} {} to {}", h, x, type(single)));
      return step(Op::CAST, wide, single, to);
    }
    std::string x = text(n.src(0));
    if (from.scalar == Scalar::kFloat64) {
      x = expand(
          "i = bitcast $T $0 to $I\nh = and $I %i, $1\nl = and $I %i, $2\n"
          "z = icmp eq $I %l, zeroinitializer\no = or $I %h, $3\n"
          "r = select $B %z, $I %h, $I %o\nbitcast $I %r to $T",
          {x, literal(integer_of_width(from), ~uint64_t(0x1fffffff)),
           literal(integer_of_width(from), 0x1fffffff),
           literal(integer_of_width(from), 0x20000000)},
          from, from, "");
    }
    x = step(Op::CAST, x, from, single);
    x = emit(fmt::format("fptrunc {} {} to {}", type(single), x, h));
    return emit(fmt::format("bitcast {} {} to {}", h, x, type(half)));
  }

  // ------------------------------------------------------------------------------- the function

  void bind_arguments() {
    for (UOp n : signature_.globals) {
      const std::string name = "%" + unique(fmt::format("data{}", n.number()));
      line(fmt::format("{}.at = getelementptr ptr, ptr %buffers, i64 {}", name, n.number()));
      line(fmt::format("{0} = load ptr, ptr {0}.at", name));
      bind(n, name);
    }
    for (size_t k = 0; k < signature_.variables.size(); k++) {
      const UOp n = signature_.variables[k];
      const std::string at = emit(fmt::format("getelementptr i64, ptr %variables, i64 {}", k));
      const std::string wide = emit(fmt::format("load i64, ptr {}", at));
      const bool is_wide = n.dtype().bits() == 64;
      bind(n, is_wide ? wide : emit(fmt::format("trunc i64 {} to {}", wide, type(n.dtype()))));
    }
    for (const auto& [n, offset] : signature_.locals) {
      const std::string name = "%" + unique(fmt::format("local{}", n.number()));
      line(fmt::format("{} = getelementptr i8, ptr %scratch, i64 {}", name, offset));
      bind(n, name);
    }
    for (UOp n : signature_.registers) {
      const std::string name = "%" + unique(fmt::format("acc{}", n.number()));
      line(fmt::format("{} = alloca {}", name, type(n.dtype())));
      bind(n, name);
    }
  }

  std::string bound(std::string_view name, DType t) {
    if (t.bits() == 64) return fmt::format("%{}", name);
    return emit(fmt::format("trunc i64 %{} to {}", name, type(t)));
  }

  std::string emit(const std::string& instruction) {
    const std::string name = "%" + next("v");
    line(fmt::format("{} = {}", name, instruction));
    return name;
  }

  void line(std::string_view text) { body_ += fmt::format("  {}\n", text); }

  void label(const std::string& name) {
    body_ += name + ":\n";
    block_ = name;
  }

  std::string body_, block_ = "entry";
  std::unordered_map<UOp, size_t> loops_;  // their numbers
  std::vector<std::string> ifs_;
  std::set<std::string> declarations_;
};

}  // namespace

std::string render_llvm(UOp linear, std::string_view name) {
  return LlvmRenderer(linear).run(name);
}

}  // namespace weft
