// Decompositions of matrices, as graphs whose size grows with the sides of the matrix alone.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/device.h"
#include "tensor/operand.h"
#include "tensor/positions.h"
#include "value/number_watch.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

Tensor as_matrix(const char* what, const Tensor& x) {
  if (x.ndim() < 2) {
    throw ShapeError(
        fmt::format("[{}] a matrix is needed, not {}", what, text_of_shape(x.shape())));
  }
  assume_exact(x.shape());
  return x.dtype() == dtypes::float64 ? x : x.cast(dtypes::float32);
}

int64_t rows_of(const Tensor& x) { return x.shape()[size_t(x.ndim()) - 2]; }
int64_t columns_of(const Tensor& x) { return x.shape()[size_t(x.ndim()) - 1]; }

// The identity of this side, for every matrix of `x`.
Tensor identities(const Tensor& x, int64_t side) {
  Sizes shape(x.shape());
  shape[shape.size() - 2] = shape[shape.size() - 1] = side;
  return Tensor::eye(side, {}, x.dtype(), x.device()).expand(shape);
}

// Columns begin to end - 1.
Tensor columns(const Tensor& x, int64_t begin, int64_t end) {
  return x.at({Ellipsis{}, Slice{.start = begin, .stop = end}});
}
Tensor rows(const Tensor& x, int64_t begin, int64_t end) {
  return x.at({Ellipsis{}, Slice{.start = begin, .stop = end}, Slice{}});
}

// tau and v, (..., m, 1), such that (1 - tau v v^T) x is -sign(x_i) |x from i on| at i and 0 below:
// x is column i, v 0 above i and 1 at i.
struct Reflection {
  Tensor v, tau;
};

// i is a number in memory and not in the graph: the kernels of all columns are the same ones.
Reflection reflection(const Tensor& matrix, const Tensor& i) {
  const std::vector<int64_t> down{-2}, across{-1};
  Device& device = device_of(matrix);
  const Tensor row = positions(device, rows_of(matrix), 0, 2);
  const Tensor column = positions(device, columns_of(matrix), 1, 2);
  const Tensor is_it =
      column.binary(Op::CMPEQ, i).binary(Op::AND, row.binary(Op::CMPLT, i).unary(Op::NOT));
  const Tensor below = Tensor::where(is_it, matrix, kNothing).sum(across, true);
  const Tensor is_pivot = row.binary(Op::CMPEQ, i);
  const Tensor pivot = Tensor::where(is_pivot, below, kNothing).sum(down, true);
  // Scaled, so that squares neither overflow nor vanish.
  const Tensor largest = below.binary(Op::MAX, below.neg()).max(down, true);
  const Tensor scale = Tensor::where(largest.binary(Op::CMPEQ, 0.0), 1.0, largest).detach();
  const Tensor unit = below / scale;
  const Tensor squares = (unit * unit).sum(down, true);
  const Tensor is_zero = squares.binary(Op::CMPEQ, 0.0);
  const Tensor norm = Tensor::where(is_zero, 1.0, squares).unary(Op::SQRT) * scale;
  const Tensor signed_norm = Tensor::where(pivot.binary(Op::CMPLT, 0.0), norm.neg(), norm);
  const Tensor first = Tensor::where(is_zero, 1.0, pivot + signed_norm);
  const Tensor tau = Tensor::where(is_zero, 0.0, first / signed_norm);
  const Tensor v = Tensor::where(is_pivot, 1.0, below / first);
  return {v, tau};
}

}  // namespace

// x = H_0 H_1 ... R, each H a reflection that clears a column below the diagonal.
std::pair<Tensor, Tensor> Tensor::qr(QrMode mode) const {
  Tensor r = as_matrix("qr", *this);
  const int64_t m = rows_of(r), n = columns_of(r), k = std::min(m, n);
  Tensor q = identities(r, m);
  for (int64_t i = 0; i < std::min(m - 1, n); i++) {
    const int32_t number[] = {int32_t(i)};
    const Reflection h = reflection(r, from(std::span<const int32_t>(number), {}, device()));
    const Tensor along = h.v.transpose(-2, -1);
    r = r - h.tau * h.v.matmul(along.matmul(r));
    q = q - h.tau * q.matmul(h.v).matmul(along);
  }
  r = r.triu();  // what was cleared is 0 exactly
  if (mode == QrMode::kComplete) return {q, r};
  return {columns(q, 0, k), rows(r, 0, k)};
}

