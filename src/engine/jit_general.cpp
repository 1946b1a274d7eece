// Formulas found, and filled in.
#include "engine/jit_general.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "engine/jit_recipe.h"
#include "engine/number_fit.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "ir/shape.h"
#include "ir/walk.h"
#include "runtime/array_bytes.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "schedule/schedule.h"
#include "schedule/share_kernels.h"
#include "schedule/size_formulas.h"
#include "schedule/skeleton.h"
#include "value/number_watch.h"
#include "weft/variable.h"
#include "weft/view.h"

namespace weft {
namespace {

constexpr uint32_t kNone = JitRecipe::kNone;
constexpr size_t kMostCalls = 16;  // that formulas are made from

using Kind = Number::Kind;  // of a graph's

int64_t count_of(Shape shape) {
  int64_t count = 1;
  for (const Dim& d : shape) count *= d.value();
  return count;
}

void assume_inside(UOp n, std::span<const Number> numbers) {
  if (n.is(Op::SHRINK)) {
    const Shape from = shape_of(n.src(0));
    for (size_t i = 0; i < from.size(); i++) {
      assume_at_most(numbers[2 * i].value + numbers[2 * i + 1].value, from[i].value());
    }
  }
  if (n.is(Op::VIEW)) {
    const size_t rank = numbers.size() / 2;
    int64_t lo = numbers[2 * rank].value, hi = lo + 1;
    for (size_t i = 0; i < rank; i++) {
      const int64_t reach = (numbers[i].value - 1) * numbers[rank + i].value;
      (is_less(reach, 0) ? lo : hi) += reach;
    }
    assume_at_most(0, lo);
    assume_at_most(hi, count_of(shape_of(n.src(0))));
  }
}

// The sign of strides, and whether sizes are 0, are part of a graph's form.
void assume_kind(const Number& number) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  if (number.kind == Kind::kSize && number.value == 0) assume_exact({0});
  if (number.kind == Kind::kSize && number.value > 0) assume_at_most(1, number.value);
  if (number.kind == Kind::kSize && number.value <= most) assume_at_most(number.value, most);
  if (number.kind == Kind::kOffset) assume_at_most(0, number.value);
  if (number.kind == Kind::kPlace) is_less(number.value, 0);
}

}  // namespace

void assume_legal(UOp sink, const Schedule& schedule) {
  std::vector<Number> numbers;
  for (UOp n : toposort(sink)) {
    if (!has_numbers(n)) continue;
    numbers.clear();
    add_numbers(n, numbers);
    for (const Number& number : numbers) assume_kind(number);
    assume_inside(n, numbers);
  }
  std::set<std::string> seen;
  for (const KernelCall& call : schedule.calls) {
    const auto is_new = [&](const BoundVariable& v) {
      return !is_call_number(v) && !seen.contains(v.name);
    };
    if (std::ranges::none_of(call.variables, is_new)) continue;
    for (UOp n : toposort(call.ast)) {
      if (!n.is(Op::VARIABLE) || !seen.emplace(n.name()).second) continue;
      const auto at = std::ranges::find(call.variables, n.name(), &BoundVariable::name);
      if (at == call.variables.end() || is_call_number(*at)) continue;
      assume_at_most(n.src(0).const_int(), at->value);
      assume_at_most(at->value, n.src(1).const_int());
    }
  }
}

// ------------------------------------------------------------------------------------- the form

