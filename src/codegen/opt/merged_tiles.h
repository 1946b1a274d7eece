// Reductions that depend on each other, with products among them -> one loop over blocks of tiles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/opt/tile_factors.h"
#include "ir/node.h"
#include "schedule/rangeify/merge_rules.h"

namespace weft {

// A sum of products of float16 or bfloat16 numbers in float32.
struct TileProduct {
  UOp reduce, a, b, sum;
};

// data[..., row, column] = f(reductions over the places j of one range), where
//   scores        REDUCE(ADD, a[row, k] * b[j, k], k) stand in what is reduced
//   a product     REDUCE(ADD, p[row, j] * v[j, column], j), p a formula of scores, is one of them
// and each of them depends on the ones before as merged_reductions says.
struct MergedTiles {
  std::vector<UOp> ends;  // of the writes, all in the same loops
  UOp rows, columns, along;
  std::vector<MergedReduction> reductions;
  std::vector<TileProduct> scores;
  std::vector<std::optional<TileProduct>> products;  // that a reduction is
};

struct FoundMergedTiles {
  MergedTiles tiles{};
  std::string why_not{};
};
// Where `axis` is the range of one of the reductions.
FoundMergedTiles find_merged_tiles(UOp sink, int64_t axis);

// The ids of ranges that find_merged_tiles can be asked about.
std::vector<int64_t> ranges_to_merge(UOp sink);

// The places of a block for which so many bytes of local memory are enough; 0: there are none.
int64_t merged_block(const MergedTiles& tiles, int64_t local_bytes);

std::string why_not_merged_tiles(UOp sink, int64_t axis, int64_t block, TileCopies copies);

// Each group does kTileRows rows and all columns by 256 threads. Scores and results stay in
// registers; the maximum of a row goes from thread to thread through local memory.
UOp merged_tiles(UOp sink, int64_t axis, int64_t block, TileCopies copies);

}  // namespace weft
