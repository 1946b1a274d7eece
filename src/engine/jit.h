// Calls of a function captured, and replayed: on Storages and Views, for the fronts that have
// tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/jit_general.h"
#include "engine/jit_recipe.h"
#include "value/storage_view.h"
#include "weft/variable.h"

namespace weft {

// From proxies of the inputs to outputs.
using CapturedFunction = std::function<std::vector<StorageView>(std::span<const StorageView>)>;

struct CapturedCall {
  std::shared_ptr<JitRecipe> recipe;  // null: nothing to replay, and the outputs are not computed
  std::vector<StorageView> outputs;
};

// Calls the function, as JitCapture::run (weft/jit.h) says. This thread captures nothing else.
CapturedCall capture_call(std::span<const SeenStorage> inputs, const CapturedFunction& function,
                          const std::function<void()>& before_giving_up,
                          std::span<const VariableValue> variables);

// The same call on other inputs, as JitCapture::replay says. `general` may be null.
std::optional<std::vector<StorageView>> replay_call(const JitRecipe& recipe,
                                                    const JitGeneral* general,
                                                    std::span<const SeenStorage> inputs,
                                                    std::span<const int64_t> values);

// Sizes that the kernels serve among others have done so much work that they deserve their own.
bool is_spent(const JitRecipe& recipe);

// What `general` serves with these values is what `other` serves.
bool serves_calls_of(const JitGeneral& general, const JitRecipe& newest, const JitRecipe& other);

}  // namespace weft
