// Numbers of seven bits per byte, texts with their length, nodes by their place in the list.
#include "schedule/store_schedule.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <sys/stat.h>

#include "base/config.h"
#include "base/error.h"
#include "base/hash.h"
#include "ir/arena.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "rewrite/user_passes.h"
#include "schedule/graph_key.h"
#include "schedule/machine.h"
#include "schedule/schedule.h"

namespace weft {
namespace {

constexpr uint64_t kFormat = 1;

// ---------------------------------------------------------------------------------------- writing

class Writer {
 public:
  void number(uint64_t n) {
    while (n >= 0x80) {
      byte(uint8_t(n | 0x80));
      n >>= 7;
    }
    byte(uint8_t(n));
  }
  void text(std::string_view s) {
    number(s.size());
    const auto* const first = reinterpret_cast<const std::byte*>(s.data());
    bytes_.insert(bytes_.end(), first, first + s.size());
  }
  template <class T>
  void numbers(const std::vector<T>& list) {
    number(list.size());
    for (const T n : list) number(uint64_t(n));
  }

  void schedule(const Schedule& s) {
    number(s.kernels.size());
    for (const Graph& kernel : s.kernels) graph(kernel.root);
    number(s.buffers.size());
    for (const ScheduledBuffer& b : s.buffers) buffer(b);
    number(s.calls.size());
    for (const KernelCall& c : s.calls) call(c);
    numbers(s.outputs);
    number(s.output_firsts.size());
    for (const std::optional<int64_t>& first : s.output_firsts)
      number(first ? uint64_t(*first) + 1 : 0);
    number(s.slot_count);
    number(uint64_t(s.temp_bytes));
    number(uint64_t(s.peak_bytes));
  }

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void byte(uint8_t b) { bytes_.push_back(std::byte(b)); }

  void graph(UOp root) {
    const std::vector<UOp> order = toposort(root);
    NodeMap places(root.arena());
    number(order.size());
    uint64_t place = 0;
    for (UOp n : order) {
      places.put_number(n, ++place);
      number(uint64_t(n.op()));
      number(n.dtype().packed());
      const Arg arg = arg_of(n);
      number(uint64_t(arg.kind));
      number(arg.word);
      text(arg.bytes);
      number(n.src_count());
      for (UOp source : n.srcs()) number(place - places.number(source));
    }
  }

  void buffer(const ScheduledBuffer& b) {
    number(uint64_t(b.kind));
    number(b.dtype.packed());
    number(uint64_t(b.size));
    text(b.device);
    number(uint64_t(b.id));
    numbers(b.data);
    number(b.slot);
    if (b.formula) {
      graph(b.formula);
    } else {
      number(0);
    }
  }

  void call(const KernelCall& c) {
    number(c.kernel);
    text(c.name);
    numbers(c.arguments);
    number(c.written);
    number(c.variables.size());
    for (const BoundVariable& v : c.variables) {
      text(v.name);
      number(uint64_t(v.value));
    }
    numbers(c.waits_for);
  }

  std::vector<std::byte> bytes_;
};

// ---------------------------------------------------------------------------------------- reading

struct Damaged {};

void require(bool holds) {
  if (!holds) throw Damaged();
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  uint64_t number() {
    uint64_t n = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const uint8_t b = byte();
      n |= uint64_t(b & 0x7f) << shift;
      if (b < 0x80) return n;
    }
    throw Damaged();
  }
  // Of things that take a byte each, at least.
  size_t count() {
    const uint64_t n = number();
    require(n <= rest_.size());
    return size_t(n);
  }
  uint64_t below(uint64_t end) {
    const uint64_t n = number();
    require(n < end);
    return n;
  }
  std::string_view text() {
    const size_t size = count();
    const std::string_view s(reinterpret_cast<const char*>(rest_.data()), size);
    rest_ = rest_.subspan(size);
    return s;
  }
  template <class T>
  std::vector<T> numbers(uint64_t end = std::numeric_limits<uint64_t>::max()) {
    std::vector<T> list(count());
    for (T& n : list) {
      const uint64_t value = number();
      require(value < end || end == std::numeric_limits<uint64_t>::max());
      n = T(value);
    }
    return list;
  }
  bool is_at_end() const { return rest_.empty(); }

  Schedule schedule() {
    Schedule s;
    const size_t kernels = count();
    for (size_t i = 0; i < kernels; i++) {
      Graph kernel{std::make_shared<Arena>(), {}};
      kernel.root = graph(*kernel.arena);
      require(bool(kernel.root));
      verify(kernel.root, Stage::kKernel, "load");
      s.kernels.push_back(std::move(kernel));
    }
    const size_t buffers = count();
    for (size_t i = 0; i < buffers; i++) s.buffers.push_back(buffer(s));
    const size_t calls = count();
    for (size_t i = 0; i < calls; i++) s.calls.push_back(call(s));
    s.outputs = numbers<uint32_t>(buffers);
    s.output_firsts.resize(count());
    for (std::optional<int64_t>& first : s.output_firsts) {
      if (const uint64_t past = number(); past > 0) first = int64_t(past - 1);
    }
    require(s.output_firsts.empty() || s.output_firsts.size() == s.outputs.size());
    s.slot_count = number();
    s.temp_bytes = int64_t(number());
    s.peak_bytes = int64_t(number());
    require(s.slot_count <= buffers);
    bool has_formulas = false;
    for (const ScheduledBuffer& b : s.buffers) {
      require(b.slot < s.slot_count);
      has_formulas |= bool(b.formula);
    }
    if (!has_formulas) s.formulas = nullptr;
    return s;
  }

 private:
  uint8_t byte() {
    require(!rest_.empty());
    const auto b = uint8_t(rest_[0]);
    rest_ = rest_.subspan(1);
    return b;
  }

