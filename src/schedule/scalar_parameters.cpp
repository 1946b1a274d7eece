// Hashing around scalars, and graphs that read them from tables.
#include "schedule/scalar_parameters.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"
#include "schedule/schedule.h"

namespace weft {
namespace {

bool is_scalar(UOp n) { return n.is_const() && !n.dtype().is_index() && !n.dtype().is_bool(); }

std::string device_of(std::span<const UOp> order, const ScheduleOptions& options) {
  if (!options.device.empty()) return options.device;
  const auto at = std::ranges::find_if(order, [](UOp n) { return n.is(Op::DEVICE); });
  return at == order.end() ? "REF" : std::string(at->name());
}

}  // namespace

Skeleton skeleton_of(UOp sink) {
  Skeleton s;
  NodeMap numbers(sink.arena());
  uint64_t count = 0;
  Hash128 h{};
  visit_missing(
      sink, [&](UOp n) { return numbers.has(n); },
      [&](UOp n) {
        numbers.put_number(n, ++count);
        h = mix(mix(h, hash_bytes_128(name_of(n.op()))), n.dtype().packed());
        if (is_scalar(n)) {
          s.scalars.push_back(n);
          return;
        }
        const Arg arg = arg_of(n);
        h = mix(mix(h, hash_bytes_128(arg.bytes)), arg.bytes.empty() ? arg.word : 0);
        h = mix(h, n.src_count());
        for (UOp source : n.srcs()) h = mix(h, numbers.number(source));
      });
  s.hash = h;
  return s;
}

GeneralSchedule make_general_schedule(UOp sink, const Skeleton& skeleton,
                                      std::span<const size_t> varying,
                                      const ScheduleOptions& options) {
  Arena arena;
  const std::vector<UOp> order = toposort(sink);
  const std::string device = device_of(order, options);
  ScheduleOptions general_options = options;
  NodeMap copies(sink.arena());
  int64_t id = 0;
  for (UOp n : order) {
    if (n.is(Op::BUFFER)) id = std::max(id, n.number());
  }
  struct Place {
    int64_t id;
    size_t element;
  };
  std::map<uint32_t, std::vector<size_t>> by_dtype;  // scalars of each
  for (const size_t v : varying) by_dtype[skeleton.scalars[v].dtype().packed()].push_back(v);
  std::vector<std::pair<size_t, Place>> found;
  for (const auto& [packed, scalars] : by_dtype) {
    const DType dtype = skeleton.scalars[scalars[0]].dtype();
    const UOp memory = buffer(arena, dtype, int64_t(scalars.size()), device, ++id);
    general_options.tables.push_back(id);
    for (size_t i = 0; i < scalars.size(); i++) {
      const std::vector<std::pair<Dim, Dim>> box{{int64_t(i), int64_t(i) + 1}};
      copies.put(skeleton.scalars[scalars[i]], reshape(shrink(memory, box), Shape()));
      found.emplace_back(scalars[i], Place{id, i});
    }
  }
  std::vector<UOp> srcs;
  for (UOp n : order) {
    if (copies.has(n)) continue;
    srcs.clear();
    for (UOp source : n.srcs()) srcs.push_back(copies.get(source));
    copies.put(n, arena.make(n.op(), n.dtype(), srcs, arg_of(n)));
  }
  GeneralSchedule g;
  Schedule schedule = make_schedule(copies.get(sink), general_options);
  for (const auto& [scalar, place] : found) {
    for (uint32_t b = 0; b < schedule.buffers.size(); b++) {
      ScheduledBuffer& table = schedule.buffers[b];
      if (table.kind != ScheduledBuffer::Kind::kTable || table.id != place.id) continue;
      table.data.resize(size_t(table.size));
      g.parameters.push_back({scalar, b, place.element});
    }
  }
  g.schedule = std::make_shared<const Schedule>(std::move(schedule));
  return g;
}

std::shared_ptr<const Schedule> with_scalars(const GeneralSchedule& general,
                                             std::span<const UOp> scalars) {
  auto schedule = std::make_shared<Schedule>(*general.schedule);
  for (const GeneralSchedule::Parameter& p : general.parameters) {
    schedule->buffers[p.buffer].data[p.element] = scalars[p.scalar].bits();
  }
  return schedule;
}

}  // namespace weft
