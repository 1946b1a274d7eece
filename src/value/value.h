// A Value: the result of one operation on other Values, computed or not.
//
// It has identity: two equal operations are two Values. It holds its expression (op, sources,
// numbers) until it is realised; then its slot names the memory that holds it, and the sources are
// let go. Whoever holds the Value sees the memory.
//
// A Value that a gradient may pass is tracked: it is a step of the tape, and outlives its data.
// Owners hold the data, that is the memory or the expression to compute it. A step whose data
// nobody owns holds on to what its own gradient reads, and to its sources as steps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "weft/view.h"

namespace weft {

struct CustomKernel;
class LinkedStep;
class Storage;
class Value;
struct Row;
void retain(LinkedStep* step) noexcept;
void release(LinkedStep* step) noexcept;
void retain(CustomKernel* kernel) noexcept;
void release(CustomKernel* kernel) noexcept;
void retain(Value* value) noexcept;
void release(Value* value) noexcept;

class Value {
 public:
  static constexpr size_t kMostSources = 3;

  // What a Value is beside its op. All but kGuard, a DETACH, and kOutput, a KERNEL, are
  // CONTIGUOUS_BACKWARD: the same value as their first source.
  enum class Kind : uint8_t {
    kPlain,  // what its op says
    kCall,  // a call of a Row; its numbers are the attributes, as words (row.h). Until it is opened
            // its sources are the arguments, then what the body gave
    kLeaf,  // what a Storage held that gradients are collected for; its number
    kLink,  // a result of a LinkedStep, which gives the gradients; which one
    kTie,   // with an identity of its own; a gradient by the second source, if any, is 0
    kGuard,   // an index within an axis of a size, which are its numbers; the second source, one
              // int64, is an index out of range (index_checks.h)
    kOutput,  // of a CustomKernel; which one
  };

  // `numbers` by op:
  //   CONST          its bits
  //   PERMUTE, FLIP  the axes
  //   PAD, SHRINK    one number per axis, then a second one per axis, as in ops.def
  //   VIEW           strides, then the offset
  //   REDUCE_AXIS    the op, then the axes
  //   SCAN           the op, then the axis
  //   AFTER          sizes, strides and offset of the view that is written: sources are the old
  //                  version and the value, which has the view's shape or is a scalar. With three
  //                  numbers more (a Scatter) it writes where an index says, or combines by an op:
  //                  the index is the third source
  //   INDEX          the first and the past axis that an index names, as one, in row-major order:
  //                  sources are x and the index; the shape has the index's in place of these axes.
  //                  An element out of range is 0
  // All else has none, but what Kind says: RESHAPE and EXPAND go to `shape`, IOTA counts to it,
  // BUFFER is memory that nobody wrote; the source of a COPY is on another device, and computed
  // there first. A Value without elements becomes a BUFFER, whatever it was to be but a leaf or a
  // link; its sources are those of its gradient alone. Throws DTypeError where the device has no
  // such dtype.
  static Ref<Value> make(Op op, DType dtype, Device& device, Ints shape, Ints numbers = {},
                         Ref<Value> a = {}, Ref<Value> b = {}, Ref<Value> c = {});
  // kTie: `value`, computed from `other` as well, of which no element counts: a gradient by it is
  // 0.
  static Ref<Value> make_tied(Ref<Value> value, Ref<Value> other = {});
  // kLeaf of the tape. Gradients of `version` are those of the Storage with this number.
  static Ref<Value> make_leaf(Ref<Value> version, int64_t number);
  // kLink: a result of a step, which it holds on to: gradients of it are the step's.
  static Ref<Value> make_linked(Ref<Value> value, Ref<LinkedStep> step, size_t result);
  // kOutput: an output of a kernel of a user, which it holds on to.
  static Ref<Value> make_output(DType dtype, Device& device, Ints shape, Ref<CustomKernel> kernel,
                                size_t output);
  // kGuard: the index, which a check stands beside.
  static Ref<Value> make_guard(Ref<Value> index, Ref<Value> check, int64_t axis, int64_t size);
  // kCall of a row, of the dtype and shape that its body gives, which has elements. The attributes,
  // so many words, are written by the caller before anybody else sees the Value. It counts as
  // `values` pending Values until it is opened.
  struct MadeCall {
    Ref<Value> value;
    int64_t* attributes;
  };
  static MadeCall make_call(const Row& row, int64_t values, DType dtype, Device& device, Ints shape,
                            size_t words, std::span<Ref<Value>, kMostSources> sources);
  // What memory holds.
  static Ref<Value> make_filled(DType dtype, Device& device, Ints shape, Ref<Buffer> buffer);

  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;

