// Sums of products by formula, and other products.
#include "tensor/einsum.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "tensor/operand.h"
#include "tensor/promote.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {

Tensor sum_of_products(const char* what, const Tensor& a, const Tensor& b, const Axes& over,
                       std::optional<DType> dtype) {
  check_same_device(what, a, b);
  const DType type = dtype.value_or(promote(what, a.dtype(), b.dtype()));
  const ReducedDTypes types = reduced_dtypes(Op::ADD, type);
  const Tensor product = a.cast(types.accumulator).mul(b.cast(types.accumulator));
  if (!over || !over->empty()) return product.sum(over).cast(types.result);
  return product.cast(type);
}

namespace {

// An index of a formula: a letter, or an axis of an ellipsis (-1 is its last one).
using Label = int;
using Labels = std::vector<Label>;

bool has(std::span<const Label> labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

struct Term {
  Tensor x;
  Labels labels;  // of its axes
};

[[noreturn]] void refuse(std::string_view formula, std::string_view why) {
  throw ShapeError(fmt::format("[einsum] '{}': {}", formula, why));
}

// "ab...c" with an ellipsis of `rank - 3` axes; without a rank, of `rank` axes.
struct Parser {
  std::string_view formula;

  Labels parse(std::string_view term, size_t ellipsis) const {
    Labels labels;
    for (size_t i = 0; i < term.size(); i++) {
      if (std::isalpha(static_cast<unsigned char>(term[i])) != 0) {
        labels.push_back(term[i]);
      } else if (term.substr(i, 3) == "...") {
        for (size_t k = ellipsis; k-- > 0;) labels.push_back(-1 - int(k));
        i += 2;
      } else {
        refuse(formula, fmt::format("'{}' is no index", term[i]));
      }
    }
    return labels;
  }

  // The axes that the ellipsis of a term stands for.
  size_t ellipsis_of(std::string_view term, const Tensor& x) const {
    const size_t at = term.find("...");
    const size_t letters = size_t(std::ranges::count_if(
        term, [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }));
    const size_t rank = x.view().rank();
    const bool fits = at == std::string_view::npos ? letters == rank : letters <= rank;
    if (fits && (at == std::string_view::npos || term.find("...", at + 3) == at + 3 ||
                 term.find("...", at + 3) == std::string_view::npos)) {
      return rank - letters;
    }
    refuse(formula, fmt::format("'{}' does not name the {} axes of {}", term, rank,
                                text_of_shape(x.shape())));
  }
};

// Of an index that occurs twice, the diagonal.
Term without_repeats(Term term) {
  for (size_t i = 0; i < term.labels.size(); i++) {
    const auto twice =
        std::find(term.labels.begin() + ptrdiff_t(i) + 1, term.labels.end(), term.labels[i]);
    if (twice == term.labels.end()) continue;
    const size_t j = size_t(twice - term.labels.begin());
    if (term.x.shape()[i] != term.x.shape()[j]) {
      throw ShapeError(fmt::format("[einsum] axes {} and {} of {} have one index and two sizes", i,
                                   j, text_of_shape(term.x.shape())));
    }
    const Label label = term.labels[i];
    term.x = term.x.diagonal(0, int64_t(i), int64_t(j));
    term.labels.erase(twice);
    term.labels.erase(term.labels.begin() + ptrdiff_t(i));
    term.labels.push_back(label);
    i--;  // the diagonal went to the end
  }
  return term;
}

// x with its axes in the order of `labels`, and axes of size 1 for those that it does not have.
Tensor aligned(const Term& term, std::span<const Label> labels) {
  std::vector<int64_t> order;
  for (const Label label : labels) {
    const auto at = std::find(term.labels.begin(), term.labels.end(), label);
    if (at != term.labels.end()) order.push_back(at - term.labels.begin());
  }
  Tensor x = term.x.permute(order);
  for (size_t i = 0; i < labels.size(); i++) {
    if (!has(term.labels, labels[i])) x = x.unsqueeze(int64_t(i));
  }
  return x;
}

// Summed over the indices that `kept` does not have.
Term reduced(Term term, std::span<const Label> kept) {
  std::vector<int64_t> over;
  Labels left;
  for (size_t i = 0; i < term.labels.size(); i++) {
    if (has(kept, term.labels[i])) {
      left.push_back(term.labels[i]);
    } else {
      over.push_back(int64_t(i));
    }
  }
  if (over.empty()) return term;
  return {term.x.sum(over), std::move(left)};
}

Term multiplied(const Term& a, const Term& b, std::span<const Label> kept,
                std::optional<DType> dtype) {
  Labels all, result;
  for (const Labels* labels : {&a.labels, &b.labels}) {
    for (const Label label : *labels) {
      if (has(kept, label) && !has(result, label)) result.push_back(label);
    }
  }
  all = result;
  for (const Label label : a.labels) {
    if (!has(result, label)) all.push_back(label);  // b has it too: it would have gone before
  }
  std::vector<int64_t> over;
  for (size_t i = result.size(); i < all.size(); i++) over.push_back(int64_t(i));
  const Tensor x = aligned(a, all), y = aligned(b, all);
  broadcast_shapes("einsum", x.shape(), y.shape());
  return {sum_of_products("einsum", x, y, over, dtype), std::move(result)};
}

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t at = text.find(','); at != std::string_view::npos; at = text.find(',')) {
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  parts.push_back(text);
  return parts;
}

// Without "->": the ellipsis, then indices that occur once, in alphabetical order.
Labels implied_result(Labels seen, size_t ellipsis) {
  Labels result;
  for (size_t k = ellipsis; k-- > 0;) result.push_back(-1 - int(k));
  std::sort(seen.begin(), seen.end());
  for (const Label label : seen) {
    if (label > 0 && std::ranges::count(seen, label) == 1) result.push_back(label);
  }
  return result;
}

void check_result(std::string_view formula, const Labels& result, std::span<const Term> terms) {
  for (const Label label : result) {
    if (std::ranges::count(result, label) > 1) refuse(formula, "the result has an index twice");
    const bool is_known =
        std::ranges::any_of(terms, [&](const Term& term) { return has(term.labels, label); });
    if (!is_known) refuse(formula, fmt::format("no operand has index '{}'", char(label)));
  }
}

}  // namespace

