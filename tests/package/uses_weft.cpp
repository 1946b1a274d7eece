// The public headers, one by one and together, and a tensor that is written through a view.
#include <cstdio>

#include <weft/weft.h>

int main() {
  using weft::_;
  auto a = weft::arange(16).reshape({4, 4});
  a({1, _}) = 5;
  std::printf("%g\n", a.cast(weft::dtypes::float32).sum().item<float>());
}
