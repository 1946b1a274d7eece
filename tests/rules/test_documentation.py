"""docs/rules.md is what weft_rules writes."""

import weft_rules


def test_the_page_is_current() -> None:
    page = weft_rules.ROOT / "docs/rules.md"
    assert page.read_text() == weft_rules.text("--markdown"), (
        f"the tables have changed: {weft_rules.PROGRAM.relative_to(weft_rules.ROOT)} --markdown > docs/rules.md")


def test_every_rule_is_on_the_page() -> None:
    page = weft_rules.text("--markdown")
    for rule in weft_rules.parsed():
        assert f"| {rule['name']} | `" in page
