// Programs -> C-like languages of GPUs, by the names of a dialect.
#include "render/gpu_c.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "codegen/target.h"
#include "ir/box.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scalar.h"
#include "render/c_ops.h"
#include "render/c_style.h"
#include "render/renderer.h"
#include "rewrite/pattern.h"

namespace weft {
namespace {

constexpr DTypeSet kReals = set_of(Scalar::kFloat32) | set_of(Scalar::kFloat64);
constexpr DTypeSet kBytes = set_of(Scalar::kInt8) | set_of(Scalar::kUInt8);

// Where the text of C is that of its compilers. The others are c_row's.
// clang-format off
constexpr CRow kRows[] = {
  {{Op::SQRT},   kReals, "sqrt($0)",  kPostfix},
  {{Op::TRUNC},  kReals, "trunc($0)", kPostfix},
  {{Op::FLOOR},  kReals, "floor($0)", kPostfix},
  {{Op::CEIL},   kReals, "ceil($0)",  kPostfix},
  {{Op::ROUND},  kReals, "rint($0)",  kPostfix},
  {{Op::MULACC}, kReals, "fma($0, $1, $2)", kPostfix},
  {{Op::MAX}, kReals, "max_$s($0, $1)", kPostfix, kAny, {},
   "return a > b || a != a ? a : a == b && !signbit(a) ? a : b;"},
  {{Op::MIN}, kReals, "min_$s($0, $1)", kPostfix, kAny, {},
   "return a < b || a != a ? a : a == b && signbit(a) ? a : b;"},
};
constexpr CRow kBoolOfByte = {{Op::BITCAST}, kBools, "$0 != 0", kCompare, kShift};
constexpr CRow kByteOfBool = {{Op::BITCAST}, kBytes, "($T)$0", kPrefix, kPrefix};
// clang-format on

struct NativeRow {
  OpSet ops;
  DTypeSet dtypes;
};
// Of the dtypes that have arithmetic.
constexpr NativeRow kNative[] = {
    {{Op::ADD, Op::MUL, Op::MAX, Op::MIN, Op::CMPLT, Op::CMPEQ, Op::CMPNE, Op::CAST}, kAnyDType},
    {{Op::SUB, Op::NEG, Op::MULACC}, kReals | kMachineInts},
    {{Op::AND, Op::OR, Op::XOR, Op::NOT}, kMachineInts | kBools},
    {{Op::CDIV, Op::CMOD, Op::SHL, Op::SHR}, kMachineInts},
    {{Op::FDIV, Op::RECIP, Op::SQRT, Op::TRUNC, Op::FLOOR, Op::CEIL, Op::ROUND}, kReals},
};

struct Name {
  char key;
  std::string value;
};
std::string filled(std::string_view pattern, std::initializer_list<Name> names) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); i++) {
    if (pattern[i] != '$') {
      out += pattern[i];
      continue;
    }
    i++;
    for (const Name& name : names) {
      if (name.key == pattern[i]) out += name.value;
    }
  }
  return out;
}

class GpuCRenderer : public CStyleRenderer {
 public:
  GpuCRenderer(UOp linear, const GpuDialect& dialect) : CStyleRenderer(linear), dialect_(dialect) {
    for (UOp n : linear.srcs()) {
      if (n.is(Op::FETCH)) has_fetches_ = true;
      if (n.is(Op::COMMIT)) commits_++;
      if (n.is(Op::WMMA)) added_to_.insert(n.src(0));
      if (n.is(Op::WMMA) && !n.src(1).dtype().is_pointer()) has_held_factors_ = true;
      if (n.is(Op::STORE) && n.src(1).is(Op::WMMA)) sums_.insert(place_of(n.src(0)).base);
    }
  }

  std::string run(std::string_view name) {
    bind_arguments();
    find_folds();
    walk();
    std::string out(dialect_.start);
    for (const CType& t : dialect_.types) {
      if (scalars_.contains(t.scalar) && !t.defined_as.empty()) {
        out += fmt::format("typedef {} {};\n", t.defined_as, t.name);
      }
    }
    out += vector_types() + functions_;
    const int64_t all = threads_[0] * threads_[1] * threads_[2];
    out += filled(dialect_.kernel, {{'x', fmt::format("{}", threads_[0])},
                                    {'y', fmt::format("{}", threads_[1])},
                                    {'z', fmt::format("{}", threads_[2])},
                                    {'n', fmt::format("{}", all)}});
    return out + fmt::format("{}({}{}) {{\n", name, parameters_, dialect_.more_parameters) +
           declarations_ + body_ + "}\n";
  }

