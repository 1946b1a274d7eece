// What a search shows on a terminal.
#include "runtime/search_progress.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "codegen/opt/opt.h"
#include "codegen/opt/search_opts.h"

namespace weft {
namespace {

TEST(SearchProgressBar, draws_a_line_anew_and_leaves_one) {
  std::string terminal;
  SearchProgressBar bar("r_512_512", [&](std::string_view text) { terminal += text; });
  bar.show({.round = 1, .done = 1, .count = 1, .best = {}});
  bar.show({.round = 2, .done = 12, .count = 48, .best = 7.114e-3});
  bar.show({.round = 2, .done = 48, .count = 48, .best = 1.25e-4});
  bar.finish({.opts = parse_opts("VECTOR(1, 16) UPCAST(0, 6)"),
              .seconds = 1.25e-4,
              .chosen_seconds = 7.114e-3,
              .timed = 49});
  EXPECT_EQ(terminal,
            "\r\x1b[Kbeam r_512_512 round 1 [####################] 1/1 best none"
            "\r\x1b[Kbeam r_512_512 round 2 [#####...............] 12/48 best 7.11 ms"
            "\r\x1b[Kbeam r_512_512 round 2 [####################] 48/48 best 125.00 us"
            "\r\x1b[Kbeam r_512_512: 7.11 ms -> 125.00 us (56.91x), 49 timed: VECTOR(1, 16) "
            "UPCAST(0, 6)\n");
}

TEST(SearchProgressBar, says_when_there_is_nothing) {
  std::string terminal;
  SearchProgressBar bar("e_4", [&](std::string_view text) { terminal += text; });
  bar.finish({.opts = {}, .seconds = {}, .chosen_seconds = {}, .timed = 2});
  bar.finish({.opts = {}, .seconds = 2.5, .chosen_seconds = {}, .timed = 2});
  EXPECT_EQ(terminal,
            "\r\x1b[Kbeam e_4: nothing could be timed, 2 timed: no optimisations\n"
            "\r\x1b[Kbeam e_4: 2.50 s, 2 timed: no optimisations\n");
}

}  // namespace
}  // namespace weft
