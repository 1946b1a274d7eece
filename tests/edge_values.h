// The values at which ops go wrong, of every dtype.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ir/dtype.h"
#include "ir/scalar.h"

namespace weft::test {

inline std::vector<uint64_t> edge_values(DType type) {
  if (type.is_bool()) return {0, 1};
  std::vector<uint64_t> out;
  if (type.is_int()) {
    for (const int64_t v : {0, 1, 2, 3, 5, 7, 31, 63, 64, 100}) {
      out.push_back(bits_of_int(type, v));
      out.push_back(bits_of_int(type, -v));
    }
    for (const int64_t v : {-1, 0, 1}) {
      out.push_back(bits_of_uint(type, greatest_bits(type) + uint64_t(v)));
      out.push_back(bits_of_uint(type, greatest_bits(type) / 2 + uint64_t(v)));
      out.push_back(bits_of_uint(type, (uint64_t(1) << 24) + uint64_t(v)));
      out.push_back(bits_of_uint(type, (uint64_t(1) << 53) + uint64_t(v)));
    }
  } else {
    const double infinity = INFINITY;
    for (const double v : {0.0,
                           0.5,
                           1.0,
                           1.5,
                           2.5,
                           3.0,
                           1e-40,
                           1e-310,
                           127.5,
                           128.0,
                           255.5,
                           32768.0,
                           65504.0,
                           65520.0,
                           2147483520.0,
                           2147483647.0,
                           2147483648.0,
                           4294967295.0,
                           4294967296.0,
                           9223372036854774784.0,
                           9223372036854775808.0,
                           18446744073709551616.0,
                           1e30,
                           3.4028234663852886e38,
                           1e300,
                           0.1,
                           1.0 / 3,
                           infinity,
                           double(NAN)}) {
      out.push_back(bits_of_double(type, v));
      out.push_back(bits_of_double(type, -v));
    }
    if (type.scalar == Scalar::kFloat32) out.push_back(0x7fc01234);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace weft::test
