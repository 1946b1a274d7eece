// Graphs that the spec refuses, as tables: text, stage, and exactly what is said.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"

namespace weft::test {

struct Illegal {
  std::string_view name;
  Stage stage;
  std::string_view text;     // after kPrelude; the last line is the root
  std::string_view message;  // the whole of Violation::message
};

inline constexpr Stage kTensor = Stage::kTensor, kRangeified = Stage::kRangeified,
                       kKernel = Stage::kKernel, kProgram = Stage::kProgram;

// What most graphs are made of.
inline constexpr std::string_view kPrelude = R"(
%zero = CONST index 0
%one = CONST index 1
%two = CONST index 2
%three = CONST index 3
%four = CONST index 4
%six = CONST index 6
%minus = CONST index -1
%n = VARIABLE index (%one, %four) "n"
%i = CONST int32 3
%f = CONST float32 1.5
%true = CONST bool true
%cpu = DEVICE void "CPU"
%buf = BUFFER float32 (%six, %cpu) 0
%x = RESHAPE float32 (%buf, %two, %three)
%y = RESHAPE float32 (%buf, %three, %two)
%r = RANGE index (%four) 0:loop
%s = RANGE index (%two) 1:reduce
%out = DEFINE_GLOBAL ptr<float32, global> (%four) 0
%in = DEFINE_GLOBAL ptr<float32, global> (%four) 1
%reg = DEFINE_REG float32 0
%outr = INDEX ptr<float32, global> (%out, %r)
%inr = INDEX ptr<float32, global> (%in, %r)
)";

UOp parse_after_prelude(Arena& arena, std::string_view text);

std::span<const Illegal> illegal_values();
std::span<const Illegal> illegal_movements();
std::span<const Illegal> illegal_stores();
std::span<const Illegal> illegal_memory();
std::span<const Illegal> illegal_programs();
std::span<const Illegal> illegal_loops();
std::vector<Illegal> all_illegal();

}  // namespace weft::test
