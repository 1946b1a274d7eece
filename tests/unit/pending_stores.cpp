// What reads find among the writes that are pending: the newest that covers them, none, or a mix.
#include "value/pending_stores.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/device.h"
#include "tests/unit/tensor_helpers.h"
#include "value/storage.h"
#include "value/value.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

using Kind = PendingRead::Kind;
constexpr DType kType = dtypes::int64;

Ref<Value> memory(int64_t size) { return Value::make(Op::BUFFER, kType, ref_device(), {size}); }

Ref<Value> write_to(const Ref<Value>& old, const View& view) {
  Sizes numbers = view.shape;
  numbers.append(view.strides);
  numbers.push_back(view.offset);
  const Ref<Value> value = Value::make(Op::BUFFER, kType, ref_device(), view.shape);
  return Value::make(Op::AFTER, kType, ref_device(), old->shape(), numbers, old, value);
}

View slice(int64_t start, int64_t count, int64_t step = 1) {
  return {kType, {count}, {step}, start};
}

class Stores : public testing::Test {
 protected:
  Value* add(const View& view) {
    version_ = write_to(version_, view);
    stores_.add(version_);
    return version_.get();
  }
  Kind kind(const View& view) const { return stores_.find(view).kind; }
  Value* covering(const View& view) const {
    const PendingRead read = stores_.find(view);
    return read.kind == Kind::kCovered ? read.write : nullptr;
  }

  Ref<Value> version_ = memory(100);
  PendingStores stores_{version_};
};

TEST_F(Stores, the_newest_covers) {
  Value* first = add(slice(0, 10));
  EXPECT_EQ(covering(slice(2, 4)), first);
  Value* second = add(slice(4, 2));
  EXPECT_EQ(covering(slice(0, 4)), first);
  EXPECT_EQ(covering(slice(6, 4)), first);
  EXPECT_EQ(covering(slice(4, 2)), second);
  EXPECT_EQ(kind(slice(3, 2)), Kind::kMixed);
  EXPECT_EQ(kind(slice(10, 5)), Kind::kUntouched);
  EXPECT_EQ(kind(slice(9, 2)), Kind::kMixed);
}

TEST_F(Stores, a_read_within_a_write) {
  add({kType, {3, 4}, {10, 1}, 20});
  const std::optional<View> within = stores_.find({kType, {3}, {10}, 22}).within;
  ASSERT_TRUE(within);
  EXPECT_EQ(*within, (View{kType, {3}, {4}, 2}));
}

TEST_F(Stores, reads_between_strided_writes) {
  Value* even = add(slice(0, 10, 2));
  EXPECT_EQ(kind(slice(1, 9, 2)), Kind::kUntouched);
  EXPECT_EQ(covering(slice(4, 3, 4)), even);
  EXPECT_EQ(kind(slice(0, 4)), Kind::kMixed);
  Value* odd = add(slice(1, 9, 2));
  EXPECT_EQ(covering(slice(1, 9, 2)), odd);
  EXPECT_EQ(kind(slice(2, 2, 2)), Kind::kMixed);  // hidden under the second
}

TEST_F(Stores, columns_of_a_matrix) {
  add({kType, {10, 2}, {10, 1}, 0});
  EXPECT_EQ(kind({kType, {10, 3}, {10, 1}, 5}), Kind::kUntouched);
  EXPECT_EQ(kind({kType, {10, 3}, {10, 1}, 1}), Kind::kMixed);
}

TEST_F(Stores, overlapping_writes_do_not_cover) {
  add({kType, {4, 2}, {1, 1}, 0});
  EXPECT_EQ(kind(slice(1, 2)), Kind::kMixed);
}

TEST_F(Stores, many_segments_are_mixed) {
  for (int64_t i = 0; i < 50; i++) add(slice(2 * i, 1));
  EXPECT_EQ(stores_.segments(), 50U);
  EXPECT_EQ(kind(slice(1, 20, 2)), Kind::kMixed);
  EXPECT_EQ(kind(slice(1, 4, 2)), Kind::kUntouched);
  add(slice(0, 100));
  EXPECT_EQ(stores_.segments(), 1U);
}

// Against one owner per element.
TEST(PendingStores, random_writes_and_reads) {
  std::mt19937_64 random(7);
  const auto pick = [&](int64_t lo, int64_t hi) {
    return std::uniform_int_distribution<int64_t>(lo, hi)(random);
  };
  constexpr int64_t size = 60;
  int covered = 0, untouched = 0;
  for (int round = 0; round < 400; round++) {
    Ref<Value> version = memory(size);
    PendingStores stores(version);
    std::vector<Value*> owner(size);
    const auto random_view = [&] {
      const int64_t step = pick(1, 3), start = pick(0, size - 1);
      return slice(start, pick(1, (size - 1 - start) / step + 1), step);
    };
    for (int i = 0; i < 20; i++) {
      const View written = random_view();
      version = write_to(version, written);
      stores.add(version);
      for (int64_t k = 0; k < written.shape[0]; k++) {
        owner[size_t(written.offset + k * written.strides[0])] = version.get();
      }
      const View read = random_view();
      const PendingRead found = stores.find(read);
      if (found.kind == Kind::kMixed) continue;
      (found.kind == Kind::kCovered ? covered : untouched)++;
      for (int64_t k = 0; k < read.shape[0]; k++) {
        ASSERT_EQ(owner[size_t(read.offset + k * read.strides[0])], found.write);
      }
    }
  }
  EXPECT_GT(covered, 200);
  EXPECT_GT(untouched, 200);
}

TEST(PendingStores, covered_reads_are_the_stored_value) {
  Tensor a = test::counted({8});
  const Tensor b = test::floats({5, 6, 7, 8});
  a.at({Slice{2, 6}}).assign(b);
  EXPECT_EQ(a.storage()->read(a.at({Slice{2, 6}}).view()), b.storage()->version());
  EXPECT_EQ(a.at({Slice{3, 5}}).data<float>(), (test::Floats{6, 7}));
}

TEST(PendingStores, untouched_reads_look_through) {
  Tensor a = test::counted({8});
  const Ref<Value> base = a.storage()->version();
  a.set({Slice{4, 8}}, 1);
  const Ref<Value> read = a.storage()->read(a.at({Slice{0, 4}}).view());
  ASSERT_TRUE(read->is(Op::SHRINK));
  EXPECT_EQ(read->sources()[0], base);
}

TEST(PendingStores, all_of_a_storage) {
  const Ref<Storage> storage = Storage::make(memory(6));
  const Sizes vector{6}, matrix{2, 3};
  EXPECT_EQ(storage->read_all(vector), storage->version());
  EXPECT_FALSE(storage->read_all(matrix));
  Ref<Value> other = Value::make(Op::BUFFER, kType, ref_device(), matrix);
  EXPECT_FALSE(storage->write_all(other));
  Ref<Value> narrow = Value::make(Op::BUFFER, dtypes::int32, ref_device(), vector);
  EXPECT_FALSE(storage->write_all(narrow));
  EXPECT_TRUE(other && narrow);

  storage->write(slice(1, 2), Value::make(Op::BUFFER, kType, ref_device(), {2}));
  EXPECT_FALSE(storage->read_all(vector));  // read() finds what it can see past
  const Ref<Value> next = memory(6);
  Ref<Value> given = next;
  EXPECT_TRUE(storage->write_all(given));
  EXPECT_EQ(storage->version(), next);
  EXPECT_EQ(storage->read_all(vector), next);
  EXPECT_EQ(storage->read(slice(1, 2))->sources()[0], next);
}

}  // namespace
}  // namespace weft
