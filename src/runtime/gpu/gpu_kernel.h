// What the devices with workgroups share: a kernel as source text, and the sizes of its launch.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/box.h"
#include "ir/dtype.h"
#include "ir/node.h"

namespace weft {

// By dimension: 0 is x, the one that runs fastest.
struct LaunchSize {
  std::array<int64_t, 3> groups{1, 1, 1};   // a 0: there is nothing to do
  std::array<int64_t, 3> threads{1, 1, 1};  // of one group
};

// How the function of a program is called.
class Launch {
 public:
  struct Variable {
    uint32_t place;  // among the VARIABLEs of the kernel, in order of their names
    DType type;      // that the function takes
  };

  // `linear` was made from the kernel `ast`.
  Launch(UOp linear, UOp ast);

  // An array in one of globals() that the function copies boxes of.
  struct BoxedArray {
    uint32_t place;  // among them
    DType type;
    Box box;
  };

  LaunchSize size(std::span<const int64_t> variables) const;
  std::array<int64_t, 3> threads() const { return constant_.threads; }  // of one group
  // The arguments of the kernel whose pointers the function takes, in order: a kernel need not read
  // all that it is given.
  std::span<const uint32_t> globals() const { return globals_; }
  // Those that the function takes after its pointers, in order.
  std::span<const Variable> variables() const { return variables_; }
  // Those that it takes after them, in order.
  std::span<const BoxedArray> boxed() const { return boxed_; }
  // What workgroups share, with each DEFINE_LOCAL at a multiple of 64.
  size_t local_bytes() const { return local_bytes_; }

 private:
  struct Formula {
    size_t dimension;
    Graph size;
  };

  LaunchSize constant_;
  std::vector<Formula> formulas_;  // of dimensions that are not constant
  std::vector<std::string> names_;
  std::vector<uint32_t> globals_;
  std::vector<Variable> variables_;
  std::vector<BoxedArray> boxed_;
  size_t local_bytes_ = 0;
  mutable std::mutex mutex_;  // of the formulas' arenas
};

using RenderFunction = std::string(UOp linear, std::string_view name);

struct GpuKernel {
  std::string source;
  Launch launch;
};

// Lowers and renders; shows what WEFT_DEBUG asks for. No opts: those that choose_opts chooses, and
// nothing is shown of others, which are candidates of a search.
GpuKernel make_gpu_kernel(UOp ast, std::string_view name, const Target& target,
                          const std::function<RenderFunction>& render,
                          const OptList* opts = nullptr);
// Of a program that is lowered already.
GpuKernel make_gpu_kernel_of_list(UOp linear, std::string_view name,
                                  const std::function<RenderFunction>& render);

}  // namespace weft
