// Reductions over one range -> one serial loop over blocks of it.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/node.h"
#include "schedule/rangeify/merge_rules.h"

namespace weft {

struct BlockLoops {
  UOp range{};              // that the bodies of the reductions are over; its size is a constant
  int64_t block = 1;        // places of it that are done together
  std::vector<UOp> rows{};  // the ranges around all of the reductions
  std::vector<MergedReduction> reductions{};
  UOp end{};  // places from here on count for nothing; null: all count
};

// What a block computes for more than one of the reductions, or more often than once in one of
// them: it is stored in local memory, one element for each place of the block. Sources first.
std::vector<UOp> staged_values(const BlockLoops& loops);

// Of a loop of so many rows: how many had best go through the blocks together, where they share
// what a product reads. Rows that run together have the same blocks.
int64_t rows_together(int64_t places);

// `value` with each reduction as what is left in local memory after
//
//   results = identities
//   for block in range / n:
//     for j in block: staged[j] = ...
//     maximum' = max(maximum, REDUCE(MAX, x, j));  factor = e(maximum - maximum')
//     sum = sum * factor + REDUCE(ADD, e(x - maximum') v, j);  maximum = maximum'
//
// and once more for what is left of the range. All reductions in it are ordinary ones.
UOp with_block_loops(UOp value, const BlockLoops& loops);

}  // namespace weft
