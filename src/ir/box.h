// What a FETCH_BOX copies: an array in global memory, and the size of a box of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/node.h"

namespace weft {

inline constexpr int64_t kBoxWidth = 64;  // elements along the first axis
inline constexpr size_t kMostBoxAxes = 5, kLeastBoxAxes = 2;
// The sources of a FETCH_BOX: those after the last are a place by axis.
inline constexpr size_t kBoxTo = 0, kBoxFrom = 1, kBoxThread = 2, kBoxGate = 3, kBoxAt = 4;

struct Box {
  struct Axis {
    int64_t size, step;  // in elements

    bool operator==(const Axis&) const = default;
  };

  int64_t rows = 0;        // of kBoxWidth elements, in order in local memory
  int64_t row_axis = 1;    // along which they follow each other
  int64_t offset = 0;      // of the array in memory
  std::vector<Axis> axes;  // the first in order: its step is 1

  bool operator==(const Box&) const = default;

  std::vector<int64_t> ints() const {  // the argument of a FETCH_BOX
    std::vector<int64_t> out{rows, row_axis, offset};
    for (const Axis& a : axes) out.insert(out.end(), {a.size, a.step});
    return out;
  }
  static Box of(UOp fetch_box) {
    const auto ints = fetch_box.ints();
    Box out{ints[0], ints[1], ints[2], {}};
    for (size_t i = 3; i + 1 < ints.size(); i += 2) out.axes.push_back({ints[i], ints[i + 1]});
    return out;
  }
};

}  // namespace weft
