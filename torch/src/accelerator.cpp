// Two functions that libtorch asks about weft's type of device are answered here, by the entries
// that its calls of them go through: PyTorch has no other way for two accelerators in one process
// to have gradients.
#include "accelerator.h"

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#if defined(__linux__) && defined(__LP64__)
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <ATen/DeviceAccelerator.h>
#include <c10/core/Device.h>
#include <c10/core/DeviceType.h>
#include <torch/csrc/autograd/engine.h>

#include "interpreter.h"

namespace weft::pytorch {
namespace {

// What libtorch is told instead.
bool is_privateuse1_the_accelerator() { return false; }
bool is_accelerator(c10::DeviceType type) {
  return type != c10::DeviceType::PrivateUse1 && at::accelerator::isAccelerator(type);
}

#if defined(__linux__) && defined(__LP64__)

struct Replacement {
  std::string_view symbol;
  uintptr_t function;
  int entries = 0;
};

// A loaded library as its own dynamic section describes it.
struct Library {
  uintptr_t base = 0;
  const char* strings = nullptr;
  const Elf64_Sym* symbols = nullptr;
  struct Relocations {
    const Elf64_Rela* first = nullptr;
    size_t bytes = 0;
  };
  Relocations calls, others;
  uintptr_t read_only_from = 0, read_only_to = 0;  // what the loader protects after relocation
};

Library describe(const dl_phdr_info& info) {
  Library library;
  library.base = info.dlpi_addr;
  const Elf64_Dyn* entry = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const Elf64_Phdr& header = info.dlpi_phdr[i];
    const uintptr_t start = info.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_DYNAMIC) entry = reinterpret_cast<const Elf64_Dyn*>(start);
    if (header.p_type == PT_GNU_RELRO) {
      library.read_only_from = start;
      library.read_only_to = start + header.p_memsz;
    }
  }
  // glibc stores addresses, other loaders offsets.
  const auto address = [&](Elf64_Addr value) {
    return value < info.dlpi_addr ? info.dlpi_addr + value : value;
  };
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    const uintptr_t at = address(entry->d_un.d_ptr);
    switch (entry->d_tag) {
      case DT_STRTAB: library.strings = reinterpret_cast<const char*>(at); break;
      case DT_SYMTAB: library.symbols = reinterpret_cast<const Elf64_Sym*>(at); break;
      case DT_JMPREL: library.calls.first = reinterpret_cast<const Elf64_Rela*>(at); break;
      case DT_PLTRELSZ: library.calls.bytes = entry->d_un.d_val; break;
      case DT_RELA: library.others.first = reinterpret_cast<const Elf64_Rela*>(at); break;
      case DT_RELASZ: library.others.bytes = entry->d_un.d_val; break;
      default: break;
    }
  }
  return library;
}

bool is_entry_of_a_function(uint64_t type) {
#if defined(__x86_64__)
  return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
  return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
#else
  return false;
#endif
}

bool write_entry(const Library& library, uintptr_t entry, uintptr_t function) {
  const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t page = entry / page_bytes * page_bytes;
  auto* const memory = reinterpret_cast<void*>(page);
  if (mprotect(memory, page_bytes, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(reinterpret_cast<uintptr_t*>(entry), function, __ATOMIC_RELEASE);
  if (entry >= library.read_only_from && entry < library.read_only_to) {
    mprotect(memory, page_bytes, PROT_READ);
  }
  return true;
}

void replace(const Library& library, const Library::Relocations& relocations,
             std::vector<Replacement>& replacements) {
  const Elf64_Rela* const end = relocations.first + relocations.bytes / sizeof(Elf64_Rela);
  for (const Elf64_Rela* at = relocations.first; at != end; ++at) {
    if (!is_entry_of_a_function(ELF64_R_TYPE(at->r_info))) continue;
    const std::string_view name =
        library.strings + library.symbols[ELF64_R_SYM(at->r_info)].st_name;
    for (Replacement& r : replacements) {
      if (name == r.symbol && write_entry(library, library.base + at->r_offset, r.function)) {
        ++r.entries;
      }
    }
  }
}

struct Search {
  const void* library_base;
  std::vector<Replacement> replacements;
};

int replace_in_library(dl_phdr_info* info, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (reinterpret_cast<const void*>(info->dlpi_addr) != search.library_base) return 0;
  const Library library = describe(*info);
  if (library.strings == nullptr || library.symbols == nullptr) return 1;
  replace(library, library.calls, search.replacements);
  replace(library, library.others, search.replacements);
  return 1;
}

bool replace_entries() {
  Dl_info libtorch{};
  if (dladdr(reinterpret_cast<const void*>(&at::accelerator::getAccelerator), &libtorch) == 0) {
    return false;
  }
  Search search{libtorch.dli_fbase,
                {{.symbol = "_ZN3c1033is_privateuse1_backend_registeredEv",
                  .function = reinterpret_cast<uintptr_t>(&is_privateuse1_the_accelerator)},
                 {.symbol = "_ZN2at11accelerator13isAcceleratorEN3c1010DeviceTypeE",
                  .function = reinterpret_cast<uintptr_t>(&is_accelerator)}}};
  dl_iterate_phdr(&replace_in_library, &search);
  return search.replacements[0].entries > 0 && search.replacements[1].entries > 0;
}

#else

bool replace_entries() { return false; }

#endif

// Members of the engine that its subclasses have.
struct AnyEngine : torch::autograd::Engine {
  // The engine does this once in a process and those that are forked from it. Where that has been,
  // with no device, it is done again.
  static void start_threads(Engine& engine) {
    constexpr auto kQueues = &AnyEngine::device_ready_queues_;
    engine.initialize_device_threads_pool();
    if ((engine.*kQueues).empty()) (engine.*(&AnyEngine::start_device_threads))();
  }
};

std::atomic<bool> is_in_autograd = false, has_thread = false;

// New threads take the interpreter's lock as they start.
void start_thread() noexcept {
  static auto& mutex = *new std::mutex;
  std::optional<python::InterpreterReleased> released;
  if (PyGILState_Check() != 0) released.emplace();
  const std::lock_guard lock(mutex);
  if (has_thread) return;
  is_in_autograd = true;
  try {
    AnyEngine::start_threads(torch::autograd::Engine::get_default_engine());
  } catch (const std::exception&) {  // after a fork: backward() says why it cannot be
  }
  has_thread = true;
}

}  // namespace

bool yield_accelerator() {
  // Before weft has a name it is what PyTorch was built with.
  return !at::accelerator::getAccelerator().has_value() || stop_being_accelerator();
}

bool stop_being_accelerator() {
  static const bool kIsDone = replace_entries();
  return kIsDone;
}

void enter_autograd() noexcept {
  if (!has_thread.load(std::memory_order_acquire)) start_thread();
}

c10::DeviceIndex devices_in_autograd() noexcept { return is_in_autograd ? 1 : 0; }

}  // namespace weft::pytorch
