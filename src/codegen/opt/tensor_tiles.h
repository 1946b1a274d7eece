// Contractions by products of tiles: WMMA, fed by FETCHes that run ahead of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/opt/tile_factors.h"
#include "ir/node.h"

namespace weft {

// data[row, column] = f(sum over k of a[row, k] * b[k, column], ...), of any number of outputs,
// where a and b are float16 or bfloat16 and the sum is float32. Other loops may stand around, and
// other ranges be summed over, too.
struct TileContraction {
  UOp reduce{}, rows{}, columns{}, sum{};
  UOp a{}, b{};  // memory, or values of it
};

// The loops of all ENDs of a kernel, where they have the same ones; else none.
std::vector<UOp> loops_of_all(UOp sink);

// The contraction over the reduction `axis`; why there is none.
struct FoundContraction {
  TileContraction contraction{};
  std::string why_not{};
};
FoundContraction find_tile_contraction(UOp sink, int64_t axis);

// Whether all that is summed over is one range, as its parts would leave much of each step empty.
bool is_summed_as_one(const TileContraction& contraction);

// What the fetched tiles take of local memory.
int64_t tile_bytes(int64_t columns);

// Why the contraction over `axis` cannot be done with tiles of so many columns; empty: it can.
std::string why_not_tiles(UOp sink, int64_t axis, int64_t columns, TileCopies copies);

// Each group does kTileRows x `columns` results by 256 threads, in steps of kTileDepth of the sum.
// The loop over the steps fetches what later ones multiply.
UOp tensor_tiles(UOp sink, int64_t axis, int64_t columns, TileCopies copies);

}  // namespace weft
