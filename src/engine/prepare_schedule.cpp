// Kernels to programs, on several threads.
#include "engine/prepare_schedule.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/helpers.h"
#include "base/interrupt.h"
#include "base/progress_line.h"
#include "ir/node.h"
#include "rewrite/user_passes.h"
#include "runtime/device.h"
#include "runtime/kernel_families.h"
#include "runtime/kernel_flops.h"
#include "schedule/schedule.h"
#include "schedule/size_use.h"

namespace weft {
namespace {

// The kernels of one schedule; threads take them one after the other.
class Preparation {
 public:
  Preparation(const Schedule& schedule, Device& device)
      : schedule_(schedule),
        device_(device),
        names_(schedule.kernels.size()),
        kernels_(schedule.kernels.size()),
        progress_("compiling kernels", schedule.kernels.size()),
        failures_(schedule.kernels.size()) {
    for (const KernelCall& call : schedule.calls) names_[call.kernel] = call.name;
  }

  std::vector<PreparedKernel> run() {
    const size_t threads = std::min(device_.compile_threads(), kernels_.size());
    // Helpers compile with the passes of this thread.
    run_with_helpers(threads, [this, passes = user_passes()](size_t) {
      const UserPassesScope scope(passes);
      work();
    });
    for (const std::exception_ptr& failure : failures_) {
      if (failure) std::rethrow_exception(failure);
    }
    return std::move(kernels_);
  }

 private:
  void work() {
    for (size_t i = next_++; i < kernels_.size(); i = next_++) {
      try {
        check_interrupt();
        const UOp ast = schedule_.kernels[i].root;
        kernels_[i] = {device_.compile(ast, names_[i]), KernelFlops(ast)};
        progress_.done_one();
      } catch (const Stopped&) {
        next_ = kernels_.size();
        throw;
      } catch (...) {
        failures_[i] = std::current_exception();
        next_ = kernels_.size();
      }
    }
  }

  const Schedule& schedule_;
  Device& device_;
  std::vector<std::string_view> names_;
  std::vector<PreparedKernel> kernels_;
  ProgressLine progress_;
  std::vector<std::exception_ptr> failures_;
  std::atomic<size_t> next_ = 0;
};

}  // namespace

bool PreparedSchedule::is_spent() const {
  return std::ranges::any_of(uses, [](const auto& use) { return use->is_spent(); });
}

std::shared_ptr<const PreparedSchedule> prepare_schedule(const Schedule& schedule, Device& device) {
  auto found = std::static_pointer_cast<const PreparedSchedule>(schedule.notes->prepared);
  const int beam = config().beam;
  if (found && found->device == &device && found->beam == beam && !found->is_spent()) return found;
  begin_kernels_of_schedule();
  auto made = std::make_shared<PreparedSchedule>(
      PreparedSchedule{&device, beam, Preparation(schedule, device).run()});
  for (const PreparedKernel& kernel : made->kernels) {
    const auto* counted = dynamic_cast<const CountedProgram*>(kernel.program.get());
    if (counted != nullptr && counted->use()) made->uses.push_back(counted->use());
  }
  schedule.notes->prepared = made;
  return made;
}

}  // namespace weft
