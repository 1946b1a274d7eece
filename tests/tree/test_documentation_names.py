"""What docs/, README.md and CONTRIBUTING.md set in code font exists: files, functions, constants with the numbers that
the page gives them, WEFT_ variables, targets of the Makefile, links.

A span of one name is looked up whole. Of a longer one, an expression or a command, only those names count that cannot
be a reader's own: called ones, those with an underscore or an inner capital, paths, options. "`name` (`file`)" says
that the file has the name; "`kName` (3)", "3 ... (`kName`)" and a table's "`kName` | 3" say what a constant is.
"""

import pathlib
import re
import shlex
import sys
from collections.abc import Iterator

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from tree_names import Tree  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]
# Written by programs, which name what is there: their own tests hold them to that.
GENERATED = {"rules.md", "torch-coverage.md"}

# Names that pages set in code font and that weft does not have, by whose they are.
OF_OTHERS = {
    "NVIDIA": {"sm_90a"},
    "examples of style": {"CamelCase", "snake_case"},
}
OPTIONS_OF_OTHERS = {"--help"}  # argparse's
OTHER_MODULES = {"torch", "tl", "np", "numpy", "copy", "llvm"}
# Whose attributes are the package's.
OF_PYTHON = {"weft", "Tensor", "Device", "dtypes", "nn", "ir", "counters"}
OUTSIDE = ("/", "~", "$", "build/", ".venv")  # paths that are not in the tree

