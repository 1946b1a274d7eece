// What phase 1 found out, for people.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "rewrite/trace.h"
#include "schedule/rangeify/indexing.h"

namespace weft {

std::string_view text_of(StoringCause cause) {
  switch (cause) {
    case StoringCause::kOneUse: return "it has one use, at the same indices";
    case StoringCause::kAsked: return "it is realised, or something that outlives this reads it";
    case StoringCause::kOtherIndices: return "its users want other indices, or use it repeatedly";
    case StoringCause::kKernelIsFull: return "the kernel that would compute it is full";
    case StoringCause::kReductions: return "a kernel has no more reductions";
    case StoringCause::kNestedReduction: return "it is a reduction in the loop of another one";
    case StoringCause::kScanned: return "its elements exist one after the other";
  }
  return "";
}

std::string text_of(const IndexingContext& context) {
  static constexpr std::string_view kStoring[] = {"computed where it is used", "may be stored",
                                                  "is stored"};
  std::string out;
  for (UOp n : context.order) {
    if (!context.has(n)) continue;
    const Assigned& a = context[n];
    std::string at, over;
    for (UOp i : context.tuple(a.at)) at += (at.empty() ? "" : ", ") + short_form(i, 40);
    for (UOp r : context.tuple(a.reduced)) over += " over " + short_form(r, 40);
    out +=
        fmt::format("  {} at ({}){}: {}", short_form(n, 60), at, over, kStoring[size_t(a.storing)]);
    if (a.storing != Storing::kNever) out += fmt::format(", {}", text_of(a.cause));
    out += "\n";
  }
  return out;
}

std::vector<Decision> decisions_of(const IndexingContext& context) {
  std::vector<Decision> out;
  for (UOp n : context.order) {
    if (!context.has(n) || context[n].storing == Storing::kNever) continue;
    const bool must = context[n].storing == Storing::kMust;
    out.push_back({n, {}, must ? "must be stored" : "may be stored", text_of(context[n].cause)});
  }
  return out;
}

}  // namespace weft
