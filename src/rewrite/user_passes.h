// Passes of users: functions on graphs that run before or after a pass of weft.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "ir/node.h"
#include "ir/op.h"
#include "rewrite/rule.h"
#include "rewrite/trace.h"

namespace weft {

struct UserPass {
  enum class Where : uint8_t { kBefore, kAfter };

  std::string name;
  std::string beside;  // a pass of weft
  Where where = Where::kAfter;
  // The graph that takes the place of the one given, which is legal at the stage; it may be in
  // another arena. Of whole schedules and of single kernels, on the thread that compiles. A Trace
  // gets the steps of rules.
  std::function<UOp(UOp graph, Stage stage, Trace* trace)> run;
  Rule rule{};  // what statistics count its runs under: the name and where it was made
};

// A list of them, which does not change once it is in use.
struct UserPasses {
  explicit UserPasses(std::vector<UserPass> passes);

  std::vector<UserPass> list;
  Hash128 key;  // of no other list in any process: what is made under it is found under it alone
};

// Those that compile now: of this thread, where it has its own, else of the process. Null: none.
std::shared_ptr<const UserPasses> user_passes();
void set_user_passes(std::shared_ptr<const UserPasses> passes);  // of the process

// The passes of this thread for the time of the object; null: none, whatever the process has.
class UserPassesScope {
 public:
  explicit UserPassesScope(std::shared_ptr<const UserPasses> passes);
  UserPassesScope(const UserPassesScope&) = delete;
  UserPassesScope& operator=(const UserPassesScope&) = delete;
  ~UserPassesScope();

 private:
  std::shared_ptr<const UserPasses> outer_;
  bool had_own_;
};

// Part of the key of what depends on passes.
Hash128 mix_user_passes(Hash128 hash);

// Whether this thread runs a pass of a user: it must not wait for anything that waits for passes.
bool is_in_user_pass();

// The graph after those passes of users that stand there, each traced, counted, and verified where
// the graph before it was legal. Throws SpecError that names the pass.
UOp run_user_passes(UOp graph, std::string_view beside, UserPass::Where where, Stage stage,
                    Trace* trace);

}  // namespace weft