  DType dtype() {
    const uint64_t packed = number();
    return {Scalar(packed & 0xff), AddrSpace(packed >> 8 & 0xff), uint16_t(packed >> 16)};
  }

  // Null when it has no nodes.
  UOp graph(Arena& arena) {
    std::vector<UOp> nodes(count()), srcs;
    if (nodes.empty()) return {};
    arena.expect(nodes.size());
    for (size_t i = 0; i < nodes.size(); i++) {
      const Op op = Op(below(kOpCount));
      const DType type = dtype();
      Arg arg{.kind = ArgKind(number()), .word = number(), .bytes = text()};
      require(arg.kind == info(op).arg);
      srcs.resize(count());
      for (UOp& source : srcs) {
        const uint64_t back = number();
        require(back >= 1 && back <= i);
        source = nodes[i - back];
      }
      nodes[i] = arena.make(op, type, srcs, arg);
    }
    return nodes.back();
  }

  ScheduledBuffer buffer(Schedule& s) {
    ScheduledBuffer b{.kind = ScheduledBuffer::Kind(below(4)),
                      .dtype = dtype(),
                      .size = int64_t(number()),
                      .device = std::string(text()),
                      .id = int64_t(number()),
                      .data = numbers<uint64_t>(),
                      .slot = uint32_t(number())};
    if (!s.formulas) s.formulas = std::make_shared<Arena>();
    b.formula = graph(*s.formulas);
    require(b.data.empty() || b.data.size() == size_t(b.size));
    return b;
  }

  KernelCall call(const Schedule& s) {
    KernelCall c{.kernel = uint32_t(below(s.kernels.size())),
                 .ast = {},
                 .name = std::string(text()),
                 .arguments = numbers<uint32_t>(s.buffers.size()),
                 .written = number(),
                 .variables = {},
                 .waits_for = {}};
    require(c.written <= c.arguments.size());
    c.ast = s.kernels[c.kernel].root;
    const size_t variables = count();
    for (size_t i = 0; i < variables; i++) {
      std::string name(text());
      c.variables.push_back({std::move(name), int64_t(number())});
    }
    c.waits_for = numbers<uint32_t>(s.calls.size());
    return c;
  }

  std::span<const std::byte> rest_;
};

template <class Read>
auto read_all(std::span<const std::byte> bytes, Read&& read)
    -> std::optional<decltype(read(std::declval<Reader&>()))> {
  try {
    Reader reader(bytes);
    auto result = read(reader);
    require(reader.is_at_end());
    return result;
  } catch (const Damaged&) {
    return std::nullopt;
  } catch (const Error&) {  // a kernel that is none
    return std::nullopt;
  }
}

// ------------------------------------------------------------------------------------------- keys

// This build: the file of the library, as it was written.
Hash128 stamp_of_library() noexcept {
  Hash128 h = mix(Hash128{}, kFormat);
  Dl_info where{};
  struct stat file{};
  if (dladdr(reinterpret_cast<const void*>(&stamp_of_library), &where) != 0 &&
      stat(where.dli_fname, &file) == 0) {
    h = mix(mix(h, uint64_t(file.st_size)), uint64_t(file.st_mtim.tv_sec));
    h = mix(h, uint64_t(file.st_mtim.tv_nsec));
  }
  return h;
}

// Taken when the library is loaded: later the loader may be busy with a compiler for long.
const Hash128 kStamp = stamp_of_library();

std::atomic<uint64_t> load_count = 0;

}  // namespace

std::vector<std::byte> bytes_of_schedule(const Schedule& schedule) {
  Writer writer;
  writer.schedule(schedule);
  return writer.take();
}

std::optional<Schedule> schedule_of_bytes(std::span<const std::byte> bytes) {
  return read_all(bytes, [](Reader& reader) { return reader.schedule(); });
}

Hash128 schedule_key(Hash128 h, const ScheduleOptions& o) {
  h = mix(h, hash_bytes_128(o.device));
  for (const size_t limit :
       {o.limits.statements, o.limits.buffers, o.limits.writes, o.limits.accumulators,
        o.limits.pieces, size_t(o.limits.sequences), o.limits.tile_bytes}) {
    h = mix(h, limit);
  }
  h = mix(mix(h, uint64_t(o.outputs)), uint64_t(config().schedule));
  h = mix(h, o.limits.machine);
  h = mix(h, o.dying.size());
  for (const int64_t id : o.dying) h = mix(h, uint64_t(id));
  h = mix(h, o.tables.size());
  for (const int64_t id : o.tables) h = mix(h, uint64_t(id));
  for (const BoundVariable& v : o.variables) {
    h = mix(mix(h, hash_bytes_128(v.name)), uint64_t(v.value));
  }
  if (o.origins != nullptr) h = mix(mix(h, o.origins->key().low), o.origins->key().high);
  return mix_user_passes(h);
}

Schedule stored_schedule(std::vector<UOp> order, const ScheduleOptions& options) {
  // Passes of users and lines are of this process; one that is traced is made.
  const bool is_looked_at = options.trace != nullptr || options.origins != nullptr;
  if (options.store == nullptr || is_looked_at || user_passes() != nullptr) {
    return make_schedule(std::move(order), options);
  }
  const Hash128 key = mix(kStamp, schedule_key(graph_key(order), options));
  if (const std::optional<std::vector<std::byte>> bytes = options.store->get(key)) {
    if (std::optional<Schedule> stored = schedule_of_bytes(*bytes)) {
      load_count++;
      return std::move(*stored);
    }
    options.store->remove(key);
  }
  Schedule made = make_schedule(std::move(order), options);
  options.store->put(key, bytes_of_schedule(made));
  return made;
}

uint64_t loaded_schedules() { return load_count; }

}  // namespace weft
