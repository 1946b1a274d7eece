// What all renderers share: the walk over a program's list, the names of values, the layout of
// arguments and scratch memory. A renderer is a table of elementwise ops and a few statements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/box.h"
#include "ir/node.h"
#include "ir/op.h"
#include "rewrite/pattern.h"

namespace weft {

// The definitions of a program, in the order of its function's arguments.
struct Signature {
  struct Local {
    UOp definition;
    size_t offset;  // into scratch
  };
  // An array of an argument that FETCH_BOXes copy of.
  struct BoxedArray {
    UOp memory;
    Box box;

    bool operator==(const BoxedArray&) const = default;
  };
  std::vector<UOp> globals;    // DEFINE_GLOBAL, by id
  std::vector<UOp> variables;  // VARIABLE, by name
  std::vector<Local> locals;   // DEFINE_LOCAL, by id
  std::vector<UOp> registers;  // DEFINE_REG, by id
  size_t scratch_bytes = 0;
  std::vector<BoxedArray> boxed;  // in order of their first FETCH_BOX
};
Signature signature_of(UOp linear);

// Whether source i of a listed node is a value that the node reads; the others say which register
// it writes, or only order.
bool reads_source(UOp n, size_t i);

// n, an integer op, gives the exact result: it never wraps.
bool never_wraps(UOp n);

// A VECTORIZE of one value in all lanes.
bool is_splat(UOp n);

// The dtypes whose values are held as unsigned integers, for which renderers have no arithmetic.
DType held_as(DType type);

// A BITCAST from a byte to bool, or from bool to a byte: the CAST of what they are held as.
bool is_cast_of_bool(Op op, DType from, DType to);

// A pointer to a vector is proved to be aligned to its size, where memory itself is.
bool is_aligned(UOp pointer);

class Renderer {
 public:
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;
  virtual ~Renderer() = default;

 protected:
  explicit Renderer(UOp linear);

  // Calls the functions below for the nodes of the list, in order.
  void walk();

  virtual std::string constant(UOp n) = 0;
  virtual void open_loop(UOp range) = 0;
  virtual void close_loop(UOp range) = 0;
  virtual void open_if(UOp n) = 0;
  virtual void close_if(UOp n) = 0;
  virtual void read_register(UOp after, UOp reg) = 0;
  virtual void write_register(UOp store, UOp reg) = 0;
  virtual void address(UOp index) = 0;
  virtual void load(UOp n) = 0;
  virtual void store(UOp n) = 0;
  virtual void value(UOp n) = 0;  // elementwise ops, VECTORIZE, GEP
  // Only where the target has workgroups.
  virtual void special(UOp n);
  virtual void barrier(UOp) {}  // of one thread
  // Only where the target has tensor cores.
  virtual void product(UOp wmma);
  virtual void copy(UOp n);  // FETCH, FETCH_BOX, COMMIT, WAIT

  // What stands for a value where it is used.
  std::string text(UOp n);
  void bind(UOp n, std::string text) { texts_[n] = std::move(text); }
  // A name that nothing else has: `wish`, or `wish` and a number.
  std::string unique(std::string wish);
  // The next of a series of names: t0, t1, ...
  std::string next(std::string_view prefix);

  // How often a value is read in the list; a splat reads its value once.
  size_t uses(UOp n) const;

  [[noreturn]] void no_text(UOp n) const;

  UOp linear_;
  Signature signature_;

 private:
  void visit(UOp n);

  std::unordered_map<UOp, std::string> texts_;
  std::unordered_map<UOp, size_t> uses_;
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, size_t> series_;
  std::vector<UOp> open_;  // RANGEs and IFs
};

// The row of a table for an op on a dtype: the first that has both. Row has `ops` and `dtypes`.
template <class Row, size_t N>
const Row* find_row(const Row (&rows)[N], Op op, DType type) {
  for (const Row& row : rows) {
    if (row.ops.has(op) && (row.dtypes & set_of(type.scalar)) != 0) return &row;
  }
  return nullptr;
}

}  // namespace weft
