// Graphs as text: exact and back, short, and drawn.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/walk.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/random_expression.h"

namespace weft {
namespace {

void round_trip(UOp root) {
  const std::string text = print(root);
  EXPECT_EQ(parse(root.arena(), text), root) << text;
  Arena other;
  const UOp copy = parse(other, text);
  EXPECT_EQ(print(copy), text);
  EXPECT_EQ(graph_hash(copy), graph_hash(root));
}

TEST(TextForm, IsWhatItSays) {
  Arena a;
  const UOp r = range(a, 4, 0);
  EXPECT_EQ(print(r + 4),
            "%0 = CONST index 4\n"
            "%1 = RANGE index (%0) 0:loop\n"
            "%2 = ADD index (%1, %0)\n");
}

TEST(TextForm, EveryKindOfArgumentReadsBack) {
  Arena a;
  const UOp b = buffer(a, dtypes::float32, 24, "CPU \"0\"\n\\", 7);
  const int64_t order[] = {1, 0}, axes[] = {0};
  const UOp moved = permute(reshape(b, std::vector<Dim>{4, 6}), order);
  round_trip(reduce_axis(Op::MAX, moved, axes));
  round_trip(special(a, "gidx0", 12));
  const UOp r = range(a, 8, 3, AxisType::kReduce);
  const UOp ranges[] = {r};
  round_trip(bufferize(cast(r, dtypes::int32), ranges, AddrSpace::kLocal));
  round_trip(reduce(Op::ADD, cast(r, dtypes::float64), ranges));
  round_trip(define_global(a, dtypes::float16.vec(4), 16, 0));
  const int64_t lanes[] = {3, 0};
  round_trip(gep(constant(a, dtypes::float32.vec(4), 1.5), lanes));
}

TEST(TextForm, EveryConstantReadsBack) {
  Arena a;
  for (const double v : {0.0, -0.0, 1.5, 1e-45, 3.4e38, 1.0 / 0.0, -1.0 / 0.0, 0.1}) {
    for (const DType t : {dtypes::float32, dtypes::float64, dtypes::float16, dtypes::bfloat16,
                          dtypes::float8_e4m3, dtypes::float8_e5m2}) {
      round_trip(constant(a, t, v));
    }
  }
  round_trip(constant_bits(a, dtypes::float32, 0x7fc00001));  // a NaN with a payload
  round_trip(constant_bits(a, dtypes::float64, 0xfff8000000000000));
  round_trip(constant_bits(a, dtypes::uint64, UINT64_MAX));
  round_trip(constant_bits(a, dtypes::int64, uint64_t(1) << 63));
  round_trip(bool_const(a, true));
}

TEST(TextForm, RandomGraphsReadBack) {
  for (uint64_t seed = 0; seed < 500; seed++) {
    Arena a;
    fuzz::Choices choices(seed);
    round_trip(fuzz::RandomExpression(a, choices).any());
  }
}

TEST(TextForm, ErrorsSayWhere) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "the text has no node"},
      {"%0 = CONST index 4\n%1 = NOPE index (%0)", "line 2, column 6: expected an op"},
      {"%0 = CONST in 4", "line 1, column 12: expected a dtype"},
      {"%0 = CONST index x", "line 1, column 18: expected a value of index"},
      {"%0 = CONST uint8 256", "expected a value of uint8"},
      {"%0 = ADD index (%1, %2)", "column 18: expected the name of an earlier line"},
      {"%0 = CONST index 4 5", "expected the end of the line"},
      {"%0 = CONST index 4\n%0 = CONST index 5", "a name that no earlier line has"},
      {"%0 = CONST index 4\n%1 = RANGE index (%0) 0:nope", "expected an axis type"},
      {"%0 = DEVICE void \"REF", "expected '\"'"},
      {"%0 = DEVICE void \"a\\xZZ\"", "two hexadecimal digits"},
      {"%0 = CONST index 4\n%1 = RANGE index (%0) -1:loop", "expected a range id"},
  };
  for (const auto& [text, message] : cases) {
    Arena a;
    try {
      parse(a, text);
      ADD_FAILURE() << text;
    } catch (const ParseError& e) {
      EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << e.what();
    }
  }
}

TEST(ShortForm, HasNoMoreParenthesesThanNeeded) {
  Arena a;
  const UOp x = range(a, 8, 0), y = range(a, 8, 1);
  EXPECT_EQ(short_form((x * 4 + y) % 8), "(r0*4 + r1)%8");
  EXPECT_EQ(short_form(x + (y + 1)), "r0 + (r1 + 1)");
  EXPECT_EQ(short_form((x + y) + 1), "r0 + r1 + 1");
  EXPECT_EQ(short_form(x - (y - 1)), "r0 - (r1 - 1)");
  EXPECT_EQ(short_form((x < y) & (y < 3)), "(r0 < r1) & (r1 < 3)");
  EXPECT_EQ(short_form(where(x < 3, x, y)), "where(r0 < 3, r0, r1)");
  const UOp p = define_global(a, dtypes::float32, 8, 0);
  EXPECT_EQ(short_form(load(index(p, x + 1))), "load(data0[r0 + 1])");
}

TEST(Graphviz, HasANodeForEveryNodeAndAnEdgeForEveryEdge) {
  Arena a;
  const UOp root = range(a, 8, 0) + 1;
  const std::string dot = to_dot(root);
  const Summary s = summarize(root);
  size_t nodes = 0, edges = 0;
  for (size_t at = 0; (at = dot.find("fillcolor", at)) != std::string::npos; at++) nodes++;
  for (size_t at = 0; (at = dot.find(" -> ", at)) != std::string::npos; at++) edges++;
  EXPECT_EQ(nodes, s.nodes);
  EXPECT_EQ(edges, s.edges);
  EXPECT_EQ(dot.find("digraph weft {"), 0u);
}

}  // namespace
}  // namespace weft
