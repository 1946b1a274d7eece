// The list -> calls of a renderer's statements, in order.
#include "render/renderer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/bounds.h"
#include "ir/box.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/print.h"
#include "render/render.h"
#include "symbolic/linear.h"

namespace weft {
namespace {

constexpr size_t kScratchAlignment = 64;

constexpr OpSet kDefinitions = {Op::DEFINE_GLOBAL, Op::DEFINE_LOCAL, Op::DEFINE_REG, Op::VARIABLE};

size_t bytes_of(UOp local) {
  const UOp size = local.src(0);
  if (!size.is_const()) {
    throw InternalError(
        fmt::format("render: scratch memory needs a constant size\n{}", neighbourhood(local)));
  }
  return size_t(size.const_int()) * size_t(local.dtype().item_bytes()) * local.dtype().lanes;
}

bool by_number(UOp a, UOp b) { return a.number() < b.number(); }

// The register that n is, perhaps AFTER effects.
UOp register_of(UOp n) { return place_of(n).base; }

}  // namespace

Signature signature_of(UOp linear) {
  Signature out;
  std::vector<UOp> locals;
  std::unordered_set<UOp> seen;
  const auto add = [&](UOp n) {
    if (!kDefinitions.has(n.op()) || !seen.insert(n).second) return;
    if (n.is(Op::DEFINE_GLOBAL)) out.globals.push_back(n);
    if (n.is(Op::VARIABLE)) out.variables.push_back(n);
    if (n.is(Op::DEFINE_LOCAL)) locals.push_back(n);
    if (n.is(Op::DEFINE_REG)) out.registers.push_back(n);
  };
  for (UOp n : linear.srcs()) {
    add(n);
    for (UOp s : n.srcs()) add(s);
    if (!n.is(Op::FETCH_BOX)) continue;
    const Signature::BoxedArray array{n.src(kBoxFrom), Box::of(n)};
    if (std::ranges::find(out.boxed, array) == out.boxed.end()) out.boxed.push_back(array);
  }
  std::stable_sort(out.globals.begin(), out.globals.end(), by_number);
  std::stable_sort(locals.begin(), locals.end(), by_number);
  std::stable_sort(out.registers.begin(), out.registers.end(), by_number);
  std::stable_sort(out.variables.begin(), out.variables.end(),
                   [](UOp a, UOp b) { return a.name() < b.name(); });
  for (UOp n : locals) {
    out.locals.push_back({n, out.scratch_bytes});
    out.scratch_bytes +=
        (bytes_of(n) + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
  }
  return out;
}

size_t scratch_bytes(UOp linear) { return signature_of(linear).scratch_bytes; }

std::vector<std::string> variable_names(UOp linear) {
  std::vector<std::string> out;
  for (UOp n : signature_of(linear).variables) out.emplace_back(n.name());
  return out;
}

bool reads_source(UOp n, size_t i) {
  switch (n.op()) {
    case Op::IF:
    case Op::RANGE: return i == 0;
    case Op::STORE: return i > 0 || !is_register(n.src(0));
    case Op::AFTER: return i == 0 && !is_register(n);
    case Op::BARRIER:
    case Op::COMMIT:
    case Op::WAIT:
    case Op::END:
    case Op::ENDIF:
    case Op::SINK:
    case Op::SPECIAL:
    case Op::VARIABLE:
    case Op::DEFINE_GLOBAL:
    case Op::DEFINE_LOCAL: return false;
    default: return true;
  }
}

bool never_wraps(UOp n) {
  if (!n.dtype().is_int()) return false;
  __extension__ typedef __int128 Wide;
  const auto fits = [&](Wide lo, Wide hi) {
    const Interval all = bounds_of(n.dtype());
    return lo >= all.lo && hi <= all.hi;
  };
  const Interval x = bounds(n.src(0));
  if (n.is(Op::NEG)) return fits(-Wide(x.hi), -Wide(x.lo));
  const Interval y = bounds(n.src(1));
  if (n.is(Op::ADD)) return fits(Wide(x.lo) + y.lo, Wide(x.hi) + y.hi);
  if (n.is(Op::SUB)) return fits(Wide(x.lo) - y.hi, Wide(x.hi) - y.lo);
  if (n.is(Op::MUL)) {
    const Wide p[] = {Wide(x.lo) * y.lo, Wide(x.lo) * y.hi, Wide(x.hi) * y.lo, Wide(x.hi) * y.hi};
    return fits(*std::min_element(p, p + 4), *std::max_element(p, p + 4));
  }
  return false;
}

bool is_splat(UOp n) {
  const auto srcs = n.srcs();
  return n.is(Op::VECTORIZE) &&
         std::all_of(srcs.begin(), srcs.end(), [&](UOp s) { return s == srcs[0]; });
}

DType held_as(DType type) {
  switch (type.scalar) {
    case Scalar::kFloat16:
    case Scalar::kBFloat16: return {Scalar::kUInt16, type.space, type.lanes};
    case Scalar::kFloat8E4M3:
    case Scalar::kFloat8E5M2: return {Scalar::kUInt8, type.space, type.lanes};
    default: return type;
  }
}

bool is_cast_of_bool(Op op, DType from, DType to) {
  return op == Op::BITCAST && from.is_bool() != to.is_bool();
}

bool is_aligned(UOp pointer) {
  const int64_t lanes = pointer.dtype().lanes;
  UOp at = pointer;
  while (at.is(Op::AFTER) || at.is(Op::CAST)) at = at.src(0);
  if (!at.is(Op::INDEX) || at.dtype().lanes == lanes) return true;  // it counts in vectors
  const std::optional<LinearSum> sum = linear_sum(at.src(1));
  if (!sum || sum->constant % lanes != 0) return false;
  return std::ranges::all_of(sum->terms, [&](const Term& t) { return t.coefficient % lanes == 0; });
}

Renderer::Renderer(UOp linear) : linear_(linear), signature_(signature_of(linear)) {
  if (!linear.is(Op::LINEAR)) throw InternalError("render: the root is no LINEAR");
  for (UOp n : linear.srcs()) {
    const size_t count = is_splat(n) ? 1 : n.src_count();
    for (size_t i = 0; i < count; i++) {
      if (reads_source(n, i)) uses_[n.src(i)]++;
    }
  }
}

void Renderer::walk() {
  for (UOp n : linear_.srcs()) visit(n);
  if (!open_.empty()) {
    throw InternalError(fmt::format("render: a block is never closed\n{}", describe(open_.back())));
  }
}

void Renderer::visit(UOp n) {
  const auto close = [&](UOp opener) {
    if (open_.empty() || open_.back() != opener) {
      throw InternalError(
          fmt::format("render: it closes a block that is not the innermost\n{}", neighbourhood(n)));
    }
    open_.pop_back();
  };
  switch (n.op()) {
    case Op::CONST:
    case Op::VARIABLE:
    case Op::DEFINE_GLOBAL:
    case Op::DEFINE_LOCAL:
    case Op::DEFINE_REG:
    case Op::SINK: return;
    case Op::SPECIAL: return special(n);
    case Op::BARRIER: return barrier(n);
    case Op::WMMA: return product(n);
    case Op::FETCH:
    case Op::FETCH_BOX:
    case Op::COMMIT:
    case Op::WAIT: return copy(n);
    case Op::RANGE: open_.push_back(n); return open_loop(n);
    case Op::END: {
      for (size_t left = n.src_count() - 1; left > 0; left--) {
        const auto ranges = n.srcs().subspan(1);
        const UOp inner = open_.empty() ? UOp() : open_.back();
        close(std::find(ranges.begin(), ranges.end(), inner) == ranges.end() ? UOp() : inner);
        close_loop(inner);
      }
      return;
    }
    case Op::IF: open_.push_back(n); return open_if(n);
    case Op::ENDIF: close(n.src(0)); return close_if(n);
    case Op::AFTER:
      if (!is_register(n)) return bind(n, text(n.src(0)));
      return uses(n) == 0 ? void() : read_register(n, register_of(n));
    case Op::STORE:
      return is_register(n.src(0)) ? write_register(n, register_of(n.src(0))) : store(n);
    case Op::INDEX: return address(n);
    case Op::LOAD: return load(n);
    default: break;
  }
  if (n.is(Op::CAST) && n.dtype().is_pointer()) return bind(n, text(n.src(0)));
  const bool is_value = is_elementwise(n.op()) || n.is(Op::VECTORIZE) || n.is(Op::GEP);
  if (!is_value || n.dtype().is_index()) no_text(n);
  const bool is_vector = n.dtype().is_vector() || n.src(0).dtype().is_vector();
  if (!is_vector && (n.is(Op::GEP) || n.is(Op::VECTORIZE))) {
    return bind(n, text(n.src(0)));
  }
  value(n);
}

void Renderer::special(UOp n) { no_text(n); }
void Renderer::product(UOp wmma) { no_text(wmma); }
void Renderer::copy(UOp n) { no_text(n); }

std::string Renderer::text(UOp n) {
  if (n.is_const()) return constant(n);
  const auto found = texts_.find(n);
  if (found != texts_.end()) return found->second;
  throw InternalError(
      fmt::format("render: it is used before it stands in the list\n{}", neighbourhood(n)));
}

std::string Renderer::unique(std::string wish) {
  std::string name = wish;
  for (size_t k = 1; !names_.insert(name).second; k++) name = fmt::format("{}_{}", wish, k);
  return name;
}

std::string Renderer::next(std::string_view prefix) {
  return fmt::format("{}{}", prefix, series_[std::string(prefix)]++);
}

size_t Renderer::uses(UOp n) const {
  const auto found = uses_.find(n);
  return found == uses_.end() ? 0 : found->second;
}

void Renderer::no_text(UOp n) const {
  const DType type = n.src_count() > 0 ? n.srcs().back().dtype() : n.dtype();
  throw InternalError(fmt::format("render: no text for {} on {}, giving {}\n{}", name_of(n.op()),
                                  type.name(), n.dtype().name(), neighbourhood(n)));
}

}  // namespace weft
