// A graph with variables and tables in place of numbers, scheduled once.
#include "schedule/general_schedule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/origins.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "schedule/number_rules.h"
#include "schedule/schedule.h"
#include "schedule/share_kernels.h"
#include "schedule/size_formulas.h"
#include "schedule/skeleton.h"
#include "schedule/store_schedule.h"

namespace weft {
namespace {

using Kind = ScheduledBuffer::Kind;

constexpr size_t kMostParameters = 32;

using Alike = std::vector<size_t>;  // scalars

// Those that are not the same in all samples, by what they are in each.
std::vector<Alike> group_scalars(std::span<const UOp> scalars, std::span<const Sample> samples,
                                 const std::vector<bool>& which) {
  std::map<std::vector<uint64_t>, Alike> by_bits;
  for (size_t i = 0; i < scalars.size(); i++) {
    if (!which[i]) continue;
    std::vector<uint64_t> bits{scalars[i].dtype().packed()};
    for (const Sample& s : samples) bits.push_back(s.scalars[i]);
    by_bits[bits].push_back(i);
  }
  std::vector<Alike> groups;
  groups.reserve(by_bits.size());
  for (auto& [bits, alike] : by_bits) groups.push_back(std::move(alike));
  std::ranges::sort(groups);  // in the order of the program
  return groups;
}

std::string device_of(std::span<const UOp> order, const ScheduleOptions& options) {
  if (!options.device.empty()) return options.device;
  const auto at = std::ranges::find_if(order, [](UOp n) { return n.is(Op::DEVICE); });
  return at == order.end() ? "REF" : std::string(at->name());
}

// The graph anew, sources first.
class Generalizer {
 public:
  Generalizer(std::span<const UOp> order, const NumberRules& rules, const ScheduleOptions& options)
      : order_(order),
        rules_(rules),
        options_(options),
        device_(device_of(order, options)),
        copies_(order.back().arena()),
        spread_(order.back().arena()) {
    mark_spread_scalars(order, spread_);
    for (UOp n : order) {
      if (n.is(Op::BUFFER)) last_id_ = std::max(last_id_, n.number());
    }
    for (size_t i = 0; i < rules.variables.size(); i++) {
      const NumberRules::Variable& v = rules.variables[i];
      variables_.push_back(variable(arena_, fmt::format("n{}", i), v.lo, v.hi, dtypes::index));
    }
  }

  struct Place {
    int64_t table;  // its id
    size_t element;
  };

  // Where each of these groups of scalars lies: those of one dtype in one table.
  std::vector<Place> add_tables(std::span<const UOp> scalars, std::span<const Alike> groups) {
    std::map<uint32_t, std::vector<size_t>> by_dtype;
    for (size_t g = 0; g < groups.size(); g++) {
      by_dtype[scalars[groups[g][0]].dtype().packed()].push_back(g);
    }
    std::vector<Place> places(groups.size());
    reads_.resize(scalars.size());
    for (const auto& [packed, list] : by_dtype) {
      const DType dtype = scalars[groups[list[0]][0]].dtype();
      const UOp memory = buffer(arena_, dtype, int64_t(list.size()), device_, ++last_id_);
      options_.tables.push_back(last_id_);
      for (size_t i = 0; i < list.size(); i++) {
        const std::vector<std::pair<Dim, Dim>> box{{int64_t(i), int64_t(i) + 1}};
        const UOp read = reshape(shrink(memory, box), Shape());
        for (const size_t scalar : groups[list[i]]) reads_[scalar] = read;
        places[list[i]] = {last_id_, i};
      }
    }
    return places;
  }

  // Throws SpecError if the rules make no legal graph.
  Schedule schedule(std::span<const int64_t> values) {
    for (UOp n : order_) {
      if (spread_.has(n)) continue;
      srcs_.clear();
      for (UOp source : n.srcs()) {
        srcs_.push_back(spread_.has(source) ? UOp() : copies_.get(source));
      }
      if (has_numbers(n)) put_numbers(n, srcs_);
      for (size_t i = 0; i < srcs_.size(); i++) {
        if (spread_.has(n.src(i))) srcs_[i] = spread(n.src(i));
      }
      copies_.put(n, followed(n, arena_.make(n.op(), n.dtype(), srcs_, arg_of(n))));
    }
    const UOp sink = copies_.get(order_.back());
    verify(sink, Stage::kTensor);
    for (size_t i = 0; i < variables_.size(); i++) {
      options_.variables.push_back({std::string(variables_[i].name()), values[i]});
    }
    options_.work_in = WorkIn::kGraphArena;
    return stored_schedule(toposort(sink), options_);
  }

 private:
  Dim next_number() { return rules_.formulas[next_++].in(arena_, variables_); }

  // One use of a scalar, in its shape.
  UOp spread(UOp n) {
    std::vector<std::pair<UOp, std::vector<UOp>>> movements;  // the last one first
    for (; !n.is_const(); n = n.src(0)) {
      movements.emplace_back(n, std::vector<UOp>(n.src_count()));
      put_numbers(n, movements.back().second);
    }
    UOp out = reads_[next_scalar_++];
    if (!out) out = constant_bits(arena_, n.dtype(), n.bits());
    for (auto& [movement, srcs] : movements | std::views::reverse) {
      srcs[0] = out;
      out = arena_.make(movement.op(), movement.dtype(), srcs, arg_of(movement));
    }
    return out;
  }

