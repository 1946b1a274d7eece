// The least time of work on machines that are written down here.
#include "schedule/machine.h"

#include <gtest/gtest.h>

#include "base/hash.h"
#include "runtime/gpu/gpu_machine.h"

namespace weft {
namespace {

Machine four_cores() {
  Machine m;
  m.units = 4;
  m.operations_per_ns = 10;
  m.level_count = 3;
  m.levels = {{{1 << 10, 100, 100, false}, {1 << 20, 20, 60, true}, {0, 10, 15, true}}};
  return m;
}

TEST(Machine, arithmetic_beside_transfers) {
  const Machine m = four_cores();
  // 4 x 10 operations a nanosecond.
  EXPECT_DOUBLE_EQ(bound({.operations = 4000, .parallel = 4}, m), 100);
  // What comes from memory takes 15 bytes a nanosecond, whatever is computed meanwhile.
  const double bytes = 1 << 24;
  EXPECT_DOUBLE_EQ(bound({.operations = 4000, .bytes = bytes, .among = bytes, .parallel = 4}, m),
                   bytes / 15);
}

TEST(Machine, what_is_read_again_comes_from_the_nearest_cache) {
  const Machine m = four_cores();
  const double once = bound({.bytes = 1 << 24, .among = 1 << 24, .parallel = 4}, m);
  const double twice = bound({.bytes = 2 << 24, .among = 1 << 24, .parallel = 4}, m);
  EXPECT_FLOAT_EQ(float(twice - once), (1 << 24) / 400.0F);
}

TEST(Machine, a_level_holds_what_fits) {
  const Machine m = four_cores();
  EXPECT_DOUBLE_EQ(byte_ns(4 << 10, m), 1 / 400.0);  // four caches of their own
  EXPECT_DOUBLE_EQ(byte_ns(5 << 10, m), 1 / 60.0);
  EXPECT_DOUBLE_EQ(byte_ns(2 << 20, m), 1 / 15.0);
}

TEST(Machine, few_iterations_leave_units_idle) {
  const Machine m = four_cores();
  const double all = bound({.operations = 4000, .parallel = 4}, m);
  EXPECT_DOUBLE_EQ(bound({.operations = 4000, .parallel = 1}, m), 4 * all);
  EXPECT_DOUBLE_EQ(bound({.operations = 4000, .parallel = 400}, m), all);
  const Machine gpu = gpu_machine(100);
  EXPECT_GT(bound({.operations = 1e9, .parallel = 1000}, gpu),
            10 * bound({.operations = 1e9, .parallel = 1e6}, gpu));
}

TEST(Machine, is_printed_and_part_of_keys) {
  const Machine m = four_cores();
  EXPECT_EQ(text_of(m),
            "4 units, 1 threads each, 1 on one reduction; 10 operations/ns each; 4000 ns a launch; "
            "lines of 64 bytes\n"
            "1 KiB each: 100 bytes/ns for one unit, 100 for all\n"
            "1 MiB: 20 bytes/ns for one unit, 60 for all\n"
            "memory: 10 bytes/ns for one unit, 15 for all");
  EXPECT_EQ(m.own_cache().bytes, 1 << 10);
  Machine other = m;
  other.levels[1].bytes *= 2;
  EXPECT_EQ(mix(Hash128{}, m), mix(Hash128{}, four_cores()));
  EXPECT_NE(mix(Hash128{}, m), mix(Hash128{}, other));
}

}  // namespace
}  // namespace weft
