// The rewrite engine: applies a rule set to every node of a graph until nothing applies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ir/node.h"
#include "ir/op.h"
#include "rewrite/rule_set.h"
#include "rewrite/trace.h"

namespace weft {

enum class Order : uint8_t {
  kBottomUp,  // sources come to rest before the rules see a node
  kTopDown,   // the rules see a node, then its sources, then the node again if they changed
};

// Whether to go on to the sources of a node; the rules still see the node itself.
using Gate = bool (*)(UOp n, void* context);

// Whether a rule may replace a tensor by one of another shape. Where it may not, such a match does
// not count.
enum class Shapes : uint8_t { kMayChange, kKept };

struct RewriteOptions {
  Order order = Order::kBottomUp;
  void* context = nullptr;  // Match::context<T>() in conditions and bodies
  Gate descend = nullptr;
  Shapes shapes = Shapes::kMayChange;
  Trace* trace = nullptr;      // a pass is added to it
  std::string_view pass = {};  // its name in traces and errors; else the rule set's
};

// The graph at the fixed point: no rule applies to any node of it that was reached. Work is linear
// in the nodes visited and made. Throws RewriteLoopError when the rules never come to rest.
UOp graph_rewrite(UOp root, const RuleSet& rules, const RewriteOptions& options = {});

// One pass of a list.
struct Pass {
  std::string_view name;
  const RuleSet* rules;
  Order order = Order::kBottomUp;
  Gate descend = nullptr;
  std::optional<Stage> stage = std::nullopt;  // the result is verified against it
};

enum class Verify : uint8_t { kNever, kEveryPass, kAtTheEnd };

#ifdef WEFT_VERIFY_PASSES  // builds for development and sanitizers
inline constexpr Verify kVerifyByDefault = Verify::kEveryPass;
#else
inline constexpr Verify kVerifyByDefault = Verify::kAtTheEnd;
#endif

// The passes in order, each recorded in `trace` if there is one.
UOp run_passes(UOp root, std::span<const Pass> passes, void* context = nullptr,
               Trace* trace = nullptr, Verify verify_when = kVerifyByDefault);

}  // namespace weft