  Op op() const { return op_; }
  bool is(Op op) const { return op_ == op; }
  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  DType dtype() const { return dtype_; }
  Device& device() const { return *device_; }
  Ints shape() const { return std::span(tail(), rank_); }
  Ints numbers() const { return std::span(tail() + rank_, number_count_); }
  int64_t numel() const;
  View written() const;  // of an AFTER
  // How an AFTER writes: where the numbers of its third source say, on axes [first, past) of the
  // view, combined by an op with what is there; CONST: it replaces that.
  struct Scatter {
    int64_t first = 0, past = 0;
    Op op{};
    bool combines() const { return op != Op{}; }
  };
  // None: it writes all of its view.
  std::optional<Scatter> scatter() const;
  // Computed with an index that was out of range: reading it throws IndexError with this text,
  // which lives for ever.
  const std::string* failure() const { return failure_; }
  void set_failure(const std::string* text) { failure_ = text; }
  bool has_index() const { return source_count_ == kMostSources; }  // of an AFTER

  // A gradient may be asked for: what that reads outlives being realised.
  bool is_tracked() const { return (flags_ & kTracked) != 0; }
  // Made where gradients are off: none passes. An AFTER passes all of it to the old version.
  bool is_untaped() const { return (flags_ & kUntaped) != 0; }
  // The kernel that it is an output of; null for all others.
  CustomKernel* custom_kernel() const {
    return kind_ == Kind::kOutput ? payload().kernel : nullptr;
  }
  // Computed before what reads it is scheduled: from its own sources, by other means.
  bool is_staged() const { return op_ == Op::COPY || op_ == Op::KERNEL; }
  // The step that it is a result of; null for all others.
  LinkedStep* linked_step() const { return kind_ == Kind::kLink ? payload().step : nullptr; }
  // What it is a call of; null for all others.
  const Row* row() const { return kind_ == Kind::kCall ? payload().row : nullptr; }

  // Under the lock of the graph (storage.h) or of realise, which change what follows.
  // What it is computed from: nothing when it is in memory.
  std::span<const Ref<Value>> sources() const {
    return {sources_, is_filled() ? size_t(0) : size_t(read_count_)};
  }
  bool is_filled() const { return bool(buffer_); }
  // A call that has not been opened.
  bool is_waiting() const { return kind_ == Kind::kCall && payload().values != 0; }
  // Throws InternalError when the memory has been overwritten since, IndexError where it failed.
  const Ref<Buffer>& buffer() const;
  // Realised: the sources that no gradient needs go to `released`, to be freed when no lock is
  // held.
  void fill(Ref<Buffer> buffer, std::span<Ref<Value>, kMostSources> released);

  uint32_t owners() const { return owners_.load(std::memory_order_acquire); }
  // Held by the tape, whoever owns it.
  bool is_step() const { return steps_.load(std::memory_order_acquire) > 1; }
  // Storages whose version it is.
  uint32_t storages() const { return state_.load(std::memory_order_acquire) / kOneStorage; }

 private:
  friend class Storage;
  friend class Closure;
  friend class Tape;
  friend class LinkedStep;
  friend void retain(Value* value) noexcept;
  friend void release(Value* value) noexcept;

  Value(Op op, Kind kind, DType dtype, Device& device, Ints shape, size_t numbers);
  ~Value() = default;
  // What a Value names that is neither a number nor a Value: it stands behind the numbers.
  struct Payload {
    union {
      const Row* row = nullptr;  // NOLINT(readability-identifier-naming): of a kCall
      LinkedStep* step;          // NOLINT(readability-identifier-naming): of a kLink
      CustomKernel* kernel;      // NOLINT(readability-identifier-naming): of a kOutput
    };
    int64_t values = 0;  // of a call that waits: as how many pending Values it counts
  };
  const Payload& payload() const {
    return *std::launder(reinterpret_cast<const Payload*>(tail() + rank_ + number_count_));
  }
  Payload& payload() { return const_cast<Payload&>(std::as_const(*this).payload()); }

