// A vector of plain values that needs no memory of its own while it is short.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>

namespace weft {

template <class T, uint32_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  using value_type = T;

  SmallVector() = default;
  explicit SmallVector(size_t size, T value = T()) { resize(size, value); }
  SmallVector(std::initializer_list<T> list) { assign(list.begin(), list.size()); }
  SmallVector(std::span<const T> list) { assign(list.data(), list.size()); }  // NOLINT: the same
  SmallVector(const SmallVector& other) { assign(other.data(), other.size()); }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) assign(other.data(), other.size());
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      free_heap();
      take(other);
    }
    return *this;
  }
  ~SmallVector() { free_heap(); }

  T* data() { return is_inline() ? inline_ : heap_; }
  const T* data() const { return is_inline() ? inline_ : heap_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& front() { return *begin(); }
  T& back() { return end()[-1]; }
  const T& front() const { return *begin(); }
  const T& back() const { return end()[-1]; }

  void clear() { size_ = 0; }
  void push_back(T value) {
    if (size_ == capacity_) grow(size_ + 1);
    data()[size_++] = value;
  }
  void pop_back() { size_--; }
  void resize(size_t size, T value = T()) {
    if (size > capacity_) grow(size);
    for (size_t i = size_; i < size; i++) data()[i] = value;
    size_ = uint32_t(size);
  }
  void append(std::span<const T> more) {
    for (const T& value : more) push_back(value);
  }
  void insert(size_t at, T value) {
    push_back(value);
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(size_t at) {
    std::copy(begin() + at + 1, end(), begin() + at);
    size_--;
  }

  bool operator==(const SmallVector& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  bool is_inline() const { return capacity_ == N; }
  void assign(const T* from, size_t count) {
    if (count > capacity_) {
      size_ = 0;
      grow(count);
    }
    std::copy(from, from + count, data());
    size_ = uint32_t(count);
  }
  void take(SmallVector& other) noexcept {
    size_ = other.size_;
    capacity_ = other.capacity_;
    if (is_inline()) {
      std::memcpy(inline_, other.inline_, sizeof(T) * N);
    } else {
      heap_ = other.heap_;
    }
    other.size_ = 0;
    other.capacity_ = N;
  }
  void grow(size_t least) {
    const size_t capacity = std::max<size_t>(least, size_t(2) * capacity_);
    T* memory = std::allocator<T>().allocate(capacity);
    std::copy(begin(), end(), memory);
    free_heap();
    heap_ = memory;
    capacity_ = uint32_t(capacity);
  }
  void free_heap() {
    if (!is_inline()) std::allocator<T>().deallocate(heap_, capacity_);
    capacity_ = N;
  }

  uint32_t size_ = 0;
  uint32_t capacity_ = N;
  union {
    T inline_[N];  // NOLINT(readability-identifier-naming): both are private
    T* heap_;      // NOLINT(readability-identifier-naming)
  };
};

// Sizes, strides, axes: one number per axis.
using Sizes = SmallVector<int64_t, 6>;

}  // namespace weft
