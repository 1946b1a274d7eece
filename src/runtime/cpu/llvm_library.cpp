// Finding LLVM, loading it once, and one module through it.
#include "runtime/cpu/llvm_library.h"

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/address_room.h"
#include "base/at_fork.h"
#include "base/config.h"
#include "base/dynamic_library.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "runtime/cpu/llvm_functions.h"
#include "runtime/cpu/llvm_recovery.h"

namespace weft {
namespace {

// The IR comes vectorised and with its invariant code outside of loops. Left to do: chains of
// address arithmetic, and loads of registers that live in memory.
constexpr const char* kDefaultPasses = "function(sroa,early-cse,simplifycfg)";
constexpr int kDefaultLevel = 2;

#if defined(__x86_64__)
constexpr const char* kTargetName = "X86";
#elif defined(__aarch64__)
constexpr const char* kTargetName = "AArch64";
#else
constexpr const char* kTargetName = "";
#endif

constexpr int kOldestVersion = 16, kNewestVersion = 22;
constexpr int kRelocPic = 2, kCodeModelSmall = 3, kReturnStatus = 2;

enum Emitted : int { kAssemblyFile = 0, kObjectFile = 1 };  // LLVMCodeGenFileType

std::vector<std::string> library_names() {
  std::vector<std::string> names;
  // The version that set-up installs comes first.
  std::vector<int> versions{19};
  for (int v = kNewestVersion; v >= kOldestVersion; v--) {
    if (v != 19) versions.push_back(v);
  }
  for (const int v : versions) {
    names.push_back(fmt::format("libLLVM.so.{}.1", v));
    names.push_back(fmt::format("libLLVM-{}.so.1", v));
    names.push_back(fmt::format("libLLVM-{}.so", v));
    names.push_back(fmt::format("libLLVM.so.{}", v));
  }
  return names;
}

// The library that is used: a file, or a name for the loader where no file was found.
struct Found {
  std::string name;
  std::string identity;
};

// The address space that loading it takes, beside its file, and that a compilation may take.
constexpr size_t kRoomToLoad = size_t(64) << 20, kRoomToCompile = size_t(32) << 20,
                 kRoomPerByte = 64;

[[noreturn]] void fail_without_room(std::string_view to_do) {
  throw DeviceError(
      fmt::format("[CPU:LLVM] out of memory: there is no address space {} (ulimit -v)", to_do));
}

// Throws DeviceError when the loader has no memory to look for it.
Found find_library() {
  if (const std::string& given = config().llvm_library; !given.empty()) {
    const std::string identity = file_identity(given);
    return identity.empty() ? Found{} : Found{given, identity};
  }
  for (const std::string& name : library_names()) {
    std::string file = find_library_file(name);
    if (!file.empty()) return Found{file, file_identity(file)};
  }
  if (!has_address_room(kRoomToLoad)) fail_without_room("to look for LLVM");
  for (const std::string& name : library_names()) {
    if (DynamicLibrary::open(name)) return Found{name, name};
  }
  return Found{};
}

const Found& found_library() {
  static const Found kFound = find_library();  // an exception leaves it to the next call
  return kFound;
}

size_t file_bytes(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? 0 : size_t(bytes);
}

// LLVM's way to hand out text.
std::string take(const LlvmFunctions& llvm, char* text) {
  if (text == nullptr) return {};
  std::string copy(text);
  llvm.dispose_message(text);
  return copy;
}

class Llvm {
 public:
  // Throws DeviceError.
  Llvm() {
    const Found& found = found_library();
    if (found.name.empty()) {
      throw DeviceError(
          "[CPU:LLVM] there is no LLVM 16 or newer here; install it (apt install libllvm19), or "
          "use "
          "a C compiler (WEFT_DEVICE=CPU:C)");
    }
    // Half loaded, for want of memory, it would end the process.
    if (!has_address_room(file_bytes(found.name) + kRoomToLoad)) fail_without_room("to load LLVM");
    const DynamicLibrary library = DynamicLibrary::open(found.name);
    if (!library) throw DeviceError(fmt::format("[CPU:LLVM] {}", DynamicLibrary::last_error()));
    if (!functions_.load(library) || !initialize_target(library)) {
      throw DeviceError(
          fmt::format("[CPU:LLVM] {} lacks functions of LLVM's C interface", found.name));
    }
    unsigned version[3] = {};
    functions_.get_version(&version[0], &version[1], &version[2]);
    if (version[0] < unsigned(kOldestVersion)) {
      throw DeviceError(
          fmt::format("[CPU:LLVM] {} is LLVM {}; 16 or newer is needed", found.name, version[0]));
    }
    triple_ = take(functions_, functions_.get_default_target_triple());
    cpu_ = take(functions_, functions_.get_host_cpu_name());
    features_ = take(functions_, functions_.get_host_cpu_features());
    char* message = nullptr;
    if (functions_.get_target_from_triple(triple_.c_str(), &target_, &message) != 0) {
      throw DeviceError(fmt::format("[CPU:LLVM] {}", take(functions_, message)));
    }
    install_llvm_recovery(library, functions_);
  }

