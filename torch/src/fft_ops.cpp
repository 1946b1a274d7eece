// Fourier transforms: of short axes as products with their matrices, of longer ones as transforms
// of two factors of their length, of lengths without such factors as convolutions with a chirp.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <numbers>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "complex_kernels.h"
#include "convert.h"
#include "operators.h"
#include "storage.h"
#include "weft/dtype.h"
#include "weft/index.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

constexpr int64_t kMostElements = 256;  // of an axis that is one product

enum class Kind : uint8_t { kForward, kInverse, kFromReal, kToReal };

// Of n elements: rows are what goes in, columns what comes out; a complex one is two of them.
std::vector<double> numbers_of(Kind kind, int64_t n) {
  const int64_t half = n / 2 + 1;
  const bool from_real = kind == Kind::kFromReal, to_real = kind == Kind::kToReal;
  const int64_t ins = to_real ? half : n, outs = from_real ? half : n;
  const double sign = kind == Kind::kForward || from_real ? -1 : 1;
  std::vector<double> m;
  m.reserve(size_t(ins * outs * 4));
  for (int64_t j = 0; j < ins; j++) {
    for (int part = 0; part < (from_real ? 1 : 2); part++) {
      for (int64_t k = 0; k < outs; k++) {
        const double turn = 2 * std::numbers::pi * double(j * k % n) / double(n);
        double re = std::cos(turn), im = sign * std::sin(turn);
        if (to_real) {  // what is not there is the conjugate of what is
          const bool is_single = j == 0 || 2 * j == n;
          m.push_back((is_single ? 1 : 2) * (part == 0 ? re : is_single ? 0 : -im));
          continue;
        }
        if (part == 1) std::tie(re, im) = std::pair(-im, re);
        m.push_back(re);
        m.push_back(im);
      }
    }
  }
  return m;
}

// What is multiplied with is made once: `what` says which numbers they are.
weft::Tensor known(const char* what, int64_t n, double sign, DType dtype,
                   const std::function<std::pair<std::vector<double>, Sizes>()>& make) {
  constexpr size_t kMostKnown = 256;
  using Key = std::tuple<std::string_view, int64_t, bool, int64_t>;
  static std::mutex mutex;
  static auto* const kKnown = new std::map<Key, weft::Tensor>;
  const std::lock_guard lock(mutex);
  const Key key{what, n, sign < 0, int64_t(dtype.bits())};
  const auto found = kKnown->find(key);
  if (found != kKnown->end()) return found->second;
  if (kKnown->size() >= kMostKnown) kKnown->clear();
  const auto [m, shape] = make();
  const std::string device(weft_device().name());
  const std::vector<float> narrow(m.begin(), m.end());
  return kKnown
      ->emplace(key, dtype == dtypes::float64 ? weft::Tensor::from<double>(m, shape, device)
                                              : weft::Tensor::from<float>(narrow, shape, device))
      .first->second;
}

weft::Tensor matrix(Kind kind, int64_t n, DType dtype) {
  const char* const names[] = {"forward", "inverse", "from real", "to real"};
  return known(names[size_t(kind)], n, 1, dtype, [&] {
    std::vector<double> m = numbers_of(kind, n);
    const int64_t rows = kind == Kind::kFromReal ? n
                         : kind == Kind::kToReal ? (n / 2 + 1) * 2
                                                 : 2 * n;
    const Sizes shape{rows, int64_t(m.size()) / rows};
    return std::pair(std::move(m), shape);
  });
}

// One short axis of x, which has pairs on a last axis where it is complex.
weft::Tensor product_with_matrix(const weft::Tensor& x, Kind kind, int64_t axis, int64_t n) {
  const bool was_real = kind == Kind::kFromReal, is_real = kind == Kind::kToReal;
  const int64_t rank = x.ndim() - (was_real ? 0 : 1);
  const int64_t from[] = {axis}, to[] = {rank - 1};
  const weft::Tensor rows = x.movedim(Ints(from), Ints(to));
  Sizes flat(rows.shape());
  if (!was_real) {
    flat.erase(flat.size() - 1);
    flat.back() *= 2;
  }
  const weft::Tensor y = rows.reshape(flat).matmul(matrix(kind, n, x.dtype()));
  Sizes shape(y.shape());
  if (!is_real) {
    shape.back() /= 2;
    shape.push_back(2);
  }
  return y.reshape(shape).movedim(Ints(to), Ints(from));
}

// ---- pairs, whose axis to transform is the one before the last

weft::Tensor part(const weft::Tensor& x, int64_t which) { return x.at({Ellipsis{}, which}); }