namespace {

// One-sided Jacobi: columns of `x` (m, 2h) in pairs (i, h + i), each pair rotated until orthogonal.
struct Paired {
  Tensor left, right;
};

// Columns of (x; v) with h pairs; the products are of the first `m` rows, those of x.
Paired rotated(const Paired& p, int64_t m) {
  const std::vector<int64_t> down{-2};
  const Tensor a = rows(p.left, 0, m), b = rows(p.right, 0, m);
  const Tensor alpha = (a * a).sum(down, true), beta = (b * b).sum(down, true);
  const Tensor gamma = (a * b).sum(down, true);
  // t = tan of the angle: the smaller root of t^2 + 2 zeta t - 1, zeta = (beta - alpha) / 2 gamma
  const double tiny = p.left.dtype() == dtypes::float64 ? 0x1p-52 : 0x1p-23;
  const Tensor product = (alpha * beta).unary(Op::SQRT) * tiny;
  const Tensor size = gamma.binary(Op::MAX, gamma.neg());
  const Tensor is_done = product.binary(Op::CMPLT, size).unary(Op::NOT);
  const Tensor zeta = (beta - alpha) / (Tensor::where(is_done, 1.0, gamma) * 2.0);
  const Tensor steep = zeta.binary(Op::MAX, zeta.neg());
  const Tensor root = (steep * steep + 1.0).unary(Op::SQRT) + steep;
  const Tensor angle = Tensor::where(zeta.binary(Op::CMPLT, 0.0), -1.0, root.ones_like()) / root;
  const Tensor t = Tensor::where(is_done, 0.0, angle);
  const Tensor c = (t * t + 1.0).unary(Op::SQRT).unary(Op::RECIP);
  const Tensor s = t * c;
  return {c * p.left - s * p.right, s * p.left + c * p.right};
}

// The next round of a tournament: column 0 of the left stays, all others move on by one place.
Paired next_round(const Paired& p) {
  const int64_t h = columns_of(p.left);
  if (h == 1) return p;
  return {
      Tensor::cat({columns(p.left, 0, 1), columns(p.right, 0, 1), columns(p.left, 1, h - 1)}, -1),
      Tensor::cat({columns(p.right, 1, h), columns(p.left, h - 1, h)}, -1)};
}

// Rounds that meet every pair once are a sweep; convergence is quadratic.
int64_t sweeps(int64_t columns, DType dtype) {
  const int64_t more = int64_t(std::bit_width(uint64_t(columns)));
  return (dtype == dtypes::float64 ? 6 : 4) + more;
}

// 1 in column j of row i where element i is the j-th largest: (..., n, n).
Tensor descending_order(const Tensor& s) {
  const int64_t n = s.shape().back();
  Device& device = device_of(s);
  const Tensor mine = s.unsqueeze(-1), other = s.unsqueeze(-2);
  const Tensor row = positions(device, n, 0, 2), column = positions(device, n, 1, 2);
  const Tensor is_tied =
      mine.binary(Op::CMPEQ, other).binary(Op::AND, column.binary(Op::CMPLT, row));
  const Tensor comes_first = mine.binary(Op::CMPLT, other).binary(Op::OR, is_tied);
  const Tensor rank = comes_first.cast(dtypes::int32).sum(std::vector<int64_t>{-1}, true);
  return rank.binary(Op::CMPEQ, column).cast(s.dtype());
}

// x (n, n) as (x v) v^T, with v orthogonal and the columns of x v orthogonal to each other.
std::pair<Tensor, Tensor> orthogonal_columns(const Tensor& x) {
  const int64_t n = columns_of(x), even = n + n % 2;
  Tensor both = Tensor::cat({x, identities(x, n)}, -2);
  if (even > n) {
    std::vector<std::pair<int64_t, int64_t>> around(size_t(x.ndim()));
    around.back() = {0, 1};
    both = both.pad(around, kNothing);  // a column of zeros, which nothing rotates
  }
  Paired pairs{columns(both, 0, even / 2), columns(both, even / 2, even)};
  const int64_t rounds = sweeps(n, x.dtype()) * (even - 1);
  for (int64_t i = 0; i < rounds; i++) pairs = next_round(rotated(pairs, n));
  both = columns(Tensor::cat({pairs.left, pairs.right}, -1), 0, n);
  return {rows(both, 0, n), rows(both, n, 2 * n)};
}

// The same with another n by n matrix in the upper left corner of the identity.
Tensor in_corner(const Tensor& x, int64_t side) {
  const int64_t n = columns_of(x);
  if (n == side) return x;
  std::vector<std::pair<int64_t, int64_t>> around(size_t(x.ndim()));
  around[around.size() - 1] = around[around.size() - 2] = {0, side - n};
  const Tensor place = positions(device_of(x), side, 0, 2);
  const Tensor is_outside = place.binary(Op::CMPLT, n).unary(Op::NOT);
  const Tensor rest = identities(x, side);
  return Tensor::where(is_outside, rest, x.pad(around, kNothing));
}

}  // namespace

// x = Q R; R = U' S V^T by rotations of its columns; U = Q U'. A second QR makes U' of the columns
// of U' S, also of those that are 0.
Tensor::Svd Tensor::svd(bool full_matrices) const {
  const Tensor x = as_matrix("svd", *this);
  const int64_t m = rows_of(x), n = columns_of(x);
  if (m < n) {
    const Svd t = x.transpose(-2, -1).svd(full_matrices);
    return {t.vt.transpose(-2, -1), t.s, t.u.transpose(-2, -1)};
  }
  const auto [q, r] = x.qr(full_matrices ? QrMode::kComplete : QrMode::kReduced);
  if (n == 0) return {q, x.sum(std::vector<int64_t>{-2}), identities(x, 0)};
  const auto [us, v] = orthogonal_columns(rows(r, 0, n));
  const Tensor squares = (us * us).sum(std::vector<int64_t>{-2});
  const Tensor order = descending_order(squares);
  const auto [basis, diagonal] = us.matmul(order).qr();
  const Tensor signed_s = diagonal.diagonal(0, -2, -1);
  const Tensor sign = where(signed_s.binary(Op::CMPLT, 0.0), -1.0, signed_s.ones_like());
  const Tensor u = q.matmul(in_corner(basis * sign.unsqueeze(-2), columns_of(q)));
  return {u, signed_s * sign, v.matmul(order).transpose(-2, -1)};
}

}  // namespace weft
