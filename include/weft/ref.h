// A pointer that owns a share of what it points to. T has retain(T*) and release(T*) beside it,
// which count its owners and are safe to call from any thread.
#pragma once

#include <cstddef>
#include <utility>

namespace weft {

template <class T>
class Ref {
 public:
  constexpr Ref() = default;
  constexpr Ref(std::nullptr_t) {}  // NOLINT: none
  // A further owner.
  explicit Ref(T* pointer) noexcept : pointer_(pointer) {
    if (pointer_ != nullptr) retain(pointer_);
  }
  Ref(const Ref& other) noexcept : Ref(other.pointer_) {}
  Ref(Ref&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(pointer_, other.pointer_);
    return *this;
  }
  ~Ref() {
    if (pointer_ != nullptr) release(pointer_);
  }

  // Takes over a share that is already counted, and gives it up again.
  static Ref adopt(T* pointer) noexcept {
    Ref ref;
    ref.pointer_ = pointer;
    return ref;
  }
  T* detach() noexcept { return std::exchange(pointer_, nullptr); }

  T* get() const { return pointer_; }
  T* operator->() const { return pointer_; }
  T& operator*() const { return *pointer_; }
  explicit operator bool() const { return pointer_ != nullptr; }
  bool operator==(const Ref&) const = default;

 private:
  T* pointer_ = nullptr;
};

}  // namespace weft
