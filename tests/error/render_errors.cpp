// What renderers refuse: always an internal error that names the op and the dtype.
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "render/render.h"
#include "tests/program_builder.h"

namespace weft {
namespace {

using test::ProgramBuilder;

std::string refusal(UOp linear, bool is_c) {
  try {
    is_c ? render_c(linear, "kernel") : render_llvm(linear, "kernel");
  } catch (const CompileError& e) {
    return e.what();
  } catch (const InternalError& e) {
    return e.what();
  }
  return "";
}

void expect_refused(UOp linear, std::string_view part) {
  for (const bool is_c : {true, false}) {
    EXPECT_NE(refusal(linear, is_c).find(part), std::string::npos) << refusal(linear, is_c);
  }
}

TEST(RenderErrors, NoTextForAnOp) {
  ProgramBuilder b;
  const UOp p = b.global(dtypes::float32, 1, 0), at = b.at(p, b.integer(0));
  b.store(at, b.add(Op::SIN, dtypes::float32, {b.load(at)}));
  expect_refused(b.linear(), "no text for SIN on float32, giving float32");
}

TEST(RenderErrors, NoArithmeticOnWhatIsHeldAsBits) {
  ProgramBuilder b;
  const UOp p = b.global(dtypes::bfloat16, 1, 0), at = b.at(p, b.integer(0)), x = b.load(at);
  b.store(at, b.binary(Op::ADD, x, x));
  expect_refused(b.linear(), "no text for ADD on bfloat16, giving bfloat16");
}

TEST(RenderErrors, NoCast) {
  ProgramBuilder b;
  const UOp p = b.global(dtypes::bfloat16, 1, 0), q = b.global(dtypes::float32, 1, 1);
  const UOp x = b.load(b.at(p, b.integer(0)));
  b.store(b.at(q, b.integer(0)), b.add(Op::CAST, dtypes::float32, {x}));
  expect_refused(b.linear(), "no text for CAST on bfloat16, giving float32");
}

TEST(RenderErrors, OpenLoop) {
  ProgramBuilder b;
  b.range(b.integer(3), 0);
  expect_refused(b.linear(), "a block is never closed");
}

TEST(RenderErrors, UsedBeforeItIsListed) {
  ProgramBuilder b;
  const UOp p = b.global(dtypes::float32, 1, 0), at = b.at(p, b.integer(0));
  const UOp unlisted = b.arena().make(Op::LOAD, dtypes::float32, {at});
  b.store(at, unlisted);
  expect_refused(b.linear(), "used before it stands in the list");
}

TEST(RenderErrors, ScratchWithoutASize) {
  ProgramBuilder b;
  const UOp n = b.add(Op::VARIABLE, dtypes::int32, {b.integer(0), b.integer(9)}, Arg::name("n"));
  b.add(Op::DEFINE_LOCAL, dtypes::float32.ptr(AddrSpace::kLocal), {n}, Arg::integer(0));
  expect_refused(b.linear(), "scratch memory needs a constant size");
}

}  // namespace
}  // namespace weft
