"""Sparse tensors of device weft: their parts are on the device, and PyTorch's CPU kernels compute with them, counted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import weft.torch  # noqa: F401

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")


def matrix(device: str) -> torch.Tensor:
    indices, values = torch.tensor([[0, 1, 1, 0], [2, 0, 2, 2]]), torch.tensor([3.0, 4.0, 5.0, 1.0])
    return torch.sparse_coo_tensor(indices.to(device), values.to(device), (2, 3))


DENSE = torch.arange(6.0).reshape(3, 2)
PROGRAMS: dict[str, Callable[[str], torch.Tensor]] = {
    "dense": lambda d: matrix(d).to_dense(),
    "coalesce": lambda d: matrix(d).coalesce(),
    "indices": lambda d: matrix(d).coalesce().indices(),
    "add": lambda d: matrix(d) + matrix(d),
    "by number": lambda d: matrix(d) * 2,
    "transposed": lambda d: matrix(d).t(),
    "sum": lambda d: torch.sparse.sum(matrix(d), 0),
    "product": lambda d: torch.sparse.mm(matrix(d), DENSE.to(d)),
    "into dense": lambda d: torch.zeros(2, 3, device=d).add_(matrix(d)),
    "of dense": lambda d: DENSE.to(d).to_sparse(),
    "rows": lambda d: DENSE.to(d).to_sparse_csr(),
    "columns": lambda d: DENSE.to(d).to_sparse_csc(),
    "rows to dense": lambda d: DENSE.to_sparse_csr().to(d).to_dense(),
    "product of rows": lambda d: DENSE.to_sparse_csr().to(d) @ matrix(d).to_dense(),
    "sampled": lambda d: torch.sparse.sampled_addmm(torch.eye(3).to_sparse_csr().to(d), DENSE.to(d), DENSE.t().to(d)),
    "filled with zeros": lambda d: matrix(d).zero_(),
    "complex": lambda d: torch.view_as_real((matrix(d) * (1 + 2j)).coalesce()),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_on_the_cpu(name: str) -> None:
    expected, actual = PROGRAMS[name]("cpu"), PROGRAMS[name]("weft")
    assert (actual.device.type, actual.layout) == ("weft", expected.layout)
    torch.testing.assert_close(actual.cpu(), expected)


def test_what_computes_is_counted() -> None:
    torch.weft.reset_counters()
    torch.sparse.mm(matrix("weft"), DENSE.to("weft"))
    assert sum(torch.weft.counters()["fallback"].values()) > 0


def test_gradients() -> None:
    gradients = []
    for device in ("cpu", "weft"):
        weight = DENSE.clone().to(device).requires_grad_()
        values = torch.tensor([1.0, 2.0], device=device, requires_grad=True)
        sparse = torch.sparse_coo_tensor(torch.tensor([[0, 1], [1, 2]], device=device), values, (2, 3))
        (torch.sparse.mm(sparse, weight) ** 2).sum().backward()
        gradients.append((weight.grad.cpu(), values.grad.cpu()))
    torch.testing.assert_close(gradients[1], gradients[0])


def test_sparse_gradients_of_an_embedding() -> None:
    weights = []
    for device in ("cpu", "weft"):
        layer = torch.nn.Embedding(5, 3, sparse=True, _weight=torch.ones(5, 3)).to(device)
        optimizer = torch.optim.SparseAdam(list(layer.parameters()), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            layer(torch.tensor([1, 2, 1], device=device)).sum().backward()
            assert layer.weight.grad.is_sparse
            optimizer.step()
        weights.append(layer.weight.detach().cpu())
    torch.testing.assert_close(weights[1], weights[0])