weft::Tensor times(const weft::Tensor& x, const weft::Tensor& y) {
  const weft::Tensor a = part(x, 0), b = part(x, 1), c = part(y, 0), d = part(y, 1);
  return weft::Tensor::stack({a.mul(c).sub(b.mul(d)), a.mul(d).add(b.mul(c))}, -1);
}
weft::Tensor conjugate(const weft::Tensor& x) {
  return weft::Tensor::stack({part(x, 0), part(x, 1).neg()}, -1);
}

// exp(sign 2 pi i turns[k] / whole), as pairs; 0 for a turn of -1.
std::vector<double> roots(const std::vector<int64_t>& turns, int64_t whole, double sign) {
  std::vector<double> m;
  m.reserve(turns.size() * 2);
  for (const int64_t turn : turns) {
    const double angle = 2 * std::numbers::pi * double(turn) / double(whole);
    m.push_back(turn < 0 ? 0 : std::cos(angle));
    m.push_back(turn < 0 ? 0 : sign * std::sin(angle));
  }
  return m;
}

weft::Tensor transformed_rows(const weft::Tensor& x, Kind kind, int64_t n);

double sign_of(Kind kind) { return kind == Kind::kForward ? -1 : 1; }

// n = a b. X[p + a q] = sum_s w_n^(s p) w_b^(s q) sum_r x[r b + s] w_a^(r p)
weft::Tensor by_factors(const weft::Tensor& x, Kind kind, int64_t a, int64_t b) {
  const int64_t n = a * b;
  Sizes shape(x.shape()), split(x.shape());
  split[split.size() - 2] = a;
  split.insert(split.size() - 1, b);  // (..., r, s, 2)
  const double sign = sign_of(kind);
  const weft::Tensor twiddles = known("twiddles", n, sign, x.dtype(), [&] {  // a follows from n
    std::vector<int64_t> turns;
    for (int64_t s = 0; s < b; s++) {
      for (int64_t p = 0; p < a; p++) turns.push_back(s * p % n);
    }
    return std::pair(roots(turns, n, sign), Sizes{b, a, 2});
  });
  const weft::Tensor inner = transformed_rows(x.reshape(split).transpose(-3, -2), kind, a);
  const weft::Tensor outer =
      transformed_rows(times(inner, twiddles).transpose(-3, -2), kind, b);  // (..., p, q, 2)
  return outer.transpose(-3, -2).reshape(shape);
}

// X[k] = c[k] sum_j (x[j] c[j]) conj(c[k - j]) with c[j] = w_n^(j^2 / 2): a convolution, which
// transforms of any length of 2 n - 1 and more do.
weft::Tensor by_chirp(const weft::Tensor& x, Kind kind, int64_t n) {
  const auto m = int64_t(std::bit_ceil(uint64_t(2 * n - 1)));
  const double sign = sign_of(kind);
  const weft::Tensor chirp = known("chirp", n, sign, x.dtype(), [&] {
    std::vector<int64_t> turns;
    for (int64_t j = 0; j < n; j++) turns.push_back(j * j % (2 * n));
    return std::pair(roots(turns, 2 * n, sign), Sizes{n, 2});
  });
  const weft::Tensor back = known("chirp around", n, sign, x.dtype(), [&] {
    std::vector<int64_t> turns(static_cast<size_t>(m), -1);
    for (int64_t j = 0; j < n; j++) turns[size_t(j)] = turns[size_t((m - j) % m)] = j * j % (2 * n);
    return std::pair(roots(turns, 2 * n, -sign), Sizes{m, 2});
  });
  const weft::Tensor rows = times(x, chirp);
  std::vector<std::pair<int64_t, int64_t>> padding(size_t(x.ndim()), {0, 0});
  padding[padding.size() - 2] = {0, m - n};
  const weft::Tensor product = times(transformed_rows(rows.pad(padding), Kind::kForward, m),
                                     transformed_rows(back, Kind::kForward, m));
  const weft::Tensor sums = transformed_rows(product, Kind::kInverse, m)
                                .at({Ellipsis{}, Slice{.stop = n}, Slice{}})
                                .mul(1.0 / double(m));
  return times(sums, chirp);
}

// The largest factor of n that is one product, 1 where a prime is too large for that.
int64_t short_factor(int64_t n) {
  int64_t rest = n;
  for (int64_t p = 2; p <= kMostElements && rest > 1; p++) {
    while (rest % p == 0) rest /= p;
  }
  if (rest > 1) return 1;
  int64_t most = 1;
  for (int64_t f = 2; f <= kMostElements; f++) {
    if (n % f == 0) most = f;
  }
  return most;
}

