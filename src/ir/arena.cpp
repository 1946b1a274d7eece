// Interning nodes: blocks of memory, one hash table.
#include "ir/arena.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/huge_pages.h"
#include "base/interrupt.h"
#include "ir/node.h"

namespace weft {
namespace {

constexpr uint64_t kPointerMask = (uint64_t(1) << 48) - 1;
constexpr size_t kLineSlots = 8, kLineIds = 4;  // a line of 8 slots serves 4 ids: half full
constexpr size_t kFirstLines = 32;
constexpr int64_t kMostId = (int64_t(1) << 56) - 1;  // what an argument word has room for
constexpr uint32_t kNoId = UINT32_MAX;               // of a source that a node does not have
constexpr uint32_t kNodesPerCheck = 4096;            // whether the call that makes them is to end
constexpr size_t kLargestRegion = size_t(64) << 20;

const Node* node_of(uint64_t slot) {
  return reinterpret_cast<const Node*>(uintptr_t(slot & kPointerMask));
}
uint64_t tag_of(uint64_t hash) { return hash & ~kPointerMask; }

size_t line_of(uint32_t largest) { return largest / kLineIds * kLineSlots; }

// The largest id of a source below the largest one; kNoId: there is none.
uint32_t second_largest(std::span<const UOp> srcs, uint32_t largest) {
  uint32_t second = kNoId;
  for (UOp s : srcs) {
    if (s.id() != largest && (second == kNoId || s.id() > second)) second = s.id();
  }
  return second;
}

bool is_in(const ZeroedArray& a, const uint64_t* slot) {
  return slot >= a.data() && slot < a.data() + a.size();
}

// Where the search for a node in the spill begins. Numbers of sizes and offsets come in sequences:
// those that follow each other share a cache line.
size_t first_in_spill(uint64_t hash, Op op, DType dtype, uint64_t arg) {
  if (op != Op::CONST || dtype != dtypes::index) return hash;
  return mix(0x77656674, arg / kLineSlots) * kLineSlots + arg % kLineSlots;
}

uint64_t* empty_place(ZeroedArray& spill, const Node& n) {
  const size_t mask = spill.size() - 1;
  size_t i = first_in_spill(n.hash, n.op, n.dtype, n.arg) & mask;
  while (spill[i] != 0) i = (i + 1) & mask;
  return spill.data() + i;
}

bool is_payload(ArgKind kind) {
  return kind == ArgKind::Name || kind == ArgKind::Ints || kind == ArgKind::OpInts;
}

std::string_view bytes_of(std::span<const int64_t> list) {
  return {reinterpret_cast<const char*>(list.data()), list.size_bytes()};
}

void require_kind(UOp n, bool ok, std::string_view asked) {
  if (!ok) {
    throw InternalError(
        fmt::format("the argument of {} is not read as {}", name_of(n.op()), asked));
  }
}

}  // namespace

Arg Arg::range(int64_t id, AxisType axis) {
  return {ArgKind::Range, (uint64_t(id) & ((uint64_t(1) << 56) - 1)) | uint64_t(axis) << 56, {}};
}
Arg Arg::ints(std::span<const int64_t> list) { return {ArgKind::Ints, 0, bytes_of(list)}; }
Arg Arg::op_ints(std::span<const int64_t> list) { return {ArgKind::OpInts, 0, bytes_of(list)}; }

// ------------------------------------------------------------------------------------ UOp's
// arguments

uint64_t UOp::bits() const {
  require_kind(*this, info(op()).arg == ArgKind::Const, "a constant");
  return node_->arg;
}
int64_t UOp::number() const {
  require_kind(*this, info(op()).arg == ArgKind::Int, "an integer");
  return int64_t(node_->arg);
}
std::string_view UOp::name() const {
  require_kind(*this, info(op()).arg == ArgKind::Name, "a name");
  return Arena::payload_bytes(node_->arg);
}
int64_t UOp::range_id() const {
  require_kind(*this, info(op()).arg == ArgKind::Range, "a range");
  return int64_t(node_->arg & ((uint64_t(1) << 56) - 1));
}
AxisType UOp::axis() const {
  require_kind(*this, info(op()).arg == ArgKind::Range, "a range");
  return AxisType(node_->arg >> 56);
}
Op UOp::arg_op() const {
  const ArgKind kind = info(op()).arg;
  require_kind(*this,
               kind == ArgKind::Op || kind == ArgKind::OpInts ||
                   (kind == ArgKind::MaybeOp && node_->arg != 0),
               "an op");
  if (kind != ArgKind::OpInts) return Op(node_->arg);
  int64_t first = 0;
  std::memcpy(&first, Arena::payload_bytes(node_->arg).data(), sizeof first);
  return Op(first);
}
AddrSpace UOp::space() const {
  require_kind(*this, info(op()).arg == ArgKind::Space, "an address space");
  return AddrSpace(node_->arg);
}
std::span<const int64_t> UOp::ints() const {
  const ArgKind kind = info(op()).arg;
  require_kind(*this, kind == ArgKind::Ints || kind == ArgKind::OpInts, "a list");
  const std::string_view bytes = Arena::payload_bytes(node_->arg);
  const std::span all(reinterpret_cast<const int64_t*>(bytes.data()),
                      bytes.size() / sizeof(int64_t));
  return kind == ArgKind::OpInts ? all.subspan(1) : all;
}

// ---------------------------------------------------------------------------------------------
// Arena

struct Arena::WalkTable {
  ZeroedArray entries;
  uint64_t epoch = 0;
};

Arena::Arena() : lines_(kFirstLines * kLineSlots), spill_(kFirstLines * kLineSlots / 2) {
  grow_at_ = uint32_t(kFirstLines * kLineIds);
}

namespace {

// One block of a dead arena, for the next one: small graphs come and go, and the system would take
// the pages back each time. Held by the process.
std::atomic<std::byte*> spare_block = nullptr;

}  // namespace

Arena::~Arena() {
  for (const Region& r : regions_) {
    std::byte* none = nullptr;
    const bool is_kept =
        r.bytes == kBlockBytes && spare_block.compare_exchange_strong(none, r.memory);
    if (!is_kept) std::free(r.memory);
  }
}

size_t Arena::bytes() const {
  size_t total = (lines_.size() + spill_.size()) * sizeof(uint64_t) + payload_bytes_;
  for (const Region& r : regions_) total += r.bytes;
  return total - free_block_bytes_ - size_t(block_end_ - at_);
}

size_t Arena::side_table_bytes() const {
  size_t total = walk_table_bytes_;
  for (const auto& f : facts_) total += f ? f->bytes() : 0;
  return total;
}

UOp Arena::make(Op op, DType dtype, std::span<const UOp> srcs, const Arg& arg) {
  return intern(op, dtype, srcs, arg_word(op, arg));
}

uint64_t Arena::arg_word(Op op, const Arg& arg) {
  const bool may_be_missing = info(op).arg == ArgKind::MaybeOp;
  const bool is_missing_or_op = arg.kind == ArgKind::None || arg.kind == ArgKind::Op;
  if (arg.kind != info(op).arg && !(may_be_missing && is_missing_or_op)) {
    throw InternalError(fmt::format("{} was given an argument of the wrong kind", name_of(op)));
  }
  if (!is_payload(arg.kind)) {
    note_definition(op, arg.word);
    return arg.word;
  }
  if (auto at = payloads_.find(arg.bytes); at != payloads_.end()) {
    return uint64_t(uintptr_t(at->data() - sizeof(Payload)));
  }
  const size_t bytes = sizeof(Payload) + arg.bytes.size();
  payload_memory_.push_back(std::make_unique<std::byte[]>(bytes));
  payload_bytes_ += bytes;
  node_bytes_ += bytes;
  std::byte* memory = payload_memory_.back().get();
  new (memory) Payload{hash_bytes(arg.bytes), arg.bytes.size()};
  auto* content = reinterpret_cast<char*>(memory + sizeof(Payload));
  std::copy(arg.bytes.begin(), arg.bytes.end(), content);
  payloads_.emplace(content, arg.bytes.size());
  return uint64_t(uintptr_t(memory));
}

void Arena::expect(size_t nodes) {
  nodes = std::min<size_t>(std::bit_ceil(nodes), size_t(1) << 31);
  if (nodes <= grow_at_) return;
  place_nodes(nodes / kLineIds * kLineSlots, nodes / 2);
}

void Arena::note_definition(Op op, uint64_t arg) {
  const ArgKind kind = info(op).arg;
  if (kind != ArgKind::Int && kind != ArgKind::Range) return;
  const int64_t id = kind == ArgKind::Int ? int64_t(arg) : int64_t(arg & ((uint64_t(1) << 56) - 1));
  if (id < kMostId) last_definition_ = std::max(last_definition_, id);
}

int64_t Arena::fresh_id() {
  if (last_definition_ + 1 >= kMostId) throw InternalError("the arena has no more ids to give");
  return ++last_definition_;
}

std::string_view Arena::payload_bytes(uint64_t word) {
  const auto* p = reinterpret_cast<const Payload*>(uintptr_t(word));
  return {reinterpret_cast<const char*>(p + 1), p->size};
}

uint64_t Arena::hash_of_arg(ArgKind kind, uint64_t word) {
  return is_payload(kind) ? reinterpret_cast<const Payload*>(uintptr_t(word))->hash : word;
}

// Sources are mixed in after this.
uint64_t Arena::hash_of_leaf(Op op, DType dtype, uint64_t arg, size_t srcs) {
  const uint64_t header = uint64_t(op) | uint64_t(dtype.packed()) << 8;
  return mix(mix(0x77656674 + srcs, header), hash_of_arg(info(op).arg, arg));
}

void Arena::prefetch_constant(DType dtype, uint64_t bits) const {
  const uint64_t hash = hash_of_leaf(Op::CONST, dtype, bits);
  const size_t place = first_in_spill(hash, Op::CONST, dtype, bits) & (spill_.size() - 1);
  __builtin_prefetch(spill_.data() + place);
}

UOp Arena::intern(Op op, DType dtype, std::span<const UOp> srcs, uint64_t arg) {
  uint64_t hash = hash_of_leaf(op, dtype, arg, srcs.size());
  uint64_t src_mask = 0;
  uint32_t largest = srcs.empty() ? kNoId : 0;
  for (UOp s : srcs) {
    hash = mix(hash, s.hash());
    src_mask |= src_bit(s.op());
    largest = std::max(largest, s.id());
  }
  uint64_t* slot = find(hash, largest, op, dtype, srcs, arg);
  if (*slot != 0) return UOp(node_of(*slot));
  if (count_ % kNodesPerCheck == kNodesPerCheck - 1) check_interrupt();
  void* memory = allocate_node(sizeof(Node) + srcs.size() * sizeof(UOp));
  auto* n = new (memory) Node{hash, src_mask, arg, count_++, dtype, uint32_t(srcs.size()), op};
  std::uninitialized_copy(srcs.begin(), srcs.end(), reinterpret_cast<UOp*>(n + 1));
  *slot = tag_of(hash) | uint64_t(uintptr_t(n));
  if (is_in(spill_, slot) && ++spilled_ * 3 > spill_.size() * 2) grow_spill();
  if (count_ == grow_at_) grow_lines();
  return UOp(n);
}

// The slot that holds such a node, or the empty one where it belongs.
uint64_t* Arena::find(uint64_t hash, uint32_t largest, Op op, DType dtype,
                      std::span<const UOp> srcs, uint64_t arg) {
  const uint64_t tag = tag_of(hash);
  auto is_it = [&](uint64_t slot) {
    if (tag_of(slot) != tag) return false;
    const Node* n = node_of(slot);
    return n->hash == hash && n->op == op && n->dtype == dtype && n->arg == arg &&
           n->src_count == srcs.size() &&
           std::equal(srcs.begin(), srcs.end(), UOp(n).srcs().begin());
  };
  for (uint32_t id = largest; id != kNoId;) {
    uint64_t* line = lines_.data() + line_of(id);
    for (size_t i = 0; i < kLineSlots; i++) {
      if (line[i] == 0 || is_it(line[i])) return line + i;
    }
    id = id == largest ? second_largest(srcs, largest) : kNoId;
  }
  const size_t mask = spill_.size() - 1;
  size_t i = first_in_spill(hash, op, dtype, arg) & mask;
  while (spill_[i] != 0 && !is_it(spill_[i])) i = (i + 1) & mask;
  return spill_.data() + i;
}

void* Arena::allocate_node(size_t bytes) {
  if (bytes > size_t(block_end_ - at_)) open_block(bytes);
  node_bytes_ += bytes;
  std::byte* memory = std::exchange(at_, at_ + bytes);
  blocks_.back()->end = at_;
  return memory;
}

void Arena::open_block(size_t bytes) {
  // A node larger than a block has blocks of its own: only its first byte must lie in the first
  // one.
  const size_t need = (bytes + sizeof(Block) + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  std::byte* memory = take_blocks(need);
  auto* block = new (memory) Block{this, memory + sizeof(Block)};
  blocks_.push_back(block);
  at_ = block->end;
  block_end_ = memory + need;
  if (need > kBlockBytes) block_end_ = at_ + bytes;  // nothing else starts past the first block
}

std::byte* Arena::take_blocks(size_t bytes) {
  if (bytes > free_block_bytes_) {
    size_t held = 0;
    for (const Region& r : regions_) held += r.bytes;
    size_t region = std::clamp(held / 2 / kBlockBytes * kBlockBytes, kBlockBytes, kLargestRegion);
    region = std::max(region, bytes);
    const bool huge = region >= kHugePage;
    if (huge) region = (region + kHugePage - 1) / kHugePage * kHugePage;
    void* memory = region == kBlockBytes ? spare_block.exchange(nullptr) : nullptr;
    if (memory == nullptr) memory = std::aligned_alloc(huge ? kHugePage : kBlockBytes, region);
    if (memory == nullptr) throw std::bad_alloc();
    if (huge) madvise(memory, region, MADV_HUGEPAGE);
    regions_.push_back({static_cast<std::byte*>(memory), region});
    free_blocks_ = regions_.back().memory;
    free_block_bytes_ = region;
  }
  free_block_bytes_ -= bytes;
  return std::exchange(free_blocks_, free_blocks_ + bytes);
}

void Arena::grow_lines() {
  if (count_ >= UINT32_MAX - 1) throw Error("[arena] a graph has at most 4294967294 nodes");
  place_nodes(lines_.size() * 2, spill_.size());
}

// Places all nodes anew, in larger tables.
void Arena::place_nodes(size_t line_slots, size_t spill_slots) {
  lines_ = ZeroedArray(line_slots);
  if (spill_slots > spill_.size()) {
    spill_ = ZeroedArray(spill_slots);
  } else {
    spill_.clear_words();
  }
  spilled_ = 0;
  grow_at_ = uint32_t(std::min<size_t>(line_slots / kLineSlots * kLineIds, UINT32_MAX - 1));
  for (const Block* b : blocks_) {  // in the order of memory: the lines fill in order too
    const auto* at = reinterpret_cast<const std::byte*>(b + 1);
    while (at < b->end) {
      const auto* n = reinterpret_cast<const Node*>(at);
      uint32_t largest = n->src_count == 0 ? kNoId : 0;
      for (UOp s : UOp(n).srcs()) largest = std::max(largest, s.id());
      uint64_t* place = nullptr;
      for (uint32_t id = largest; id != kNoId && place == nullptr;) {
        uint64_t* line = lines_.data() + line_of(id);
        place = std::find(line, line + kLineSlots, uint64_t(0));
        if (place == line + kLineSlots) place = nullptr;
        id = id == largest ? second_largest(UOp(n).srcs(), largest) : kNoId;
      }
      if (place == nullptr) {
        place = empty_place(spill_, *n);
        spilled_++;
      }
      *place = tag_of(n->hash) | uint64_t(uintptr_t(n));
      if (is_in(spill_, place) && spilled_ * 3 > spill_.size() * 2) grow_spill();
      at += sizeof(Node) + n->src_count * sizeof(UOp);
    }
  }
}

void Arena::grow_spill() {
  ZeroedArray larger(spill_.size() * 2);
  for (size_t i = 0; i < spill_.size(); i++) {
    if (spill_[i] != 0) *empty_place(larger, *node_of(spill_[i])) = spill_[i];
  }
  spill_ = std::move(larger);
}

// -------------------------------------------------------------------------------------------
// NodeMap

NodeMap::NodeMap(Arena& arena) : arena_(arena) {
  if (arena.walk_tables_.empty()) {
    table_ = std::make_unique<Arena::WalkTable>();
  } else {
    table_ = std::move(arena.walk_tables_.back());
    arena.walk_tables_.pop_back();
  }
  if (++table_->epoch == uint64_t(1) << 16) {
    table_->entries.clear_words();
    table_->epoch = 1;
  }
  epoch_ = table_->epoch;
  entries_ = table_->entries.data();
  size_ = table_->entries.size();
}

NodeMap::~NodeMap() { arena_.walk_tables_.push_back(std::move(table_)); }

void NodeMap::grow(uint32_t id) {
  const size_t before = table_->entries.size();
  const size_t size = std::max<size_t>(std::bit_ceil(size_t(id) + 1), 1024);
  table_->entries.grow(std::max<size_t>(size, arena_.grow_at_));  // untouched pages cost nothing
  arena_.walk_table_bytes_ += (table_->entries.size() - before) * sizeof(uint64_t);
  entries_ = table_->entries.data();
  size_ = table_->entries.size();
}

}  // namespace weft