namespace {

bool is_same(const JitRecipe::Binding& a, const JitRecipe::Binding& b) {
  const auto is_same_gradient = [](const auto& x, const auto& y) {
    return x.kind == y.kind && x.number == y.number;
  };
  return a.captured == b.captured && a.device == b.device && a.dtype == b.dtype &&
         a.numel == b.numel && a.is_part == b.is_part && a.is_overwritten == b.is_overwritten &&
         a.result == b.result && a.is_leaf == b.is_leaf &&
         is_same_gradient(a.gradient_before, b.gradient_before) &&
         is_same_gradient(a.gradient_after, b.gradient_after);
}

bool is_same(const JitRecipe::Input& a, const JitRecipe::Input& b) {
  return a.binding == b.binding && a.view == b.view;
}
bool is_same(const JitRecipe::Output& a, const JitRecipe::Output& b) {
  return a.binding == b.binding && a.made == b.made;
}
bool is_same(const JitRecipe::Made& a, const JitRecipe::Made& b) { return a.result == b.result; }
bool is_same(const JitRecipe::Result& a, const JitRecipe::Result& b) {
  return a.device == b.device && a.dtype == b.dtype && a.slot == b.slot;
}
bool is_same(const JitRecipe::Slot& a, const JitRecipe::Slot& b) { return a.device == b.device; }
bool is_same(const JitRecipe::Call& a, const JitRecipe::Call& b) {
  return a.program == b.program && a.argument_count == b.argument_count && a.written == b.written &&
         a.variable_count == b.variable_count;
}
bool is_same(const JitRecipe::Check& a, const JitRecipe::Check& b) {
  return a.slot == b.slot && a.of.axis == b.of.axis && a.of.size == b.of.size &&
         a.results == b.results;
}
bool is_same(const JitRecipe::Sized& a, const JitRecipe::Sized& b) {
  return a.slot == b.slot && a.dtype == b.dtype;
}
bool is_same(const JitRecipe::Group& a, const JitRecipe::Group& b) {
  return a.schedule->notes == b.schedule->notes && a.first_call == b.first_call &&
         a.first_sized == b.first_sized;
}
bool is_same(const JitRecipe::Table& a, const JitRecipe::Table& b) {
  return a.slot == b.slot && a.dtype == b.dtype && a.content.size() == b.content.size();
}
bool is_same(const Sizes& a, const Sizes& b) { return a.size() == b.size(); }
bool is_same(const View& a, const View& b) { return a.dtype == b.dtype && a.rank() == b.rank(); }
bool is_same(const VariableValue& a, const VariableValue& b) {
  return a.variable() == b.variable();
}

template <class List>
bool are_same(const List& a, const List& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) { return is_same(x, y); });
}

// What the function made from data, in both.
bool hold_same(const JitRecipe& a, const JitRecipe& b) {
  for (size_t i = 0; i < a.slots.size(); i++) {
    const Ref<Buffer>&x = a.numbers.held[i], &y = b.numbers.held[i];
    if (bool(x) != bool(y)) return false;
    if (!x || x == y || std::ranges::find(a.tables, i, &JitRecipe::Table::slot) != a.tables.end()) {
      continue;
    }
    if (x->bytes() != y->bytes()) return false;
    std::vector<std::byte> of_x(x->bytes()), of_y(y->bytes());
    x->copy_out(of_x);
    y->copy_out(of_y);
    if (of_x != of_y) return false;
  }
  return true;
}

bool has_same_form(const JitRecipe& a, const JitRecipe& b) {
  return a.default_device == b.default_device && a.is_training == b.is_training &&
         a.has_gradients == b.has_gradients && a.custom_programs.empty() &&
         b.custom_programs.empty() && are_same(a.values, b.values) &&
         are_same(a.bindings, b.bindings) && are_same(a.inputs, b.inputs) &&
         are_same(a.outputs, b.outputs) && are_same(a.made, b.made) &&
         are_same(a.results, b.results) && are_same(a.slots, b.slots) &&
         are_same(a.calls, b.calls) && a.arguments == b.arguments && are_same(a.checks, b.checks) &&
         are_same(a.groups, b.groups) && are_same(a.sized, b.sized) &&
         a.argument_sizes == b.argument_sizes && are_same(a.tables, b.tables) &&
         are_same(a.numbers.shapes, b.numbers.shapes) &&
         are_same(a.numbers.views, b.numbers.views) && a.at_most.size() == b.at_most.size() &&
         a.exact == b.exact && hold_same(a, b);
}

std::vector<int64_t> values_of(const JitRecipe& recipe) {
  std::vector<int64_t> values;
  values.reserve(recipe.values.size());
  for (const VariableValue& v : recipe.values) values.push_back(v.value());
  return values;
}

int64_t& part_of(View& view, size_t part) {
  if (part < view.rank()) return view.shape[part];
  if (part < 2 * view.rank()) return view.strides[part - view.rank()];
  return view.offset;
}

uint64_t bits_of(DType dtype, int64_t value, bool is_inverse) {
  if (is_inverse) return bits_of_double(dtype, 1.0 / double(value));
  return dtype.is_float() ? bits_of_double(dtype, double(value)) : bits_of_int(dtype, value);
}

struct NoFormula {};

}  // namespace

// --------------------------------------------------------------------------------------- formulas

