// Lower, render, compile, load; then a call per piece of the thread axis.
#include "runtime/cpu/cpu_device.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/at_fork.h"
#include "base/cache_budget.h"
#include "base/config.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/phases.h"
#include "base/ref.h"
#include "base/small_vector.h"
#include "codegen/general_kernel.h"
#include "codegen/lower.h"
#include "codegen/opt/opt.h"
#include "codegen/relative_kernel.h"
#include "codegen/sort_sums.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"
#include "render/render.h"
#include "rewrite/trace.h"
#include "rewrite/user_passes.h"
#include "runtime/array_bytes.h"
#include "runtime/buffer.h"
#include "runtime/caching_allocator.h"
#include "runtime/counters.h"
#include "runtime/cpu/compile_c.h"
#include "runtime/cpu/cpu_toolchain.h"
#include "runtime/cpu/host_cpu.h"
#include "runtime/cpu/llvm_library.h"
#include "runtime/cpu/parallel.h"
#include "runtime/debug.h"
#include "runtime/device.h"
#include "runtime/kernel_cache.h"
#include "runtime/kernel_families.h"
#include "runtime/program.h"
#include "runtime/search_kernel.h"
#include "schedule/schedule.h"
#include "schedule/size_use.h"

namespace weft {
namespace {

// Freed memory that is kept: a quarter of the machine's.
CachingAllocator& allocator() {
  static auto& instance = *[] {
    const int64_t most = memory_of_machine();
    auto* made = new CachingAllocator("CPU", most, most / 4);
    static CachingAllocator* held = made;
    at_fork(ForkOrder::kMemory, [] { held->before_fork(); }, [] { held->after_fork(); });
    return made;
  }();
  return instance;
}

bool tell_forks() noexcept {
  allocator();
  return true;
}
[[maybe_unused]] const bool kLockIsKnownToForks = tell_forks();

// What DEFINE_LOCALs of a kernel lie in while this thread runs it.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::free(memory_); }

  // Null when there is no memory.
  void* get(size_t bytes) {
    if (bytes > bytes_) {
      std::free(memory_);
      bytes_ = (bytes + 63) / 64 * 64;
      memory_ = std::aligned_alloc(64, bytes_);
      if (memory_ == nullptr) bytes_ = 0;
    }
    return memory_;
  }

 private:
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

thread_local Scratch scratch_of_thread;

// The size of the loop that threads share; none: the kernel runs on one.
UOp thread_loop(UOp linear) {
  for (UOp n : linear.srcs()) {
    if (n.is(Op::RANGE) && n.axis() == AxisType::kThread) return n.src(0);
  }
  return UOp();
}

UOp lowered(UOp kernel, const Target& target, const OptList* opts, Trace* trace) {
  return opts == nullptr ? lower(kernel, target, trace) : lower(kernel, target, *opts, trace);
}

// What a kernel was compiled to.
class CpuCode {
 public:
  // `kernel` is in an arena of its own, which is not needed afterwards.
  CpuCode(const Graph& kernel, Toolchain toolchain, std::string_view name,
          const OptList* opts = nullptr, Keep keep = Keep::kYes) {
    count_lowered();
    std::set<std::string> given;
    for (UOp n : toposort(kernel.root)) {
      if (n.is(Op::VARIABLE)) given.emplace(n.name());
    }
    const Target& target = target_of(toolchain);
    Trace trace;
    const bool is_shown = keep == Keep::kYes;  // not every candidate of a search
    Trace* traced = is_shown && shows(6) ? &trace : nullptr;
    const UOp linear = lowered(kernel.root, target, opts, traced);
    const std::string source = render(toolchain, linear, name);
    if (is_shown && shows(3))
      show_lowered({name, kernel.root, linear, target, source, trace, opts});
    loaded_ = load_kernel(toolchain, source, name, keep);
    function_ = loaded_->function();
    scratch_bytes_ = scratch_bytes(linear);
    for (const std::string& variable : variable_names(linear)) {
      places_.push_back(uint32_t(std::distance(given.begin(), given.find(variable))));
    }
    takes_all_ = places_.size() == given.size();
    if (const UOp count = thread_loop(linear)) {
      if (count.is_const()) {
        count_ = count.const_int();
      } else {
        variable_count_ = std::make_unique<VariableCount>(own(count), std::move(given));
      }
    }
  }