  static constexpr bool has_payload(Kind kind) {
    return kind == Kind::kCall || kind == Kind::kLink || kind == Kind::kOutput;
  }

  static Value* allocate(Op op, Kind kind, DType dtype, Device& device, Ints shape, size_t numbers);
  static Ref<Value> make_with(const Payload& payload, Op op, Kind kind, DType dtype, Device& device,
                              Ints shape, int64_t number, Ref<Value> source = {});
  static void free_all(Value* first) noexcept;
  static uint8_t flags_of(const Value& value);
  static Ref<Value> make_empty(Op op, DType dtype, Device& device, Ints shape,
                               std::span<Ref<Value>, kMostSources> sources);
  void set_sources(std::span<Ref<Value>, kMostSources> sources);
  static void retain_step(Value* value) noexcept;
  static void release_step(Value* value) noexcept;
  // The operands, and kReadsOut for itself, whose data its gradient reads (GradientRead).
  uint8_t gradient_reads() const;
  // Whether its gradient needs the data of source i: for itself, or for that of the source.
  bool keeps_data_of(size_t i) const;
  // The data is not to be had any more, or is in memory: keeps of the sources what a gradient
  // needs. The lock of the tape is held.
  void settle(std::span<Ref<Value>, kMostSources> released);
  void drop_data(Value*& more) noexcept;
  int64_t pending_share() const;
  // A call that waits is from now on what its body gave, under the lock of the graph. What it was a
  // call on goes to `released`.
  void open(Ref<Value> body, std::span<Ref<Value>, kMostSources> released);

  // state_: whether the slot is filled, and how many Storages have this version. Both in one word,
  // so that of two threads which change them one sees what the other did.
  static constexpr uint32_t kFilled = 1, kOneStorage = 2;
  void add_storage() noexcept;
  void remove_storage() noexcept;
  void set_filled() noexcept;
  void count_pinned(int64_t sign) const noexcept;
  int64_t bytes() const;

  int64_t* tail() { return reinterpret_cast<int64_t*>(this + 1); }
  const int64_t* tail() const { return reinterpret_cast<const int64_t*>(this + 1); }

  static constexpr uint8_t kTracked = 1, kUntaped = 2;

  std::atomic<uint32_t> owners_ = 1;
  std::atomic<uint32_t> steps_ = 1;  // who holds it as a step of the tape; all owners are one
  std::atomic<uint32_t> state_ = 0;
  DType dtype_;
  Device* device_;
  Ref<Value> sources_[kMostSources];
  Ref<Buffer> buffer_;
  union {
    uint64_t generation_ = 0;  // NOLINT(readability-identifier-naming): of the buffer
    Value* next_;              // NOLINT(readability-identifier-naming): of those being freed
  };
  const std::string* failure_ = nullptr;
  Storage* pending_of_ = nullptr;  // the Storage that it is a pending store of
  uint64_t mark_ = 0;              // which closure saw it last, and as what: see Closure
  uint16_t rank_, number_count_;
  Op op_;
  Kind kind_ : 4 = Kind::kPlain;
  uint8_t flags_ : 4 = 0;
  uint8_t source_count_ : 4 = 0;
  uint8_t read_count_ : 4 = 0;  // of the sources, those that it is computed from
  uint8_t step_mask_ = 0;       // sources that are held as steps alone
};

// Values of these have the elements of their source, in its order.
inline constexpr OpSet kSameElements = {Op::RESHAPE, Op::DETACH, Op::CONTIGUOUS_BACKWARD};

// Live Values that are not realised, in the process. A call that waits counts as what it will be.
int64_t pending_values();
// Live calls that wait.
int64_t waiting_values();
// The bytes of live Values in memory that are the version of no Storage: what is there because
// Values that are not realised read it.
int64_t pinned_bytes();

}  // namespace weft
