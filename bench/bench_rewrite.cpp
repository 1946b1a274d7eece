// bench_rewrite GROUPS REPEATS: makes and rewrites a random graph; prints one JSON object, the best
// CPU time of the repeats. bench_rewrite --rules prints the rules for the other engine.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <time.h>

#include "bench/index_rules.h"
#include "bench/random_graph.h"
#include "ir/arena.h"
#include "ir/walk.h"
#include "rewrite/graph_rewrite.h"
#include "rewrite/rule.h"
#include "rewrite/rule_set.h"
#include "rewrite/rule_text.h"

namespace {

using namespace weft;

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

template <class F>
void time_best(double& best, F&& f) {
  const double start = cpu_seconds();
  f();
  best = std::min(best, cpu_seconds() - start);
}

nlohmann::json measure(uint32_t groups, int repeats) {
  const RuleSet rules("benchmark", {bench::kIndexTable});
  double make = 1e9, hit = 1e9, rewrite = 1e9, again = 1e9, drop = 1e9;
  nlohmann::json facts;
  for (int i = 0; i < repeats; i++) {
    std::optional<Arena> arena(std::in_place);
    UOp root, out;
    bench::RandomGraph generator(*arena, 42);
    time_best(make, [&] { root = generator.graph(groups); });
    const size_t nodes = arena->size(), bytes = arena->bytes();
    bench::RandomGraph twin(*arena, 42);
    time_best(hit, [&] { twin.graph(groups); });
    time_best(rewrite, [&] { out = graph_rewrite(root, rules); });
    time_best(again, [&] {
      if (graph_rewrite(out, rules) != out) std::abort();
    });
    if (i == 0) {
      const bench::Fingerprint f = bench::fingerprint(out);
      facts = {{"nodes", nodes},
               {"calls", generator.calls()},
               {"bytes_per_node", double(bytes) / double(nodes)},
               {"side_bytes_per_node", double(arena->side_table_bytes()) / double(arena->size())},
               {"nodes_in", summarize(root).nodes},
               {"nodes_out", f.nodes},
               {"fingerprint", fmt::format("{:016x}", f.hash)}};
    }
    time_best(drop, [&] { arena.reset(); });
  }
  facts.update({{"make_s", make},
                {"hit_s", hit},
                {"rewrite_s", rewrite},
                {"again_s", again},
                {"drop_s", drop}});
  return facts;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "20";
  if (first == "--rules") {
    const RuleTable tables[] = {bench::kIndexTable};
    fmt::print("{}\n", rules_json(tables));
    return 0;
  }
  const int repeats = argc > 2 ? std::stoi(argv[2]) : 3;
  fmt::print("{}\n", measure(uint32_t(std::stoi(first)), repeats).dump());
}