  void run(void* const* buffers, std::span<const int64_t> variables) const {
    SmallVector<int64_t, 8> taken;
    if (!takes_all_) {
      for (const uint32_t place : places_) taken.push_back(variables[place]);
    }
    const Call call{*this, buffers, takes_all_ ? variables.data() : taken.data()};
    const int64_t count = variable_count_ ? variable_count_->of(variables) : count_;
    parallel_for(count, &Call::run, &call);
  }

  size_t bytes() const { return sizeof *this + loaded_->bytes(); }

 private:
  struct Call {
    const CpuCode& program;
    void* const* buffers;
    const int64_t* variables;

    static void run(const void* context, int64_t first, int64_t last) {
      const Call& self = *static_cast<const Call*>(context);
      const size_t bytes = self.program.scratch_bytes_;
      void* scratch = bytes == 0 ? nullptr : scratch_of_thread.get(bytes);
      self.program.function_(self.buffers, self.variables, scratch, first, last);
    }
  };

  // A size that depends on variables.
  struct VariableCount {
    VariableCount(Graph graph, std::set<std::string> all)
        : count(std::move(graph)), names(std::move(all)) {}

    int64_t of(std::span<const int64_t> variables) {
      Bindings bindings;
      size_t i = 0;
      for (const std::string& name : names) bindings.variables[name] = variables[i++];
      const std::lock_guard lock(mutex);
      return evaluate(count.root, bindings).at(0).ints().at(0);
    }

    Graph count;
    std::set<std::string> names;
    std::mutex mutex;
  };

  std::shared_ptr<const LoadedKernel> loaded_;
  KernelFunction* function_ = nullptr;
  size_t scratch_bytes_ = 0;
  std::vector<uint32_t> places_;  // of the function's variables among those of the kernel
  bool takes_all_ = true;
  int64_t count_ = 1;
  std::unique_ptr<VariableCount> variable_count_;
};

// Code by the hash of its kernel: one that is known is not lowered.
class CodeTable {
 public:
  static Hash128 key_of(const Hash128& kernel, Toolchain toolchain, std::string_view name) {
    return mix_user_passes(mix(mix(kernel, hash_bytes_128(name)),
                               uint64_t(toolchain) | uint64_t(config().threads) << 8));
  }
  std::shared_ptr<const CpuCode> find(const Hash128& key) { return cache_.find(key); }
  std::shared_ptr<const CpuCode> get(const Hash128& key, const Graph& kernel, Toolchain toolchain,
                                     std::string_view name) {
    if (auto found = cache_.find(key)) return found;
    const auto being_made = begin(key);
    const std::lock_guard lock(*being_made);  // of this kernel: others are made meanwhile
    if (auto found = cache_.find(key)) return found;
    auto made = std::make_shared<const CpuCode>(kernel, toolchain, name);
    return cache_.add(key, made, made->bytes());
  }

 private:
  std::shared_ptr<std::mutex> begin(const Hash128& key) {
    const std::lock_guard lock(mutex_);
    std::erase_if(in_the_making_, [](const auto& entry) { return entry.second.use_count() == 1; });
    std::shared_ptr<std::mutex>& entry = in_the_making_[{key.low, key.high}];
    if (!entry) entry = std::make_shared<std::mutex>();
    return entry;
  }

  LruCache<const CpuCode> cache_{"programs"};
  std::mutex mutex_;
  std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<std::mutex>> in_the_making_;
};

CodeTable& code_table() {
  static auto& instance = *new CodeTable;  // outlives every thread
  return instance;
}

class CpuProgram : public CountedProgram {
 public:
  CpuProgram(UOp ast, Toolchain toolchain, std::string_view name)
      : toolchain_(toolchain), name_(name) {
    const PhaseTimer timer(Phase::kLower);
    Graph kernel = own(ast);
    RelativeKernel relative = relative_kernel(kernel.root);
    kernel.root = sort_sums(relative.root);
    set_offsets(kernel.root, relative.offsets);
    const Hash128 key = CodeTable::key_of(graph_hash(kernel.root), toolchain, name);
    code_ = code_table().find(key);
    if (!code_) take_general(kernel.root);
    if (!code_) code_ = code_table().get(key, kernel, toolchain, name);
  }
  CpuProgram(UOp ast, Toolchain toolchain, std::string_view name, const OptList& opts, Keep keep)
      : toolchain_(toolchain),
        name_(name),
        opts_(opts),
        code_(std::make_shared<const CpuCode>(own(ast), toolchain, name, &opts, keep)) {}

