// Kernels to programs, on several threads.
#include "engine/prepare_schedule.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/address_room.h"
#include "base/config.h"
#include "ir/node.h"
#include "runtime/device.h"
#include "runtime/kernel_flops.h"
#include "schedule/schedule.h"

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
        failures_(schedule.kernels.size()) {
    for (const KernelCall& call : schedule.calls) names_[call.kernel] = call.name;
  }

  std::vector<PreparedKernel> run() {
    std::vector<std::thread> helpers;
    const size_t threads = std::min(device_.compile_threads(), kernels_.size());
    helpers.reserve(threads);
    // When the system has no more threads, those that there are do it.
    bool can_start = threads < 2 || has_room_for_threads(threads - 1);
    while (can_start && helpers.size() + 1 < threads) {
      try {
        helpers.emplace_back([this] { work(); });
      } catch (const std::exception&) {  // no thread, or no memory for one
        can_start = false;
      }
    }
    work();
    for (std::thread& helper : helpers) helper.join();
    for (const std::exception_ptr& failure : failures_) {
      if (failure) std::rethrow_exception(failure);
    }
    return std::move(kernels_);
  }

 private:
  void work() {
    for (size_t i = next_++; i < kernels_.size(); i = next_++) {
      try {
        const UOp ast = schedule_.kernels[i].root;
        kernels_[i] = {device_.compile(ast, names_[i]), KernelFlops(ast)};
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
  std::vector<std::exception_ptr> failures_;
  std::atomic<size_t> next_ = 0;
};

}  // namespace

std::shared_ptr<const PreparedSchedule> prepare_schedule(const Schedule& schedule, Device& device) {
  auto found = std::static_pointer_cast<const PreparedSchedule>(schedule.notes->prepared);
  const int beam = config().beam;
  if (found && found->device == &device && found->beam == beam) return found;
  auto made = std::make_shared<const PreparedSchedule>(
      PreparedSchedule{&device, beam, Preparation(schedule, device).run()});
  schedule.notes->prepared = made;
  return made;
}

}  // namespace weft
