// Programs -> C11 with the vector extensions of GCC and clang.
#include <bit>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scalar.h"
#include "render/c_ops.h"
#include "render/c_style.h"
#include "render/render.h"
#include "render/renderer.h"

namespace weft {
namespace {

constexpr auto kTypes = c_types({Scalar::kBool, "b8", "_Bool"});

const CType& type_row(DType t) {
  for (const CType& row : kTypes) {
    if (row.scalar == held_as(t).scalar) return row;
  }
  throw CompileError(fmt::format("render: C has no type for {}", t.name()));
}

class CRenderer : public CStyleRenderer {
 public:
  explicit CRenderer(UOp linear) : CStyleRenderer(linear) {}

  std::string run(std::string_view name) {
    find_accumulators();
    bind_arguments();
    find_folds();
    walk();
    std::string out = "#pragma STDC FP_CONTRACT OFF\n";
    for (const CType& row : kTypes) {
      if (scalars_.contains(row.scalar))
        out += fmt::format("typedef {} {};\n", row.defined_as, row.name);
    }
    out += vector_types() + functions_;
    out += fmt::format(
        "void {}(void* const* buffers, const long long* variables, void* scratch, long long first, "
        "long long last) {{\n",
        name);
    out += "  (void)buffers, (void)variables, (void)scratch, (void)first, (void)last;\n";
    return out + arguments_ + body_ + "}\n";
  }

 protected:
  std::string type(DType t) override {
    const CType& row = type_row(t);
    scalars_.insert(row.scalar);
    if (!t.is_vector()) return std::string(row.name);
    if (!std::has_single_bit(unsigned(t.lanes))) {
      throw CompileError(fmt::format("render: C has no vectors of {} lanes", t.lanes));
    }
    if (t.is_bool()) scalars_.insert(Scalar::kInt8);
    vectors_.insert({row.scalar, t.lanes});
    return fmt::format("{}x{}", row.name, t.lanes);
  }

  // Memory is read and written as whatever it is asked for, and is aligned to its elements only.
  std::string memory_type(DType t) override {
    const std::string name = type(t);
    memory_.insert({type_row(t).scalar, t.lanes});
    return name + "m";
  }

  CRow row(UOp n) override { return c_row(n); }

  std::string constant(UOp n) override {
    const DType t = held_as(n.dtype()), element = t.element();
    const std::string one = element.is_float()  ? float_constant(element, n.bits())
                            : element.is_bool() ? std::string(n.bits() != 0 ? "1" : "0")
                                                : c_integer(element, n.bits());
    return t.is_vector() ? splat(t, one) : one;
  }

  void open_loop(UOp range) override {
    CStyleRenderer::open_loop(range);
    if (accumulators_[range].size() > 1)
      line("__asm__ volatile(\"\");  // stays a loop of scalars");
  }

  std::string vectorize(UOp n) override {
    if (is_splat(n)) return splat(n.dtype(), text(n.src(0)));
    std::string lanes;
    for (UOp s : n.srcs()) lanes += (lanes.empty() ? "" : ", ") + operand(s, kChoice);
    return fmt::format("({}){{{}}}", type(n.dtype()), lanes);
  }

  std::string shuffle(UOp n) override {
    const std::string from = n.src(0).is_const() ? "(" + text(n.src(0)) + ")" : text(n.src(0));
    if (!n.src(0).dtype().is_vector()) return splat(n.dtype(), from);
    if (n.ints().size() == 1) return fmt::format("{}[{}]", from, n.ints()[0]);
    std::string lanes;
    for (const int64_t lane : n.ints()) lanes += fmt::format(", {}", lane);
    return fmt::format("__builtin_shufflevector({0}, {0}{1})", from, lanes);
  }

 private:
  std::string float_constant(DType t, uint64_t bits) {
    const double value = double_of_bits(t, bits);
    if (std::isinf(value)) {
      return fmt::format("{}__builtin_inf{}()", value < 0 ? "-" : "",
                         t.scalar == Scalar::kFloat32 ? "f" : "");
    }
    if (!std::isnan(value)) return c_float(t, bits);
    const DType word = t.bits() == 32 ? dtypes::uint32 : dtypes::uint64;
    const std::string name = fmt::format("{}_of_bits", type(t));
    function(name,
             fmt::format("static inline {} {}({} a) {{ {} r; __builtin_memcpy(&r, &a, sizeof r); "
                         "return r; }}\n",
                         type(t), name, type(word), type(t)));
    return fmt::format("{}({:#x}u{})", name, bits, t.bits() == 64 ? "ll" : "");
  }

