"""Files of tensors that are damaged, or made to take all time and memory."""

import bz2
import functools
import gzip
import io
import json
import lzma
import pathlib
import random
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

KINDS = ("torch", "npz", "npy", "safetensors", "tar")


def file_of(seed: str) -> tuple[str, bytes]:
    """The kind and the bytes of a file; they depend on the seed alone."""
    warnings.filterwarnings("ignore", "Duplicate name")  # of zipfile: some are meant to be
    rng = random.Random(seed)
    kind = rng.choice(["torch", "torch", *KINDS])
    make = MAKERS[kind]
    data = make(rng)
    return kind, damaged(rng, data) if rng.random() < 0.6 else data


def damaged(rng: random.Random, data: bytes) -> bytes:
    parts = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        if not parts:
            break
        at = rng.randrange(len(parts))
        how = rng.randrange(6)
        if how == 0:
            parts[at] = rng.randrange(256)
        elif how == 1:
            parts[at] ^= 1 << rng.randrange(8)
        elif how == 2:
            del parts[at : at + rng.choice([1, 4, 100, len(parts)])]
        elif how == 3:
            part = parts[at : at + rng.choice([1, 4, 30])]
            to = rng.randrange(len(parts))
            parts[to:to] = part
        elif how == 4:
            width = rng.choice([2, 4, 8])
            number = rng.choice([0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1, len(parts), rng.randrange(2**64)])
            parts[at : at + width] = (number % 2 ** (8 * width)).to_bytes(width, "little")
        else:
            other = rng.randrange(len(parts))
            count = rng.choice([1, 8, 64])
            parts[at : at + count] = parts[other : other + count]
    return bytes(parts)


def add(made: zipfile.ZipFile, file_name: str, data: bytes) -> None:
    """Without the time of day."""
    made.writestr(zipfile.ZipInfo(file_name), data, made.compression)


# ------------------------------------------------------------------------------------------- pickles


def text(value: str) -> bytes:
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def number(value: int) -> bytes:
    if -(2**31) <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8b" + struct.pack("<I", len(data)) + data


def name(module: str, what: str) -> bytes:
    return f"c{module}\n{what}\n".encode()


NAMES = [("collections", "OrderedDict"), ("torch._utils", "_rebuild_tensor_v2"), ("torch._utils", "_rebuild_tensor_v3"),
         ("torch._utils", "_rebuild_parameter"), ("torch._tensor", "_rebuild_from_type_v2"), ("_codecs", "encode"),
         ("torch", "Size"), ("torch", "device"), ("builtins", "set"), ("builtins", "frozenset"), ("builtins", "bytearray"),
         ("torch", "FloatStorage"), ("torch", "BoolStorage"), ("torch.storage", "UntypedStorage"), ("torch", "float16"),
         ("os", "system"), ("torch.nn.parameter", "Parameter"), ("__builtin__", "set")]


def tensor(rng: random.Random, key: str = "0", numel: int = 6) -> bytes:
    kind = rng.choice(["FloatStorage", "FloatStorage", "HalfStorage", "BoolStorage", "LongStorage"])
    storage = (b"(" + text("storage") + name("torch", kind) + text(key) + text("cpu") + number(numel) + b"tQ")
    shape = rng.choice([(2, 3), (6,), (), (0, 2**62, 2**62), (2**40, 2**40), (6,) * 70, (3, 2)])
    strides = tuple(rng.choice([0, 1, 2, 3]) for _ in shape)
    sizes = b"(" + b"".join(map(number, shape)) + b"t(" + b"".join(map(number, strides)) + b"t"
    return (name("torch._utils", "_rebuild_tensor_v2") + b"(" + storage + number(rng.choice([0, 0, 1, 2**62])) + sizes
            + b"\x89" + name("collections", "OrderedDict") + b")RtR")


def doubled(rng: random.Random) -> bytes:
    """Tuples or lists of themselves, each twice the one before."""
    pair = rng.choice([b"\x86", b"\x87"])
    times = 2 if pair == b"\x86" else 3
    return b")" + b"".join(b"q\x01" + b"h\x01" * (times - 1) + pair for _ in range(rng.choice([5, 40, 3000])))