 protected:
  std::string type(DType t) override {
    const CType& row = type_row(t);
    if (!t.is_vector()) {
      scalars_.insert(row.scalar);
      return std::string(row.name);
    }
    const DType element = in_memory(held_as(t)).element();
    vectors_.insert({element.scalar, t.lanes});
    return vector_name(element, t.lanes);
  }

  std::string memory_type(DType t) override { return type(in_memory(t)); }
  std::string_view function_start() const override { return dialect_.function_start; }
  std::string integer(DType t, uint64_t bits) override {
    return c_integer(t, bits, dialect_.suffix_of_64_bits);
  }

  CRow row(UOp n) override {
    const DType from = n.srcs().back().dtype(), to = n.dtype();
    if (to.is_vector() || from.is_vector()) no_text(n);
    if (n.is(Op::BITCAST)) return bitcast_row(held_as(from), held_as(to), n);
    if (n.is(Op::CAST)) {
      for (const GpuCast& cast : dialect_.casts) {
        const bool is_it = (cast.from & set_of(from.scalar)) != 0 &&
                           (cast.to & set_of(to.scalar)) != 0 && from != to;
        if (is_it) return cast.row;
      }
      const bool is_known = held_as(from) == from && held_as(to) == to;
      if (from != to && !is_known) no_text(n);
      return c_row(n);
    }
    for (const CRow& r : dialect_.rows) {
      if (r.ops.has(n.op()) && (r.dtypes & set_of(from.scalar)) != 0) return r;
    }
    if (const CRow* r = find_row(kRows, n.op(), from)) return *r;
    return c_row(n);
  }

  std::string constant(UOp n) override {
    const DType t = held_as(n.dtype()), element = t.element();
    std::string one = element.is_float()  ? float_constant(element, n.bits())
                      : element.is_bool() ? std::string(n.bits() != 0 ? "1" : "0")
                                          : integer(element, n.bits());
    if (!t.is_vector()) return one;
    std::string lanes = one;
    for (int k = 1; k < t.lanes; k++) lanes += ", " + one;
    return filled(dialect_.make_vector, {{'T', type(t)}, {'L', lanes}});
  }

  void open_loop(UOp range) override {
    if (range.axis() == AxisType::kThread) no_text(range);
    CStyleRenderer::open_loop(range);
  }

  void special(UOp n) override {
    const std::string name = unique(std::string(n.name()));
    const auto dimension = size_t(n.name().back() - '0');
    const bool is_thread = n.name().starts_with("lidx");
    if (dimension > 2 || (!is_thread && !n.name().starts_with("gidx"))) no_text(n);
    if (is_thread) threads_[dimension] = n.src(0).const_int();
    const std::string t = type(n.dtype());
    line(fmt::format("{0} {1} = ({0}){2};", t, name,
                     (is_thread ? dialect_.thread : dialect_.group)[dimension]));
    bind(n, name);
  }

  void barrier(UOp) override { line(dialect_.barrier); }

  void product(UOp n) override {
    if (dialect_.tensor == nullptr) no_text(n);
    const bool is_held = !n.src(1).dtype().is_pointer();
    const DType factor = n.src(1).dtype().element();
    const bool is_first = n.src(0).is_const() && n.src(0).bits() == 0 && !is_held;
    const std::string name = fmt::format("wmma_{}_{}_{}{}{}", factor.name(), n.ints()[0],
                                         is_held ? "r" : std::to_string(n.ints()[1]), n.ints()[2],
                                         is_first ? "_first" : "");
    const std::string of_a = is_held ? type(n.src(1).dtype()) : memory_type(factor);
    function(name, dialect_.tensor->function(n, name, type(n.dtype()), memory_type(factor), of_a));
    define(n,
           fmt::format("{}({}{}, {}, {})", name, is_first ? "" : text(n.src(0)) + ", ",
                       is_held ? text(n.src(1)) : start_of(n.src(1)), start_of(n.src(2)),
                       text(n.src(3))),
           kPostfix);
  }