  const LlvmFunctions& functions() const { return functions_; }
  const std::string& triple() const { return triple_; }

  // Machines are costly to make and serve one thread at a time.
  LlvmMachine take_machine(int level) {
    {
      const std::lock_guard lock(mutex_);
      if (!machines_[size_t(level)].empty()) {
        const LlvmMachine machine = machines_[size_t(level)].back();
        machines_[size_t(level)].pop_back();
        return machine;
      }
    }
    return functions_.create_target_machine(target_, triple_.c_str(), cpu_.c_str(),
                                            features_.c_str(), level, kRelocPic, kCodeModelSmall);
  }
  void give_machine(LlvmMachine machine, int level) {
    const std::lock_guard lock(mutex_);
    machines_[size_t(level)].push_back(machine);
  }

 private:
  static bool initialize_target(const DynamicLibrary& library) {
    for (const char* part : {"TargetInfo", "Target", "TargetMC", "AsmPrinter"}) {
      const std::string name = fmt::format("LLVMInitialize{}{}", kTargetName, part);
      auto* initialize = library.function<void()>(name.c_str());
      if (initialize == nullptr) return false;
      initialize();
    }
    return true;
  }

  LlvmFunctions functions_;
  std::string triple_, cpu_, features_;
  LlvmTarget target_ = nullptr;
  std::mutex mutex_;
  std::array<std::vector<LlvmMachine>, 4> machines_;
};

// What compiles holds it open. A fork waits for that, and so does the end of the process, where
// LLVM's own objects go: other threads that would compile after it stand still.
class CompileGate {
 public:
  CompileGate() {
    const std::lock_guard lock(state().mutex);
    state().inside++;
    is_inside = true;
  }
  CompileGate(const CompileGate&) = delete;
  CompileGate& operator=(const CompileGate&) = delete;
  ~CompileGate() {
    const std::lock_guard lock(state().mutex);
    is_inside = false;
    if (--state().inside == 0) state().left.notify_all();
  }

  // Nobody is inside, or comes in, up to open().
  static void close() {
    if (is_inside) return;
    std::unique_lock lock(state().mutex);
    state().left.wait(lock, [] { return state().inside == 0; });
    lock.release();
  }
  static void open() {
    if (!is_inside) state().mutex.unlock();
  }
  static void close_for_good() {
    static std::once_flag once;
    std::call_once(once, &CompileGate::close);
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable left;
    size_t inside = 0;
  };
  static State& state() {
    static auto& instance = *new State;
    return instance;
  }

  static thread_local bool is_inside;
};
thread_local bool CompileGate::is_inside = false;

// LLVM is loaded by whoever comes first, in the foreground or in the background. What fails is
// tried again by the next: there may be memory then.
class Loader {
 public:
  Llvm& get() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kInterruptEvery, [&] { return !is_loading_; })) {
      check_interrupt();
    }
    if (!llvm_) llvm_ = load();
    return *llvm_;
  }

  void start() {
    const std::lock_guard lock(mutex_);
    if (llvm_ || is_loading_ || !has_room_for_threads(1)) return;
    is_loading_ = true;
    try {
      std::thread([this] {
        std::unique_ptr<Llvm> loaded;
        try {
          loaded = load();
        } catch (const std::exception&) {
          loaded = nullptr;  // whoever needs it is told why
        }
        const std::lock_guard done(mutex_);
        llvm_ = std::move(loaded);
        is_loading_ = false;
        changed_.notify_all();
      }).detach();
    } catch (const std::exception&) {  // no thread, or no memory for one
      is_loading_ = false;
    }
  }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !is_loading_; });
  }

 private:
  static std::unique_ptr<Llvm> load() {
    auto loaded = std::make_unique<Llvm>();
    std::atexit(&CompileGate::close_for_good);  // runs before what LLVM has registered itself
    return loaded;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_loading_ = false;
  std::unique_ptr<Llvm> llvm_;
};

Loader& loader() {
  static auto& instance = *[] {
    // A child that was forked while LLVM is half loaded would wait for ever.
    at_fork(
        ForkOrder::kCompiler,
        [] {
          loader().wait();
          CompileGate::close();
        },
        [] { CompileGate::open(); });
    return new Loader;
  }();
  return instance;
}

bool tell_forks() noexcept {
  loader();
  return true;
}
[[maybe_unused]] const bool kGateIsKnownToForks = tell_forks();

// What is disposed of by a function of LLVM's.
template <class Handle, class Dispose>
auto own_handle(Handle handle, Dispose dispose) {
  return std::unique_ptr<std::remove_pointer_t<Handle>, Dispose>(handle, dispose);
}

// Errors and warnings of one compilation.
struct Diagnostics {
  const LlvmFunctions& llvm;
  std::string errors;