def colliding(rng: random.Random, count: int) -> bytes:
    step = rng.choice([1, 2**20, 2**40, 2**61 - 1, 2**31])
    keys = [number(i * step) for i in range(count)]
    if rng.random() < 0.3:
        keys = [b"(" + b"".join(rng.choices((number(-1), number(-2)), k=40)) + b"t" for _ in range(count)]
    if rng.random() < 0.5:
        return b"}(" + b"".join(key + b"N" for key in keys) + b"u"
    return b"\x8f(" + b"".join(keys) + b"\x90"


def copied(rng: random.Random, count: int) -> bytes:
    """A value in the memo that calls copy, again and again."""
    function = name(*rng.choice(NAMES))
    value = rng.choice([b"B" + struct.pack("<I", count) + bytes(count), text("x" * count),
                        b"](" + b"N" * count + b"e", b"](" + b"K\x01" * count + b"e", b"(" + b"N" * count + b"t"])
    call = rng.choice([b"h\x02h\x03\x85R", b"h\x02h\x03R", b"h\x02h\x03h\x03\x86R", b"h\x03h\x03\x86"])
    return function + b"q\x02" + value + b"q\x03](" + call * count + b"e"


def chain(rng: random.Random, count: int) -> bytes:
    """Calls of what calls gave."""
    function = name(*rng.choice(NAMES))
    return function + b"q\x02" + rng.choice([b")", b"]", b"(K\x01K\x02t", text("a")]) + rng.choice([
        b"q\x03h\x02h\x03\x85R", b"q\x03h\x02h\x03h\x03\x86R", b"}b", b"\x85", b"q\x03h\x02h\x03\x85\x81"]) * count


def values(rng: random.Random, depth: int) -> bytes:
    how = rng.randrange(16)
    count = rng.choice([3, 30, 300, 3000])
    if how == 0:
        return doubled(rng)
    if how == 1:
        return colliding(rng, count)
    if how == 2:
        return copied(rng, count)
    if how == 3:
        return chain(rng, count)
    if how == 4:
        return tensor(rng, rng.choice(["0", "1", "2"]))
    if how == 5:
        return rng.choice([b"]", b")"]) + rng.choice([b"\x85", b"]", b"a"]) * count
    if how == 6:
        big = rng.choice([2**63, 2**64, 2**10_000, 2**200_000, -(2**63) - 1])
        return b"}" + number(big) + b"q\x05" + b"Ns" + b"h\x05Ns" * count
    if how == 7:
        return b"\x8b" + struct.pack("<I", rng.choice([2**31, 2**32 - 1, 100])) + b"\xff" * 100
    if how == 8:
        module = rng.choice([doubled(rng), text("a" * count), text("os")])
        return module + rng.choice([text("system"), doubled(rng)]) + b"\x93"
    if how == 9:
        return name(*rng.choice(NAMES))
    if how == 10:
        return name("torch", "device") + doubled(rng) + b"\x85R"
    if how == 11:
        return b"}(" + b"".join(text(rng.choice("abc")) + number(i) for i in range(count)) + b"u"
    if how == 12:
        return b"G" + struct.pack(">d", rng.choice([0.0, float("nan"), float("inf"), 2.0**61 * rng.randrange(9)]))
    if how == 13 and depth < 3:
        return b"](" + b"".join(values(rng, depth + 1) for _ in range(rng.randrange(4))) + b"e"
    if how == 14 and depth < 3:
        return b"}(" + b"".join(text(str(i)) + values(rng, depth + 1) for i in range(rng.randrange(4))) + b"u"
    return bytes(rng.randrange(256) for _ in range(rng.randrange(20)))


def torch_file(rng: random.Random) -> bytes:
    proto = rng.choice([b"\x80\x02", b"\x80\x05", b"", b"\x80\xff", b"\x80\x02\x95" + bytes(8)])
    content = proto + values(rng, 0) + b"."
    if rng.random() < 0.2:
        return old_form(rng, content)
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", rng.choice([zipfile.ZIP_STORED] * 5 + [zipfile.ZIP_DEFLATED])) as made:
        add(made, "a/data.pkl", content)
        for key in "012":
            add(made, f"a/data/{key}", bytes(rng.choice([0, 24, 48])))
        if rng.random() < 0.1:
            add(made, rng.choice(["a/data/0", "b/data.pkl", "a/byteorder"]), b"little")
    return memory.getvalue()


