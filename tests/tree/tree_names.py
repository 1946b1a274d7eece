"""What names the tree has: its files, the identifiers of its code, its constants and the targets of its Makefile.

An identifier is what code says: comments do not count, nor do strings with a blank in them, which are prose (but for
those of src/render, which are code of other languages). What is no code any more has no name here.
"""

import dataclasses
import functools
import pathlib
import re

FOLDERS = ["include", "src", "python", "torch", "tools", "tests", "bench", "examples"]
SOURCES = (".h", ".cpp", ".def", ".py", ".pyi", ".sh", ".txt", ".toml", ".json", ".yaml", ".cu")
WITH_STRINGS = ("src/render/",)
# Where the path of a file may begin: a room is a folder of src/, a page is named beside another one.
BASES = ["", "docs", "src", "src/schedule", "src/codegen/opt", "include/weft", "tests", "python"]
SUFFIXES = ["", ".h", ".cpp", ".py"]

IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
CPP = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
PYTHON = re.compile(r'"""(?:\\.|.)*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*', re.DOTALL)
INTEGER_TYPE = re.compile(r"\b(?:u?int\d*_t|u?int|size_t|double|float)\b")


@dataclasses.dataclass
class Tree:
    root: pathlib.Path

    @functools.cached_property
    def files(self) -> set[str]:
        """All files and folders, relative to the root."""
        paths = [p for p in self.root.iterdir() if p.is_file()]
        for folder in [*FOLDERS, "docs"]:
            paths += [self.root / folder, *(self.root / folder).rglob("*")]
        return {p.relative_to(self.root).as_posix() for p in paths if "__pycache__" not in p.parts}

    @functools.cached_property
    def by_last(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in sorted(self.files):
            for key in {name.rsplit("/", 1)[-1], pathlib.PurePosixPath(name).stem}:
                found.setdefault(key, []).append(name)
        return found

    @functools.cached_property
    def code(self) -> dict[str, str]:
        """The code of each source file. This test's own lists are none."""
        return {name: code_of(name, (self.root / name).read_text()) for name in sorted(self.files)
                if name.endswith(SOURCES) and "/golden/" not in name and not name.startswith("tests/tree/")
                or name in ("Makefile", "CMakeLists.txt", "CMakePresets.json")}

    @functools.cached_property
    def identifiers(self) -> dict[str, set[str]]:
        return {name: set(IDENTIFIER.findall(text)) for name, text in self.code.items()}

    @functools.cached_property
    def files_of(self) -> dict[str, list[str]]:
        """By identifier."""
        found: dict[str, list[str]] = {}
        for file, names in self.identifiers.items():
            for name in names:
                found.setdefault(name, []).append(file)
        return found

    def find(self, path: str) -> list[str]:
        """The files that a page may mean by a path: below any of BASES, with or without its suffix, `*` for anything."""
        path = path.removeprefix("./").rstrip("/")
        if "/" not in path:
            if "*" not in path:
                return self.by_last.get(path, [])
            pattern = re.compile(glob_of(path))
            return [name for last, names in self.by_last.items() if pattern.fullmatch(last) for name in names]
        wholes = ["/".join(filter(None, (base, path))) + suffix for base in BASES for suffix in SUFFIXES]
        if "*" not in path:
            return [whole for whole in wholes if whole in self.files]
        patterns = [re.compile(glob_of(whole)) for whole in wholes]
        return [name for name in sorted(self.files) if any(p.fullmatch(name) for p in patterns)]

    def has(self, name: str, *folders: str) -> bool:
        """An identifier of the code, or the name of a file without its suffix, in one of these."""
        return any(file.startswith(folders or ("",)) for file in self.files_of.get(name, []) + self.by_last.get(name, []))

    def has_member(self, owner: str, member: str) -> bool:
        """`owner::member`: a file that declares or defines the one has the other."""
        declares = re.compile(rf"\b(?:struct|class|enum|enum class|namespace|Op)\s+{owner}\b|\b{owner}::{member}\b")
        files = set(self.files_of.get(member, [])) & set(self.files_of.get(owner, []))
        return any(declares.search(self.code[file]) for file in files)

    def values(self, name: str) -> list[float]:
        """What the definitions of a constant, or the first values of a member, say in numbers."""
        last = name.rsplit("::", 1)[-1]
        text = re.compile(rf"\b{last}\s*(?:=\s*|\{{)([^;,}}]+)")
        found = [value_of(m) for file in self.files_of.get(last, []) for m in text.findall(self.code[file])]
        return [value for value in found if value is not None]

    @functools.cached_property
    def makefile(self) -> tuple[set[str], set[str]]:
        """The targets and the variables."""
        text = (self.root / "Makefile").read_text()
        targets = set(re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)[0].split())
        used, defined = re.findall(r"\$\(([A-Z_]+)\)", text), re.findall(r"^([A-Z_]+)\s*[?:]?=", text, re.MULTILINE)
        return targets, {*used, *defined}


def glob_of(path: str) -> str:
    return re.escape(path).replace(r"\*", "[^/]*")


def code_of(name: str, text: str) -> str:
    is_python = name.endswith((".py", ".pyi"))

    def kept(match: re.Match[str]) -> str:
        part = match[0]
        if part.startswith(("//", "/*", "#")):
            return " "
        is_prose = " " in part or "\n" in part
        return " " if is_prose and (is_python or not name.startswith(WITH_STRINGS)) else part

    return (PYTHON if is_python else CPP).sub(kept, text) if name.endswith((".py", ".pyi", ".h", ".cpp", ".def")) else text


def value_of(expression: str) -> float | None:
    """Of literals, shifts and products; None for all else."""
    plain = INTEGER_TYPE.sub("", expression).replace("'", "").strip()
    if not re.fullmatch(r"[\d\s().<*+/e-]+", plain):
        return None
    try:
        return float(eval(plain))  # digits and operators alone
    except (SyntaxError, TypeError, ValueError, ZeroDivisionError):
        return None