class JitGeneral::Maker {
 public:
  explicit Maker(JitGeneral& general)
      : general_(general), calls_(general.calls_), fit_(all_values(general.calls_)) {}

  // Throws NoFormula.
  void run() {
    if (!fit_.is_enough()) throw NoFormula();
    general_.zero_ = fit_.relations();
    add_conditions();
    add_variables();
    const JitNumbers& last = calls_.back()->numbers;
    for (size_t i = 0; i < last.shapes.size(); i++) {
      for (size_t part = 0; part < last.shapes[i].size(); part++) {
        add(general_.shapes_, i, part,
            [&](const JitRecipe& r) { return r.numbers.shapes[i][part]; });
      }
    }
    for (size_t i = 0; i < last.views.size(); i++) {
      for (size_t part = 0; part <= 2 * last.views[i].rank(); part++) {
        add(general_.views_, i, part, [&](const JitRecipe& r) {
          View view = r.numbers.views[i];
          return part_of(view, part);
        });
      }
    }
    for (size_t i = 0; i < last.origins.size(); i++) {
      add(general_.origins_, i, 0, [&](const JitRecipe& r) { return r.numbers.origins[i]; });
    }
    add_sizes();
    add_tables();
  }

 private:
  static std::vector<std::vector<int64_t>> all_values(
      std::span<const std::shared_ptr<const JitRecipe>> calls) {
    std::vector<std::vector<int64_t>> all;
    for (const auto& call : calls) all.push_back(values_of(*call));
    return all;
  }

  template <class Get>
  Polynomial formula(const Get& get) {
    numbers_.clear();
    for (const auto& call : calls_) numbers_.push_back(get(*call));
    std::optional<Polynomial> found = fit_.formula(numbers_);
    if (!found) throw NoFormula();
    return *std::move(found);
  }

  // A number that is not the same in all calls.
  template <class Get>
  void add(std::vector<Number>& to, size_t item, size_t part, const Get& get) {
    Polynomial found = formula(get);
    if (!found.is_constant()) to.push_back({item, part, std::move(found)});
  }

  void add_conditions() {
    std::vector<int64_t> lows, highs;
    for (const VariableValue& v : calls_.back()->values) {
      lows.push_back(v.variable().min());
      highs.push_back(v.variable().max());
    }
    std::set<std::vector<int64_t>> known;
    for (size_t i = 0; i < calls_.back()->at_most.size(); i++) {
      const Polynomial least = formula([&](const JitRecipe& r) { return r.at_most[i].first; });
      const Polynomial most = formula([&](const JitRecipe& r) { return r.at_most[i].second; });
      const Polynomial left = most.minus(least);
      if (left.least(lows, highs).value_or(-1) >= 0) continue;
      std::vector<int64_t> text;
      for (const Polynomial::Term& t : left.terms) {
        for (const int64_t word : {t.factor, int64_t(t.a), int64_t(t.b)}) text.push_back(word);
      }
      if (known.insert(std::move(text)).second) general_.not_negative_.push_back(left);
    }
  }

  void add_variables() {
    const JitRecipe& recipe = *calls_.back();
    for (size_t c = 0; c < recipe.calls.size(); c++) {
      const JitRecipe::Call& call = recipe.calls[c];
      const size_t before = general_.variables_.size();
      for (uint32_t i = 0; i < call.variable_count; i++) {
        const size_t at = call.first_variable + i;
        add(general_.variables_, at, 0,
            [&](const JitRecipe& r) { return r.numbers.variables[at]; });
      }
      if (general_.variables_.size() > before) general_.varying_calls_.push_back(uint32_t(c));
    }
  }

  void add_sizes() {
    const JitRecipe& recipe = *calls_.back();
    std::vector<bool> is_scheduled(recipe.sized.size());
    for (size_t g = 0; g < recipe.groups.size(); g++) {
      const JitRecipe::Group& group = recipe.groups[g];
      const size_t count = group.schedule->buffers.size();
      std::fill_n(is_scheduled.begin() + ptrdiff_t(group.first_sized), count, true);
      if (group.schedule->formulas) add_group(group, count);
    }
    for (size_t i = 0; i < recipe.sized.size(); i++) {
      if (is_scheduled[i]) continue;
      add(general_.sizes_, i, 0, [&](const JitRecipe& r) { return r.sized[i].size; });
    }
    general_.has_sizes_ = !general_.sizes_.empty() || !general_.groups_.empty();
  }

