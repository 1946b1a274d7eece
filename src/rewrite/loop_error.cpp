// The steps of a loop, what each changes, and the text of the report.
#include "rewrite/loop_error.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/walk.h"
#include "rewrite/rule.h"

namespace weft {
namespace {

constexpr size_t kMostSteps = 6;  // that are shown
constexpr size_t kMostText = 160, kMostOfPart = 60, kMostLevels = 8;

// -------------------------------------------------------------------------------------- the text

std::string text_of(const LoopStep& s) {
  const std::string change = s.change.empty() ? "" : ": " + s.change;
  const std::string around = s.around.empty() ? "" : fmt::format("   (in {})", s.around);
  return fmt::format("  {}{}\n    -> {} ({}:{}){}\n", s.node, around, s.rule, s.file, s.line,
                     change);
}

std::string text_of(const LoopReport& r) {
  const bool is_cycle = r.kind == LoopKind::kCycle;
  const size_t left = r.length - std::min(r.length, r.steps.size());
  std::string what = is_cycle ? "go round in a cycle" : "make the graph grow without end";
  if (is_cycle && left > 0) what += fmt::format(" of {} steps", r.length);
  std::string out = fmt::format("[rewrite] the rules of {} {}:\n", r.pass, what);
  for (const LoopStep& s : r.lead) out += text_of(s);
  if (!r.lead.empty()) out += "  and from here round and round\n";
  for (const LoopStep& s : r.steps) out += text_of(s);
  if (left > 0) out += fmt::format("  ... and {} more steps\n", left);
  return out + fmt::format("  {}{}\n", r.ends_in, is_cycle ? "   (where it began)" : "   ...");
}

// ------------------------------------------------------------------------------------- the steps

bool contains(UOp whole, UOp part) {
  const std::vector<UOp> nodes = toposort(whole);
  return std::ranges::find(nodes, part) != nodes.end();
}

// `whole` with "..." for the part.
std::string with_hole(UOp whole, UOp part, size_t most) {
  const UOp hole = whole.arena().make(Op::VARIABLE, part.dtype(), {}, Arg::name("..."));
  const std::pair<UOp, UOp> pair{part, hole};
  return short_form(substitute(whole, {&pair, 1}), most);
}

// The outer levels of a term, with "..." for what is deeper.
std::string outer_levels(UOp term, size_t levels) {
  std::vector<UOp> level{term};
  for (size_t i = 0; i < levels; i++) {
    std::vector<UOp> next;
    std::unordered_set<UOp> seen;
    for (UOp n : level) {
      for (UOp s : n.srcs()) {
        if (seen.insert(s).second) next.push_back(s);
      }
    }
    level = std::move(next);
    if (level.size() > kMostText) break;  // more than a line can show
  }
  std::vector<std::pair<UOp, UOp>> holes;
  for (UOp n : level) {
    if (n.src_count() == 0) continue;
    holes.emplace_back(n, n.arena().make(Op::VARIABLE, n.dtype(), {}, Arg::name("...")));
  }
  return short_form(substitute(term, holes), 2 * kMostText);
}

// A term that is too long is shown by its outer levels, where terms that grow are different.
std::string text_of(UOp term) {
  std::string text = short_form(term, 2 * kMostText);
  const bool is_wide = term.src_count() > kMostText;
  for (size_t levels = kMostLevels; text.size() > kMostText && levels > 0 && !is_wide; levels--) {
    text = outer_levels(term, levels);
  }
  return text.size() > kMostText ? short_form(term, kMostText) : text;
}

std::vector<LoopStep> steps_of(std::span<const LoopLink> links, size_t first, size_t end) {
  std::vector<LoopStep> out;
  for (size_t i = first; i < end; i++) {
    const LoopLink& l = links[i];
    LoopStep step{text_of(l.before), std::string(l.rule->name), l.rule->file, l.rule->line};
    step.change = change_of(l.before, l.after);
    if (step.change.empty() && i + 1 < links.size()) {
      step.change = change_of(l.before, links[i + 1].before);
    }
    if (i > first && l.is_within && contains(links[i - 1].after, l.before)) {
      step.around = with_hole(links[i - 1].after, l.before, kMostOfPart);
    }
    out.push_back(std::move(step));
  }
  return out;
}

bool is_same_but_for_sources(UOp a, UOp b) {
  const Arg x = arg_of(a), y = arg_of(b);
  return a.op() == b.op() && a.dtype() == b.dtype() && a.src_count() == b.src_count() &&
         x.word == y.word && x.bytes == y.bytes;
}

}  // namespace

std::string change_of(UOp before, UOp after) {
  const UOp whole = before;
  while (is_same_but_for_sources(before, after)) {
    size_t apart = 0, at = 0;
    for (size_t i = 0; i < before.src_count(); i++) {
      if (before.src(i) == after.src(i)) continue;
      apart++;
      at = i;
    }
    if (apart != 1) break;
    before = before.src(at), after = after.src(at);
  }
  const bool is_kept = !before.is_const() && before != after && contains(after, before);
  if (before == whole && !is_kept) return "";
  const std::string part = before == whole ? "" : short_form(before, kMostOfPart) + " ";
  return part + "becomes " +
         (is_kept ? with_hole(after, before, kMostOfPart) : short_form(after, kMostOfPart));
}

RewriteLoopError cycle_error(std::string_view pass, std::span<const LoopLink> links, size_t from,
                             UOp back) {
  LoopReport r{LoopKind::kCycle, std::string(pass)};
  r.length = links.size() - from;
  r.lead = steps_of(links, 0, std::min(from, kMostSteps));
  r.steps = steps_of(links, from, std::min(links.size(), from + kMostSteps));
  r.ends_in = text_of(back);
  return RewriteLoopError(std::move(r));
}

RewriteLoopError growth_error(std::string_view pass, std::span<const LoopLink> links) {
  LoopReport r{LoopKind::kGrowth, std::string(pass)};
  r.length = links.size();
  r.steps = steps_of(links, 0, std::min(links.size(), kMostSteps));
  r.ends_in = links.empty() ? "" : text_of(links.back().after);
  return RewriteLoopError(std::move(r));
}

RewriteLoopError::RewriteLoopError(LoopReport report)
    : Error(text_of(report)), report_(std::move(report)) {}

}  // namespace weft
