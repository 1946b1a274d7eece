// Kernels of lines. One sorts them, least digit first. For each line it counts the digits of all
// keys in one pass over them, turns counts into places where a digit begins, and moves the elements
// once for each digit to where the next one with that digit goes.
#include "tensor/radix_sort.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "tensor/custom_kernel.h"
#include "tensor/places.h"
#include "weft/options.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

constexpr int64_t kDigitBits = 8, kDigits = 1 << kDigitBits;

// Elements in memory: a key, and its place where the key does not hold it.
struct Elements {
  UOp key, place{};
};

// Bits from `low` on decide. Elements go from the input to the second memory, to the first, to the
// second, ... : an even number of digits ends in the first.
class RadixSort {
 public:
  RadixSort(int64_t lines, int64_t count, int64_t low, bool has_places)
      : count_(count), low_(low), passes_((64 - low) / kDigitBits) {
    const auto memory = [&](DType type) {
      return define_global(*arena_, type, lines * count, arguments_++);
    };
    for (Elements& e : memory_) e.key = memory(dtypes::uint64);
    if (has_places) {
      for (Elements& e : memory_) e.place = memory(dtypes::int32);
    }
    input_ = memory(dtypes::uint64);
    line_ = range(*arena_, lines, ids_++);
    counts_ = after(define_local(*arena_, dtypes::uint32, passes_ * kDigits, 0), line_);
  }

  Graph kernel() {
    const UOp counted = count_digits(clear());
    UOp done = add_up(counted);
    for (int64_t pass = 0; pass < passes_; pass++) done = move_elements(pass, done);
    return {arena_, sink(end(done, line_))};
  }

 private:
  UOp number(DType type, int64_t value) { return constant(*arena_, type, value); }
  UOp new_range(int64_t size) { return range(*arena_, size, ids_++); }
  UOp at(UOp i) { return line_ * count_ + i; }

  // Where the count of digit `pass` of a key is.
  UOp count_of(UOp key, int64_t pass, UOp effect) {
    const UOp places = number(dtypes::uint64, low_ + pass * kDigitBits);
    const UOp digit = binary(Op::SHR, key, places) & number(dtypes::uint64, kDigits - 1);
    return index(after(counts_, effect), cast(digit, dtypes::index) + pass * kDigits);
  }

  UOp clear() {
    const UOp i = new_range(passes_ * kDigits);
    return end(index(counts_, i).assign(number(dtypes::uint32, 0)), i);
  }

  UOp count_digits(UOp effect) {
    const UOp i = new_range(count_);
    const UOp key = load(index(input_, at(i)));
    for (int64_t pass = 0; pass < passes_; pass++) {
      const UOp count = count_of(key, pass, effect);
      effect = count.assign(load(count) + number(dtypes::uint32, 1));
    }
    return end(effect, i);
  }

  // Each count becomes the sum of those before it. A loop for each digit: in one loop for all,
  // reads and writes that are a power of two apart would wait for each other.
  UOp add_up(UOp effect) {
    for (int64_t pass = 0; pass < passes_; pass++) {
      const UOp i = new_range(kDigits);
      const UOp reg = define_reg(*arena_, dtypes::uint32, pass);
      const UOp before_all[] = {line_, effect};
      const UOp start = after(reg, before_all).assign(number(dtypes::uint32, 0));
      const UOp waits[] = {start, i};
      const UOp before = after(reg, waits);
      const UOp place = i + pass * kDigits;
      const UOp sum = before.assign(before + load(index(after(counts_, effect), place)));
      const UOp both[] = {effect, sum};
      effect = end(index(after(counts_, both), place).assign(before), i);
    }
    return effect;
  }

  UOp move_elements(int64_t pass, UOp done) {
    const UOp i = new_range(count_);
    const Elements& to = memory_[pass % 2 == 0 ? 1 : 0];
    const Elements& from = memory_[pass % 2];
    const UOp key = load(index(pass == 0 ? input_ : after(from.key, done), at(i)));
    const UOp next = count_of(key, pass, done);
    const UOp found = load(next);
    const UOp counted = next.assign(found + number(dtypes::uint32, 1));
    const UOp last = index_const(*arena_, count_ - 1);
    const UOp target = at(min(cast(found, dtypes::index), last));
    const UOp before[] = {done, counted};
    UOp moved = index(after(to.key, before), target).assign(key);
    if (to.place) {
      const UOp place =
          pass == 0 ? cast(i, dtypes::int32) : load(index(after(from.place, done), at(i)));
      const UOp both[] = {done, moved};
      moved = index(after(to.place, both), target).assign(place);
    }
    return end(moved, i);
  }

  std::shared_ptr<Arena> arena_ = std::make_shared<Arena>();
  int64_t arguments_ = 0, ids_ = 0;
  int64_t count_, low_, passes_;
  Elements memory_[2];
  UOp input_, line_, counts_;
};

// Finds the key of a rank bit by bit, by counting the keys that are less than those with the bit
// set. Of equal ones, the place is found in the same way.
class RankSelection {
 public:
  RankSelection(int64_t lines, int64_t count) : count_(count) {
    const UOp result = define_global(*arena_, dtypes::int32, lines, 0);
    keys_ = define_global(*arena_, dtypes::uint32, lines * count, 1);
    const UOp ranks = define_global(*arena_, dtypes::int32, lines, 2);
    line_ = range(*arena_, lines, ids_++);
    const UOp rank = load(index(ranks, line_));
    const UOp key = largest(dtypes::uint32, 32, 0, [&](UOp limit) {
      return counted([&](UOp k, UOp) { return k < limit; }) < rank + 1;
    });
    const UOp left = rank - counted([&](UOp k, UOp) { return k < key; });
    const auto bits = int64_t(std::bit_width(uint64_t(count - 1)));
    const UOp place = largest(dtypes::int32, bits, 1, [&](UOp limit) {
      return counted([&](UOp k, UOp i) { return equal(k, key) & (i < limit); }) < left + 1;
    });
    const UOp last = constant(*arena_, dtypes::int32, count - 1);
    kernel_ = sink(end(index(result, line_).assign(min(place, last)), line_));
  }