def old_form(rng: random.Random, content: bytes) -> bytes:
    magic = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
    system = b"\x80\x02}(" + text("little_endian") + b"\x88u."
    keys = rng.choice([b"]", b"](" + text("0") * 2 + b"e", b"](" + text("0") + b"e", b"](N)e", b"](" + doubled(rng) + b"e"])
    head = magic + rng.choice([b"\x80\x02M\xe9\x03.", b"\x80\x02" + doubled(rng) + b"."]) + system
    return head + content + b"\x80\x02" + keys + b"." + struct.pack("<q", rng.choice([6, 0, -1, 2**60])) + bytes(48)


# ------------------------------------------------------------------------------------- other formats


def npy_file(rng: random.Random) -> bytes:
    if rng.random() < 0.4:
        memory = io.BytesIO()
        array = np.arange(rng.randrange(40)).astype(rng.choice(["f4", "f2", "i8", ">i4", "?", "u1"]))
        np.save(memory, np.asfortranarray(array.reshape(-1, 1)) if rng.random() < 0.3 else array)
        return memory.getvalue()
    shape = rng.choice(["()", "(0,)", "(3,)", f"(0, {2**62}, {2**62})", f"({2**64},)", "(" + "1," * 70 + ")", "(-1,)",
                        "(" * 3000, "[" * 90 + "]" * 90, f"({10**400},)", "(1.0,)", "('a',)", "{}"])
    kind = rng.choice(["<f4", "|O", ">f8", "<U4", "<c16", "(1000,1000)f8", "99999999V", "|b1", "f" * 50, "[" * 50])
    text_of = f"{{'descr': {kind!r}, 'fortran_order': {rng.choice(['False', 'True', '1', 'None'])}, 'shape': {shape}, }}\n"
    version = rng.choice([b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x09"])
    length = struct.pack("<H" if version[:1] == b"\x01" else "<I", min(len(text_of), 65535))
    return b"\x93NUMPY" + version + length + text_of.encode() + bytes(rng.choice([0, 12, 100]))


def npz_file(rng: random.Random) -> bytes:
    memory = io.BytesIO()
    method = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    with zipfile.ZipFile(memory, "w", method) as made:
        for i in range(rng.randrange(4)):
            big = bytes(rng.choice([0, 0, 1 << 20]))
            add(made, rng.choice([f"{i}.npy", "a.npy", "text"]), npy_file(rng) + big)
    data = memory.getvalue()
    return overlapping(data) if rng.random() < 0.2 else data


def overlapping(data: bytes) -> bytes:
    """Every entry of the directory is the first one's content."""
    parts = bytearray(data)
    at, first = 0, None
    while (at := parts.find(b"PK\x01\x02", at)) >= 0 and at + 46 <= len(parts):
        first = first or bytes(parts[at + 42 : at + 46])
        parts[at + 42 : at + 46] = first
        at += 46
    return bytes(parts)


def safetensors_file(rng: random.Random) -> bytes:
    how = rng.randrange(8)
    data = bytes(24)
    entry: dict[str, Any] = {"dtype": rng.choice(["F32", "BOOL", "F8_E4M3"]), "shape": [6], "data_offsets": [0, 24]}
    header: Any = {"a": entry}
    if how == 0:
        entry["shape"] = rng.choice([[0, 2**62, 2**62], [2**63], [[6]], [True], [6.0], [1] * 100, "6", [10**500]])
    elif how == 1:
        entry["data_offsets"] = rng.choice([[24, 0], [0, 2**70], [0], [0, 24, 24], [[0], 24], None])
    elif how == 2:
        header = {f"t{i}": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for i in range(rng.choice([10, 500]))} | header
    elif how == 3:
        return json_file(rng.choice([b"[" * 900, b"[" * 100_000, b'{"a":' * 900, b"1" * 10_000, b"\xff", b"{}"]), data)
    elif how == 4:
        nest = b"[" * 850 + b"]" * 850
        return json_file(b'{"a":{"dtype":' + nest + b',"shape":' + nest + b',"data_offsets":' + nest + b"}}", data)
    elif how == 5:
        header["__metadata__"] = rng.choice([{"a": "b"}, {"a": 1}, [], None, {"a": ["b"] * 300}])
    elif how == 6:
        return struct.pack("<Q", rng.choice([0, 8, 2**63, 100_000_001, 2**64 - 1])) + data
    return json_file(json.dumps(header).encode(), data)


def json_file(header: bytes, data: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header + data


def tar_file(rng: random.Random) -> bytes:
    memory = io.BytesIO()
    form = rng.choice([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
    with tarfile.open(fileobj=memory, mode="w", format=form) as made:
        for i in range(rng.randrange(5)):
            entry = tarfile.TarInfo(rng.choice([f"{i}", "a/b", "x" * 90, "a" * 150 if form != tarfile.USTAR_FORMAT else "a"]))
            entry.type = rng.choice([tarfile.REGTYPE] * 4 + [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.FIFOTYPE, b"S", b"Z"])
            entry.size = rng.choice([0, 3, 600]) if entry.type in (tarfile.REGTYPE, b"S", b"Z") else 0
            if form == tarfile.PAX_FORMAT and rng.random() < 0.5:
                entry.pax_headers = {rng.choice(["size", "path", "GNU.sparse.size", "GNU.sparse.map", "comment"]): rng.choice(
                    ["3", "-5000", "9" * 30, "1" * 3000, "0,1", "\u00e9"])}
            made.addfile(entry, io.BytesIO(bytes(entry.size)))
    data = damaged(rng, memory.getvalue()) if rng.random() < 0.2 else memory.getvalue()
    return rng.choice([bytes, bytes, gzip_of, bz2.compress, lzma.compress])(data)


def gzip_of(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


MAKERS: dict[str, Callable[[random.Random], bytes]] = {
    "torch": torch_file, "npz": npz_file, "npy": npy_file, "safetensors": safetensors_file, "tar": tar_file}


# ------------------------------------------------------------------------------- bombs, at full size


@functools.cache
def bombs() -> dict[str, tuple[str, bytes]]:
    """Small files that would take seconds or gigabytes, by name."""

    def archive(content: bytes) -> tuple[str, bytes]:
        memory = io.BytesIO()
        with zipfile.ZipFile(memory, "w") as made:
            add(made, "a/data.pkl", b"\x80\x02" + content + b".")
        return "torch", memory.getvalue()

    twice = b")" + b"q\x01h\x01\x86" * 40
    many = b"](" + b"K\x01" * 50_000 + b"e"
    calls = b"q\x03](" + b"h\x02h\x03\x85R" * 50_000 + b"e"
    compressed = io.BytesIO()
    with zipfile.ZipFile(compressed, "w", zipfile.ZIP_BZIP2) as made:
        add(made, "a.npy", bytes(1 << 26))
    keys = [number(i * (2**61 - 1)) for i in range(60_000)]
    twins = text("x" * 1_000_000) + b"q\x010" + text("x" * 1_000_000) + b"q\x020"
    zeros = bytes(1 << 28)
    result = {
        "a name of tuples": archive(twice + text("x") + b"\x93"),
        "a device of tuples": archive(name("torch", "device") + twice + b"\x85R"),
        "devices of devices": archive(name("torch", "device") + b"q\x02" + text("a" * 60)
                                      + b"q\x03h\x02h\x03h\x03\x86R" * 60),
        "bytearrays": archive(name("builtins", "bytearray") + b"q\x02B" + struct.pack("<I", 500_000) + bytes(500_000) + calls),
        "lists in sets": archive(name("builtins", "set") + b"q\x02" + many + calls),
        "sizes": archive(name("torch", "Size") + b"q\x02" + many + calls),
        "arguments": archive(name("torch._utils", "_rebuild_parameter") + b"q\x02(" + b"K\x01" * 50_000 + b"tq\x03]("
                             + b"h\x02h\x03R" * 50_000 + b"e"),
        "keys of one hash": archive(b"}(" + b"".join(key + b"N" for key in keys) + b"u"),
        "a set of one hash": archive(b"\x8f(" + b"".join(keys) + b"\x90"),
        "keys of tuples of one hash": archive(tuples_of_one_hash(b"}(", b"N", b"u")),
        "a set of tuples of one hash": archive(tuples_of_one_hash(b"\x8f(", b"", b"\x90")),
        "keys of a long number": archive(b"}" + number(2**1_000_000) + b"q\x05N" + b"s" + b"h\x05Ns" * 50_000),
        "keys of a long tuple": archive(b"}(" + b"K\x01" * 50_000 + b"tq\x05Ns" + b"h\x05Ns" * 50_000),
        "calls in calls": archive(nested_calls()),
        "keys that are compared to their ends": archive(twins + b"}h\x01Ns" + b"h\x02Ns" * 250_000),
        "a set of the same": archive(twins + b"\x8f(h\x01" + b"h\x02" * 500_000 + b"\x90"),
        "tuples of the same": archive(twins + b"h\x01\x85q\x030h\x02\x85q\x040" + b"}h\x03Ns" + b"h\x04Ns" * 250_000),
        "a tar in bzip2": ("tar", bz2.compress(tar_of(zeros))),
        "a tar in xz": ("tar", lzma.compress(tar_of(zeros), preset=0)),
        "a tar that leaves out zeros": ("tar", sparse_tar(8**11 - 1)),
        "a tar of digits": ("tar", tar_of(b"1" * 2_000_000, b"x")),
        "a tar of headers of headers": ("tar", (tar_of(b"11 comment=\n", b"x")[:1024]) * 4000),
        "bzip2": ("npz", compressed.getvalue()),
        "one entry many times": ("npz", many_times()),
        "no elements": ("safetensors", json_file(
            b'{"a":{"dtype":"F32","shape":[0,4611686018427387904,4611686018427387904],"data_offsets":[0,0]}}', b"")),
    }
    return result


def tar_of(content: bytes, kind: bytes = tarfile.REGTYPE) -> bytes:
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w") as made:
        entry = tarfile.TarInfo("a")
        entry.size, entry.type = len(content), kind
        made.addfile(entry, io.BytesIO(content))
    return memory.getvalue()


def sparse_tar(size: int) -> bytes:
    """A file of `size` zeros, of which none is there."""
    head = bytearray(tar_of(b"", b"S")[:512])
    head[386:410] = b"%011o\0%011o\0" % (0, 0)
    head[483:495] = b"%011o\0" % size
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + bytes(1024)


def tuples_of_one_hash(begin: bytes, value: bytes, end: bytes) -> bytes:
    """Of -1 and -2, which have one hash, and which differ late."""
    bits = [[b"h\x00"] * 50 + [b"h\x01" if i >> k & 1 else b"h\x00" for k in range(13)] for i in range(1 << 13)]
    numbers = b"J\xff\xff\xff\xffq\x000J\xfe\xff\xff\xffq\x010"
    return numbers + begin + b"".join(b"(" + b"".join(parts) + b"t" + value for parts in bits) + end


def nested_calls() -> bytes:
    """_rebuild_from_type_v2 of itself, 100,000 deep in its arguments."""
    function = name("torch._tensor", "_rebuild_from_type_v2") + b"q\x02"
    arguments = b")q\x03" + b"(h\x02Nh\x03Ntq\x03" * 100_000
    return function + arguments + b"R"


def many_times() -> bytes:
    """An archive whose 2,000 entries are one, of a megabyte."""
    memory = io.BytesIO()
    machine = zlib.compressobj(9, zlib.DEFLATED, -15)
    content = npy_file(random.Random(0)) + bytes(1 << 20)
    packed = machine.compress(content) + machine.flush()
    fields = (zlib.crc32(content), len(packed), len(content))
    memory.write(struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", 20, 0, 8, 0, 33, *fields, 5, 0) + b"a.npy" + packed)
    start = memory.tell()
    for i in range(2000):
        file_name = f"{i:04}.npy".encode()
        memory.write(struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\x01\x02", 20, 20, 0, 8, 0, 33, *fields, len(file_name), 0, 0,
                                 0, 0, 0, 0) + file_name)
    size = memory.tell() - start
    memory.write(struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 2000, 2000, size, start, 0))
    return memory.getvalue()


def write(folder: pathlib.Path, data: bytes) -> pathlib.Path:
    path = folder / "file"
    path.write_bytes(data)
    return path
