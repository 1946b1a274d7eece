// What the C-like renderers share: statements, loops, and values folded into the expressions that
// use them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "render/renderer.h"
#include "rewrite/pattern.h"

namespace weft {

// A type of the language. Narrow floats are held as unsigned integers, and bool has a byte in
// memory.
struct CType {
  Scalar scalar;
  std::string_view name;
  std::string_view defined_as{};  // empty: the language has the name
};

// Those of a language that has C's names for numbers.
constexpr std::array<CType, 11> c_types(CType boolean) {
  return {boolean,
          CType{Scalar::kInt8, "i8", "signed char"},
          CType{Scalar::kInt16, "i16", "short"},
          CType{Scalar::kInt32, "i32", "int"},
          CType{Scalar::kInt64, "i64", "long long"},
          CType{Scalar::kUInt8, "u8", "unsigned char"},
          CType{Scalar::kUInt16, "u16", "unsigned short"},
          CType{Scalar::kUInt32, "u32", "unsigned"},
          CType{Scalar::kUInt64, "u64", "unsigned long long"},
          CType{Scalar::kFloat32, "f32", "float"},
          CType{Scalar::kFloat64, "f64", "double"}};
}

// How tightly an expression binds.
enum Precedence : uint8_t {
  kAny = 0,
  kChoice = 20,
  kBits = 30,
  kCompare = 40,
  kShift = 50,
  kSum = 60,
  kProduct = 70,
  kPrefix = 80,
  kPostfix = 90,
  kAtom = 100
};

// An op on some dtypes as text. In it, $0 $1 $2 are the operands, $T the type of the result, $s
// that of the last operand, $U the unsigned type to compute in, $M the signed integer type of the
// same width, $W the width, $f the suffix of functions on floats, $c the right operand as a plain
// number; of the result's integer dtype $m is the least value, $g the greatest, $l the least and $h
// one past the greatest as floats. A row with a body calls a function of that body, whose
// parameters are a, b and c.
struct CRow {
  OpSet ops;
  DTypeSet dtypes;
  std::string_view text;
  Precedence gives = kAtom;   // the text binds like this,
  Precedence takes = kAny;    // and its operands must bind as tightly
  std::string_view vector{};  // the text on vectors; empty: `text` lane by lane; "=": `text`
  std::string_view body{};    // of the function that `text` calls
  std::string_view vector_body{};
  bool is_plain = false;  // a literal operand takes the type of the other one
};

// A constant of an integer dtype, with the suffix of its width.
std::string c_integer(DType t, uint64_t bits, std::string_view suffix_of_64_bits = "ll");
// A finite constant of float32 or float64, exactly.
std::string c_float(DType t, uint64_t bits);

class CStyleRenderer : public Renderer {
 protected:
  explicit CStyleRenderer(UOp linear);

  // The name of a type in the language; it is declared where that is needed.
  virtual std::string type(DType t) = 0;
  // An lvalue at a pointer, and the same for a single element: memory[index].
  virtual std::string memory_type(DType t) = 0;
  virtual CRow row(UOp n) = 0;
  virtual std::string vectorize(UOp n) = 0;
  virtual std::string shuffle(UOp n) = 0;
  // What a function in front of the kernel's starts with.
  virtual std::string_view function_start() const { return "static inline"; }
  virtual std::string integer(DType t, uint64_t bits) { return c_integer(t, bits); }
  // A vector in memory, read as a value of its type, and the statement that writes it.
  virtual std::string read_vector(UOp pointer);
  virtual std::string write_vector(UOp pointer, const std::string& value);

  void open_loop(UOp range) override;
  void close_loop(UOp range) override;
  void open_if(UOp n) override;
  void close_if(UOp n) override;
  void read_register(UOp after, UOp reg) override;
  void write_register(UOp store, UOp reg) override;
  void address(UOp index) override;
  void load(UOp n) override;
  void store(UOp n) override;
  void value(UOp n) override;

  // The text of an operand, in brackets where it binds less tightly.
  std::string operand(UOp n, Precedence least);
  std::string element(UOp pointer);   // what a pointer to a scalar points to
  std::string start_of(UOp pointer);  // to a vector: the pointer to its first element
  std::string fill(std::string_view pattern, UOp n, const std::vector<std::string>& operands,
                   DType result, DType source);
  void line(std::string_view text);
  // A function in front of the kernel's.
  void function(const std::string& name, const std::string& text);
  // Binds n to the text: as it is, where n folds into its only user, else to a new variable.
  void define(UOp n, std::string text, Precedence precedence);

  // Before the walk: which values have no name.
  void find_folds();

  std::string body_;
  std::string functions_;

 private:
  struct Address {
    std::string base, index;
  };
  bool may_fold_into(UOp n, UOp user);
  void define_function(const std::string& name, UOp n, std::string_view body, DType result,
                       DType source);
  std::string call_by_lane(UOp n, const CRow& row, const std::vector<std::string>& operands);
  void masked_store(UOp n);
  std::string masked_load(UOp n);
  std::string named(UOp vector);
  std::string lane_of(UOp pointer, std::string_view lane);

  int depth_ = 1;
  std::unordered_map<UOp, Precedence> precedence_;
  std::unordered_map<UOp, Address> addresses_;
  std::unordered_map<UOp, UOp> folds_;  // to their users
  std::unordered_set<std::string> defined_;
};

}  // namespace weft