  // The variables of a schedule have one value in all of its kernels.
  void add_group(const JitRecipe::Group& group, size_t count) {
    Group made;
    made.first_sized = group.first_sized;
    made.sized_count = count;
    std::vector<std::string> names;
    for (size_t c = 0; c < group.schedule->calls.size(); c++) {
      const KernelCall& call = group.schedule->calls[c];
      const size_t first = calls_.back()->calls[group.first_call + c].first_variable;
      for (size_t i = 0; i < call.variables.size(); i++) {
        const std::string& name = call.variables[i].name;
        if (std::ranges::find(names, name) != names.end()) continue;
        names.push_back(name);
        made.variables.push_back(
            formula([&](const JitRecipe& r) { return r.numbers.variables[first + i]; }));
      }
    }
    std::optional<SizeFormulas> sizes = SizeFormulas::of(*group.schedule, names);
    if (!sizes) throw NoFormula();
    made.sizes = std::move(*sizes);
    general_.groups_.push_back(std::move(made));
  }

  void add_tables() {
    const std::vector<JitRecipe::Table>& tables = calls_.back()->tables;
    for (size_t t = 0; t < tables.size(); t++) {
      for (size_t e = 0; e < tables[t].content.size(); e++) {
        const uint64_t first = calls_[0]->tables[t].content[e];
        const bool is_one = std::ranges::all_of(
            calls_, [&](const auto& call) { return call->tables[t].content[e] == first; });
        if (!is_one) add_element(t, e);
      }
    }
  }

  // A whole number, or the inverse of one.
  void add_element(size_t table, size_t element) {
    const DType dtype = calls_.back()->tables[table].dtype;
    const auto bits = [&](const JitRecipe& r) { return r.tables[table].content[element]; };
    for (const bool is_inverse : {false, true}) {
      if (is_inverse && !dtype.is_float()) break;
      numbers_.clear();
      for (const auto& call : calls_) {
        const double value = double_of_bits(dtype, bits(*call));
        const double whole = is_inverse ? 1.0 / value : value;
        constexpr double most = 0x1p53;
        if (!(whole >= -most && whole <= most)) throw NoFormula();
        numbers_.push_back(dtype.is_float() ? int64_t(whole + (whole < 0 ? -0.5 : 0.5))
                                            : int64_t(bits(*call)));
        if (bits_of(dtype, numbers_.back(), is_inverse) != bits(*call)) break;
      }
      const bool fits = numbers_.size() == calls_.size() &&
                        bits_of(dtype, numbers_.back(), is_inverse) == bits(*calls_.back());
      if (!fits) continue;
      if (std::optional<Polynomial> found = fit_.formula(numbers_)) {
        general_.elements_.push_back({table, element, is_inverse, *std::move(found)});
        return;
      }
    }
    throw NoFormula();
  }

  JitGeneral& general_;
  std::span<const std::shared_ptr<const JitRecipe>> calls_;
  NumberFit fit_;
  std::vector<int64_t> numbers_;
};

std::shared_ptr<const JitGeneral> JitGeneral::make(
    std::span<const std::shared_ptr<const JitRecipe>> calls) {
  const std::shared_ptr<JitGeneral> general(new JitGeneral);
  std::set<std::vector<int64_t>> seen;
  for (size_t i = calls.size(); i-- > 0 && general->calls_.size() < kMostCalls;) {
    if (!has_same_form(*calls[i], *calls.back())) continue;
    if (seen.insert(values_of(*calls[i])).second) general->calls_.push_back(calls[i]);
  }
  std::ranges::reverse(general->calls_);
  try {
    Maker(*general).run();
  } catch (const NoFormula&) {
    return nullptr;
  }
  return general;
}

// --------------------------------------------------------------------------------------- other
// calls

bool JitGeneral::holds(std::span<const int64_t> values) const {
  const auto is_zero = [&](const Polynomial& p) { return p.value(values) == 0; };
  const auto is_not_negative = [&](const Polynomial& p) {
    return p.value(values).value_or(-1) >= 0;
  };
  return std::ranges::all_of(zero_, is_zero) && std::ranges::all_of(not_negative_, is_not_negative);
}

