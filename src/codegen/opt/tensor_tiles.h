// Contractions by products of tiles: WMMA, fed by FETCHes that run ahead of it.
#pragma once

#include <cstdint>
#include <string>

#include "ir/node.h"

namespace weft {

// data[row, column] = f(sum over k of a[row, k] * b[k, column], ...), of any number of outputs, where a
// and b are float16 or bfloat16 and the sum is float32. Other loops may stand around, and other
// ranges be summed over, too.
struct TileContraction {
  UOp reduce{}, rows{}, columns{}, sum{};
  UOp a{}, b{};  // memory, or values of it
};

inline constexpr int64_t kTileRows = 128, kTileDepth = 64;  // of a group

// The contraction over the reduction `axis`; why there is none.
struct FoundContraction {
  TileContraction contraction{};
  std::string why_not{};
};
FoundContraction find_tile_contraction(UOp sink, int64_t axis);

// What the fetched tiles take of local memory.
int64_t tile_bytes(int64_t columns);

// How tiles come to local memory.
enum class TileCopies : uint8_t {
  kVectors,  // every thread fetches vectors of them
  kBoxes,    // one thread fetches boxes of factors that are arrays in memory, all fetch the others
};

// Why the contraction over `axis` cannot be done with tiles of so many columns; empty: it can.
std::string why_not_tiles(UOp sink, int64_t axis, int64_t columns, TileCopies copies);

// Each group does kTileRows x `columns` results by 256 threads, in steps of kTileDepth of the sum.
// The loop over the steps fetches what later ones multiply.
UOp tensor_tiles(UOp sink, int64_t axis, int64_t columns, TileCopies copies);

}  // namespace weft
