// Errors of weft as PyTorch's.
#include "native.h"

#include <exception>

#include <c10/util/Exception.h>

#include "base/error.h"

namespace weft::pytorch {

void throw_as_torch() {
  try {
    throw;
  } catch (const weft::IndexError& error) {
    TORCH_CHECK_INDEX(false, error.what());
  } catch (const weft::DTypeError& error) {
    TORCH_CHECK_TYPE(false, error.what());
  } catch (const weft::ShapeError& error) {
    TORCH_CHECK(false, error.what());
  } catch (const std::exception& error) {
    TORCH_CHECK(false, error.what());
  }
}

}  // namespace weft::pytorch