bool JitGeneral::set_numbers(std::span<const int64_t> values, JitNumbers& numbers) const {
  const auto set = [&](const Number& n, int64_t& to) {
    const std::optional<int64_t> value = n.formula.value(values);
    if (value) to = *value;
    return bool(value);
  };
  bool is_set = true;
  for (const Number& n : variables_) is_set &= set(n, numbers.variables[n.item]);
  for (const Number& n : shapes_) is_set &= set(n, numbers.shapes[n.item][n.part]);
  for (const Number& n : views_) is_set &= set(n, part_of(numbers.views[n.item], n.part));
  for (const Number& n : origins_) is_set &= set(n, numbers.origins[n.item]);
  if (!is_set) return false;
  const JitRecipe& recipe = *calls_.back();
  for (const uint32_t c : varying_calls_) {
    const JitRecipe::Call& call = recipe.calls[c];
    numbers.flops[c] = call.flops->count(
        std::span(numbers.variables).subspan(call.first_variable, call.variable_count));
  }
  return true;
}

bool JitGeneral::set_sizes(std::span<const int64_t> values, JitNumbers& numbers) const {
  if (!has_sizes_) return true;
  const JitRecipe& recipe = *calls_.back();
  std::vector<int64_t> sizes(recipe.sized.size());
  for (size_t i = 0; i < sizes.size(); i++) sizes[i] = recipe.sized[i].size;
  for (const Number& n : sizes_) {
    const std::optional<int64_t> value = n.formula.value(values);
    if (!value) return false;
    sizes[n.item] = *value;
  }
  std::vector<int64_t> variables;
  for (const Group& group : groups_) {
    variables.clear();
    for (const Polynomial& p : group.variables) {
      const std::optional<int64_t> value = p.value(values);
      if (!value) return false;
      variables.push_back(*value);
    }
    if (!group.sizes.apply(variables,
                           std::span(sizes).subspan(group.first_sized, group.sized_count))) {
      return false;
    }
  }
  std::ranges::fill(numbers.slot_bytes, 0);
  for (size_t i = 0; i < sizes.size(); i++) {
    const JitRecipe::Sized& s = recipe.sized[i];
    if (s.slot == kNone) continue;
    const size_t bytes = Buffer::bytes_for(*recipe.slots[s.slot].device, s.dtype, sizes[i]);
    numbers.slot_bytes[s.slot] = std::max(numbers.slot_bytes[s.slot], bytes);
  }
  for (size_t c = 0; c < recipe.calls.size(); c++) {
    const JitRecipe::Call& call = recipe.calls[c];
    uint64_t bytes = 0;
    for (uint32_t a = 0; a < call.argument_count; a++) {
      const size_t at = recipe.argument_sizes[call.first_argument + a];
      bytes += uint64_t(sizes[at]) * uint64_t(recipe.sized[at].dtype.item_bytes());
    }
    numbers.bytes[c] = bytes;
  }
  return true;
}

// Kernels of an earlier call may still read the memory of its tables.
bool JitGeneral::set_tables(std::span<const int64_t> values, JitNumbers& numbers) const {
  const JitRecipe& recipe = *calls_.back();
  for (size_t i = 0; i < elements_.size();) {
    const JitRecipe::Table& table = recipe.tables[elements_[i].table];
    std::vector<uint64_t> content = table.content;
    for (const size_t of = elements_[i].table; i < elements_.size() && elements_[i].table == of;
         i++) {
      const std::optional<int64_t> value = elements_[i].formula.value(values);
      if (!value || (elements_[i].is_inverse && *value == 0)) return false;
      content[elements_[i].element] = bits_of(table.dtype, *value, elements_[i].is_inverse);
    }
    Ref<Buffer>& held = numbers.held[table.slot];
    Device& device = held->device();
    std::vector<std::byte> bytes(Buffer::bytes_for(device, table.dtype, int64_t(content.size())));
    bytes_of_bits(table.dtype, content, bytes);
    held = Buffer::make(device, held->bytes());
    held->copy_in(bytes);
  }
  return true;
}

std::shared_ptr<const JitNumbers> JitGeneral::numbers(std::span<const int64_t> values) const {
  const std::lock_guard lock(mutex_);
  if (last_ && std::ranges::equal(values, last_values_)) return last_;
  if (!holds(values)) return nullptr;
  auto made = std::make_shared<JitNumbers>(calls_.back()->numbers);
  if (!set_numbers(values, *made) || !set_sizes(values, *made) || !set_tables(values, *made)) {
    return nullptr;
  }
  last_values_.assign(values.begin(), values.end());
  last_ = std::move(made);
  return last_;
}

}  // namespace weft
