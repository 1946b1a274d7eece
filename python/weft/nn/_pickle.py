"""Pickles as data: a machine for the instructions that build lists, dicts, numbers and texts. It imports
nothing and calls nothing but what it was given; work and memory are linear in the bytes that it reads, however
often an instruction names what another one has made:

- values are never compared, hashed, shown or walked, but for keys, which are plain;
- what a call copies is counted, and is no more in all than the bytes that are read;
- keys whose hashes a file can choose are few;
- texts as keys, which are compared with equal ones byte by byte, are on the average as short as names are.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from weft.errors import FileFormatError, UnsafeFileError

_TEXTS = (str, bytes)  # their hashes are secret, and computed once
_KEYS = (*_TEXTS, int, float, bool, type(None))  # of dicts: others may be slow to hash, or not end
_SMALL = 2**31  # ints below are each the hash of their own
_MOST_CHOSEN = 8192  # keys of other hashes, and parts of tuples: all may have one, and dicts take the square of them
_MOST_PARTS = 64  # of a key that is a tuple
_MOST_ARGUMENTS = 16
_MOST_COMPARED = 256  # bytes of keys that are texts, for each byte of the pickle
_MARK = object()


class Function:
    """What a pickle may call, or name as a class. It can do nothing but be called by the machine. One that copies its
    first argument says so."""

    __slots__ = ("call", "is_copy")

    def __init__(self, call: Callable[..., Any], is_copy: bool = False) -> None:
        self.call = call
        self.is_copy = is_copy


class Pickle:
    """One pickle of some bytes: `load()` gives the value, `at` is then the place after it.

    `names` are the values of the globals that it may name, by module and name: a Function can be called,
    others are plain values. `storage` gives the value of a persistent id. `where` is what an error begins
    with.
    """

    def __init__(self, data: bytes, at: int, names: Mapping[str, Any], storage: Callable[[Any], Any],
                 where: str) -> None:
        self.data = data
        self.at = at
        self.names = names
        self.storage = storage
        self.where = where
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.to_copy = len(data)  # elements that calls may still copy
        self.to_compare = _MOST_COMPARED * len(data)  # bytes of keys
        self.chosen = 0  # keys of hashes that the file chose, and parts of them

    def load(self) -> Any:
        try:
            while True:
                code = self.take(1)
                if code == b".":
                    return self.pop()
                instruction = _INSTRUCTIONS.get(code)
                if instruction is None:
                    self.fail(f"instruction {code!r} of pickles is not known")
                instruction(self)
        except (struct.error, LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            if isinstance(error, FileFormatError):
                raise
            self.fail(f"{type(error).__name__}: {str(error)[:200]}")

    def fail(self, text: str) -> NoReturn:
        raise FileFormatError(f"{self.where}: byte {self.at} of a pickle: {text}")

    def refuse(self, what: str) -> NoReturn:
        raise UnsafeFileError(f"{self.where}: it asks for {what[:200]}, which is none of the things that are read; "
                              f"nothing of it was run")

    # ---- bytes

    def take(self, count: int) -> bytes:
        part = self.data[self.at : self.at + count]
        if len(part) != count:
            self.fail(f"{count} bytes are needed, {len(part)} are there")
        self.at += count
        return part

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def line(self) -> str:
        end = self.data.find(b"\n", self.at)
        if end < 0:
            self.fail("a line does not end")
        return self.take(end + 1 - self.at)[:-1].decode()

    # ---- the stack

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            self.fail("a mark where a value is needed")
        return value

    def pop_to_mark(self) -> list[Any]:
        for at in range(len(self.stack) - 1, -1, -1):
            if self.stack[at] is _MARK:
                values = self.stack[at + 1 :]
                del self.stack[at:]
                return values
        self.fail("there is no mark")

    def top(self, *kinds: type) -> Any:
        value = self.stack[-1]
        if type(value) not in kinds:
            self.fail(f"a {type(value).__name__} where {' or '.join(kind.__name__ for kind in kinds)} is needed")
        return value

    def pop_tuple(self, count: int) -> None:
        values = [self.pop() for _ in range(count)]
        self.push(tuple(reversed(values)))

    # ---- instructions

    def get(self, number: int) -> None:
        self.push(self.memo[number])

    def put(self, number: int) -> None:
        if self.stack[-1] is _MARK:
            self.fail("a mark where a value is needed")
        self.memo[number] = self.stack[-1]

    def set_items(self, pairs: list[Any]) -> None:
        target = self.top(dict, OrderedDict)
        if len(pairs) % 2 != 0:
            self.fail("a key without a value")
        for key, value in zip(pairs[::2], pairs[1::2]):
            self.check_key(key)
            target[key] = value

    def check_key(self, key: Any) -> None:
        """A key that is hashed and compared in a bounded time, as all of them together are."""
        kind = type(key)
        if kind in _TEXTS:
            self.count_text(key)
            return
        if kind is int and -_SMALL < key < _SMALL:
            return
        parts = key if kind is tuple else (key,)
        if len(parts) > _MOST_PARTS or not all(type(part) in _KEYS for part in parts):
            self.fail(f"a {kind.__name__} as a key; texts and numbers are allowed, and tuples of {_MOST_PARTS} of them")
        for part in parts:
            if type(part) in _TEXTS:
                self.count_text(part)
        if all(type(part) in _TEXTS for part in parts):
            return
        if any(type(part) is int and not -(2**63) <= part < 2**64 for part in parts):
            self.fail("a number of more than 64 bits as a key")
        self.chosen += len(parts)
        if self.chosen > _MOST_CHOSEN:
            self.fail(f"more than {_MOST_CHOSEN} keys, or parts of them, that are neither texts nor numbers of 32 bits")

    def count_text(self, key: str | bytes) -> None:
        self.to_compare -= len(key)
        if self.to_compare < 0:
            self.fail(f"keys have more than {_MOST_COMPARED} times the bytes of the pickle")

    def new_dict(self) -> None:
        pairs = self.pop_to_mark()
        self.push({})
        self.set_items(pairs)

    def add_items(self, values: list[Any]) -> None:
        target = self.top(set)
        for value in values:
            self.check_key(value)
        target.update(values)

    def new_frozen_set(self) -> None:
        values = self.pop_to_mark()
        self.push(set())
        self.add_items(values)
        self.push(frozenset(self.pop()))

    def name(self, module: Any, name: Any) -> None:
        if type(module) is not str or type(name) is not str:
            self.fail(f"a {type(module).__name__} and a {type(name).__name__} where names are needed")
        full = f"{module}.{name}"
        if full not in self.names:
            self.refuse(full)
        self.push(self.names[full])

    def stack_name(self) -> None:
        name, module = self.pop(), self.pop()
        self.name(module, name)

    def call(self) -> None:
        arguments, function = self.pop(), self.pop()
        if type(function) is not Function:
            self.refuse(f"a call of a {type(function).__name__}")
        if type(arguments) is not tuple or len(arguments) > _MOST_ARGUMENTS:
            self.fail(f"arguments are no tuple of at most {_MOST_ARGUMENTS}")
        if function.is_copy and arguments:
            self.count_copy(arguments[0])
        self.push(function.call(*arguments))

    def count_copy(self, value: Any) -> None:
        """Before a list, a dict, a text or bytes are copied, with what is in them checked as keys."""
        kind = type(value)
        if kind not in (list, tuple, dict, OrderedDict, str, bytes):
            self.fail(f"a call with a {kind.__name__}")
        self.to_copy -= len(value)
        if self.to_copy < 0:
            self.fail("calls copy more than the pickle holds")

    def build(self) -> None:
        """Attributes of what is on the stack: nothing that is read needs any."""
        self.pop()
        if type(self.stack[-1]) is Function:
            self.refuse("attributes of a function")

    def persistent(self) -> None:
        self.push(self.storage(self.pop()))


_INSTRUCTIONS: dict[bytes, Callable[[Pickle], Any]] = {
    b"\x80": lambda p: p.take(1),  # the protocol
    b"\x95": lambda p: p.take(8),  # the length of a frame
    b"(": lambda p: p.push(_MARK),
    b"0": lambda p: p.stack.pop(),
    b"1": lambda p: p.pop_to_mark(),
    b"2": lambda p: p.push(p.stack[-1]),
    b"N": lambda p: p.push(None),
    b"\x88": lambda p: p.push(True),
    b"\x89": lambda p: p.push(False),
    b"J": lambda p: p.push(p.number("<i")),
    b"K": lambda p: p.push(p.number("<B")),
    b"M": lambda p: p.push(p.number("<H")),
    b"\x8a": lambda p: p.push(int.from_bytes(p.take(p.number("<B")), "little", signed=True)),
    b"\x8b": lambda p: p.push(int.from_bytes(p.take(p.number("<I")), "little", signed=True)),
    b"G": lambda p: p.push(p.number(">d")),
    b"X": lambda p: p.push(p.take(p.number("<I")).decode("utf-8", "surrogatepass")),
    b"\x8c": lambda p: p.push(p.take(p.number("<B")).decode("utf-8", "surrogatepass")),
    b"\x8d": lambda p: p.push(p.take(p.number("<Q")).decode("utf-8", "surrogatepass")),
    b"U": lambda p: p.push(p.take(p.number("<B")).decode("latin1")),
    b"T": lambda p: p.push(p.take(p.number("<I")).decode("latin1")),
    b"C": lambda p: p.push(p.take(p.number("<B"))),
    b"B": lambda p: p.push(p.take(p.number("<I"))),
    b"\x8e": lambda p: p.push(p.take(p.number("<Q"))),
    b"\x96": lambda p: p.push(bytearray(p.take(p.number("<Q")))),
    b"]": lambda p: p.push([]),
    b"a": lambda p: _append(p, [p.pop()]),
    b"e": lambda p: _append(p, p.pop_to_mark()),
    b"l": lambda p: p.push(p.pop_to_mark()),
    b")": lambda p: p.push(()),
    b"t": lambda p: p.push(tuple(p.pop_to_mark())),
    b"\x85": lambda p: p.pop_tuple(1),
    b"\x86": lambda p: p.pop_tuple(2),
    b"\x87": lambda p: p.pop_tuple(3),
    b"}": lambda p: p.push({}),
    b"d": Pickle.new_dict,
    b"s": lambda p: p.set_items([p.pop(), p.pop()][::-1]),
    b"u": lambda p: p.set_items(p.pop_to_mark()),
    b"\x8f": lambda p: p.push(set()),
    b"\x90": lambda p: p.add_items(p.pop_to_mark()),
    b"\x91": Pickle.new_frozen_set,
    b"h": lambda p: p.get(p.number("<B")),
    b"j": lambda p: p.get(p.number("<I")),
    b"q": lambda p: p.put(p.number("<B")),
    b"r": lambda p: p.put(p.number("<I")),
    b"\x94": lambda p: p.put(len(p.memo)),
    b"c": lambda p: p.name(p.line(), p.line()),
    b"\x93": Pickle.stack_name,
    b"R": Pickle.call,
    b"\x81": Pickle.call,
    b"b": Pickle.build,
    b"Q": Pickle.persistent,
}


def _append(pickle: Pickle, values: list[Any]) -> None:
    pickle.top(list).extend(values)