weft::Tensor transformed_rows(const weft::Tensor& x, Kind kind, int64_t n) {
  if (n <= kMostElements) return product_with_matrix(x, kind, x.ndim() - 2, n);
  const int64_t a = short_factor(n);
  return a == 1 ? by_chirp(x, kind, n) : by_factors(x, kind, a, n / a);
}

// Half of a spectrum, and the conjugates of the elements that it leaves out.
weft::Tensor whole_spectrum(const weft::Tensor& half, int64_t n) {
  const weft::Tensor left_out =
      half.at({Ellipsis{}, Slice{.start = 1, .stop = (n + 1) / 2}, Slice{}});
  const int64_t axis[] = {-2};
  return weft::Tensor::cat({half, conjugate(left_out.flip(Ints(axis)))}, -2);
}

// One axis of x, which has pairs on a last axis where it is complex.
weft::Tensor transformed(const weft::Tensor& x, Kind kind, int64_t axis, int64_t n) {
  if (n <= kMostElements) return product_with_matrix(x, kind, axis, n);
  const bool was_real = kind == Kind::kFromReal, is_real = kind == Kind::kToReal;
  const int64_t last = x.ndim() - (was_real ? 1 : 2);
  const int64_t from[] = {axis}, to[] = {last};
  const weft::Tensor moved = x.movedim(Ints(from), Ints(to));
  const auto back = [&](const weft::Tensor& rows) { return rows.movedim(Ints(to), Ints(from)); };
  if (was_real) {
    const weft::Tensor pairs = weft::Tensor::stack({moved, moved.zeros_like()}, -1);
    return back(transformed_rows(pairs, Kind::kForward, n)
                    .at({Ellipsis{}, Slice{.stop = n / 2 + 1}, Slice{}}));
  }
  if (!is_real) return back(transformed_rows(moved, kind, n));
  return back(part(transformed_rows(whole_spectrum(moved, n), Kind::kInverse, n), 0));
}

double scale_of(int64_t normalization, double count) {
  return normalization == 0 ? 1.0 : normalization == 1 ? 1 / std::sqrt(count) : 1 / count;
}

// Strides as PyTorch's CPU gives them: axes that stayed, by their strides, before those that were
// transformed.
Sizes layout_of(at::IntArrayRef sizes, Ints from, const std::vector<int64_t>& dims) {
  const auto rank = int64_t(sizes.size());
  std::vector<int64_t> order;
  for (int64_t i = 0; i < rank; i++) {
    if (std::ranges::find(dims, i) == dims.end()) order.push_back(i);
  }
  std::ranges::sort(order, [&](int64_t a, int64_t b) { return from[size_t(a)] > from[size_t(b)]; });
  order.insert(order.end(), dims.begin(), dims.end());
  Sizes strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[size_t(order[i])] = stride;
    stride *= sizes[size_t(order[i])];
  }
  return strides;
}

// The axes of a transform, those with larger strides first; the last one stays the last where it
// is of another kind.
enum class Last : uint8_t { kSorted, kKept };
std::vector<int64_t> sorted_axes(const at::Tensor& self, at::IntArrayRef dim, Last last) {
  std::vector<int64_t> axes;
  for (const int64_t d : dim) axes.push_back(at::maybe_wrap_dim(d, self.dim()));
  std::sort(axes.begin(), axes.end() - (last == Last::kKept ? 1 : 0),
            [&](int64_t a, int64_t b) { return self.stride(a) > self.stride(b); });
  return axes;
}

// Scaled, in a tensor of this type.
at::Tensor result(const weft::Tensor& x, int64_t normalization, double count, c10::ScalarType type,
                  Ints from, const std::vector<int64_t>& dims) {
  const double scale = scale_of(normalization, count);
  const weft::Tensor value = scale == 1 ? x : x.mul(scale);
  Sizes sizes(value.shape());
  if (c10::isComplexType(type)) sizes.erase(sizes.size() - 1);
  const Sizes strides = layout_of(ints(sizes), from, dims);
  const at::Tensor out = empty_strided(ints(sizes), ints(strides), type);
  put(out, value);
  return out;
}

at::Tensor fft_c2c(const at::Tensor& self, at::IntArrayRef dim, int64_t normalization,
                   bool forward) {
  weft::Tensor x = handle(self);
  double count = 1;
  for (const int64_t d : dim) {
    const int64_t axis = at::maybe_wrap_dim(d, self.dim());
    x = transformed(x, forward ? Kind::kForward : Kind::kInverse, axis, self.size(axis));
    count *= double(self.size(axis));
  }
  return result(x, normalization, count, self.scalar_type(), ints(self.strides()),
                sorted_axes(self, dim, Last::kSorted));
}

