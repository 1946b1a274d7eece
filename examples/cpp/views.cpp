// Views, writes and lazy reads: a program is right in whatever order values are asked for.
#include <cstdio>

#include "weft/weft.h"

using weft::_;
using weft::Tensor;

int main() {
  Tensor a = weft::arange(16).reshape({4, 4});
  const Tensor before = a.sum();  // of what a holds now
  const Tensor column = a.at({_, 0});
  a({1, _}) = 5;
  a({_, 3}) += 100;
  a({Tensor::from({0, 2}), 1}) = -1;  // rows 0 and 2 of column 1
  a({2}) = a({3});
  std::printf("%g, then %g\n", before.item<double>(), a.sum().item<double>());
  std::printf("column 0:");
  for (const float x : column.data<float>()) std::printf(" %g", double(x));
  std::printf("\nkernels of a loop of 1,000 writes: ");
  Tensor b = weft::empty({1000});
  for (int i = 0; i < 1000; i++) b({i}) = i;
  std::printf("%zu\n", b.kernel_count());
  return b.sum().item<double>() == 499500 ? 0 : 1;
}
