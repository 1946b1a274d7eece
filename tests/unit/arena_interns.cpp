// Nodes are interned, numbered, imported and hashed.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/print.h"
#include "ir/walk.h"

namespace weft {
namespace {

TEST(Arena, EqualStructureIsTheSameNode) {
  Arena a;
  const UOp x = range(a, 8, 0);
  EXPECT_EQ(x + 1, x + 1);
  EXPECT_NE(x + 1, x + 2);
  EXPECT_NE(range(a, 8, 0), range(a, 8, 1));  // ranges have identity
  EXPECT_NE(define_reg(a, dtypes::float32, 0), define_reg(a, dtypes::float32, 1));
}

TEST(Arena, IdsAreDenseAndSourcesComeFirst) {
  Arena a;
  const UOp root = (range(a, 8, 0) + 1) * 3;
  std::vector<bool> seen(a.size());
  for (UOp n : toposort(root)) {
    ASSERT_LT(n.id(), a.size());
    EXPECT_FALSE(seen[n.id()]);
    seen[n.id()] = true;
    for (UOp s : n.srcs()) EXPECT_LT(s.id(), n.id());
  }
}

TEST(Arena, ANodeKnowsItsArena) {
  Arena a, b;
  EXPECT_EQ(&index_const(a, 1).arena(), &a);
  EXPECT_EQ(&index_const(b, 1).arena(), &b);
  // also one that is larger than a block of memory
  std::vector<UOp> many;
  for (int i = 0; i < 20'000; i++) many.push_back(index_const(a, i));
  const UOp s = sink(a, many);
  EXPECT_EQ(&s.arena(), &a);
  EXPECT_EQ(sink(a, many), s);
  EXPECT_EQ(&(index_const(a, 3) + index_const(a, 4)).arena(), &a);
}

TEST(Arena, ManyUsersOfOneNodeAreFoundAgain) {  // more than a line of the table holds
  Arena a;
  std::vector<UOp> consts, sums;
  for (int i = 0; i < 5000; i++) consts.push_back(index_const(a, i));
  const UOp x = range(a, 8, 0);
  for (UOp c : consts) sums.push_back(x + c);
  const size_t size = a.size();
  for (size_t i = 0; i < consts.size(); i++) EXPECT_EQ(x + consts[i], sums[i]);
  EXPECT_EQ(a.size(), size);
}

TEST(Arena, FreshIdsAreNew) {
  Arena a;
  range(a, 8, 41);
  EXPECT_EQ(a.fresh_id(), 42);
  a.make(Op::DEFINE_REG, dtypes::int32, {}, Arg::integer(INT64_MAX));  // not a place to go on from
  EXPECT_EQ(a.fresh_id(), 43);
}

TEST(Arena, ConstantsAreExact) {
  Arena a;
  const int64_t large = (int64_t(1) << 53) + 1;  // not a double
  EXPECT_EQ(constant(a, dtypes::int64, large).const_int(), large);
  EXPECT_NE(constant(a, dtypes::float32, 0.0), constant(a, dtypes::float32, -0.0));
  const UOp nan = constant_bits(a, dtypes::float32, 0x7fc00001);
  EXPECT_NE(nan, constant(a, dtypes::float32, std::nan("")));
  EXPECT_EQ(import_graph(*std::make_shared<Arena>(), nan).bits(), 0x7fc00001u);
}

TEST(Arena, ImportCopiesAGraphOnce) {
  Arena a, b;
  const UOp x = variable(a, "n", 1, 9);
  const int64_t order[] = {1, 0};
  const UOp view =
      permute(reshape(buffer(a, dtypes::float32, 6, "REF", 4), std::vector<Dim>{2, 3}), order);
  const UOp root = sink(x * 3 + 1, view);
  const UOp copy = import_graph(b, root);
  EXPECT_EQ(&copy.arena(), &b);
  EXPECT_EQ(print(copy), print(root));
  EXPECT_EQ(copy.hash(), root.hash());
  EXPECT_EQ(graph_hash(copy), graph_hash(root));
  const size_t size = b.size();
  EXPECT_EQ(import_graph(b, root), copy);
  EXPECT_EQ(b.size(), size);
}

TEST(Arena, HashesAreTheSameInEveryProcess) {
  Arena a;
  const UOp root = (range(a, 8, 0) * 16 + range(a, 16, 1)) % 7;
  EXPECT_EQ(graph_hash(root).hex(), "66835cb9492aa3ce877cf2bd4b97d8ea");
  EXPECT_NE(graph_hash(root), graph_hash((range(a, 8, 0) * 16 + range(a, 16, 1)) % 8));
}

TEST(Arena, AHeldGraphKeepsItsArenaAlive) {
  std::weak_ptr<Arena> watch;
  {
    Graph graph;
    {
      auto arena = std::make_shared<Arena>();
      graph = {arena, range(*arena, 4, 0) + 1};
      watch = arena;
    }
    EXPECT_FALSE(watch.expired());
    EXPECT_EQ(short_form(graph.root), "r0 + 1");
    const Graph copy = own(graph.root);
    EXPECT_NE(copy.arena, graph.arena);
  }
  EXPECT_TRUE(watch.expired());
}

TEST(Arena, SubstituteReplacesEverywhere) {
  Arena a;
  const UOp x = range(a, 8, 0), y = range(a, 8, 1);
  const std::pair<UOp, UOp> pairs[] = {{x, y}};
  EXPECT_EQ(substitute(x * x + 1, pairs), y * y + 1);
}

TEST(Arena, WalksOfASmallGraphDoNotPayForALargeArena) {
  Arena a;
  UOp big = range(a, 8, 0);
  for (int i = 0; i < 100'000; i++) big = a.make(Op::ADD, dtypes::index, {big, big});
  const UOp small = range(a, 8, 0) + 1;
  toposort(small);
  const size_t before = a.side_table_bytes();
  for (int i = 0; i < 70'000; i++) EXPECT_EQ(toposort(small).size(), 4u);  // past 2^16 walks
  EXPECT_EQ(a.side_table_bytes(), before);
}

UOp chain(Arena& a, size_t length) {
  UOp n = range(a, 8, 0);
  for (size_t i = 0; i < length; i++) {
    n = a.make(Op::ADD, dtypes::index, {n, index_const(a, int64_t(i % 97))});
  }
  return n;
}

TEST(HugeGraph, AChainOfTenMillionNodes) {
  auto arena = std::make_unique<Arena>();
  const UOp root = chain(*arena, 10'000'000);
  const Summary s = summarize(root);
  EXPECT_EQ(s.nodes, 10'000'000u + 97 + 2 - 1);  // the consts 0..96 and the range with its size 8
  EXPECT_EQ(s.depth, 10'000'002u);
  EXPECT_NE(s.text().find("ADD 10000000"), std::string::npos);
  EXPECT_EQ(toposort(root).back(), root);
  EXPECT_LE(double(arena->bytes()) / double(arena->size()), 96);
  EXPECT_EQ(short_form(root, 50).size(), 53u);
  arena.reset();
}

TEST(HugeGraph, ATreeOfTenMillionNodes) {
  auto arena = std::make_unique<Arena>();
  std::vector<UOp> level;
  for (int64_t i = 0; i < 5'000'000; i++) level.push_back(index_const(*arena, i));
  while (level.size() > 1) {
    std::vector<UOp> next;
    for (size_t i = 0; i + 1 < level.size(); i += 2) {
      next.push_back(arena->make(Op::MAX, dtypes::index, {level[i], level[i + 1]}));
    }
    if (level.size() % 2 != 0) next.push_back(level.back());
    level = std::move(next);
  }
  const Summary s = summarize(level[0]);
  EXPECT_EQ(s.nodes, 9'999'999u);
  EXPECT_EQ(s.by_op[size_t(Op::MAX)], 4'999'999u);
  Arena other;
  EXPECT_EQ(import_graph(other, level[0]).hash(), level[0].hash());
}

TEST(Threads, EachWithItsOwnArena) {
  std::vector<std::thread> threads;
  std::vector<uint64_t> hashes(4);
  for (size_t t = 0; t < hashes.size(); t++) {
    threads.emplace_back([&hashes, t] {
      Arena a;
      hashes[t] = chain(a, 10'000).hash();
    });
  }
  for (auto& t : threads) t.join();
  for (const uint64_t h : hashes) EXPECT_EQ(h, hashes[0]);
}

}  // namespace
}  // namespace weft
