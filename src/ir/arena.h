// The graph of one compilation, or one that a user holds: makes nodes, keeps each structure once,
// and frees them all together. One thread at a time; no counts, no locks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/zeroed_array.h"  // IWYU pragma: export
#include "ir/node.h"            // IWYU pragma: export

namespace weft {

// An argument on its way into a node.
struct Arg {
  ArgKind kind = ArgKind::None;
  uint64_t word = 0;
  std::string_view bytes;  // the content of names and lists

  static Arg bits(uint64_t b) { return {ArgKind::Const, b, {}}; }
  static Arg integer(int64_t i) { return {ArgKind::Int, uint64_t(i), {}}; }
  static Arg name(std::string_view text) { return {ArgKind::Name, 0, text}; }
  static Arg range(int64_t id, AxisType axis);
  static Arg op(Op o) { return {ArgKind::Op, uint64_t(o), {}}; }
  static Arg space(AddrSpace s) { return {ArgKind::Space, uint64_t(s), {}}; }
  static Arg ints(std::span<const int64_t> list);
  // `list` starts with the op, as an integer.
  static Arg op_ints(std::span<const int64_t> list);
};

// A fact about every node, kept with the arena and computed once: see arena.facts<T>().
class Facts {
 public:
  Facts() = default;
  Facts(const Facts&) = delete;
  Facts& operator=(const Facts&) = delete;
  virtual ~Facts() = default;
  virtual size_t bytes() const = 0;
};
enum class FactSlot : uint8_t { kBounds, kShapes, kScopes, kPlaces, kReads, kCount };

class Arena : public std::enable_shared_from_this<Arena> {
 public:
  Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  // The node with this content, new or found. Sources must be of this arena. Any structure is
  // allowed here: verify() (ir/spec.h) says what is legal, ir/build.h checks while building.
  UOp make(Op op, DType dtype, std::span<const UOp> srcs, const Arg& arg = {});
  UOp make(Op op, DType dtype, std::initializer_list<UOp> srcs, const Arg& arg = {}) {
    return make(op, dtype, std::span(srcs.begin(), srcs.size()), arg);
  }
  // `n` with other sources, and perhaps another dtype.
  UOp with_srcs(UOp n, std::span<const UOp> srcs) {
    if (std::ranges::equal(srcs, n.srcs())) return n;
    return intern(n.op(), n.dtype(), srcs, n.arg_word());
  }
  UOp with_srcs(UOp n, std::span<const UOp> srcs, DType dtype) {
    return intern(n.op(), dtype, srcs, n.arg_word());
  }

  // A constant is about to be made: its place in the table, which no other node is near, is on its
  // way from memory.
  void prefetch_constant(DType dtype, uint64_t bits) const;

  // Makes room in the tables: a graph of so many nodes is built without growing them.
  void expect(size_t nodes);

  // A fresh id for a definition or range: larger than every id that this arena has seen or given.
  int64_t fresh_id();

  size_t size() const { return count_; }             // nodes made
  size_t node_bytes() const { return node_bytes_; }  // memory of nodes and arguments alone
  size_t bytes() const;                              // memory of nodes, arguments and the table
  size_t side_table_bytes() const;                   // memory of facts and walk tables

  // The facts of type T (T::kSlot says where), made at first use.
  template <class T>
  T& facts() {
    auto& slot = facts_[size_t(T::kSlot)];
    if (!slot) slot = std::make_unique<T>();
    return static_cast<T&>(*slot);
  }

  static Arena& of(UOp n) {
    return **reinterpret_cast<Arena* const*>(uintptr_t(n.node()) & ~uintptr_t(kBlockBytes - 1));
  }

 private:
  friend class NodeMap;

  static constexpr size_t kBlockBytes = size_t(64) << 10;
  struct Block {  // at every multiple of kBlockBytes; nodes follow
    Arena* owner;
    std::byte* end;  // of its nodes
  };
  struct Region {  // what was asked of the system: one or more blocks
    std::byte* memory;
    size_t bytes;
  };
  // The interned content of a name or a list.
  struct Payload {
    uint64_t hash;
    uint64_t size;
  };
  friend class UOp;

