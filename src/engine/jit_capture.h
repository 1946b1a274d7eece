// A function's call watched, and made into a recipe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/ref.h"
#include "engine/jit_recipe.h"
#include "ir/dtype.h"
#include "runtime/buffer.h"
#include "value/storage.h"
#include "value/storage_view.h"
#include "value/storage_watch.h"
#include "value/value.h"
#include "weft/variable.h"
#include "weft/view.h"

namespace weft {

// Stands between the function and the storages that it uses. Each of them gets a placeholder for
// its version: a Value of its own on the same memory, which nobody else holds. What the function
// does with placeholders is the graph of the capture, whoever else reads or shares the memory.
//
// Inputs are handed over as proxies, other storages with placeholders in them: so an input that is
// also captured is two things. The captured storages are found when they are touched.
class JitWatch : public StorageWatch {
 public:
  struct Bound {
    Ref<Storage> storage;
    Ref<Storage> proxy;  // of an input
    Ref<Value> before;   // the version of the storage
    Ref<Value> placeholder;
    Ref<Buffer> memory;  // of both
    View part{};         // of the storage, when the proxy is a part of it
    bool is_part = false;
    bool is_written = false;  // once the function has run
    Ref<Storage> gradient;    // of the storage, before

    Storage& seen() const { return proxy ? *proxy : *storage; }
  };

  // The inputs are realised.
  explicit JitWatch(std::span<const SeenStorage> inputs);

  void touch(Storage& storage) override;

  std::span<const StorageView> proxies() const { return proxies_; }
  std::vector<Bound>& bound() { return bound_; }
  std::span<const uint32_t> binding_of_input() const { return binding_of_input_; }
  // The binding that a storage is, as the function sees it; JitRecipe::kNone.
  uint32_t find(const Storage& storage) const;

  void drop_proxies() { proxies_.clear(); }
  // The function has run: what it wrote.
  void find_written();
  // Writes to inputs become writes to their storages; those that were not written have their
  // versions back. A second time does nothing.
  void settle();
  // Nothing was written.
  void undo();

 private:
  uint32_t bind_input(const SeenStorage& input, size_t uses);
  void bind_captured(Storage& storage);
  static void bind_leaf(Bound& b);
  void restore(Bound& b);

  bool is_settled_ = false;
  std::vector<Bound> bound_;
  std::vector<uint32_t> binding_of_input_;
  std::vector<StorageView> proxies_;
  std::unordered_map<const Storage*, uint32_t> places_;  // of proxies and captured storages
};

// A part of a storage as a view of the storage.
inline View placed(const View& of_part, const View& part) {
  View view = of_part;
  view.offset += part.offset;
  return view;
}

// What is in memory in one dtype can be read as the other without a look at each element: bytes are
// no bools.
inline bool is_as_in_memory(DType dtype, DType of_memory) {
  return dtype.is_bool() == of_memory.is_bool();
}

// The input is a run of elements of a larger storage that no other input uses: the place of the run
// is not part of the capture.
bool is_jit_part(const SeenStorage& input, size_t uses);

// What the function left in the storages, and in `outputs`, as kernels; they have run. Null where
// other threads have computed some of it meanwhile: then what has run is in its Values. `outputs`
// are handles on what the function saw, `values` those of the call's variables. Settles.
std::shared_ptr<JitRecipe> make_recipe(JitWatch& watch, std::span<const StorageView> outputs,
                                       std::span<const VariableValue> values);

}  // namespace weft