SPAN = re.compile(r"`([^`\n]+)`")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"^(?: {4}|\t)\S.*$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAME = r"[A-Za-z_]\w*"
WHOLE = re.compile(rf"[.@]?(?:{NAME})(?:(?:::|\.){NAME})*(?:\([^()]*\))?")
PATH = re.compile(r"[\w.*<>{}~$-]*(?:/[\w.*<>{}-]+)+/?|[\w*-]+\.(?:md|h|cpp|py|def|json|toml|yaml|txt|sh)")
MARKED = re.compile(rf"(?<![\w.])(?:{NAME}::)*(?:{NAME}(?=\()|k[A-Z]\w*|[A-Za-z]\w*_\w+|[A-Z]+[a-z]\w*[A-Z]\w*)")
SPAN_OF_NAME = rf"`{NAME}(?:::{NAME})*(?:\([^`]*\))?`"
PAIR = re.compile(rf"((?:{SPAN_OF_NAME}(?:, | and ))*{SPAN_OF_NAME}) \(`([\w./]+)`")
CONSTANT = rf"`(?P<name>(?:{NAME}::)+{NAME}|k[A-Z]\w*)`"
NUMBER = r"(?P<number>\d[\d,]*(?:\.\d+)?(?:\^\d+)?)(?: ?(?P<unit>%|us|ms|KiB|MiB|GiB)(?!\w))?"
STATED = (re.compile(rf"{CONSTANT} (?:\(|\| ){NUMBER}"), re.compile(rf"{NUMBER}[^`|.;()\d]{{0,40}}\({CONSTANT}\)"))
UNITS = {"%": 0.01, "us": 1e-6, "ms": 1e-3, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def pages(root: pathlib.Path) -> Iterator[tuple[str, str]]:
    for path in [*sorted((root / "docs").glob("*.md")), root / "README.md", root / "CONTRIBUTING.md"]:
        if path.exists() and path.name not in GENERATED:
            yield path.relative_to(root).as_posix(), path.read_text()


def faults_of_command(tree: Tree, command: str) -> Iterator[str]:
    """`make target VARIABLE=value`."""
    targets, variables = tree.makefile
    for word in shlex.split(command)[1:]:
        if "=" not in word and re.fullmatch(r"[a-z-]+", word) and word not in targets:
            yield f"make has no target {word}"
        if "=" in word and word.split("=")[0] not in variables | {"CXX", "CC"}:
            yield f"the Makefile has no variable {word.split('=')[0]}"
    if programs := re.search(r'BENCH_ARGS="?([a-z ]+)', command):
        known = tree.code.get("bench/run.py", "")
        yield from (f"bench/run.py has no {p}" for p in programs[1].split() if f'"{p}"' not in known)


def faults_of_path(tree: Tree, path: str) -> Iterator[str]:
    if path.startswith(OUTSIDE):
        return
    if not tree.find(re.sub(r"<[^>]*>", "*", path)):
        yield f"there is no file {path}"


def faults_of_name(tree: Tree, name: str) -> Iterator[str]:
    """`a`, `a.b.c` or `A::b`."""
    others = set().union(*OF_OTHERS.values())
    if "::" in name:
        owner, member = name.split("::")[-2:]
        if owner == "weft":
            if not tree.has(member, "include/weft/"):
                yield f"there is no {name}"
        elif not tree.has_member(owner, member):
            yield f"{owner} has no member {member}"
        return
    parts = re.sub(r"^torch\.weft\b", "weft", name).split(".")
    if len(parts) > 1 and parts[0] in OTHER_MODULES:
        return
    folders = ("python/", "torch/") if len(parts) > 1 and parts[0] in OF_PYTHON else ("",)
    for part in parts:
        if len(part) > 1 and part not in others and not tree.has(part, *folders):
            yield f"there is no {name}"


def faults_of_span(tree: Tree, span: str) -> Iterator[str]:
    span = span.strip()
    if span.startswith("make "):
        yield from faults_of_command(tree, span)
    elif WHOLE.fullmatch(span) and not PATH.fullmatch(span):
        yield from faults_of_name(tree, span.split("(")[0].lstrip(".@"))
    elif PATH.fullmatch(span):
        yield from faults_of_path(tree, span)
    else:
        for word in span.split():
            if PATH.fullmatch(word):
                yield from faults_of_path(tree, word)
        for name in MARKED.findall(re.sub(r"[\"'][^\"']*[\"']", "", span)):
            yield from faults_of_name(tree, name)
        for option in re.findall(r"(?<!\S)--[a-z][a-z-]+", span):
            if option not in OPTIONS_OF_OTHERS and not any(option in text for text in tree.code.values()):
                yield f"nothing has an option {option}"


def faults_of_block(tree: Tree, block: str) -> Iterator[str]:
    """Programs and diagrams: tests run the ones, and of both paths and settings are looked up."""
    for line in block.splitlines():
        if command := re.match(r"\s*(make [^#]*?)(?:#|   |$)", line):
            yield from faults_of_command(tree, command[1])
    rooms = "|".join(sorted(p.name for p in (tree.root / "src").iterdir()))
    for path in re.findall(rf"(?<![\w/.])(?:(?:src|tests|docs|tools|bench)/|(?:{rooms})/[a-z])[\w./*]*", block):
        yield from faults_of_path(tree, path.rstrip("."))


def faults_of_settings(tree: Tree, text: str) -> Iterator[str]:
    for name in sorted(set(re.findall(r"\bWEFT_[A-Z_]+\b", text))):
        if name not in tree.files_of:
            yield f"nothing reads {name}"


def anchors(text: str) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def faults_of_link(tree: Tree, page: str, link: str) -> Iterator[str]:
    if link.startswith(("http:", "https:")):
        return
    target, _, anchor = link.partition("#")
    path = (tree.root / page).parent / target if target else tree.root / page
    if not path.exists():
        yield f"the link {link} leads nowhere"
    elif anchor and anchor not in anchors(path.read_text()):
        yield f"{target or page} has no heading {anchor}"


def faults_of_number(tree: Tree, name: str, number: str, unit: str) -> Iterator[str]:
    digits, _, power = number.replace(",", "").partition("^")
    stated = (float(digits) ** int(power or 1)) * UNITS.get(unit, 1)
    values = tree.values(name)
    if not any(abs(stated - value) <= 1e-9 * max(abs(value), 1e-12) for value in values):
        yield f"{name} is {' or '.join(f'{v:.10g}' for v in values) or 'no number'}, not {number} {unit}".rstrip()


def faults_of_page(tree: Tree, page: str, text: str) -> Iterator[str]:
    yield from faults_of_settings(tree, text)
    for block in FENCED.findall(text):
        yield from faults_of_block(tree, block)
    prose = FENCED.sub("", text)
    for link in LINK.findall(prose):
        yield from faults_of_link(tree, page, link)
    for line in INDENTED.findall(prose):
        yield from faults_of_block(tree, line)
    prose = INDENTED.sub("", prose)
    for span in SPAN.findall(prose):
        yield from faults_of_span(tree, span)
    prose = re.sub(r"(?<=[^\n|])\n(?=[^\n|])\s*", " ", prose)
    for names, path in PAIR.findall(prose):
        files = tree.find(path)
        for name in re.findall(rf"`({NAME}(?:::{NAME})*)", names):
            if files and not any(set(name.split("::")) <= tree.identifiers.get(file, set()) for file in files):
                yield f"{name} is not in {path}"
    for pattern in STATED:
        for match in pattern.finditer(prose):
            yield from faults_of_number(tree, match["name"], match["number"], match["unit"] or "")


def faults(root: pathlib.Path) -> list[str]:
    tree = Tree(root)
    return [f"{page}: {fault}" for page, text in pages(root) for fault in dict.fromkeys(faults_of_page(tree, page, text))]


def test_pages_name_what_is_there() -> None:
    assert faults(ROOT) == []


def test_lists_hold_only_what_pages_need() -> None:
    tree, all_pages = Tree(ROOT), "".join(text for _, text in pages(ROOT))
    listed = set().union(*OF_OTHERS.values())
    assert [name for name in sorted(listed) if tree.has(name) or not re.search(rf"`[^`\n]*\b{name}\b", all_pages)] == []


FILES = {
    "Makefile": ".PHONY: run bench\nPRESET ?= release\nBENCH := $(BENCH_ARGS)\n",
    "bench/run.py": 'PROGRAMS = ["cpu"]\n',
    "src/base/config.cpp": """// WEFT_OLD
        int beam = number("WEFT_BEAM"); constexpr size_t kMost = 3, kBytes = size_t(4) << 20;
        constexpr double kShare = 0.03; /* gone() */ throw Error("[x] vanished_name is bad");""",
    "src/base/config.h": "struct Config { int beam = 60; void look_up(); };",
    "include/weft/tensor.h": "namespace weft { class Tensor { int item(); }; }",
    "python/src/bind.cpp": 'nb::class_<weft::Tensor>(m, "Tensor").def("item", item_of);',
    "docs/other.md": "# Two words, here\n",
}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("`src/base/config.cpp`, `base/config`, `config.h`, `src/base/*.cpp` and `src/<room>/config.h`", None),
        ("`src/base/absent.cpp`", "no file src/base/absent.cpp"),
        ("`absent.h`", "no file absent.h"),
        ("`base/con*` and `~/.cache/weft`", None),
        ("`kMost`, `look_up()` and `Config`", None),
        ("`gone()`", "no gone"),
        ("`vanished_name`", "no vanished_name"),
        ("`f = kAbsent`", "no kAbsent"),
        ("`x + other_name`", "no other_name"),
        ("`x + y`, `a[i] = i` and `0 <= n`", None),
        ("`Config::look_up`", None),
        ("`Config::kMost`", "Config has no member kMost"),
        ("`Tensor.item()`, `weft.Tensor`, `torch.compile` and `weft::Tensor`", None),
        ("`Tensor.look_up`", "no Tensor.look_up"),
        ("`weft::Config`", "no weft::Config"),
        ("`look_up` (`base/config.h`)", None),
        ("`item` and `look_up`\n(`base/config.h`)", "item is not in base/config.h"),
        ("WEFT_BEAM", None),
        ("    WEFT_OLD=1 run", "nothing reads WEFT_OLD"),
        ("`make bench BENCH_ARGS=cpu`, `make run PRESET=dev`", None),
        ("```\nmake walk    # goes\n```", "make has no target walk"),
        ("`make run SPEED=1`", "no variable SPEED"),
        ('`make bench BENCH_ARGS="cpu gpu"`', "bench/run.py has no gpu"),
        ("`tool --absent`", "nothing has an option --absent"),
        ("at most 3 (`kMost`), 4 MiB of them (`kBytes`), `kShare` (3 %), `Config::beam` (60)", None),
        ("at most 4 names (`kMost`)", "kMost is 3, not 4"),
        ("| what | `kBytes` | 8 MiB |", "kBytes is 4194304, not 8 MiB"),
        ("[a](other.md#two-words-here) and [b](https://example.com)", None),
        ("[a](absent.md)", "leads nowhere"),
        ("[a](other.md#three)", "no heading three"),
    ],
)
def test_the_check_finds(tmp_path: pathlib.Path, text: str, fault: str | None) -> None:
    for name, content in {**FILES, "docs/page.md": text}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    found = [f for f in faults(tmp_path) if f.startswith("docs/page.md")]
    if fault is None:
        assert found == []
    else:
        assert len(found) >= 1 and fault in found[0]
