// A dtype that a device lacks is refused by name, by whatever makes a tensor of it.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "rewrite/pattern.h"
#include "runtime/device.h"
#include "runtime/program.h"
#include "value/value.h"

namespace weft {
namespace {

class WithoutDouble : public Device {
 public:
  WithoutDouble() : Device("SINGLE") {}
  DTypeSet missing_dtypes() const override { return set_of(Scalar::kFloat64); }
  void* allocate(size_t) override { return nullptr; }
  void free(void*, size_t) noexcept override {}
  void copy_in(void*, std::span<const std::byte>) override {}
  void copy_out(std::span<std::byte>, const void*) override {}
  std::shared_ptr<Program> compile(UOp, std::string_view) override { return nullptr; }
};

TEST(MissingDTypes, AreRefusedByName) {
  WithoutDouble device;
  const int64_t three[] = {3};
  const std::span<const int64_t> shape(three);
  EXPECT_NO_THROW(Value::make(Op::BUFFER, dtypes::float32, device, shape));
  try {
    Value::make(Op::BUFFER, dtypes::float64, device, shape);
    FAIL();
  } catch (const DTypeError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("SINGLE"), std::string::npos) << text;
    EXPECT_NE(text.find("float64"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace weft
