// A tensor graph as an ordered list of kernels and the memory that they use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "ir/arena.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/origins.h"
#include "rewrite/trace.h"
#include "schedule/machine.h"
#include "schedule/size_use.h"

namespace weft {

// One piece of memory that a schedule names.
struct ScheduledBuffer {
  enum class Kind : uint8_t {
    kInput,   // exists: the BUFFER `id` of the tensor graph, read, or written in place
    kOutput,  // made for a source of the SINK
    kTemp,    // made and used up inside of the schedule
    kTable,   // made with the content `data`
  };
  Kind kind;
  DType dtype;
  int64_t size;  // elements: of a symbolic size, as many as it has in this schedule
  std::string device;
  int64_t id = 0;                // kInput
  std::vector<uint64_t> data{};  // kTable: canonical bits of every element
  // Where the memory comes from: buffers of one slot share an allocation, one after the other. An
  // output in the slot of an input takes over its memory.
  uint32_t slot = 0;
  // The size as a formula of the schedule's own variables, a node of Schedule::formulas; null where
  // it is a constant.
  UOp formula{};
};

// A VARIABLE and its value in this schedule.
struct BoundVariable {
  std::string name;
  int64_t value;
};

// One kernel on its arguments.
struct KernelCall {
  uint32_t kernel;                       // in Schedule::kernels
  UOp ast;                               // its root: a SINK, legal as a kernel
  std::string name;                      // what it does, for people: "r_16_4", "e_256"
  std::vector<uint32_t> arguments;       // DEFINE_GLOBAL i is buffers[arguments[i]]
  size_t written = 0;                    // arguments [0, written) are written
  std::vector<BoundVariable> variables;  // those that it reads, in order of their names
  std::vector<uint32_t> waits_for;       // earlier calls that must have run
  std::vector<uint32_t> sites{};         // lines of programs, where they are noted (ir/origins.h)
};

// What later stages make of a schedule's kernels and keep with it.
struct ScheduleNotes {
  std::shared_ptr<const void> prepared;
};

struct Schedule {
  // Equal kernels are one. Each is a graph of its own, so that threads can lower them side by side.
  std::vector<Graph> kernels;
  std::vector<ScheduledBuffer> buffers;
  std::vector<KernelCall> calls;  // in an order in which they can run
  std::vector<uint32_t> outputs;  // of source i of the SINK: the buffer that holds it at the end
  // Where an output begins in its buffer, in elements, if it shares that with others; empty: all of
  // them have their own.
  std::vector<std::optional<int64_t>> output_firsts;
  size_t slot_count = 0;
  int64_t temp_bytes = 0;  // of all temporaries
  int64_t peak_bytes = 0;  // of the slots that they share
  // The same object in all schedules that have the same kernels and calls, and differ in numbers
  // only: sizes, the values of variables, the contents of tables. What is made from the kernels,
  // such as programs, is kept by it.
  std::shared_ptr<ScheduleNotes> notes = std::make_shared<ScheduleNotes>();
  std::shared_ptr<Arena> formulas;  // null where all sizes are constants
  // Of one whose sizes are variables, made for a program that has none: whoever runs it without
  // asking for it anew counts that. Else null.
  std::shared_ptr<SizeUse> use;

  // Of a graph of many writes that does not run as a loop program (docs/loops.md): why. Not kept on
  // disk.
  std::string why_no_loops;

  size_t bytes() const;  // memory of the schedule itself
};

// What the target can do with a kernel.
struct KernelLimits {
  size_t statements = 512;   // nodes of arithmetic
  size_t buffers = 128;      // arguments
  size_t writes = 256;       // STOREs
  size_t accumulators = 16;  // reductions that run together
  size_t pieces = 1;         // threads: a large reduction to fewer results is done in two steps
  bool sequences = true;     // loops of one kernel may run one after the other (not on a GPU)
  // Local memory of a group that multiplies tiles and keeps them in registers from one product to
  // the next (codegen/opt/merged_tiles); 0: none does.
  size_t tile_bytes = 0;
  Machine machine{};  // what storing and computing cost
};

// Where the scheduler makes its nodes.
enum class WorkIn : uint8_t {
  kOwnArena,    // the graph is copied first
  kGraphArena,  // beside the graph, in an arena that its owner does not need any more
};

// Bytes kept by key, for other processes: what comes back is what was put, or nothing.
class ScheduleStore {
 public:
  ScheduleStore() = default;
  ScheduleStore(const ScheduleStore&) = delete;
  ScheduleStore& operator=(const ScheduleStore&) = delete;
  virtual ~ScheduleStore() = default;
  virtual std::optional<std::vector<std::byte>> get(const Hash128& key) = 0;
  virtual void put(const Hash128& key, std::span<const std::byte> bytes) = 0;
  virtual void remove(const Hash128& key) = 0;
};

// Whether small outputs may be parts of one memory.
enum class OutputMemory : uint8_t { kShared, kOwn };

// Whether a schedule may serve graphs of other sizes, too.
enum class ServedSizes : uint8_t { kAny, kOwn };

struct ScheduleOptions {
  KernelLimits limits{};
  std::string device{};           // of memory that is made; else that of the graph's first BUFFER
  std::vector<int64_t> dying{};   // ids of BUFFERs that nobody reads after the schedule
  std::vector<int64_t> tables{};  // ids of BUFFERs whose content is made with the schedule
  // VARIABLEs that the graph has without a BIND, and their values for the sizes in the result:
  // nothing else depends on them.
  std::vector<BoundVariable> variables{};
  OutputMemory outputs = OutputMemory::kOwn;
  WorkIn work_in = WorkIn::kOwnArena;
  Trace* trace = nullptr;           // every phase is added to it
  Origins* origins = nullptr;       // of the graph's nodes: its calls say which lines they compute
  std::string* why_made = nullptr;  // for cached_schedule: why none was found, if none was
  ScheduleStore* store = nullptr;   // for cached_schedule: where schedules outlive the process
  ServedSizes sizes = ServedSizes::kAny;  // for cached_schedule
};

// `sink` is a legal tensor graph, a SINK of what is to exist in memory:
//   CONTIGUOUS(x)                              x, in memory of its own
//   AFTER(BUFFER, STORE(view, value)...)       the stores done in place
//   AFTER(CONTIGUOUS(x), STORE(...)...)        the stores done in a copy of x
//   COPY(x, DEVICE)                            x, in memory of that device
//   BUFFER, or a RESHAPE of one of these       what it is
//   any other value x                          like CONTIGUOUS(x)
// A call whose buffers are on different devices is a transfer: its second argument, as it lies, to
// the first one. Any other runs where its buffers are.
// Throws SpecError when it is not legal.
Schedule make_schedule(UOp sink, const ScheduleOptions& options = {});
// Of a graph whose nodes are at hand: sources first, the SINK last.
Schedule make_schedule(std::vector<UOp> order, const ScheduleOptions& options);

}  // namespace weft