  Graph kernel() { return {arena_, kernel_}; }

 private:
  // The largest number of so many bits for which this holds, as it does for all that are less.
  template <class Holds>
  UOp largest(DType type, int64_t bits, int64_t id, Holds&& holds) {
    const UOp bit = range(*arena_, bits, ids_++), reg = define_reg(*arena_, type, id);
    const UOp start = after(reg, line_).assign(constant(*arena_, type, 0));
    const UOp waits[] = {start, bit};
    const UOp now = after(reg, waits);
    const UOp one = constant(*arena_, type, 1);
    const UOp next = now | binary(Op::SHL, one, cast(index_const(*arena_, bits - 1) - bit, type));
    const UOp set = now.assign(where(holds(next), next, now));
    return after(reg, end(set, bit));
  }

  template <class Fits>
  UOp counted(Fits&& fits) {
    const UOp i = range(*arena_, count_, ids_++, AxisType::kReduce);
    const UOp key = load(index(keys_, line_ * count_ + i));
    const UOp over[] = {i};
    return reduce(Op::ADD, cast(fits(key, cast(i, dtypes::int32)), dtypes::int32), over);
  }

  std::shared_ptr<Arena> arena_ = std::make_shared<Arena>();
  int64_t count_, ids_ = 0;
  UOp keys_, line_, kernel_;
};

constexpr int64_t kMostCountedRank = 1 << 16;  // elements of a line that stays in a cache

std::vector<Tensor> sorted_lines(const Tensor& keys, int64_t low, bool has_places) {
  const int64_t count = keys.shape().back(), lines = keys.numel() / count;
  const Sizes shape(keys.shape());
  std::vector<CustomOutput> outputs(2, {shape, dtypes::uint64});
  if (has_places) outputs.resize(4, {shape, dtypes::int32});
  const Tensor inputs[] = {keys};
  return custom_kernel(RadixSort(lines, count, low, has_places).kernel(), "radix_sort", outputs,
                       inputs, {});
}

// The key above the place: all are different, and in the order of keys.
Tensor words_of(const Tensor& key) {
  const Tensor place = places_along(key, key.shape().size() - 1).expand(key.shape());
  const Tensor word = key.cast(dtypes::uint64).lshift(int64_t(32));
  return word.bitwise_or(place.cast(dtypes::uint64));
}

Tensor places_of_words(const Tensor& words) {
  return words.cast(dtypes::uint32).cast(dtypes::int32);
}

Tensor first_of_last(const Tensor& x, int64_t count) {
  return x.at({Ellipsis{}, Slice{.stop = count}});
}

// So many that there are about as many blocks as elements in `first` of them.
int64_t elements_of_block(int64_t count, int64_t first) {
  const auto size = int64_t(std::sqrt(double(count) / double(first)));
  return std::max<int64_t>(size, 1);
}

constexpr int64_t kLeastBlock = 8;  // elements, for which selecting is worth it

}  // namespace

Tensor places_by_radix(const Tensor& key) {
  if (key.dtype().bits() == 64) return sorted_lines(key, 0, true)[2];
  return places_of_words(sorted_lines(words_of(key), 32, false)[0]);
}

bool is_selection(const Tensor& key, int64_t first) {
  return key.dtype().bits() == 32 && first > 0 &&
         elements_of_block(key.shape().back(), first) >= kLeastBlock;
}

Tensor first_places_by_radix(const Tensor& key, int64_t first) {
  const int64_t count = key.shape().back(), size = elements_of_block(count, first);
  const int64_t blocks = (count + size - 1) / size;
  std::vector<std::pair<int64_t, int64_t>> after(key.shape().size(), {0, 0});
  after.back().second = blocks * size - count;
  // What is added comes last: all bits of its word are set.
  const Tensor words = words_of(key).bitwise_not().pad(after, int64_t(0)).bitwise_not();
  Sizes shape(words.shape());
  shape.back() = blocks;
  shape.push_back(size);
  const Tensor in_blocks = words.reshape(shape);
  const Tensor least = in_blocks.min(std::vector<int64_t>{-1});
  const Tensor best = places_of_words(first_of_last(sorted_lines(least, 32, false)[0], first));
  const Tensor block = best.div(size, Rounding::kDown);
  const Tensor inside = Tensor::arange(int64_t(0), size, int64_t(1), dtypes::int32, key.device());
  Sizes chosen(best.shape());
  chosen.back() = first * size;
  const Tensor at = block.unsqueeze(-1).mul(size).add(inside).reshape(chosen).clamp(
      int64_t(0), blocks * size - 1);
  return places_of_words(first_of_last(sorted_lines(words.gather(-1, at), 0, false)[0], first));
}

bool is_counted_rank(const Tensor& key) {
  return key.dtype().bits() == 32 && key.shape().back() <= kMostCountedRank;
}

Tensor place_of_rank_by_counting(const Tensor& key, const Tensor& rank) {
  const int64_t count = key.shape().back(), lines = key.numel() / count;
  Sizes shape(key.shape());
  shape.back() = 1;
  const CustomOutput outputs[] = {{shape, dtypes::int32}};
  const Tensor inputs[] = {key, rank.cast(dtypes::int32).expand(shape)};
  return custom_kernel(RankSelection(lines, count).kernel(), "select_rank", outputs, inputs, {})[0];
}

}  // namespace weft
