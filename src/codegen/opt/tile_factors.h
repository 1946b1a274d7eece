// A factor of a product of tiles -> the FETCHes that bring tiles of it to local memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "codegen/opt/tile_boxes.h"
#include "ir/arena.h"
#include "ir/node.h"

namespace weft {

inline constexpr int64_t kTileSide = 64;                      // of a block of a tile
inline constexpr int64_t kTileBlock = kTileSide * kTileSide;  // elements
inline constexpr int64_t kFetched = 8;                        // elements of a FETCH
inline constexpr int64_t kTileThreads = 256;                  // of a group
inline constexpr int64_t kTileRows = 128, kTileDepth = kTileSide;

// How tiles come to local memory.
enum class TileCopies : uint8_t {
  kVectors,  // every thread fetches vectors of them
  kBoxes,    // one thread fetches boxes of factors that are arrays in memory, all fetch the others
};

// The float16 or bfloat16 that a factor is a float32 of.
UOp half_of(UOp factor);

// A LOAD with zeros where its gate is off.
bool is_zero(UOp n);

// Whether the places of the range from a multiple of kFetched on lie in order from a multiple of
// kFetched on.
bool is_fetched_along(UOp read, UOp range);

// `across` are its places that are not summed over, `sum` those that are.
struct TileFactor {
  UOp value;  // a LOAD if `is_copied`, in aligned vectors; any other is computed by who fetches it
  UOp across, sum;
  bool is_copied;
  bool is_transposed;                // in order along `across`
  std::optional<RangedArray> array;  // that boxes are fetched of
};
TileFactor tile_factor(UOp half, UOp across, UOp sum, TileCopies copies);

// The value with its reads done only where the gate is on: elsewhere they are zero.
UOp read_only_if(UOp value, UOp gate);

// A tile of a factor: `count` places across from `first` on, kTileDepth of the sum from `depth` on.
struct TilePlace {
  UOp first, depth;
  int64_t count;
  std::span<const std::pair<UOp, UOp>> others;  // where other ranges are
  UOp gate;                                     // whether there is such a tile
};

class TileFetcher {
 public:
  // Ids of new ranges are counted on from `next_id`.
  TileFetcher(Arena& arena, UOp thread, int64_t& next_id)
      : arena_(arena), thread_(thread), next_id_(next_id) {}

  // Fetches the tile to the place `at` of local memory.
  void fetch(const TileFactor& f, const TilePlace& place, UOp local, UOp at, std::vector<UOp>& out);

 private:
  UOp fetch_box(const TileFactor& f, const TilePlace& p, int64_t first, int64_t rows, UOp local,
                UOp at);
  UOp fetch_one(const TileFactor& f, const TilePlace& p, int64_t k, UOp local, UOp at);

  Arena& arena_;
  UOp thread_;
  int64_t& next_id_;
};

}  // namespace weft