  static void handle(LlvmDiagnostic diagnostic, void* self) {
    auto& into = *static_cast<Diagnostics*>(self);
    const std::string text = take(into.llvm, into.llvm.get_diag_info_description(diagnostic));
    constexpr int error = 0;
    if (into.llvm.get_diag_info_severity(diagnostic) != error) return;
    into.errors += into.errors.empty() ? text : "\n" + text;
  }
};

}  // namespace

bool has_llvm() { return !found_library().name.empty(); }

const std::string& llvm_identity() { return found_library().identity; }

void load_llvm_in_background() {
  // exit() runs this before the handlers of a library that is not all there yet.
  struct WaitAtExit {
    ~WaitAtExit() { loader().wait(); }
    bool is_used = false;
  };
  thread_local WaitAtExit wait;
  wait.is_used = true;
  if (has_llvm()) loader().start();
}

std::vector<std::byte> compile_llvm(std::string_view ir, std::string_view name) {
  return compile_llvm(ir, name, {.passes = kDefaultPasses, .level = kDefaultLevel});
}

namespace {

std::vector<std::byte> emit(std::string_view ir, std::string_view name, const LlvmOptions& options,
                            Emitted kind) {
  Llvm& library = loader().get();
  const CompileGate gate;
  if (!has_address_room(kRoomToCompile + kRoomPerByte * ir.size())) fail_without_room("to compile");
  const LlvmFunctions& llvm = library.functions();
  const std::string source_name(name);
  Diagnostics diagnostics{llvm, {}};
  const auto fail = [&](std::string_view what, std::string text) {
    if (!diagnostics.errors.empty()) text = diagnostics.errors + (text.empty() ? "" : "\n") + text;
    throw CompileError(fmt::format("[CPU:LLVM] {}: {}: {}", source_name, what, text));
  };

  auto context = own_handle(llvm.context_create(), llvm.context_dispose);
  llvm.context_set_diagnostic_handler(context.get(), &Diagnostics::handle, &diagnostics);
  auto module = own_handle(LlvmModule(nullptr), llvm.dispose_module);
  const auto give_back = [&](LlvmMachine m) { library.give_machine(m, options.level); };
  auto machine = own_handle(library.take_machine(options.level), give_back);
  std::string reason;
  // What LLVM has given up on cannot be disposed of.
  const auto survive = [&](auto call) {
    if (is_survived(call, reason)) return;
    [[maybe_unused]] const void* const lost[] = {machine.release(), module.release(),
                                                 context.release()};
    if (reason == kOutOfMemory) fail_without_room("to compile");
    fail("LLVM gave up (WEFT_DEVICE=CPU:C compiles by a C compiler)", reason);
  };
  LlvmModule parsed = nullptr;
  char* message = nullptr;
  int status = 0;
  survive([&] {
    const LlvmBuffer text = llvm.create_buffer(ir.data(), ir.size(), source_name.c_str());
    status = llvm.parse_ir_in_context(context.get(), text, &parsed, &message);
  });
  if (status != 0) fail("cannot parse", take(llvm, message));
  module.reset(parsed);
  message = nullptr;
  survive([&] { status = llvm.verify_module(module.get(), kReturnStatus, &message); });
  std::string verdict = take(llvm, message);
  if (status != 0) fail("is not legal", std::move(verdict));
  llvm.set_target(module.get(), library.triple().c_str());
  const auto layout =
      own_handle(llvm.create_target_data_layout(machine.get()), llvm.dispose_target_data);
  llvm.set_module_data_layout(module.get(), layout.get());
  if (*options.passes != '\0') {
    const auto pass_options =
        own_handle(llvm.create_pass_builder_options(), llvm.dispose_pass_builder_options);
    LlvmError error = nullptr;
    survive([&] {
      error = llvm.run_passes(module.get(), options.passes, machine.get(), pass_options.get());
    });
    if (error != nullptr) {
      char* what = llvm.get_error_message(error);
      std::string copy(what);
      llvm.dispose_error_message(what);
      fail("cannot optimise", std::move(copy));
    }
  }
  LlvmBuffer emitted = nullptr;
  message = nullptr;
  survive([&] {
    status = llvm.target_machine_emit_to_memory_buffer(machine.get(), module.get(), kind, &message,
                                                       &emitted);
  });
  if (status != 0) fail("cannot be compiled", take(llvm, message));
  const auto object = own_handle(emitted, llvm.dispose_memory_buffer);
  if (!diagnostics.errors.empty()) fail("cannot be compiled", {});
  std::vector<std::byte> bytes(llvm.get_buffer_size(object.get()));
  std::memcpy(bytes.data(), llvm.get_buffer_start(object.get()), bytes.size());
  return bytes;
}

}  // namespace

std::vector<std::byte> compile_llvm(std::string_view ir, std::string_view name,
                                    const LlvmOptions& options) {
  return emit(ir, name, options, kObjectFile);
}

std::string assembly_llvm(std::string_view ir, std::string_view name) {
  const std::vector<std::byte> text =
      emit(ir, name, {.passes = kDefaultPasses, .level = kDefaultLevel}, kAssemblyFile);
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

}  // namespace weft
