// Programs that do every elementwise op of a target to a dtype, in some numbers of lanes, on the
// edges of the dtype.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "codegen/target.h"
#include "ir/array.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "ir/spec_rules.h"
#include "tests/edge_values.h"
#include "tests/program_builder.h"

namespace weft::test {

inline constexpr std::array kOpTypes = {
    dtypes::bool_,    dtypes::int8,    dtypes::int16,  dtypes::int32,  dtypes::int64,
    dtypes::uint8,    dtypes::uint16,  dtypes::uint32, dtypes::uint64, dtypes::float16,
    dtypes::bfloat16, dtypes::float32, dtypes::float64};
inline constexpr std::array<uint16_t, 3> kOpLanes = {1, 4, 16};

// Operands of an op: all pairs of edges; the third cycles through them out of step.
inline std::array<Array, 3> op_operands(DType type) {
  const std::vector<uint64_t> e = edge_values(type);
  std::array<std::vector<uint64_t>, 3> bits;
  for (size_t i = 0; i < e.size(); i++) {
    for (size_t j = 0; j < e.size(); j++) {
      bits[0].push_back(e[i]);
      bits[1].push_back(e[j]);
      bits[2].push_back(e[(i * 7 + j * 3 + 1) % e.size()]);
    }
  }
  std::array<Array, 3> out;
  for (size_t k = 0; k < 3; k++) {
    while (bits[k].size() % 16 != 0) bits[k].push_back(e[0]);
    const auto size = int64_t(bits[k].size());
    out[k] = Array::of_bits(type, {size}, bits[k]);
  }
  return out;
}

// A part of what can be done to a dtype, for devices that bound the arguments of a kernel.
struct OpPart {
  size_t first = 0, most = SIZE_MAX;
};

// One program for all that is done to one dtype: a loop per number of lanes, a buffer per result.
struct OpCase {
  ProgramBuilder builder;
  Buffers buffers;
  std::vector<std::string> names;  // of the results, from buffer 4
  OpPart part;
  size_t count = 0;  // of the results in all parts

  OpCase(DType type, const Target& target, std::span<const uint16_t> lane_counts = kOpLanes,
         OpPart wanted = {})
      : part(wanted) {
    std::array<Array, 3> in = op_operands(type);
    const int64_t size = in[0].size();
    Array condition = Array::zeros(dtypes::bool_, {size});
    for (size_t i = 0; i < condition.data.size(); i++) condition.data[i] = i % 3 == 1;
    for (size_t k = 0; k < 3; k++) buffers[int64_t(k)] = in[k];
    buffers[3] = condition;
    std::vector<UOp> inputs;
    for (int64_t k = 0; k < 4; k++) inputs.push_back(builder.global(buffers[k].dtype, size, k));
    for (const uint16_t lanes : lane_counts) add_loop(type, target, lanes, size, inputs);
  }

  void add_loop(DType type, const Target& target, uint16_t lanes, int64_t size,
                const std::vector<UOp>& inputs) {
    const UOp r = builder.range(builder.integer(size / lanes), lanes);
    const UOp i = builder.binary(Op::MUL, r, builder.integer(lanes));
    std::vector<UOp> x;
    for (UOp p : inputs) x.push_back(builder.load(builder.at(p, i, lanes)));
    const DType vector = type.vec(lanes), condition = dtypes::bool_.vec(lanes);
    UOp last;
    const auto keep = [&](const std::string& what, UOp value) {
      const size_t number = count++;
      if (number < part.first || number - part.first >= part.most) return;
      const auto id = int64_t(names.size()) + 4;
      names.push_back(fmt::format("{} of {} in {} lanes", what, type.name(), lanes));
      buffers[id] = Array::zeros(value.dtype().element(), {size});
      last = builder.store(builder.at(builder.global(value.dtype().element(), size, id), i, lanes),
                           value);
    };
    for (size_t k = 0; k < kOpCount; k++) {
      const Op op = Op(k);
      if (!is_elementwise(op) || op == Op::CAST || op == Op::BITCAST || op == Op::WHERE) continue;
      if (!target.can(op, type) || !spec::accepts(op, type)) continue;
      const DType result = yields_bool(op) ? condition : vector;
      const std::string name(name_of(op));
      keep(name, builder.add(op, result, std::span(x.data(), info(op).least_sources)));
      if (info(op).least_sources != 2) continue;
      for (const int64_t c : {-1, 0, 1, 3, 200}) {  // short forms for constants
        const UOp y = builder.constant(vector, bits_of_int(type, c));
        keep(fmt::format("{} by {}", name, c), builder.add(op, result, {x[0], y}));
      }
    }
    keep("WHERE", builder.add(Op::WHERE, vector, {x[3], x[0], x[1]}));
    if (lanes > 1) add_shuffles(x, keep);
    for (const DType to : kOpTypes) {
      if (target.can(Op::CAST, type) && target.can(Op::CAST, to)) {
        keep("CAST to " + to.name(), builder.add(Op::CAST, to.vec(lanes), {x[0]}));
      }
      if (type.item_bytes() == to.item_bytes() && target.can(Op::BITCAST, to)) {
        keep("BITCAST to " + to.name(), builder.add(Op::BITCAST, to.vec(lanes), {x[0]}));
      }
    }
    builder.end(last, r);
  }

  template <class Keep>
  void add_shuffles(const std::vector<UOp>& x, const Keep& keep) {
    const DType type = x[0].dtype(), element = type.element();
    std::vector<int64_t> back;
    std::vector<UOp> same, mixed;
    for (int64_t k = type.lanes; k-- > 0;) back.push_back(k);
    const int64_t lane[] = {2};
    const UOp two = builder.add(Op::GEP, element, {x[0]}, Arg::ints(lane));
    for (int64_t k = 0; k < type.lanes; k++) {
      const int64_t which[] = {k};
      same.push_back(two);
      mixed.push_back(builder.add(Op::GEP, element, {x[size_t(k % 3)]}, Arg::ints(which)));
    }
    keep("GEP", builder.add(Op::GEP, type, {x[0]}, Arg::ints(back)));
    keep("VECTORIZE of one", builder.add(Op::VECTORIZE, type, same));
    keep("VECTORIZE", builder.add(Op::VECTORIZE, type, mixed));
  }
};

}  // namespace weft::test
