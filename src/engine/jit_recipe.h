// What a capture leaves behind: kernels on numbered memory, and where that memory comes from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "engine/index_checks.h"
#include "engine/prepare_schedule.h"
#include "ir/dtype.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "runtime/kernel_flops.h"
#include "runtime/program.h"
#include "schedule/schedule.h"
#include "schedule/size_use.h"
#include "value/storage.h"
#include "weft/variable.h"
#include "weft/view.h"

namespace weft {

// The numbers of a recipe: those of the call that was captured, or of one with other values of
// variables.
struct JitNumbers {
  std::vector<int64_t> variables;      // of all calls
  std::vector<size_t> slot_bytes;      // of JitRecipe::slots
  std::vector<Ref<Buffer>> held;       // by JitRecipe::slots; null: memory is made for each run
  std::vector<uint64_t> bytes, flops;  // of calls
  std::vector<Sizes> shapes;           // of results
  std::vector<View> views;             // of outputs; of a part: of the part
  std::vector<int64_t> origins;        // of storages that are made
};

struct JitRecipe {
  static constexpr uint32_t kNone = UINT32_MAX;

  // A storage that the function reads or writes. Those of the inputs come first.
  struct Binding {
    Ref<Storage> captured;  // null: that of an input
    Device* device;
    DType dtype;
    int64_t numel;
    bool is_part = false;         // a run of elements of a larger storage: the input's view
    bool is_overwritten = false;  // the kernels do not leave its content as it was
    uint32_t result = kNone;      // which becomes its version
    bool is_written() const { return result != kNone; }

    // Of a leaf of the tape: what its gradient is when the function begins, and in the end.
    bool is_leaf = false;
    struct Gradient {
      enum class Kind : uint8_t {
        kNone,     // there is none
        kBinding,  // that of a binding
        kMade,     // in the end: a storage that is made
        kOther,    // at first: any; in the end: it is as it was
      };
      Kind kind = Kind::kNone;
      uint32_t number = kNone;
    };
    Gradient gradient_before{}, gradient_after{};
  };
  struct Input {
    uint32_t binding;
    View view;
  };
  // The function's result: a view of a binding, or of a storage that is made.
  struct Output {
    uint32_t binding;  // or kNone
    uint32_t made;
  };
  struct Made {
    uint32_t result;
  };
  // A Value that the kernels compute, and the slot that holds it then.
  struct Result {
    Device* device;
    DType dtype;
    uint32_t slot;
  };
  // Slot i < bindings.size() is the memory of binding i. Others are held, or made for each run.
  struct Slot {
    Device* device;
  };
  struct Call {
    Program* program;
    uint32_t first_argument, argument_count, written;
    uint32_t first_variable, variable_count;
    const KernelFlops* flops;
    std::string name, operations;  // where runs are shown
  };

  // Where memory holds an index after a run, that was out of range: what was computed with it has
  // failed.
  struct Check {
    uint32_t slot;
    IndexedAxis of;
    std::vector<uint32_t> results;
  };

  Device* default_device = nullptr;  // at the time: the function makes tensors there
  // At the time: functions differ by them.
  bool is_training = false;
  bool has_gradients = true;
  std::vector<Binding> bindings;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<Made> made;
  std::vector<Result> results;
  std::vector<Slot> slots;  // from bindings.size() on
  std::vector<Call> calls;
  std::vector<uint32_t> arguments;  // slots
  std::vector<Check> checks;
  JitNumbers numbers;
  // Of schedules that serve other sizes, too: every replay counts.
  std::vector<std::shared_ptr<SizeUse>> uses;
  // Own the programs.
  std::vector<std::shared_ptr<const PreparedSchedule>> programs;
  std::vector<std::shared_ptr<const PreparedKernel>> custom_programs;

  // Of a call with variables: what its numbers come from, for calls with other values.
  struct Sized {
    uint32_t slot;  // in `slots`; kNone: that of a binding
    DType dtype;
    int64_t size;  // elements
  };
  struct Group {  // the kernels of one schedule
    std::shared_ptr<const Schedule> schedule;
    size_t first_call;
    size_t first_sized;  // of the schedule's buffers
  };
  struct Table {
    uint32_t slot;  // in `slots`
    DType dtype;
    std::vector<uint64_t> content;  // canonical bits
  };
  std::vector<VariableValue> values;
  std::vector<Sized> sized;
  std::vector<uint32_t> argument_sizes;  // of arguments: places in `sized`
  std::vector<Group> groups;
  std::vector<Table> tables;
  std::vector<std::pair<int64_t, int64_t>> at_most;  // as in NumberWatch
  std::vector<int64_t> exact;

  // The calls as one piece of work, where their device has that. Made in the second run, and null
  // before: many captures run once. Under the lock of realise.
  mutable std::unique_ptr<RecordedCalls> recording;
  mutable uint32_t runs = 0;

  JitRecipe() = default;
  JitRecipe(const JitRecipe&) = delete;
  JitRecipe& operator=(const JitRecipe&) = delete;
  ~JitRecipe();

  size_t slot_count() const { return bindings.size() + slots.size(); }
};

// Makes the memory that bindings do not bring, and runs the kernels, with the recipe's numbers or
// others. `memory` holds that of the
// bindings; what is overwritten of it is the caller's. When a kernel fails, what those before it
// wrote to is lost.
void run_recipe(const JitRecipe& recipe, const JitNumbers& numbers,
                std::vector<Ref<Buffer>>& memory);
// The same for the calls from one on, of a recipe that is being made: `memory` holds that of
// earlier ones too.
void run_calls(const JitRecipe& recipe, std::vector<Ref<Buffer>>& memory, size_t first_call);

}  // namespace weft