  UOp intern(Op op, DType dtype, std::span<const UOp> srcs, uint64_t arg);
  uint64_t arg_word(Op op, const Arg& arg);
  void note_definition(Op op, uint64_t arg);
  void* allocate_node(size_t bytes);
  void open_block(size_t bytes);
  std::byte* take_blocks(size_t bytes);
  uint64_t* find(uint64_t hash, uint32_t largest, Op op, DType dtype, std::span<const UOp> srcs,
                 uint64_t arg);
  void grow_lines();
  void place_nodes(size_t line_slots, size_t spill_slots);
  void grow_spill();
  static std::string_view payload_bytes(uint64_t word);
  static uint64_t hash_of_arg(ArgKind kind, uint64_t word);
  static uint64_t hash_of_leaf(Op op, DType dtype, uint64_t arg, size_t srcs = 0);

  std::vector<Region> regions_;
  std::vector<Block*> blocks_;
  std::byte* free_blocks_ = nullptr;  // blocks of the newest region not yet opened
  size_t free_block_bytes_ = 0;
  std::byte* at_ = nullptr;  // free space of the newest block
  std::byte* block_end_ = nullptr;

  // Where nodes are found: a slot is 16 bits of hash and 48 of pointer. A node's first place is a
  // line of 8 slots chosen by the largest id among its sources, so that a graph built in order
  // walks through the table in order; its second, that of the next largest, for users of one late
  // node; leaves, and what full lines turn away, lie in `spill_`, by hash, with linear probing.
  ZeroedArray lines_;
  ZeroedArray spill_;
  size_t spilled_ = 0;
  uint32_t count_ = 0;
  uint32_t grow_at_ = 0;

  std::unordered_set<std::string_view> payloads_;
  std::vector<std::unique_ptr<std::byte[]>> payload_memory_;
  size_t payload_bytes_ = 0;
  size_t node_bytes_ = 0;
  int64_t last_definition_ = 0;

  std::array<std::unique_ptr<Facts>, size_t(FactSlot::kCount)> facts_;
  struct WalkTable;
  std::vector<std::unique_ptr<WalkTable>> walk_tables_;  // free ones: see NodeMap
  size_t walk_table_bytes_ = 0;
};

inline Arena& UOp::arena() const { return Arena::of(*this); }

// UOp -> UOp, or UOp -> number, for the time of one walk. Costs what the walk touches, however
// large the arena is: entries carry the number of the walk that wrote them.
class NodeMap {
 public:
  explicit NodeMap(Arena& arena);
  NodeMap(const NodeMap&) = delete;
  NodeMap& operator=(const NodeMap&) = delete;
  ~NodeMap();

  // 0 when there is none.
  uint64_t number(UOp k) const {
    if (k.id() >= size_) return 0;
    const uint64_t e = entries_[k.id()];
    return (e >> 48) == epoch_ ? e & kPayloadMask : 0;
  }
  void put_number(UOp k, uint64_t v) {
    if (k.id() >= size_) grow(k.id());
    entries_[k.id()] = uint64_t(epoch_) << 48 | v;
  }
  bool has(UOp k) const { return number(k) != 0; }
  UOp get(UOp k) const { return UOp(reinterpret_cast<const Node*>(number(k))); }
  void put(UOp k, UOp v) { put_number(k, uint64_t(uintptr_t(v.node()))); }

 private:
  static constexpr uint64_t kPayloadMask = (uint64_t(1) << 48) - 1;
  void grow(uint32_t id);

  Arena& arena_;
  std::unique_ptr<Arena::WalkTable> table_;
  uint64_t* entries_ = nullptr;
  size_t size_ = 0;
  uint64_t epoch_ = 0;
};

// A node and what keeps it alive: how graphs are held by users and handed between threads.
struct Graph {
  std::shared_ptr<Arena> arena;
  UOp root;
};

}  // namespace weft
