// Comparing steps side by side; only what differs is walked.
#include "schedule/roll/template_match.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/shape.h"
#include "schedule/rangeify/index_math.h"
#include "schedule/roll/progression.h"

namespace weft {
namespace {

bool is_same_kind(UOp a, UOp b) {
  return a.op() == b.op() && a.dtype() == b.dtype() && a.arg_word() == b.arg_word() &&
         a.src_count() == b.src_count() && std::ranges::equal(shape_of(a), shape_of(b));
}

// Sources that may differ from step to step where they are constants.
bool may_vary(UOp n, size_t source) {
  if (is_elementwise(n.op()) || n.is(Op::SHRINK)) return true;
  return n.is(Op::VIEW) && source + 1 == n.src_count();
}

}  // namespace

std::optional<StepTemplate> StepTemplate::make(const Step& first, const Step& second) {
  StepTemplate t(second);
  t.first_value_ = first.value;
  t.last_value_ = second.value;
  // The target first: what it names is memory, also where that was the value of the step before.
  if (second.target && !t.compare(first.target, second.target, t.target_)) return {};
  t.is_in_value_ = true;
  if (second.value != first.value && !t.compare(first.value, second.value, t.value_)) return {};
  if (!t.is_usable()) return {};
  return t;
}

bool StepTemplate::compare(UOp first, UOp second, Edge& root) {
  if (!classify(first, second, root)) return false;
  while (!todo_.empty()) {
    const auto [a, b] = todo_.back();
    todo_.pop_back();
    const uint32_t at = place_.at(b);
    for (size_t i = 0; i < b.src_count(); i++) {
      Edge edge;
      if (!classify(a.src(i), b.src(i), edge)) return false;
      if (edge.role == Role::kConstant && !may_vary(b, i)) return false;
      inner_[at].edges.push_back(edge);
    }
  }
  return true;
}

bool StepTemplate::classify(UOp a, UOp b, Edge& edge) {
  if (is_in_value_ && b == first_value_) {
    if (initial_ && initial_ != a) return false;
    initial_ = a;
    edge.role = Role::kCarried;
    return true;
  }
  if (a == b) return true;
  if (a.is_const() && b.is_const() && a.dtype() == b.dtype()) {
    edge = {Role::kConstant, uint32_t(sequences_.size())};
    sequences_.push_back({a.bits(), b.bits()});
    types_.push_back(a.dtype());
    return true;
  }
  if (!is_same_kind(a, b) || a.src_count() == 0) return false;
  if (b.is(Op::AFTER) || is_effect(b.op())) return false;  // versions are made one by one
  edge.role = Role::kInner;
  if (const auto known = place_.find(b); known != place_.end()) {
    return matched_[known->second] == a;
  }
  if (inner_.size() == kMostInner) return false;
  place_.emplace(b, uint32_t(inner_.size()));
  inner_.push_back({b, {}});
  matched_.push_back(a);
  todo_.emplace_back(a, b);
  return true;
}

// Values that build on each other do so element by element.
bool StepTemplate::is_usable() {
  if (!initial_ && !pattern_.target) return false;
  if (pattern_.target && target_.role == Role::kSame) return false;
  std::vector<uint32_t> order(inner_.size());
  for (uint32_t i = 0; i < order.size(); i++) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return inner_[a].node.id() < inner_[b].node.id(); });
  for (const uint32_t i : order) {
    Inner& n = inner_[i];
    for (size_t s = 0; s < n.edges.size(); s++) {
      const bool is_carried =
          n.edges[s].role == Role::kCarried ||
          (n.edges[s].role == Role::kInner && inner_[place_.at(n.node.src(s))].is_carrying);
      n.is_carrying = n.is_carrying || is_carried;
    }
    if (n.is_carrying && !is_elementwise(n.node.op())) return false;
  }
  if (target_.role == Role::kInner && inner_[place_.at(pattern_.target)].is_carrying) return false;
  return !initial_ || initial_.dtype() == pattern_.value.dtype();
}