at::Tensor fft_r2c(const at::Tensor& self, at::IntArrayRef dim, int64_t normalization,
                   bool onesided) {
  const c10::ScalarType type = c10::toComplexType(self.scalar_type());
  weft::Tensor x = handle(self);
  double count = 1;
  for (size_t i = dim.size(); i-- > 0;) {
    const int64_t axis = at::maybe_wrap_dim(dim[i], self.dim()), n = self.size(axis);
    if (i + 1 == dim.size() && onesided) {
      x = transformed(x, Kind::kFromReal, axis, n);
    } else {
      if (i + 1 == dim.size()) x = weft::Tensor::stack({x, x.zeros_like()}, -1);
      x = transformed(x, Kind::kForward, axis, n);
    }
    count *= double(n);
  }
  return result(x, normalization, count, type, ints(self.strides()),
                sorted_axes(self, dim, Last::kKept));
}

at::Tensor fft_c2r(const at::Tensor& self, at::IntArrayRef dim, int64_t normalization,
                   int64_t last_size) {
  weft::Tensor x = handle(self);
  double count = double(last_size);
  Sizes from(ints(self.strides()));
  if (dim.size() > 1) {
    const at::IntArrayRef others = dim.slice(0, dim.size() - 1);
    from = layout_of(self.sizes(), from, sorted_axes(self, others, Last::kSorted));
  }
  for (size_t i = 0; i + 1 < dim.size(); i++) {
    const int64_t axis = at::maybe_wrap_dim(dim[i], self.dim());
    x = transformed(x, Kind::kInverse, axis, self.size(axis));
    count *= double(self.size(axis));
  }
  const int64_t last = at::maybe_wrap_dim(dim.back(), self.dim());
  x = transformed(x, Kind::kToReal, last, last_size);
  return result(x, normalization, count, c10::toRealValueType(self.scalar_type()), from, {last});
}

// Elements of float32 or float64.
bool accepts_floats(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const auto arguments = torch::jit::last(stack, op.schema().arguments().size());
  const at::Tensor self = arguments[0].toTensor();
  const c10::ScalarType real = c10::toRealValueType(self.scalar_type());
  if (self.numel() == 0 || !self.device().is_privateuseone()) return false;
  if (real != c10::kFloat && real != c10::kDouble) return false;
  const std::vector<int64_t> dims = arguments[1].toIntVector();
  if (dims.empty()) return false;
  if (!arguments[3].isInt()) return true;
  const int64_t last = arguments[3].toInt();  // of fft_c2r
  return last > 0 && self.size(dims.back()) == last / 2 + 1;
}

at::Tensor& put_into(const at::Tensor& value, at::Tensor& out) {
  TORCH_CHECK(out.scalar_type() == value.scalar_type(), "Expected out tensor to have dtype ",
              value.scalar_type(), ", but got ", out.scalar_type(), " instead");
  at::native::resize_output(out, value.sizes());
  put(out, handle(value));
  return out;
}
at::Tensor& fft_c2c_out(const at::Tensor& self, at::IntArrayRef dim, int64_t normalization,
                        bool forward, at::Tensor& out) {
  return put_into(fft_c2c(self, dim, normalization, forward), out);
}
at::Tensor& fft_r2c_out(const at::Tensor& self, at::IntArrayRef dim, int64_t normalization,
                        bool onesided, at::Tensor& out) {
  return put_into(fft_r2c(self, dim, normalization, onesided), out);
}
at::Tensor& fft_c2r_out(const at::Tensor& self, at::IntArrayRef dim, int64_t normalization,
                        int64_t last_size, at::Tensor& out) {
  return put_into(fft_c2r(self, dim, normalization, last_size), out);
}

bool add_kernels() noexcept {
  add_complex_kernel<at::_ops::_fft_c2c, fft_c2c>(&accepts_floats);
  add_complex_kernel<at::_ops::_fft_c2c_out, fft_c2c_out>(&accepts_floats);
  add_complex_kernel<at::_ops::_fft_r2c, fft_r2c>(&accepts_floats);
  add_complex_kernel<at::_ops::_fft_r2c_out, fft_r2c_out>(&accepts_floats);
  add_complex_kernel<at::_ops::_fft_c2r, fft_c2r>(&accepts_floats);
  add_complex_kernel<at::_ops::_fft_c2r_out, fft_c2r_out>(&accepts_floats);
  return true;
}
const bool kAdded = add_kernels();

}  // namespace
}  // namespace weft::pytorch
