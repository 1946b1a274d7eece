// A UOp: one immutable node of a graph, interned in its arena. Inside one arena, equal structure
// is the same pointer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "ir/dtype.h"  // IWYU pragma: export
#include "ir/op.h"     // IWYU pragma: export

namespace weft {

class Arena;
class UOp;

// The memory of a node; its sources follow it. Read through UOp.
struct Node {
  uint64_t hash;      // structural, the same in every process
  uint64_t src_mask;  // bit op % 64 for the op of every source: rejects most patterns at a glance
  uint64_t arg;       // see ArgKind; lists and strings are pointers to interned data
  uint32_t id;        // dense in the arena, larger than the id of every source
  DType dtype;
  uint32_t src_count;
  Op op;
};
static_assert(sizeof(Node) == 40);

// Borrowed: it lives as long as its arena. A null UOp means "none".
class UOp {
 public:
  constexpr UOp() = default;
  constexpr explicit UOp(const Node* node) : node_(node) {}

  explicit operator bool() const { return node_ != nullptr; }
  bool operator==(const UOp&) const = default;

  const Node* node() const { return node_; }
  Op op() const { return node_->op; }
  bool is(Op o) const { return node_->op == o; }
  DType dtype() const { return node_->dtype; }
  uint32_t id() const { return node_->id; }
  uint64_t hash() const { return node_->hash; }
  uint64_t src_mask() const { return node_->src_mask; }
  size_t src_count() const { return node_->src_count; }
  std::span<const UOp> srcs() const {
    return {reinterpret_cast<const UOp*>(node_ + 1), node_->src_count};
  }
  UOp src(size_t i) const { return reinterpret_cast<const UOp*>(node_ + 1)[i]; }
  Arena& arena() const;

  // The argument, read as its kind (info(op()).arg); another kind is an internal error.
  uint64_t arg_word() const { return node_->arg; }
  uint64_t bits() const;                  // Const
  int64_t number() const;                 // Int
  std::string_view name() const;          // Name
  int64_t range_id() const;               // Range
  AxisType axis() const;                  // Range
  Op arg_op() const;                      // Op, OpInts, MaybeOp that has one
  AddrSpace space() const;                // Space
  std::span<const int64_t> ints() const;  // Ints, OpInts

  bool is_const() const { return node_->op == Op::CONST; }
  // A STORE that combines what is there with the value, by arg_op().
  bool accumulates() const { return node_->op == Op::STORE && node_->arg != 0; }
  // The value of a constant of an integer dtype, bool or index.
  int64_t const_int() const { return int64_t(bits()); }

  // The one write, in the form that its target asks for:
  //   a view of a tensor's version   STORE(view, value), void; value has the view's shape and dtype
  //   a pointer from INDEX           STORE(pointer, value, gate?), void
  //   a register                     STORE(register, value, gate?), the register's dtype
  // With an op (ADD, MUL, MAX, MIN) what is there is combined with the value, element after element
  // in row-major order: tensor graphs and rangeified ones.
  // Throws DTypeError or ShapeError when the value does not fit, SpecError when this is no target.
  UOp assign(UOp value) const;
  UOp assign(UOp value, UOp gate) const;
  UOp accumulate(Op op, UOp value) const;

 private:
  const Node* node_ = nullptr;
};
static_assert(sizeof(UOp) == sizeof(void*));

constexpr uint64_t src_bit(Op op) { return uint64_t(1) << (unsigned(op) % 64); }

}  // namespace weft

template <>
struct std::hash<weft::UOp> {
  size_t operator()(weft::UOp n) const noexcept { return n ? n.hash() : 0; }
};