  void run(std::span<Buffer* const> arguments, std::span<const int64_t> variables) override {
    SmallVector<void*, 16> buffers;
    for (size_t i = 0; i < arguments.size(); i++) {
      arguments[i]->check_lender();
      auto* const memory = static_cast<std::byte*>(arguments[i]->memory());
      buffers.push_back(i < offsets_.size() ? memory + offsets_[i] : memory);
    }
    if (!served_.general) return code_->run(buffers.data(), variables);
    if (served_.use) served_.use->count_run();
    SmallVector<int64_t, 8> all;
    for (const uint32_t place : sources_) {
      all.push_back(place < variables.size() ? variables[place]
                                             : served_.values.sizes[place - variables.size()]);
    }
    if (scalars_) buffers.push_back(scalars_->memory());
    code_->run(buffers.data(), {all.data(), all.size()});
  }

  std::shared_ptr<SizeUse> use() const override { return served_.use; }

  std::string source(UOp ast) const override {
    const Graph kernel = own(served_.general ? served_.general->kernel.root : ast);
    const bool is_relative = opts_ || served_.general;
    const UOp root = is_relative ? kernel.root : relative_kernel(kernel.root).root;
    const UOp linear = lowered(root, target_of(toolchain_), opts_ ? &*opts_ : nullptr, nullptr);
    return render(toolchain_, linear, served_.general ? name_of_general() : name_);
  }

 private:
  // The name without sizes.
  std::string name_of_general() const { return name_.substr(0, name_.find('_')) + "_any"; }

  // Where one that serves any sizes does what the kernel does.
  void take_general(UOp kernel) {
    if (user_passes() != nullptr) return;  // they would see another kernel
    ServedKernel served = serve_kernel(kernel);
    if (!served.general) return;
    const std::string name = name_of_general();
    try {
      const Hash128 key = CodeTable::key_of(served.general->hash, toolchain_, name);
      code_ = code_table().get(key, served.general->kernel, toolchain_, name);
    } catch (const CompileError&) {
      return close_kernel_family(kernel);
    } catch (const SpecError&) {
      return close_kernel_family(kernel);
    }
    std::map<std::string, uint32_t> places;  // by name
    for (UOp n : toposort(kernel)) {
      if (n.is(Op::VARIABLE)) places.emplace(n.name(), 0);
    }
    uint32_t next = 0;
    for (auto& [variable, place] : places) place = next++;
    for (size_t i = 0; i < served.values.sizes.size(); i++) places.emplace(name_of_size(i), next++);
    for (const auto& [variable, place] : places) sources_.push_back(place);
    if (const std::span<const uint64_t> bits = served.values.scalars; !bits.empty()) {
      const DType type = served.general->rules.scalar_type();
      std::vector<std::byte> content(Buffer::bytes_for(cpu_device(), type, int64_t(bits.size())));
      bytes_of_bits(type, bits, content);
      scalars_ = Buffer::make(cpu_device(), content.size());
      scalars_->copy_in(content);
    }
    served_ = std::move(served);
  }

  void set_offsets(UOp kernel, std::span<const int64_t> elements) {
    if (std::ranges::all_of(elements, [](int64_t n) { return n == 0; })) return;
    offsets_.resize(elements.size());
    for (UOp n : toposort(kernel)) {
      if (!n.is(Op::DEFINE_GLOBAL)) continue;
      const DType element = n.dtype().is_pointer() ? n.dtype().pointee() : n.dtype();
      offsets_[size_t(n.number())] = elements[size_t(n.number())] * element.item_bytes();
    }
  }