  void copy(UOp n) override {
    if (dialect_.tensor == nullptr) no_text(n);
    const GpuTensorText& words = *dialect_.tensor;
    function("fetch", std::string(words.functions));
    if (!signature_.boxed.empty()) function("fetch_box", std::string(words.box_functions));
    if (n.is(Op::COMMIT)) return commit(n, words);
    if (n.is(Op::FETCH_BOX)) return fetch_box(n, words);
    if (n.is(Op::FETCH) && !n.src(1).dtype().is_pointer()) {
      return line(filled(words.put, {{'p', start_of(n.src(0))}, {'v', text(n.src(1))}}));
    }
    if (n.is(Op::FETCH)) {
      return line(filled(words.fetch, {{'p', start_of(n.src(0))},
                                       {'f', start_of(n.src(1))},
                                       {'g', n.src_count() == 3 ? text(n.src(2)) : "1"}}));
    }
    const std::string left = fmt::format("{}", n.number());
    line(filled(words.wait_products, {{'n', has_held_factors_ ? "0" : "1"}}));
    if (has_fetches_) line(filled(words.wait, {{'n', left}}));
    if (!signature_.boxed.empty()) line(filled(words.wait_boxes, {{'n', left}}));
  }

  // Sums of a WMMA are under way until something else reads them.
  void read_register(UOp after, UOp reg) override {
    if (sums_.contains(reg) && !added_to_.contains(after)) {
      line(filled(dialect_.tensor->done, {{'v', text(reg)}}));
    }
    CStyleRenderer::read_register(after, reg);
  }

  std::string vectorize(UOp n) override {
    // Arithmetic on narrow integers gives int.
    const bool is_cast = !dialect_.converts_lanes && in_memory(held_as(n.dtype())).bits() < 32;
    const std::string cast = is_cast ? fmt::format("({})", memory_type(n.dtype().element())) : "";
    std::string lanes;
    for (UOp s : n.srcs()) {
      lanes += (lanes.empty() ? "" : ", ") + cast + operand(s, is_cast ? kPrefix : kChoice);
    }
    return filled(dialect_.make_vector, {{'T', type(n.dtype())}, {'L', lanes}});
  }

  std::string shuffle(UOp n) override {
    const std::string from = text(n.src(0));
    if (!n.src(0).dtype().is_vector() || n.src(0).is_const()) no_text(n);
    std::string lanes;
    for (const int64_t lane : n.ints()) {
      const auto at = size_t(lane);
      lanes += fmt::format("{}{}{}", lanes.empty() ? "" : ", ", from,
                           at < dialect_.lanes.size()
                               ? std::string(dialect_.lanes[at])
                               : filled(dialect_.any_lane, {{'n', fmt::format("{}", at)}}));
    }
    if (!n.dtype().is_vector()) return lanes;
    return filled(dialect_.make_vector, {{'T', type(n.dtype())}, {'L', lanes}});
  }

  std::string read_vector(UOp pointer) override {
    const bool is_apart = !dialect_.read_unaligned.empty() && !is_aligned(pointer);
    return access(is_apart ? dialect_.read_unaligned : dialect_.read_vector, pointer, {});
  }
  std::string write_vector(UOp pointer, const std::string& value) override {
    const bool is_apart = !dialect_.write_unaligned.empty() && !is_aligned(pointer);
    const std::string_view pattern = is_apart ? dialect_.write_unaligned : dialect_.write_vector;
    return access(pattern, pointer, value) + ";";
  }

  void load(UOp n) override {
    refuse_mask(n, 1);
    CStyleRenderer::load(n);
  }
  void store(UOp n) override {
    refuse_mask(n, 2);
    CStyleRenderer::store(n);
  }

 private:
  void fetch_box(UOp n, const GpuTensorText& words) {
    const Signature::BoxedArray array{n.src(kBoxFrom), Box::of(n)};
    const auto place = std::ranges::find(signature_.boxed, array) - signature_.boxed.begin();
    std::string at;
    for (UOp s : n.srcs().subspan(kBoxAt)) at += (at.empty() ? "" : ", ") + text(s);
    line(filled(words.fetch_box, {{'p', start_of(n.src(kBoxTo))},
                                  {'m', boxed_[size_t(place)]},
                                  {'t', operand(n.src(kBoxThread), kShift)},
                                  {'g', operand(n.src(kBoxGate), kCompare)},
                                  {'L', at}}));
  }