bool StepTemplate::add(const Step& next) {
  if (bool(next.target) != bool(pattern_.target)) return false;
  matched_.assign(inner_.size(), {});
  found_.assign(sequences_.size(), 0);
  todo_.clear();
  if (!follow(value_, pattern_.value, next.value)) return false;
  if (next.target && !follow(target_, pattern_.target, next.target)) return false;
  while (!todo_.empty()) {
    const auto [p, n] = todo_.back();
    todo_.pop_back();
    const Inner& inner = inner_[place_.at(p)];
    for (size_t i = 0; i < p.src_count(); i++) {
      if (!follow(inner.edges[i], p.src(i), n.src(i))) return false;
    }
  }
  for (size_t i = 0; i < sequences_.size(); i++) sequences_[i].push_back(found_[i]);
  last_value_ = next.value;
  steps_++;
  return true;
}

bool StepTemplate::follow(const Edge& edge, UOp p, UOp n) {
  if (edge.role == Role::kSame) return p == n;
  if (edge.role == Role::kCarried) return n == last_value_;
  if (edge.role == Role::kConstant) {
    if (!n.is_const() || n.dtype() != p.dtype()) return false;
    found_[edge.sequence] = n.bits();
    return true;
  }
  UOp& matched = matched_[place_.at(p)];
  if (matched) return matched == n;
  if (!is_same_kind(p, n)) return false;
  matched = n;
  todo_.emplace_back(p, n);
  return true;
}

bool StepTemplate::is_regular() const {
  for (size_t s = 0; s < sequences_.size(); s++) {
    if (!types_[s].is_index()) continue;
    const std::vector<uint64_t>& at = sequences_[s];
    for (size_t i = 2; i < at.size(); i++) {
      if (at[i] - at[i - 1] != at[1] - at[0]) return false;
    }
  }
  return true;
}

Step StepTemplate::body(UOp loop, UOp carried, const std::string& device, Tables& tables) const {
  std::vector<UOp> constants;
  constants.reserve(sequences_.size());
  for (size_t i = 0; i < sequences_.size(); i++) {
    constants.push_back(sequence_of(sequences_[i], types_[i], loop, device, tables));
  }
  std::vector<uint32_t> order(inner_.size());
  for (uint32_t i = 0; i < order.size(); i++) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return inner_[a].node.id() < inner_[b].node.id(); });
  std::vector<UOp> built(inner_.size());
  for (const uint32_t i : order) {
    std::vector<UOp> srcs;
    srcs.reserve(inner_[i].edges.size());
    for (size_t s = 0; s < inner_[i].edges.size(); s++) {
      srcs.push_back(source(inner_[i].edges[s], inner_[i].node.src(s), built, constants, carried));
    }
    built[i] = rebuilt(inner_[i], std::move(srcs));
  }
  Step step;
  step.value = source(value_, pattern_.value, built, constants, carried);
  if (pattern_.target) step.target = source(target_, pattern_.target, built, constants, carried);
  return step;
}

UOp StepTemplate::source(const Edge& edge, UOp pattern, const std::vector<UOp>& built,
                         const std::vector<UOp>& constants, UOp carried) const {
  if (edge.role == Role::kCarried) return carried;
  if (edge.role == Role::kConstant) return constants[edge.sequence];
  if (edge.role == Role::kInner) return built[place_.at(pattern)];
  return pattern;
}

// SHRINK from places that vary is a strided view from an offset that varies.
UOp StepTemplate::rebuilt(const Inner& inner, std::vector<UOp> srcs) const {
  const UOp n = inner.node;
  Arena& arena = n.arena();
  const bool varies = std::any_of(inner.edges.begin(), inner.edges.end(),
                                  [](const Edge& e) { return e.role == Role::kConstant; });
  if (!n.is(Op::SHRINK) || !varies) return arena.with_srcs(n, srcs);
  const Shape from = shape_of(n.src(0)), to = shape_of(n);
  const std::vector<UOp> strides = strides_of(arena, from);
  const std::span<const UOp> begins = std::span(srcs).subspan(1, from.size());
  UOp offset = index_const(arena, 0);
  for (size_t i = 0; i < from.size(); i++) {
    offset = index_add(arena, offset, index_mul(arena, begins[i], strides[i]));
  }
  std::vector<UOp> view{srcs[0]};
  for (const Dim d : to) view.push_back(d.as_uop(arena));
  view.insert(view.end(), strides.begin(), strides.end());
  view.push_back(simplify_index(offset));
  return arena.make(Op::VIEW, n.dtype(), view);
}

}  // namespace weft
