// A tensor graph with its numbers taken out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "ir/arena.h"
#include "ir/node.h"

namespace weft {

// A number that a node takes as a source.
struct Number {
  enum class Kind : uint8_t {
    kSize,    // of an axis
    kOffset,  // not negative: where a SHRINK begins, how much a PAD adds
    kPlace,   // of any sign: strides and the offset of a VIEW
  };
  int64_t value;
  Kind kind;
};

// The same for programs that differ only in numbers.
struct Skeleton {
  Hash128 hash;
  std::vector<UOp> scalars;     // CONSTs of values, in order
  std::vector<Number> numbers;  // use after use, as numbers_of() lists them
};

// Which scalars are one.
enum class Scalars : uint8_t {
  kByNode,  // equal ones, as the graph has them
  // None: a program whose numbers happen to be equal in one step, and not in the next, has one
  // skeleton. So has one whose scalars are spread to shapes.
  kByUse,
};

// Of a graph by its nodes, sources first, in the order that toposort gives them. Axes of size 0 and
// 1 are different from others; so are strides by their sign.
Skeleton skeleton_of(std::span<const UOp> order, Scalars scalars);

// For Scalars::kByUse: marks the nodes that stand for a scalar, a CONST or a movement op of such a
// node alone.
void mark_spread_scalars(std::span<const UOp> order, NodeMap& spread);

// Whether n is a movement op, BUFFER or IOTA whose numbers are all constants: those are part of no
// skeleton. A SHRINK has the begin and the length of every axis; others have their sources.
bool has_numbers(UOp n);
void add_numbers(UOp n, std::vector<Number>& to);  // of one that has

}  // namespace weft