  void commit(UOp n, const GpuTensorText& words) {
    if (has_fetches_) line(words.commit);
    if (signature_.boxed.empty()) return;
    // What one gate is for is one number.
    std::vector<std::pair<UOp, int64_t>> bytes;
    UOp thread;
    for (UOp s : n.srcs()) {
      if (!s.is(Op::FETCH_BOX)) continue;
      thread = s.src(kBoxThread);
      const int64_t of_it =
          Box::of(s).rows * kBoxWidth * s.src(kBoxFrom).dtype().pointee().item_bytes();
      const auto at = std::ranges::find(bytes, s.src(kBoxGate), &std::pair<UOp, int64_t>::first);
      if (at == bytes.end()) {
        bytes.emplace_back(s.src(kBoxGate), of_it);
      } else {
        at->second += of_it;
      }
    }
    std::string all;
    for (const auto& [gate, count] : bytes) {
      all +=
          fmt::format("{}({} ? {} : 0)", all.empty() ? "" : " + ", operand(gate, kCompare), count);
    }
    line(filled(words.commit_boxes,
                {{'B', bytes.empty() ? "0" : all}, {'t', thread ? operand(thread, kShift) : "1"}}));
  }

  static DType in_memory(DType t) {
    return t.is_bool() ? DType{Scalar::kUInt8, t.space, t.lanes} : t;
  }

  const CType& type_row(DType t) const {
    for (const CType& row : dialect_.types) {
      if (row.scalar == held_as(t).scalar) return row;
    }
    throw InternalError(fmt::format("render: {} has no type for {}", dialect_.name, t.name()));
  }

  CRow bitcast_row(DType from, DType to, UOp n) const {
    if (from == to) return c_row(n);
    if (to.is_bool()) return kBoolOfByte;
    if (from.is_bool()) return kByteOfBool;
    return {{Op::BITCAST}, kAnyDType, "$s_as_$T($0)", kPostfix, kAny, {}, dialect_.bitcast_body};
  }

  // A gate per lane: codegen leaves none.
  void refuse_mask(UOp n, size_t gate) const {
    if (n.src_count() > gate && n.src(gate).dtype().is_vector()) no_text(n);
  }

  std::string float_constant(DType t, uint64_t bits) {
    if (std::isfinite(double_of_bits(t, bits))) return c_float(t, bits);
    const DType word = t.bits() == 32 ? dtypes::uint32 : dtypes::uint64;
    const std::string name = fmt::format("{}_as_{}", type(word), type(t));
    function(name, fmt::format("{} {} {}({} a) {{ {} }}\n", function_start(), type(t), name,
                               type(word), filled(dialect_.bitcast_body, {{'T', type(t)}})));
    return fmt::format("{}({:#x}u{})", name, bits,
                       t.bits() == 64 ? dialect_.suffix_of_64_bits : "");
  }

  std::string access(std::string_view pattern, UOp pointer, const std::string& value) {
    const DType t = pointer.dtype().pointee();
    const bool is_local = pointer.dtype().space == AddrSpace::kLocal;
    std::string start = start_of(pointer);
    if (start.starts_with('(')) start = start.substr(1, start.size() - 2);  // of a sum
    return filled(pattern,
                  {{'T', type(t)},
                   {'n', fmt::format("{}", t.lanes)},
                   {'S', std::string(is_local ? dialect_.local_space : dialect_.global_space)},
                   {'p', start},
                   {'v', value}});
  }

