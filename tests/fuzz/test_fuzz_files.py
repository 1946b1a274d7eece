"""Files of a few bytes take little time and memory, whatever they say."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import fuzz_files  # noqa: E402
from random_file import bombs, file_of  # noqa: E402

import weft  # noqa: E402
from weft import Tensor  # noqa: E402
from weft.nn.state import get_state_dict  # noqa: E402


@pytest.mark.parametrize("name", list(bombs()))
def test_bombs(name: str) -> None:
    assert fuzz_files.run_bomb(name) is None


def test_a_slice_of_the_fuzzer() -> None:
    assert fuzz_files.run(11, range(1500)) == []


def test_files_depend_on_their_seed_alone() -> None:
    assert file_of("1/7") == file_of("1/7") != file_of("1/8")


def test_what_is_slow_or_large_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def misread(path: pathlib.Path) -> dict[str, object]:
        data = path.read_bytes()
        while data == file_of("5/1")[1]:
            pass
        if data == file_of("5/3")[1]:
            bytes(2 * fuzz_files.BYTES)
        return {}

    monkeypatch.setattr(fuzz_files, "SECONDS", 1)
    monkeypatch.setattr(fuzz_files, "LOADERS", dict.fromkeys(fuzz_files.LOADERS, misread))
    assert fuzz_files.run(5, range(5)) == [(1, "ran over 1 seconds"), (3, "MemoryError: ")]


def test_state_dicts_of_what_is_deep_or_shared() -> None:
    deep: list[object] = [Tensor([1])]
    for _ in range(5_000):
        deep = [deep]
    assert [len(name) for name in get_state_dict(deep)] == [2 * 5_001 - 1]
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(weft.StateDictError, match="in each other"):
        get_state_dict(deep)
    shared: tuple[object, ...] = ()
    for _ in range(60):
        shared = (shared, shared)
    assert get_state_dict({"a": shared, "b": Tensor([1])}).keys() == {"b"}
    many: tuple[object, ...] = (Tensor([1]),)
    for _ in range(10):
        many = (many, many)
    assert len(get_state_dict(many)) == 1024
    for _ in range(20):
        many = (many, many)
    with pytest.raises(weft.StateDictError, match="names of tensors"):
        get_state_dict(many)


def test_names_of_a_model_that_holds_itself() -> None:
    a, b = {"x": Tensor([1])}, {"y": Tensor([2])}
    a["b"], b["a"] = b, a  # type: ignore[assignment]
    assert sorted(get_state_dict({"a": a, "b": b})) == ["a.b.y", "a.x", "b.a.x", "b.y"]
    assert sorted(get_state_dict(a, "p.")) == ["p.b.y", "p.x"]
    assert list(get_state_dict(Tensor([1]), "t")) == ["t"]
