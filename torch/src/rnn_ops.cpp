// Cells of recurrent networks: what is done after the products, in one step, and its gradient.
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>
#include <torch/library.h>

#include "formulas.h"
#include "native.h"
#include "operators.h"
#include "storage.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

using MaybeTensor = std::optional<at::Tensor>;

weft::Tensor with_bias(const at::Tensor& gates, const MaybeTensor& bias) {
  const weft::Tensor x = wide_operand(gates);
  return is_given(bias) ? x.add(wide_operand(*bias)) : x;
}

weft::Tensor one_less(const weft::Tensor& x) { return 1.0 - x; }

// Gates of (batch, `count` times the size of a state) and what stands beside them.
void check_cell(const at::Tensor& gates, int64_t count, const at::Tensor& state) {
  TORCH_CHECK(gates.dim() == 2 && gates.size(1) % count == 0, "expected gates of a batch of ",
              count, " parts, got ", gates.sizes());
  check_sizes("the state", state, {gates.size(0), gates.size(1) / count});
}
void check_gates(const at::Tensor& input_gates, const at::Tensor& hidden_gates, int64_t count,
                 const at::Tensor& state, const MaybeTensor& input_bias,
                 const MaybeTensor& hidden_bias) {
  check_cell(input_gates, count, state);
  check_sizes("the hidden gates", hidden_gates, input_gates.sizes());
  for (const MaybeTensor* bias : {&input_bias, &hidden_bias}) {
    if (is_given(*bias)) check_sizes("a bias", **bias, {input_gates.size(1)});
  }
}

// i, f, o = sigmoid, g = tanh; c' = f c + i g; h' = o tanh(c'). The workspace is i, f, g and o.
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor& input_gates,
                                                         const at::Tensor& hidden_gates,
                                                         const at::Tensor& cx,
                                                         const MaybeTensor& input_bias,
                                                         const MaybeTensor& hidden_bias) {
  check_gates(input_gates, hidden_gates, 4, cx, input_bias, hidden_bias);
  const auto type = cx.scalar_type();
  const std::vector<weft::Tensor> gates =
      with_bias(input_gates, input_bias).add(with_bias(hidden_gates, hidden_bias)).chunk(4, 1);
  const weft::Tensor i = gates[0].sigmoid(), f = gates[1].sigmoid(), g = gates[2].tanh(),
                     o = gates[3].sigmoid();
  at::Tensor cy = give(f.mul(wide_operand(cx)).add(i.mul(g)), type);
  at::Tensor hy = give(o.mul(wide_operand(cy).tanh()), type);
  return {std::move(hy), std::move(cy), give(weft::Tensor::cat({i, f, g, o}, 1), type)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(
    const MaybeTensor& by_hy, const MaybeTensor& by_cy, const at::Tensor& cx, const at::Tensor& cy,
    const at::Tensor& workspace, bool has_bias) {
  if (!is_given(by_hy) && !is_given(by_cy)) return {};
  check_cell(workspace, 4, cx);
  check_sizes("the new state", cy, cx.sizes());
  for (const MaybeTensor* by : {&by_hy, &by_cy}) {
    if (is_given(*by)) check_sizes("a gradient", **by, cx.sizes());
  }
  const auto type = workspace.scalar_type();
  const std::vector<weft::Tensor> gates = wide_operand(workspace).chunk(4, 1);
  const weft::Tensor &i = gates[0], &f = gates[1], &g = gates[2], &o = gates[3];
  const weft::Tensor t = wide_operand(cy).tanh();
  weft::Tensor by_c = is_given(by_cy) ? wide_operand(*by_cy) : t.zeros_like();
  weft::Tensor by_o = t.zeros_like();
  if (is_given(by_hy)) {
    const weft::Tensor by_h = wide_operand(*by_hy);
    by_c = by_c.add(by_h.mul(o).mul(one_less(t.square())));
    by_o = by_h.mul(t).mul(o).mul(one_less(o));
  }
  const weft::Tensor by_gates = weft::Tensor::cat(
      {by_c.mul(g).mul(i).mul(one_less(i)), by_c.mul(wide_operand(cx)).mul(f).mul(one_less(f)),
       by_c.mul(i).mul(one_less(g.square())), by_o},
      1);
  at::Tensor by_bias;
  if (has_bias) by_bias = give(by_gates.sum(std::vector<int64_t>{0}), type);
  return {give(by_gates, type), give(by_c.mul(f), type), std::move(by_bias)};
}

// r, z = sigmoid; n = tanh(in + r hn); h' = n + z (h - n). The workspace is r, z, n, h and hn.
std::tuple<at::Tensor, at::Tensor> gru_cell(const at::Tensor& input_gates,
                                            const at::Tensor& hidden_gates, const at::Tensor& hx,
                                            const MaybeTensor& input_bias,
                                            const MaybeTensor& hidden_bias) {
  check_gates(input_gates, hidden_gates, 3, hx, input_bias, hidden_bias);
  const auto type = hx.scalar_type();
  const auto of_input = with_bias(input_gates, input_bias).chunk(3, 1);
  const auto of_hidden = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
  const weft::Tensor h = wide_operand(hx);
  const weft::Tensor r = of_input[0].add(of_hidden[0]).sigmoid();
  const weft::Tensor z = of_input[1].add(of_hidden[1]).sigmoid();
  const weft::Tensor n = of_input[2].add(r.mul(of_hidden[2])).tanh();
  return {give(h.sub(n).mul(z).add(n), type),
          give(weft::Tensor::cat({r, z, n, h, of_hidden[2]}, 1), type)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> gru_cell_backward(
    const at::Tensor& gradient, const at::Tensor& workspace, bool has_bias) {
  check_cell(workspace, 5, gradient);
  const auto type = workspace.scalar_type();
  const std::vector<weft::Tensor> parts = wide_operand(workspace).chunk(5, 1);
  const weft::Tensor &r = parts[0], &z = parts[1], &n = parts[2], &h = parts[3], &hn = parts[4];
  const weft::Tensor g = wide_operand(gradient);
  const weft::Tensor by_n = g.mul(one_less(z)).mul(one_less(n.square()));
  const weft::Tensor by_z = g.mul(h.sub(n)).mul(z).mul(one_less(z));
  const weft::Tensor by_r = by_n.mul(hn).mul(r).mul(one_less(r));
  const weft::Tensor by_input = weft::Tensor::cat({by_r, by_z, by_n}, 1);
  const weft::Tensor by_hidden = weft::Tensor::cat({by_r, by_z, by_n.mul(r)}, 1);
  at::Tensor by_input_bias, by_hidden_bias;
  if (has_bias) {
    by_input_bias = give(by_input.sum(std::vector<int64_t>{0}), type);
    by_hidden_bias = give(by_hidden.sum(std::vector<int64_t>{0}), type);
  }
  return {give(by_input, type), give(by_hidden, type), give(g.mul(z), type),
          std::move(by_input_bias), std::move(by_hidden_bias)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::_thnn_fused_lstm_cell, lstm_cell>(m);
  native<at::_ops::_thnn_fused_lstm_cell_backward_impl, lstm_cell_backward>(m);
  native<at::_ops::_thnn_fused_gru_cell, gru_cell>(m);
  native<at::_ops::_thnn_fused_gru_cell_backward, gru_cell_backward>(m);
}

}  // namespace
}  // namespace weft::pytorch
