"""Every declarative rule of the simplifier is proved, and every wrong rule is refuted.

What was proved how, and how long it took, is written to proofs.txt in the build folder.
"""

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("z3")

import prove
import weft_rules
from semantics import CLASSES

RULES = weft_rules.parsed()
DECLARATIVE = [r for r in RULES if r["declarative"]]
CXX_BODIES = [r for r in RULES if not r["declarative"]]
OTHERS = weft_rules.parsed("--wrong")
RIGHT = [r for r in OTHERS if r["table"] == "right"]
VACUOUS = [r for r in OTHERS if r["table"] == "vacuous"]
WRONG = [r for r in OTHERS if r["table"].startswith("wrong")]


def name_of(rule: dict[str, Any]) -> str:
    return f"{rule['table']}/{rule['name']}".replace(" ", "_")


@pytest.fixture(scope="module")
def proofs() -> Iterator[list[prove.Proof]]:
    found: list[prove.Proof] = []
    yield found
    if len(found) == len(DECLARATIVE):  # of a run of all rules
        bodies = [f"{r['table']:32} {r['name']:24} C++ body: tests/rules/body_rules.cpp" for r in CXX_BODIES]
        (weft_rules.BUILD / "proofs.txt").write_text(prove.report(found) + "\n".join([*bodies, ""]))


@pytest.mark.parametrize("rule", DECLARATIVE, ids=name_of)
def test_rule_is_proved(rule: dict[str, Any], proofs: list[prove.Proof]) -> None:
    proof = prove.prove(rule)
    proofs.append(proof)
    print(proof.text)
    assert proof.outcome == "proved", f"{rule['file']}:{rule['line']}: {rule['name']}: {proof.text}"


@pytest.mark.parametrize("rule", WRONG, ids=name_of)
def test_wrong_rule_is_refuted(rule: dict[str, Any]) -> None:
    proof = prove.prove(rule)
    print(proof.text)
    assert proof.outcome == "refuted", proof.text
    assert any(v.example for v in proof.verdicts)


@pytest.mark.parametrize("rule", VACUOUS, ids=name_of)
def test_condition_that_never_holds_is_found(rule: dict[str, Any]) -> None:
    assert prove.prove(rule).outcome == "vacuous"


@pytest.mark.parametrize("rule", RIGHT, ids=name_of)
def test_right_neighbour_is_proved(rule: dict[str, Any]) -> None:
    proof = prove.prove(rule)
    assert proof.outcome == "proved", proof.text


def test_every_kind_of_rule_is_there() -> None:
    """The lists above are not empty by mistake."""
    assert len(DECLARATIVE) > 100 and len(WRONG) >= 12 and VACUOUS and RIGHT
    assert {c for r in DECLARATIVE for c in r["domain"]} == set(CLASSES)


def test_rules_with_a_body_are_listed(record_property: Any) -> None:
    """They are few, and tests/rules/body_rules.cpp has a property test for each."""
    names = [r["name"] for r in CXX_BODIES]
    record_property("bodies", ", ".join(names))
    print(f"{len(names)} rules have a C++ body: {', '.join(names)}")
    assert len(names) < len(DECLARATIVE) / 4


MALFORMED = {"table": "malformed", "domain": ["index"], "name": "malformed", "when": None}


@pytest.mark.parametrize(("lhs", "rhs", "why"), [
    ("(add x y)", "(cmplt x y)", "no dtype fits"),
    ("(add x:float y)", "x", "no dtype fits"),
    ("(where x y z)", "x", "no dtype fits"),
    ("(sin x)", "x", "sin on"),
    ("(and x c0)", "(mod x c0)", "mixes bits"),
])
def test_rule_without_meaning_is_reported(lhs: str, rhs: str, why: str) -> None:
    proof = prove.prove({**MALFORMED, "lhs": lhs, "rhs": rhs})
    assert proof.outcome == "malformed" and why in proof.text, proof.text


def test_constants_are_tried_one_by_one_where_symbols_are_too_hard(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = next(r for r in DECLARATIVE if r["name"] == "div-of-mod")
    monkeypatch.setattr(prove, "encodings", lambda ops, when: [])
    proof = prove.prove(rule)
    assert proof.outcome == "proved" and proof.is_bounded, proof.text
    wrong = next(r for r in WRONG if r["name"] == "div-div-any-sign")
    assert prove.prove(wrong).outcome == "refuted"
