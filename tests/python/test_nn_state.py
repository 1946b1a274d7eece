"""State dicts: the tensors of a model by name, and loading them."""

import collections
import pathlib
from typing import Any

import pytest

import weft
from weft import Tensor
from weft.nn.state import get_parameters, get_state_dict, load_state_dict, safe_load, safe_save


class Linear:
    def __init__(self, inputs: int, outputs: int) -> None:
        self.weight = Tensor.ones(outputs, inputs)
        self.bias = Tensor.zeros(outputs)


class Model:
    def __init__(self) -> None:
        self.layers = [Linear(2, 3), Linear(3, 1)]
        self.table = {"x": Tensor([1.0]), "pair": (Tensor([2.0]), "text")}
        self.name, self.kind, self.function = "model", Model, len
        self.itself = self


Pair = collections.namedtuple("Pair", ["left", "right"])

NAMES = ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias", "table.x", "table.pair.0"]


def test_names() -> None:
    assert list(get_state_dict(Model())) == NAMES
    assert list(get_state_dict(Model(), prefix="m.")) == [f"m.{name}" for name in NAMES]
    assert list(get_state_dict(Tensor([1]), "x")) == ["x"] and get_state_dict(3) == {}
    assert list(get_state_dict(Pair(Tensor(1), [Tensor(2)]))) == ["left", "right.0"]


def test_a_tensor_of_two_names_is_one_parameter() -> None:
    layer = Linear(2, 2)
    model = {"a": layer, "b": layer}
    assert len(get_state_dict(model)) == 4 and len(get_parameters(model)) == 2


def test_loading(tmp_path: pathlib.Path) -> None:
    first, second = Model(), Model()
    first.layers[0].weight += 1
    safe_save(get_state_dict(first), tmp_path / "x")
    weights = second.layers[0].weight
    view = weights[0]
    loaded = load_state_dict(second, safe_load(tmp_path / "x"))
    assert len(loaded) == len(NAMES) and loaded[0] is weights
    for name, tensor in get_state_dict(second).items():
        assert tensor.tolist() == get_state_dict(first)[name].tolist()
    assert view.tolist() == weights[0].tolist()  # of the same memory as before


def test_loading_copies_nothing_that_is_mapped(tmp_path: pathlib.Path) -> None:
    layer = Linear(3, 4)
    safe_save(get_state_dict(layer), tmp_path / "x")
    weft.counters.reset()
    load_state_dict(layer, safe_load(tmp_path / "x"))
    assert weft.counters.kernels == 0
    layer.bias.assign(layer.bias * 0 + 1).realize()
    assert layer.bias.tolist() == [1] * 4 and safe_load(tmp_path / "x")["bias"].tolist() != [1] * 4


def test_a_model_keeps_its_dtypes() -> None:
    layer = Linear(1, 1)
    load_state_dict(layer, {"weight": Tensor([[1.5]], dtype="float16"), "bias": Tensor([0])})
    assert layer.weight.dtype == weft.dtypes.float32 and layer.weight.item() == 1.5


def test_scalars_and_vectors_of_one_are_alike() -> None:
    model = {"a": Tensor(0.0), "b": Tensor([0.0])}
    load_state_dict(model, {"a": Tensor([1.0]), "b": Tensor(2.0)})
    assert (model["a"].tolist(), model["b"].tolist()) == (1.0, [2.0])


@pytest.mark.parametrize(("change", "error", "text"), [
    ({"weight": None}, weft.StateDictError, r"\[load_state_dict\] missing: weight; with"),
    ({"more": Tensor(1)}, weft.StateDictError, r"unknown: more"),
    ({"weight": Tensor([1.0])}, weft.ShapeError, r"weight has shape \(1,\); the model's is \(2, 2\)"),
    ({"weight": 3}, TypeError, "weight is a int"),
])
def test_what_does_not_fit_changes_nothing(change: dict[str, Any], error: type[Exception], text: str) -> None:
    layer = Linear(2, 2)
    before = {name: tensor.tolist() for name, tensor in get_state_dict(layer).items()}
    state = {"bias": Tensor.ones(2), "weight": Tensor.ones(2, 2), **change}
    state = {name: tensor for name, tensor in state.items() if tensor is not None}
    with pytest.raises(error, match=text):
        load_state_dict(layer, state)
    assert before == {name: tensor.tolist() for name, tensor in get_state_dict(layer).items()}


def test_not_strict(capsys: pytest.CaptureFixture[str]) -> None:
    layer = Linear(1, 1)
    load_state_dict(layer, {"bias": Tensor([4.0]), "more": Tensor(1)}, strict=False)
    assert layer.bias.tolist() == [4]
    assert capsys.readouterr().out == "[load_state_dict] left out, missing: weight; unknown: more\n"
    load_state_dict(layer, {}, strict=False, verbose=False)
    assert capsys.readouterr().out == ""
