"""Reads the patterns that weft_rules prints: see sexpr_of() in src/rewrite/rule_text.h."""

import dataclasses
import itertools
import re
from collections.abc import Iterator

TOKEN = re.compile(r"[()]|\{[^}]*\}|:[\w|]+|[^\s():{}]+")
NAME = re.compile(r"[xyzwuv]|c[0-3]|rest")


@dataclasses.dataclass(eq=False)
class Node:
    """A name, a literal, or an op (also fold, lower, upper, either) over args."""

    head: str
    args: list["Node"] = dataclasses.field(default_factory=list)
    dtypes: list[str] = dataclasses.field(default_factory=list)  # all when empty
    aliases: list[str] = dataclasses.field(default_factory=list)  # names that as() gives
    type: int = 0  # its variable, see prove.Types

    @property
    def is_name(self) -> bool:
        return not self.args and NAME.fullmatch(self.head) is not None

    @property
    def is_literal(self) -> bool:
        return not self.args and not self.is_name

    @property
    def number(self) -> float:
        """An int, or a float where the rule has one."""
        return float(self.head) if re.search(r"[.einf]", self.head) else int(self.head)

    def nodes(self) -> Iterator["Node"]:
        yield self
        for a in self.args:
            yield from a.nodes()


def parse(text: str) -> Node:
    tokens = TOKEN.findall(text)
    node = take(tokens)
    if tokens:
        raise ValueError(f"{text!r} goes on after its end")
    return node


def take(tokens: list[str]) -> Node:
    head = tokens.pop(0)
    if head != "(":
        node = Node(head)
    else:
        node = Node(tokens.pop(0))
        while tokens[0] != ")":
            node.args.append(take(tokens))
        tokens.pop(0)
        if node.head == "nonconst":  # values of nodes do not say whether they are constants
            node = node.args[0]
        elif node.head == "as":
            name, node = node.args
            node.aliases.append(name.head)
    if tokens and tokens[0].startswith(":"):
        node.dtypes = tokens.pop(0)[1:].split("|")
    return node


def variants(n: Node) -> list[Node]:
    """A pattern without alternatives for every choice among its either()s and sets of ops."""
    if n.head == "either":
        return [dataclasses.replace(v, dtypes=n.dtypes or v.dtypes) for a in n.args for v in variants(a)]
    heads = n.head[1:-1].split() if n.head.startswith("{") else [n.head]
    below = itertools.product(*(variants(a) for a in n.args))
    return [dataclasses.replace(n, head=head, args=[dataclasses.replace(a) for a in args])
            for args in below for head in heads]