  const Toolchain toolchain_;
  const std::string name_;
  const std::optional<OptList> opts_;  // none: those that lower() chooses
  std::shared_ptr<const CpuCode> code_;
  std::vector<int64_t> offsets_;  // in bytes, of arguments; none: all are 0
  ServedKernel served_{};
  Ref<Buffer> scalars_;  // of one that is served, if it has any: its last argument
  // Of one that is served: for each variable of the general kernel, its place among those of the
  // kernel, with the sizes behind them.
  std::vector<uint32_t> sources_;
};

class CpuDevice : public Device {
 public:
  CpuDevice(std::string name, std::optional<Toolchain> toolchain)
      : Device(std::move(name)), fixed_(toolchain) {}

  void* allocate(size_t bytes) override { return allocator().allocate(bytes); }
  void free(void* memory, size_t bytes) noexcept override { allocator().free(memory, bytes); }
  bool has_host_memory() const override { return true; }
  bool keeps_schedules() const override { return true; }
  void copy_in(void* to, std::span<const std::byte> from) override {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
  }
  void copy_out(std::span<std::byte> to, const void* from) override {
    if (!to.empty()) std::memcpy(to.data(), from, to.size());
  }

  const KernelLimits& limits() const override { return target_of(Toolchain::kLlvm).limits; }
  // A kernel that is timed has the machine to itself.
  size_t compile_threads() const override { return config().beam > 0 ? 1 : host_cores(); }
  void start() override {
    if (is_started_.exchange(true) || fixed_ == Toolchain::kC) return;
    load_llvm_in_background();
  }
  std::string description() const override {
    const Toolchain used =
        fixed_.value_or(is_installed(Toolchain::kLlvm) ? Toolchain::kLlvm : Toolchain::kC);
    if (!is_installed(used)) return {};
    const Target& target = target_of(used);
    const std::string identity =
        used == Toolchain::kLlvm ? llvm_identity() : std::string(c_compiler_identity());
    return fmt::format("kernels by {}, {} cores, vectors of {} bytes, {} threads",
                       identity.substr(0, identity.find(' ')),  // its file
                       target.cores, target.vector_bytes, parallel_threads());
  }
  std::string missing() const override {
    if (fixed_ ? is_installed(*fixed_)
               : is_installed(Toolchain::kLlvm) || is_installed(Toolchain::kC)) {
      return {};
    }
    return fixed_ == Toolchain::kC      ? "there is no C compiler; install gcc or clang"
           : fixed_ == Toolchain::kLlvm ? "there is no LLVM 16 or newer; install libllvm19"
                                        : "there is neither LLVM 16 or newer nor a C compiler; "
                                          "install libllvm19, gcc or clang";
  }
  std::shared_ptr<Program> compile(UOp ast, std::string_view name) override {
    const Toolchain chain = toolchain();
    if (config().beam == 0) return std::make_shared<CpuProgram>(ast, chain, name);
    const OptList opts = search(ast, name, chain);
    return std::make_shared<CpuProgram>(ast, chain, name, opts, Keep::kYes);
  }

 private:
  OptList search(UOp ast, std::string_view name, Toolchain chain) {
    const auto compile = [&](UOp kernel, const OptList& opts) {
      return std::make_shared<CpuProgram>(kernel, chain, name, opts, Keep::kNo);
    };
    const KernelSearch settings{
        .device = *this,
        .target = target_of(chain),
        .machine = mix(identity_of(chain), uint64_t(config().threads)),
        .width = size_t(config().beam),
        .compile_threads = host_cores(),
        .compile = compile,
    };
    return searched_opts(ast, name, settings, *kernel_cache());
  }

  Toolchain toolchain() const {
    if (fixed_) return *fixed_;
    for (const Toolchain each : {Toolchain::kLlvm, Toolchain::kC}) {
      if (is_installed(each)) return each;
    }
    throw DeviceError(
        "[CPU] there is neither LLVM 16 or newer nor a C compiler; install one (apt install "
        "libllvm19, or clang, or gcc), or use WEFT_DEVICE=REF, which is slow");
  }

  const std::optional<Toolchain> fixed_;
  std::atomic<bool> is_started_ = false;
};

}  // namespace

Device& cpu_device() {
  static auto* device = new CpuDevice("CPU", std::nullopt);
  return *device;
}
Device& cpu_llvm_device() {
  static auto* device = new CpuDevice("CPU:LLVM", Toolchain::kLlvm);
  return *device;
}
Device& cpu_c_device() {
  static auto* device = new CpuDevice("CPU:C", Toolchain::kC);
  return *device;
}

}  // namespace weft
