// Optimisations: how the loops of a kernel are cut, ordered and mapped.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/node.h"

namespace weft {

enum class OptKind : uint8_t {
  kTile,    // TILE(axis, n): n places of a loop become an inner loop
  kUpcast,  // UPCAST(axis, n): n places are done side by side, in registers of their own
  kVector,  // VECTOR(axis, n): n places are the lanes of a vector
  kUnroll,  // UNROLL(axis, n): n places of a reduction are taken one after the other, without a
            // loop
  kGroup,   // GROUP(axis, n): a reduction in n parts, combined at the end
  kThread,  // THREAD(axis, n): n places of the outermost loop at a time go to a thread; 0: one
  kStage,   // STAGE(argument, axis): reads of an argument go through local memory, filled in the
            // loop
  kPad,     // PAD(axis, n): the loop is made longer, to a multiple of n, with gates
  kMerge,   // MERGE(axis, inner): a loop and the next one inside of it become one
  kLocal,   // LOCAL(axis, n): n places go to the threads of a workgroup; those of a reduction meet
            // in local memory
  kSerial,  // SERIAL(axis, 1): every thread of a workgroup goes through the loop by itself
  kShare,   // SHARE(argument, axis): reads of an argument go through memory that a workgroup shares
            // and fills together, in the loop
  kTensor,  // TENSOR(axis, columns): a contraction over a reduction by products of tiles, with this
            // many columns for each group
  kBulk,    // BULK(axis, columns): as TENSOR, with boxes of its factors copied by one thread
  kShard,   // SHARD(axis, n): n owners go through a loop whose writes must keep their order, each
            // for elements of its own
  kBlock,   // BLOCK(axis, n): n places of a loop go through the writes to local memory together
};

struct Opt {
  OptKind kind;
  int64_t axis;    // the id of a RANGE; of STAGE and SHARE, the number of a DEFINE_GLOBAL
  int64_t amount;  // of STAGE, SHARE and MERGE, the id of a RANGE

  bool operator==(const Opt&) const = default;
};

using OptList = std::vector<Opt>;

// "VECTOR(0, 16) UPCAST(0, 4)", and back. Throws ParseError.
std::string print(std::span<const Opt> opts);
OptList parse_opts(std::string_view text);

// The kernel with the optimisations done, one after the other. A loop that is cut keeps its id for
// the outer part, and the inner part has the least id that is larger than all in use; what does not
// fill the inner part is done by a loop of its own behind it. Loops keep their meaning: only the
// order of independent iterations changes, and the order in which a float reduction is summed by
// VECTOR and GROUP. Throws CompileError when one does not apply, and says why.
UOp apply_opts(UOp sink, std::span<const Opt> opts);

// One optimisation, on a kernel whose parallel loops are marked (loops.h).
UOp apply_opt(UOp sink, const Opt& opt);

// Whether it applies there: what apply_opt would throw, or empty.
std::string why_not(UOp sink, const Opt& opt);

}  // namespace weft
