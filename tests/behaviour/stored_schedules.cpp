// Schedules outlive the process in a store, and what is damaged there is as if it were not.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/config.h"
#include "base/hash.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "schedule/schedule.h"
#include "schedule/schedule_cache.h"
#include "schedule/store_schedule.h"
#include "tests/unit/tensor_helpers.h"
#include "weft/error.h"
#include "weft/tensor.h"

namespace weft {
namespace {

class MapStore : public ScheduleStore {
 public:
  std::optional<std::vector<std::byte>> get(const Hash128& key) override {
    const auto at = blobs.find(key.hex());
    if (at == blobs.end()) return std::nullopt;
    return at->second;
  }
  void put(const Hash128& key, std::span<const std::byte> bytes) override {
    blobs[key.hex()].assign(bytes.begin(), bytes.end());
  }
  void remove(const Hash128& key) override { blobs.erase(key.hex()); }

  std::map<std::string, std::vector<std::byte>> blobs;
};

// The sums of scaled rows, and twice of them.
UOp program(Arena& arena, float scalar) {
  const std::vector<Dim> rows{8, 8};
  const std::vector<int64_t> axes{1};
  const UOp a = reshape(buffer(arena, dtypes::float32, 64, "REF", 0), rows);
  const UOp scaled = a * constant(arena, dtypes::float32, double(scalar));
  const UOp stored = contiguous(reduce_axis(Op::ADD, scaled, axes));
  return sink(stored, contiguous(stored + stored));
}

std::string text_of(const Schedule& s) {
  std::string text;
  for (const KernelCall& call : s.calls) {
    text += call.name + "\n" + print(call.ast);
    for (const uint32_t a : call.arguments) text += std::to_string(a) + " ";
    for (const uint32_t w : call.waits_for) text += "after " + std::to_string(w) + " ";
  }
  for (const ScheduledBuffer& b : s.buffers) {
    text += std::to_string(int(b.kind)) + b.dtype.name() + std::to_string(b.size) + b.device +
            std::to_string(b.id) + " in " + std::to_string(b.slot) + "\n";
    for (const uint64_t bits : b.data) text += std::to_string(bits) + ",";
  }
  for (const uint32_t o : s.outputs) text += std::to_string(o) + " ";
  return text + std::to_string(s.slot_count) + " " + std::to_string(s.peak_bytes);
}

std::shared_ptr<const Schedule> scheduled(float scalar, MapStore& store) {
  Arena arena;
  return cached_schedule(program(arena, scalar), {.store = &store});
}

TEST(StoredSchedules, come_back_as_they_were) {
  Arena arena;
  const Schedule made = make_schedule(program(arena, 2));
  const std::optional<Schedule> read = schedule_of_bytes(bytes_of_schedule(made));
  ASSERT_TRUE(read);
  EXPECT_EQ(text_of(*read), text_of(made));
}

TEST(StoredSchedules, a_new_process_finds_them) {
  MapStore store;
  clear_schedule_cache();
  const std::string first = text_of(*scheduled(2, store));
  EXPECT_EQ(schedule_cache_counts().loaded, 0U);
  const std::string general = text_of(*scheduled(3, store));
  EXPECT_EQ(store.blobs.size(), 2U);
  clear_schedule_cache();  // as in another process
  EXPECT_EQ(text_of(*scheduled(2, store)), first);
  EXPECT_EQ(schedule_cache_counts().loaded, 1U);
  EXPECT_EQ(text_of(*scheduled(3, store)), general);
  EXPECT_EQ(schedule_cache_counts().loaded, 2U);
  EXPECT_NE(text_of(*scheduled(4, store)), general);  // another number, in the same kernels
  EXPECT_EQ(store.blobs.size(), 2U);
}

TEST(StoredSchedules, damage_is_found) {
  Arena arena;
  const Schedule made = make_schedule(program(arena, 2));
  const std::vector<std::byte> bytes = bytes_of_schedule(made);
  for (size_t size = 0; size < bytes.size(); size++) {
    EXPECT_FALSE(schedule_of_bytes(std::span(bytes).first(size)));
  }
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte(0));
  EXPECT_FALSE(schedule_of_bytes(longer));
}

TEST(StoredSchedules, a_damaged_one_is_made_anew) {
  MapStore store;
  clear_schedule_cache();
  const std::string first = text_of(*scheduled(2, store));
  store.blobs.begin()->second.resize(10);
  clear_schedule_cache();
  EXPECT_EQ(text_of(*scheduled(2, store)), first);
  EXPECT_EQ(schedule_cache_counts().loaded, 0U);
  EXPECT_GT(store.blobs.begin()->second.size(), 10U);  // written again
}

TEST(StoredSchedules, on_disk) {
  const auto folder = std::filesystem::temp_directory_path() / "weft_stored_schedules";
  std::filesystem::remove_all(folder);
  const test::Setting setting(config().cache_dir, folder.string());
  const auto run = [] {
    const Tensor x = Tensor::arange(int64_t(0), int64_t(10), int64_t(1), {}, "CPU");
    return (x * 7).sum().item<int64_t>();
  };
  try {
    EXPECT_EQ(run(), 7 * 45);
  } catch (const CompileError& e) {
    GTEST_SKIP() << e.what();
  }
  clear_schedule_cache();
  EXPECT_EQ(run(), 7 * 45);
  EXPECT_EQ(schedule_cache_counts().loaded, schedule_cache_counts().misses);
  EXPECT_GE(schedule_cache_counts().loaded, 1U);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace weft
