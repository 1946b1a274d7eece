// docs/decompositions.md states the bounds of codegen/error_bounds.h.
#include <array>
#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/error_bounds.h"
#include "ir/dtype.h"
#include "ir/op.h"

namespace weft::test {
namespace {

TEST(DecomposeDocs, StateTheBounds) {
  std::ifstream file(WEFT_SOURCE_DIR "/docs/decompositions.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  constexpr std::array types = {dtypes::float32,  dtypes::float64,     dtypes::float16,
                                dtypes::bfloat16, dtypes::float8_e5m2, dtypes::float8_e4m3};
  std::string head = "| |";
  for (const DType type : types) head += fmt::format(" {} |", type.name());
  EXPECT_NE(text.find(head + "\n"), std::string::npos) << head;
  for (const Op op : {Op::EXP2, Op::EXP, Op::LOG2, Op::LOG, Op::SIN, Op::COS}) {
    std::string row = fmt::format("| {} |", name_of(op));
    for (const DType type : types) {
      for (const ErrorBound& b : kErrorBounds) {
        if (b.op == op && b.dtype == type) row += fmt::format(" {:g} |", b.ulp);
      }
    }
    EXPECT_NE(text.find(row + "\n"), std::string::npos) << row;
  }
}

}  // namespace
}  // namespace weft::test
