// Addresses that stand for memory of the device: unique, aligned, and never to be touched. Ranges
// of them are taken and given back for as long as the process lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/ref.h"
#include "value/storage.h"
#include "value/value.h"

namespace weft::pytorch {

// A range of addresses, and the memory that it stands for: that of a DataPtr, whose context it is.
struct Memory {
  void* address = nullptr;
  size_t bytes = 0;
  Ref<Storage> storage{};  // null: nothing was written
  Ref<Value> refused{};    // the version that could not be computed, if it is still that
  uint32_t kind = 0;       // of the range, by its size
  bool is_taken = false;
  Memory *before = nullptr, *after = nullptr;  // those taken just before and after it
};

// Not for threads at the same time.
class AddressSpace {
 public:
  // At least one address, and so many that one past the end is nobody else's.
  Memory& take(size_t bytes);
  // Nothing is left in it.
  void give_back(Memory& memory);

  int64_t taken() const { return taken_; }
  // The one that the address lies in; null where nobody has it.
  Memory* find(uintptr_t address);
  // In the order in which they were taken. That is the program's own, while addresses depend on
  // what was given back when.
  template <class Visit>
  void visit_taken(Visit&& visit) {
    for (Memory* memory = first_; memory != nullptr; memory = memory->after) visit(*memory);
  }

 private:
  Memory& make(uint32_t kind, size_t size);

  // What is reserved and was never taken.
  std::byte* next_ = nullptr;
  size_t left_ = 0;
  int64_t taken_ = 0;
  Memory *first_ = nullptr, *last_ = nullptr;  // of those taken
  std::map<uintptr_t, Memory> all_;
  std::vector<std::vector<Memory*>> free_;  // by kind
};

}  // namespace weft::pytorch
