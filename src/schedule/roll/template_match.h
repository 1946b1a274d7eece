// Steps of a chain that are equal up to constants and to the value of the step before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "schedule/roll/progression.h"

namespace weft {

// A write and its value, or just a value.
struct Step {
  UOp target;  // of a write: a view of the memory; else null
  UOp value;
};

// What steps have in common. Made from two of them; further ones are added as long as they match.
class StepTemplate {
 public:
  // Empty when the two have nothing in common that a loop could use.
  static std::optional<StepTemplate> make(const Step& first, const Step& second);

  // Whether `next`, which follows the last one added, is one more; adds it if so.
  bool add(const Step& next);

  size_t steps() const { return steps_; }
  // What the first step uses in place of the value of the one before it; null when values do not
  // build on each other.
  UOp initial() const { return initial_; }

  // Offsets grow by the same amount from every step to the next.
  bool is_regular() const;

  // The step at place `loop`, with `carried` in place of the value of the one before.
  Step body(UOp loop, UOp carried, const std::string& device, Tables& tables) const;

 private:
  // What a source of a node of the second step is in all of them.
  enum class Role : uint8_t { kSame, kConstant, kCarried, kInner };
  struct Edge {
    Role role = Role::kSame;
    uint32_t sequence = 0;  // of a constant
  };
  // The pattern's nodes that differ from step to step, the second step's, by their place here.
  struct Inner {
    UOp node;
    std::vector<Edge> edges;
    bool is_carrying = false;  // depends on the value of the step before
  };

  explicit StepTemplate(const Step& second) : pattern_(second) {}
  bool compare(UOp first, UOp second, Edge& root);
  bool classify(UOp first, UOp second, Edge& edge);
  bool follow(const Edge& edge, UOp pattern, UOp node);
  bool is_usable();
  UOp source(const Edge& edge, UOp pattern, const std::vector<UOp>& built,
             const std::vector<UOp>& constants, UOp carried) const;
  UOp rebuilt(const Inner& inner, std::vector<UOp> srcs) const;

  static constexpr size_t kMostInner = 64;

  Step pattern_;
  Edge target_, value_;
  std::vector<Inner> inner_;
  std::unordered_map<UOp, uint32_t> place_;  // pattern node -> in inner_
  std::vector<UOp> matched_;                 // of each inner node: the node of the step compared
  std::vector<std::vector<uint64_t>> sequences_;
  std::vector<DType> types_;
  std::vector<uint64_t> found_;  // of each sequence: its next constant
  std::vector<std::pair<UOp, UOp>> todo_;
  UOp first_value_, last_value_, initial_;
  size_t steps_ = 2;
  bool is_in_value_ = false;
};

}  // namespace weft