  void put_numbers(UOp n, std::vector<UOp>& srcs) {
    const size_t first = n.is(Op::BUFFER) || n.is(Op::IOTA) ? 0 : 1;
    if (n.is(Op::SHRINK)) {
      const size_t rank = (n.src_count() - 1) / 2;
      for (size_t i = 0; i < rank; i++) {
        const Dim begin = next_number(), length = next_number();
        srcs[1 + i] = begin.as_uop(arena_);
        srcs[1 + rank + i] = add(arena_, begin, length).as_uop(arena_);
      }
      return;
    }
    const size_t end = first == 0 ? 1 : srcs.size();
    for (size_t i = first; i < end; i++) srcs[i] = next_number().as_uop(arena_);
  }

  std::shared_ptr<Arena> owner_ = std::make_shared<Arena>();
  Arena& arena_ = *owner_;
  std::span<const UOp> order_;
  const NumberRules& rules_;
  ScheduleOptions options_;
  std::string device_;
  NodeMap copies_, spread_;
  std::vector<UOp> variables_, srcs_;
  std::vector<UOp> reads_;  // of every scalar: of a table; null for those that stay as they are
  int64_t last_id_ = 0;
  size_t next_ = 0, next_scalar_ = 0;
};

}  // namespace

size_t GeneralSchedule::bytes() const {
  const size_t numbers = scalars.size() * sizeof(uint64_t) + is_parameter.size() / 8 +
                         parameters.size() * sizeof(Parameter) +
                         rules.formulas.size() * sizeof(NumberFormula) +
                         rules.variables.size() * sizeof(NumberRules::Variable);
  return sizeof *this + schedule->bytes() + numbers;
}

Sample sample_of(const Skeleton& skeleton) {
  Sample sample{skeleton.numbers, {}};
  for (UOp c : skeleton.scalars) sample.scalars.push_back(c.bits());
  return sample;
}

std::shared_ptr<const GeneralSchedule> make_general_schedule(std::span<const UOp> order,
                                                             std::span<const Sample> samples,
                                                             const ScheduleOptions& options) {
  auto general = std::make_shared<GeneralSchedule>();
  GeneralSchedule& g = *general;
  const Sample& last = samples.back();
  g.scalars = last.scalars;
  g.is_parameter.resize(last.scalars.size());
  for (const Sample& s : samples) {
    for (size_t i = 0; i < s.scalars.size(); i++) {
      if (s.scalars[i] != last.scalars[i]) g.is_parameter[i] = true;
    }
  }
  const std::vector<UOp> scalars = skeleton_of(order, Scalars::kByUse).scalars;
  const std::vector<Alike> groups = group_scalars(scalars, samples, g.is_parameter);
  if (groups.size() > kMostParameters) return nullptr;
  std::vector<std::vector<Number>> numbers;
  for (const Sample& s : samples) numbers.push_back(s.numbers);
  std::optional<NumberRules> rules = find_rules(numbers);
  const auto values = rules ? rules->values(last.numbers) : std::nullopt;
  if (!values) return nullptr;
  g.rules = std::move(*rules);
  g.has_variable_sizes = std::ranges::any_of(g.rules.variables, [&](const auto& variable) {
    return last.numbers[variable.number].kind == Number::Kind::kSize;
  });
  try {
    Generalizer generalizer(order, g.rules, options);
    const std::vector<Generalizer::Place> places = generalizer.add_tables(scalars, groups);
    Schedule schedule = generalizer.schedule(*values);
    for (size_t i = 0; i < groups.size(); i++) {
      const Generalizer::Place& place = places[i];
      for (uint32_t b = 0; b < schedule.buffers.size(); b++) {
        ScheduledBuffer& table = schedule.buffers[b];
        if (table.kind != Kind::kTable || table.id != place.table) continue;
        table.data.resize(size_t(table.size));
        g.parameters.push_back({groups[i], b, place.element});
      }
    }
    std::vector<std::string> names;
    names.reserve(values->size());
    for (size_t i = 0; i < values->size(); i++) names.push_back(fmt::format("n{}", i));
    std::optional<SizeFormulas> sizes = SizeFormulas::of(schedule, names);
    if (!sizes) return nullptr;
    g.sizes = std::move(*sizes);
    g.schedule = std::make_shared<const Schedule>(std::move(schedule));
  } catch (const Error&) {  // a schedule of its own is always right
    return nullptr;
  }
  return general;
}

std::shared_ptr<Schedule> bind_numbers(const GeneralSchedule& general, const Sample& sample) {
  const auto values = general.rules.values(sample.numbers);
  if (!values || sample.scalars.size() != general.scalars.size()) return nullptr;
  for (size_t i = 0; i < sample.scalars.size(); i++) {
    if (!general.is_parameter[i] && sample.scalars[i] != general.scalars[i]) return nullptr;
  }
  for (const GeneralSchedule::Parameter& p : general.parameters) {
    const uint64_t bits = sample.scalars[p.scalars[0]];
    const auto is_other = [&](size_t scalar) { return sample.scalars[scalar] != bits; };
    if (std::ranges::any_of(p.scalars, is_other)) return nullptr;
  }
  auto schedule = std::make_shared<Schedule>(*general.schedule);
  for (const GeneralSchedule::Parameter& p : general.parameters) {
    schedule->buffers[p.buffer].data[p.element] = sample.scalars[p.scalars[0]];
  }
  if (!general.sizes.apply(*values, *schedule)) return nullptr;
  for (KernelCall& call : schedule->calls) {
    for (BoundVariable& v : call.variables) {
      if (!is_call_number(v)) v.value = (*values)[size_t(std::stoul(v.name.substr(1)))];
    }
  }
  return schedule;
}

}  // namespace weft
