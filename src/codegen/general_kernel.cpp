// Constants, taken out of a kernel and put back as formulas and loads.
#include "codegen/general_kernel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/hash.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "schedule/number_rules.h"
#include "schedule/skeleton.h"

namespace weft {
namespace {

using Kind = Number::Kind;

constexpr size_t kMostVariables = 32;

bool is_index_const(UOp n) { return n.is_const() && n.dtype().is_index(); }

// Whose constants are numbers. Others, like the size of local memory, have to be constants.
bool takes_numbers(UOp n) {
  constexpr OpSet k_ops = {Op::RANGE, Op::DEFINE_GLOBAL, Op::ADD,   Op::MUL,   Op::IDIV,
                           Op::MOD,   Op::CMPLT,         Op::CMPNE, Op::CMPEQ, Op::MAX,
                           Op::MIN,   Op::WHERE,         Op::INDEX};
  return k_ops.has(n.op());
}

Number number_of(UOp user, UOp constant) {
  const int64_t value = constant.const_int();
  constexpr OpSet k_positive = {Op::RANGE, Op::DEFINE_GLOBAL, Op::IDIV, Op::MOD};
  const bool is_size = k_positive.has(user.op()) && value > 0;
  return {value, is_size ? Kind::kSize : value < 0 ? Kind::kPlace : Kind::kOffset};
}

uint64_t tag_of(const Number& number) {
  if (number.value < 0) return 3;
  if (number.value < 2) return uint64_t(number.value);
  return 2;
}

// A float that is computed with.
bool is_scalar_use(UOp user, UOp source) {
  return source.is_const() && source.dtype().is_float() && source.dtype().lanes == 1 &&
         is_elementwise(user.op());
}

}  // namespace

KernelSkeleton kernel_skeleton(UOp root) {
  KernelSkeleton out{};
  NodeMap places(root.arena());
  uint64_t place = 0;
  const auto hash = [&](uint64_t word) { out.hash = mix(out.hash, word); };
  const auto hash_node = [&](UOp n) {
    hash(uint64_t(n.op()) | uint64_t(n.dtype().packed()) << 8 | n.src_count() << 40);
    const Arg arg = arg_of(n);
    if (arg.kind == ArgKind::None) return;
    out.hash =
        arg.bytes.empty() ? mix(out.hash, arg.word) : mix(out.hash, hash_bytes_128(arg.bytes));
  };
  for (UOp n : toposort(root)) {
    if (n.is_const()) continue;
    places.put_number(n, ++place);
    hash_node(n);
    for (UOp source : n.srcs()) {
      if (!source.is_const()) {
        hash(places.number(source));
      } else if (is_index_const(source) && takes_numbers(n)) {
        out.numbers.sizes.push_back(number_of(n, source));
        hash(~tag_of(out.numbers.sizes.back()));
      } else if (is_scalar_use(n, source)) {
        out.numbers.scalars.push_back(source.bits());
        hash(source.dtype().packed());
      } else {
        hash_node(source);
      }
    }
  }
  return out;
}

std::optional<KernelRules> KernelRules::of(UOp root, std::span<const KernelNumbers> samples) {
  KernelRules out;
  std::vector<std::vector<Number>> sizes;
  for (const KernelNumbers& s : samples) sizes.push_back(s.sizes);
  if (!sizes[0].empty()) {
    std::optional<NumberRules> found = find_rules(sizes, kMostVariables);
    if (!found) return {};
    out.sizes_ = *std::move(found);
  }
  std::vector<DType> types;
  for (UOp n : toposort(root)) {
    for (UOp source : n.srcs()) {
      if (is_scalar_use(n, source)) types.push_back(source.dtype());
    }
  }
  out.constants_ = samples.back().scalars;
  out.elements_.assign(types.size(), kConstant);
  std::map<std::vector<uint64_t>, uint32_t> known;  // by what they are in all samples
  for (size_t i = 0; i < types.size(); i++) {
    std::vector<uint64_t> bits;
    for (const KernelNumbers& s : samples) bits.push_back(s.scalars[i]);
    if (std::ranges::all_of(bits, [&](uint64_t b) { return b == bits[0]; })) continue;
    if (!known.empty() && types[i] != out.scalar_type_) return {};  // they are in one memory
    out.scalar_type_ = types[i];
    out.elements_[i] = known.try_emplace(std::move(bits), uint32_t(known.size())).first->second;
  }
  out.element_count_ = known.size();
  return out;
}

Graph KernelRules::kernel(UOp root) const {
  Graph out{std::make_shared<Arena>(), {}};
  Arena& arena = *out.arena;
  const std::vector<UOp> order = toposort(root);
  std::vector<UOp> variables, elements;
  for (size_t i = 0; i < sizes_.variables.size(); i++) {
    const NumberRules::Variable& v = sizes_.variables[i];
    variables.push_back(variable(arena, name_of_size(i), v.lo, v.hi, dtypes::index));
  }
  if (element_count_ > 0) {
    int64_t next = 0;  // argument
    for (UOp n : order) {
      if (n.is(Op::DEFINE_GLOBAL)) next = std::max(next, n.number() + 1);
    }
    const UOp memory = define_global(arena, scalar_type_, int64_t(element_count_), next);
    for (size_t i = 0; i < element_count_; i++) {
      elements.push_back(load(index(memory, index_const(arena, int64_t(i)))));
    }
  }
  NodeMap copies(root.arena());
  std::vector<UOp> srcs;
  size_t next_size = 0, next_scalar = 0;
  for (UOp n : order) {
    srcs.clear();
    for (UOp source : n.srcs()) {
      UOp copy = copies.get(source);
      if (is_index_const(source) && takes_numbers(n)) {
        copy = sizes_.formulas[next_size++].in(arena, variables).as_uop(arena);
      } else if (is_scalar_use(n, source)) {
        const uint32_t element = elements_[next_scalar++];
        if (element != kConstant) copy = elements[element];
      }
      srcs.push_back(copy);
    }
    copies.put(n, arena.make(n.op(), n.dtype(), srcs, arg_of(n)));
  }
  out.root = copies.get(root);
  verify(out.root, Stage::kKernel, "general kernel");
  return out;
}

std::optional<KernelRules::Values> KernelRules::values(const KernelNumbers& numbers) const {
  Values out;
  std::optional<std::vector<int64_t>> sizes = sizes_.values(numbers.sizes);
  if (!sizes || numbers.scalars.size() != elements_.size()) return {};
  out.sizes = *std::move(sizes);
  std::vector<bool> is_known(element_count_);
  out.scalars.resize(element_count_);
  for (size_t i = 0; i < elements_.size(); i++) {
    const uint32_t element = elements_[i];
    const bool is_given = element == kConstant || is_known[element];
    const uint64_t given = element == kConstant ? constants_[i] : out.scalars[element];
    if (is_given && given != numbers.scalars[i]) return {};
    if (element == kConstant) continue;
    out.scalars[element] = numbers.scalars[i];
    is_known[element] = true;
  }
  return out;
}

std::string name_of_size(size_t i) { return fmt::format("weft_size{}", i); }

}  // namespace weft
