// What a Closure knows about its Values: places, also when others have looked at them before, and
// when there are too many for memory that stays.
#include <cstddef>
#include <mutex>
#include <span>

#include <gtest/gtest.h>

#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/device.h"
#include "value/closure.h"
#include "value/storage.h"
#include "value/value.h"

namespace weft {
namespace {

using Roots = std::span<Value* const>;
constexpr DType kType = dtypes::float32;

Ref<Value> memory() { return Value::make(Op::BUFFER, kType, ref_device(), {4}); }
Ref<Value> negated(const Ref<Value>& x) {
  return Value::make(Op::NEG, kType, ref_device(), {4}, {}, x);
}
Ref<Value> sum(const Ref<Value>& a, const Ref<Value>& b) {
  return Value::make(Op::ADD, kType, ref_device(), {4}, {}, a, b);
}

void expect_consistent(const Closure& closure) {
  const std::span<const Closure::Node> nodes = closure.nodes();
  for (size_t i = 0; i < nodes.size(); i++) {
    ASSERT_EQ(closure.index_of(*nodes[i].value), i);
    const std::span<const Ref<Value>> sources = nodes[i].value->sources();
    ASSERT_EQ(nodes[i].sources().size(), sources.size());
    for (size_t k = 0; k < sources.size(); k++) {
      ASSERT_LT(nodes[i].sources()[k], i);
      ASSERT_EQ(nodes[nodes[i].sources()[k]].value, sources[k].get());
    }
  }
}

class Closures : public testing::Test {
 protected:
  std::lock_guard<std::mutex> lock_{graph_mutex()};
};

TEST_F(Closures, overlap_one_after_the_other) {
  const Ref<Value> x = memory(), a = negated(x), b = sum(a, x), c = sum(b, a);
  Value* const all[] = {c.get()};
  Value* const part[] = {b.get()};
  Value* const both[] = {a.get(), c.get(), a.get()};
  for (const Roots roots : {Roots(all), Roots(part), Roots(both)}) {
    const Closure closure(roots);
    expect_consistent(closure);
    for (Value* root : roots) EXPECT_GT(closure.node_of(*root).roots, 0u);
  }
  const Closure closure(part);
  EXPECT_EQ(closure.nodes().size(), 3u);
  EXPECT_EQ(closure.node_of(*x).edges, 2u);
}

TEST_F(Closures, of_other_values_stand_beside_each_other) {
  const Ref<Value> x = negated(memory()), y = sum(memory(), memory());
  Value* const first[] = {x.get()};
  Value* const second[] = {y.get()};
  const Closure one(first), other(second);
  expect_consistent(one);
  expect_consistent(other);
}

TEST_F(Closures, outgrow_the_memory_that_is_kept) {
  const Ref<Value> x = memory();
  for (const size_t count : {10u, 400'000u, 10u, 50'000u}) {
    Ref<Value> y = x;
    for (size_t i = 0; i < count; i++) y = sum(y, x);
    Value* const roots[] = {y.get()};
    const Closure closure(roots);
    EXPECT_EQ(closure.nodes().size(), count + 1);
    expect_consistent(closure);
    EXPECT_EQ(closure.node_of(*x).edges, count + 1);
  }
}

}  // namespace
}  // namespace weft
