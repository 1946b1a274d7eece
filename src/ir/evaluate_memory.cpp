// Reads and writes that are checked lane by lane.
#include "ir/evaluate_memory.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/array.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/print.h"

namespace weft::evaluator {
namespace {

// The lane's number; the fault when the address is bad.
Fault locate(const Place& place, int64_t lane, UOp node, size_t& at) {
  if (place.fault) return place.fault;
  const int64_t element = place.offset + lane;
  if (element < 0 || element >= place.limit) {
    return {Fault::kOutOfBounds, node, element, place.limit};
  }
  at = size_t(element);
  return {};
}

}  // namespace

void make_own(Memory& memory, DType dtype, std::vector<int64_t> shape) {
  memory.own = Array::zeros(dtype, std::move(shape));
  memory.array = &memory.own;
  memory.unwritten.assign(memory.own.data.size(), true);
}

Lane read(const Place& place, int64_t lane, UOp node) {
  size_t at = 0;
  if (const Fault fault = locate(place, lane, node, at)) return {0, fault};
  if (!place.memory->unwritten.empty() && place.memory->unwritten[at]) {
    return {0, {Fault::kUnwritten, node, int64_t(at), place.limit}};
  }
  return {place.memory->array->data[at]};
}

Fault write(const Place& place, int64_t lane, uint64_t bits, UOp node) {
  size_t at = 0;
  if (const Fault fault = locate(place, lane, node, at)) return fault;
  place.memory->array->data[at] = bits;
  if (!place.memory->unwritten.empty()) place.memory->unwritten[at] = false;
  return {};
}

Memory& Heap::memory_of(UOp definition, DType element, int64_t size) {
  const int64_t id = definition.number();
  const auto [at, fresh] = memories_.try_emplace(id);
  Memory& memory = at->second;
  if (fresh) {
    const auto bound = buffers_.find(id);
    if (bound == buffers_.end()) {
      memory.array = &buffers_.emplace(id, Array::zeros(element, {size})).first->second;
      memory.unwritten.assign(memory.array->data.size(), true);
    } else {
      memory.array = &bound->second;
    }
  }
  check_memory(memory, definition, element, size);
  return memory;
}

void check_memory(const Memory& memory, UOp definition, DType element, int64_t size) {
  const Array& array = *memory.array;
  if (array.dtype.element() == element.element() && size >= 0 &&
      int64_t(array.data.size()) >= size * element.lanes) {
    return;
  }
  throw Error(fmt::format("[evaluate] {} is bound to {} {}, the graph says {} ({})",
                          short_form(definition), array.dtype.name(), text_of_sizes(array.shape),
                          element.name(), size));
}

}  // namespace weft::evaluator