Tensor Tensor::einsum(std::string_view formula, std::span<const Tensor> operands,
                      std::optional<DType> dtype) {
  std::string text;
  std::ranges::copy_if(formula, std::back_inserter(text), [](char c) { return c != ' '; });
  const size_t arrow = text.find("->");
  const std::vector<std::string_view> parts =
      split_at_commas(std::string_view(text).substr(0, arrow));
  if (parts.size() != operands.size()) {
    refuse(formula, fmt::format("{} terms for {} tensors", parts.size(), operands.size()));
  }
  const Parser parser{formula};
  std::vector<Term> terms;
  Labels seen;
  size_t ellipsis = 0;
  for (size_t i = 0; i < parts.size(); i++) {
    const size_t own = parser.ellipsis_of(parts[i], operands[i]);
    ellipsis = std::max(ellipsis, own);
    Labels labels = parser.parse(parts[i], own);
    seen.insert(seen.end(), labels.begin(), labels.end());
    terms.push_back(without_repeats({operands[i], std::move(labels)}));
  }
  const Labels result = arrow == std::string::npos
                            ? implied_result(std::move(seen), ellipsis)
                            : parser.parse(std::string_view(text).substr(arrow + 2), ellipsis);
  check_result(formula, result, terms);
  const auto kept_after = [&](size_t i) {  // by operands from i on, and by the result
    Labels kept = result;
    for (; i < terms.size(); i++) {
      kept.insert(kept.end(), terms[i].labels.begin(), terms[i].labels.end());
    }
    return kept;
  };
  Term product = reduced(terms[0], kept_after(1));
  for (size_t i = 1; i < terms.size(); i++) {
    const Labels kept = kept_after(i + 1);
    Labels shared = kept;
    shared.insert(shared.end(), product.labels.begin(), product.labels.end());
    product = multiplied(product, reduced(terms[i], shared), kept, dtype);
  }
  const Tensor value = aligned(product, result);
  if (dtype) return value.cast(*dtype);
  return value.shares_memory_with(operands[0]) && operands.size() > 1 ? value.clone() : value;
}

Tensor Tensor::linear(const Tensor& weight, const std::optional<Tensor>& bias,
                      std::optional<DType> dtype) const {
  if (dtype) {
    const std::optional<Tensor> cast_bias = bias ? bias->cast(*dtype) : bias;
    return cast(*dtype).linear(weight.cast(*dtype), cast_bias);
  }
  const Tensor product = weight.ndim() == 1 ? mul(weight) : matmul(weight);
  return bias ? product.add(*bias) : product;
}

}  // namespace weft