  void bind_arguments() {
    size_t place = 0;
    const auto add = [&](std::string_view pattern, const std::string& t, const std::string& name) {
      parameters_ += (place > 0 ? ", " : "") +
                     filled(pattern, {{'T', t}, {'N', name}, {'K', fmt::format("{}", place)}});
      place++;
    };
    for (UOp n : signature_.globals) {
      const std::string name = unique(fmt::format("data{}", n.number()));
      const bool is_pointer = n.dtype().is_pointer();
      add(dialect_.buffer, memory_type(is_pointer ? n.dtype().element() : n.dtype()), name);
      bind(n, is_pointer ? name : fmt::format("(*{})", name));
    }
    for (UOp n : signature_.variables) {
      std::string wish = "v_";
      for (const char c : n.name()) wish += std::isalnum((unsigned char)c) != 0 ? c : '_';
      const std::string name = unique(wish);
      add(dialect_.variable, type(n.dtype()), name);
      bind(n, name);
    }
    const bool is_one_piece = signature_.scratch_bytes > dialect_.most_local_bytes;
    if (is_one_piece) declarations_ += dialect_.locals;
    for (const auto& [n, offset] : signature_.locals) {
      const std::string name = unique(fmt::format("local{}", n.number()));
      const DType t = n.dtype().pointee();
      const int64_t size = n.src(0).const_int() * t.lanes;
      declarations_ += filled(is_one_piece ? dialect_.local_in_locals : dialect_.local,
                              {{'T', memory_type(t.element())},
                               {'N', name},
                               {'n', fmt::format("{}", is_one_piece ? int64_t(offset) : size)}});
      bind(n, name);
    }
    for (size_t i = 0; i < signature_.boxed.size(); i++) {
      if (dialect_.tensor == nullptr) no_text(linear_);
      boxed_.push_back(unique(fmt::format("boxes{}", i)));
      add(dialect_.tensor->boxed_array, {}, boxed_.back());
    }
    if (!boxed_.empty()) {
      const size_t groups = std::bit_ceil(commits_);
      declarations_ += filled(dialect_.tensor->begin_boxes, {{'n', fmt::format("{}", groups)}});
    }
    for (UOp n : signature_.registers) {
      const std::string name = unique(fmt::format("acc{}", n.number()));
      declarations_ += fmt::format("  {} {};\n", type(n.dtype()), name);
      bind(n, name);
    }
  }

  std::string vector_name(DType element, int lanes) {
    return filled(dialect_.vector_name, {{'T', type(element)}, {'n', fmt::format("{}", lanes)}});
  }

  std::string vector_types() {
    std::string out;
    if (dialect_.vector_defined_as.empty()) return out;
    for (const auto& [scalar, lanes] : vectors_) {
      const DType t{scalar};
      out += filled(dialect_.vector_defined_as, {{'T', type(t)},
                                                 {'N', vector_name(t, lanes)},
                                                 {'n', fmt::format("{}", lanes)},
                                                 {'B', fmt::format("{}", t.item_bytes() * lanes)}});
    }
    return out;
  }

  const GpuDialect& dialect_;
  std::string parameters_, declarations_;
  std::array<int64_t, 3> threads_{1, 1, 1};
  std::vector<std::string> boxed_;  // names of arrays
  bool has_fetches_ = false, has_held_factors_ = false;
  size_t commits_ = 0;
  std::unordered_set<UOp> sums_, added_to_;  // registers of WMMAs, what WMMAs read of them
  std::set<Scalar> scalars_;
  std::set<std::pair<Scalar, uint16_t>> vectors_;
};

}  // namespace

std::string render_gpu_c(UOp linear, std::string_view name, const GpuDialect& dialect) {
  return GpuCRenderer(linear, dialect).run(name);
}

Target gpu_c_target(std::string_view name, const GpuDialect& dialect, DTypeSet dtypes) {
  Target out;
  out.name = std::string(name);
  for (size_t i = 0; i < kOpCount; i++) {
    for (const NativeRow& row : kNative) {
      if (row.ops.has(Op(i))) out.native[i] |= row.dtypes & dtypes;
    }
    for (const CRow& row : dialect.rows) {
      if (row.ops.has(Op(i))) out.native[i] |= row.dtypes & dtypes;
    }
  }
  for (const Op op : {Op::BITCAST, Op::WHERE}) out.native[size_t(op)] = kAnyDType & ~kIndexes;
  for (const GpuCast& cast : dialect.casts) {
    out.native[size_t(Op::CAST)] |= cast.from | cast.to;
  }
  out.vector_bytes = 0;
  out.vector_arithmetic = false;
  return out;
}

}  // namespace weft