  std::string splat(DType t, const std::string& one) {
    const std::string name = "splat_" + type(t);
    std::string lanes = "a";
    for (int k = 1; k < t.lanes; k++) lanes += ", a";
    function(name, fmt::format("static inline {0} {1}({2} a) {{ return ({0}){{{3}}}; }}\n", type(t),
                               name, type(t.element()), lanes));
    return fmt::format("{}({})", name, one);
  }

  // GCC 12 makes vectors of scalar accumulators that stand side by side, and loses iterations of
  // those that are converted on the way, and the gates of what they take in. A loop with an
  // assembler statement, be it empty, is left as it is.
  void find_accumulators() {
    std::vector<UOp> open{UOp()};
    for (UOp n : linear_.srcs()) {
      if (n.is(Op::RANGE)) open.push_back(n);
      if (n.is(Op::END)) open.resize(open.size() - (n.src_count() - 1));
      if (!n.is(Op::STORE) || !is_register(n.src(0)) || !open.back()) continue;
      if (!n.src(1).dtype().is_vector()) accumulators_[open.back()].insert(place_of(n.src(0)).base);
    }
  }

  void bind_arguments() {
    const auto declare = [&](std::string_view text) { arguments_ += fmt::format("  {}\n", text); };
    for (UOp n : signature_.globals) {
      const std::string name = unique(fmt::format("data{}", n.number()));
      const bool is_pointer = n.dtype().is_pointer();
      const std::string t = memory_type(is_pointer ? n.dtype().element() : n.dtype());
      declare(fmt::format("{0}* {1} = ({0}*)buffers[{2}];", t, name, n.number()));
      bind(n, is_pointer ? name : fmt::format("(*{})", name));
    }
    for (size_t k = 0; k < signature_.variables.size(); k++) {
      const UOp n = signature_.variables[k];
      std::string wish = "v_";
      for (const char c : n.name()) wish += std::isalnum((unsigned char)c) != 0 ? c : '_';
      const std::string name = unique(wish);
      declare(fmt::format("{0} {1} = ({0})variables[{2}];", type(n.dtype()), name, k));
      bind(n, name);
    }
    for (const auto& [n, offset] : signature_.locals) {
      const std::string name = unique(fmt::format("local{}", n.number()));
      declare(fmt::format("{0}* {1} = ({0}*)((char*)scratch + {2});",
                          memory_type(n.dtype().element()), name, offset));
      bind(n, name);
    }
    for (UOp n : signature_.registers) {
      const std::string name = unique(fmt::format("acc{}", n.number()));
      declare(fmt::format("{} {};", type(n.dtype()), name));
      bind(n, name);
    }
  }

  std::string vector_types() const {
    std::string out;
    const auto element = [](Scalar s) { return s == Scalar::kBool ? Scalar::kInt8 : s; };
    for (const auto& [scalar, lanes] : vectors_) {
      out += fmt::format("typedef {} {}x{} __attribute__((vector_size({})));\n",
                         type_row(DType{element(scalar)}).name, type_row(DType{scalar}).name, lanes,
                         DType{scalar}.item_bytes() * lanes);
    }
    for (const auto& [scalar, lanes] : memory_) {
      const CType& row = type_row(DType{scalar});
      const std::string name =
          lanes == 1 ? std::string(row.name) : fmt::format("{}x{}", row.name, lanes);
      out += fmt::format("typedef {0} {0}m __attribute__((may_alias, aligned({1})));\n", name,
                         DType{scalar}.item_bytes());
    }
    return out;
  }

  std::string arguments_;
  std::unordered_map<UOp, std::unordered_set<UOp>> accumulators_;  // scalars written in a loop
  std::set<Scalar> scalars_;
  std::set<std::pair<Scalar, uint16_t>> vectors_, memory_;
};

}  // namespace

std::string render_c(UOp linear, std::string_view name) { return CRenderer(linear).run(name); }

}  // namespace weft
