// How often each operator was done by weft, and by PyTorch's CPU kernels instead.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

namespace weft::pytorch {

// One per operator that weft has, made once and never freed.
class OperatorCount {
 public:
  explicit OperatorCount(std::string name);
  void add() { count_.fetch_add(1, std::memory_order_relaxed); }

 private:
  friend std::map<std::string, int64_t> native_counts();
  friend void reset_counts();
  std::string name_;
  std::atomic<int64_t> count_ = 0;
  OperatorCount* next_;
};

std::map<std::string, int64_t> native_counts();
std::map<std::string, int64_t> fallback_counts();
void count_fallback(const std::string& name);
void reset_counts();

}  // namespace weft::pytorch
