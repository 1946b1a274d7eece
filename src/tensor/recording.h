// The operations of one run of a function, and how to undo what it wrote: what weft.check compares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/ref.h"
#include "ir/op.h"
#include "value/operation_watch.h"
#include "value/storage.h"
#include "value/value.h"
#include "weft/tensor.h"

namespace weft {

class Recording : public OperationWatch {
 public:
  enum class Mode : uint8_t {
    kKept,   // results of operations are held
    kEager,  // and each is computed at once, by the reference evaluator
  };
  struct Operation {
    Op op;
    Ref<Value> result;
  };
  // A storage from before that was written, or whose gradient was collected.
  struct Changed {
    Ref<Storage> storage;
    Ref<Value> before;
    bool is_leaf;
    Ref<Storage> gradient_before;
  };

  // `at_operation` is called at each, before it is computed.
  Recording(Mode mode, std::function<void()> at_operation);

  // This thread's operations are recorded until stop(). Storages made meanwhile are not Changed.
  void start();
  void stop();

  std::span<const Operation> operations() const { return operations_; }
  std::span<const Changed> changed() const { return changed_; }
  static Tensor tensor_of_result(const Ref<Value>& value);

  // What was changed holds what it did before the run.
  void undo() const;
  // undo(), in memory that nothing else holds: a run finds it as if it had not been recorded.
  void undo_in_own_memory() const;

  void made(Storage& result) override;
  void will_write(Storage& to) override;
  void wrote(Storage& to) override;
  void will_collect(Storage& by) override;

 private:
  void will_change(Storage& storage);
  void record(Storage& storage);

  Mode mode_;
  std::function<void()> at_operation_;
  std::optional<Scope> scope_;
  std::vector<Operation> operations_;
  std::vector<Changed> changed_;
  std::vector<Ref<Storage>> made_;  // so that no address comes again
};

// This thread's operations are recorded.
bool is_recording();

}  // namespace weft
