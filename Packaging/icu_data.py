#!/usr/bin/env python3
"""Makes an object file of the ICU data that a Swift program on Linux links, without the data that Stormy never uses.

    icu_data.py OUT.o

Foundation's ICU holds 34 MB of data in every statically linked program. The object file keeps dates, times, hours by language, numbers and
calendars in every language. Removed completely: converters (Foundation has its own), dictionaries for line breaking, transliteration, names
of characters. Removed except for the root and English: collation, spelled-out numbers, names of zones, units, currencies, languages, regions.

The object file comes before the library on the linker's command line and defines the same symbol, so the library's data is not linked. If an
item is missing, ICU uses the English item or the root item.

The format (ICU's source, common/ucmndata.h): a header, a count, (name offset, data offset) pairs sorted by name, names, 16-byte aligned data.
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile

LIBRARY = "usr/lib/swift_static/linux/lib_FoundationICU.a"
# The folders of the data from which only the root items and the English items are kept.
ENGLISH_ONLY = {"coll", "zone", "unit", "curr", "lang", "region", "rbnf"}
ENGLISH = re.compile(r"(root|en|en_US|en_001|res_index|pool|supplementalData|tzdbNames)\.res")


def is_kept(item: str) -> bool:
    """Returns whether the data keeps the item. `item` is a path within the data, for example "curr/de.res" or "de.res"."""
    folder, _, name = item.rpartition("/")
    if folder in ENGLISH_ONLY:
        return ENGLISH.fullmatch(name) is not None
    if folder == "brkitr":
        return not name.endswith(".dict")
    if folder == "translit":
        return False
    return not name.endswith(".cnv") and name not in ("unames.icu", "cnvalias.icu")


def trimmed(data: bytes) -> bytes:
    header, magic = struct.unpack_from("<HH", data)
    if magic != 0x27DA or data[12:16] != b"CmnD":
        sys.exit("icu_data.py: the library's data is of another format")
    (count,) = struct.unpack_from("<I", data, header)
    entries = [struct.unpack_from("<II", data, header + 4 + 8 * index) for index in range(count)]
    ends = [offset for _, offset in entries[1:]] + [len(data) - header]
    kept = []
    for (name, begin), end in zip(entries, ends):
        raw = data[header + name : data.index(0, header + name)]
        if is_kept(raw.decode().partition("/")[2]):
            kept.append((raw, data[header + begin : header + end]))
    names, toc, body = b"", b"", b""
    names_begin = 4 + 8 * len(kept)
    data_begin = -(-(names_begin + sum(len(raw) + 1 for raw, _ in kept)) // 16) * 16
    for raw, content in kept:
        toc += struct.pack("<II", names_begin + len(names), data_begin + len(body))
        names += raw + b"\0"
        body += content + b"\xaa" * (-len(content) % 16)
    index = struct.pack("<I", len(kept)) + toc + names
    return data[:header] + index + b"\xaa" * (data_begin - len(index)) + body


def main() -> None:
    out = os.path.abspath(sys.argv[1])
    # The command of the compiler can be a link to a program that chooses the toolchain.
    target = json.loads(subprocess.check_output([os.environ.get("SWIFTC", "swiftc"), "-print-target-info"]))
    toolchain = os.path.join(target["paths"]["runtimeResourcePath"], "../..")
    library = os.path.join(toolchain, "..", LIBRARY)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["ar", "x", os.path.realpath(library), "icu_packaged_data.cpp.o"], cwd=folder, check=True)
        symbols = subprocess.check_output(["nm", "icu_packaged_data.cpp.o"], cwd=folder, text=True)
        symbol = re.search(r"\bicudt\d+_dat\b", symbols)
        if symbol is None:
            sys.exit("icu_data.py: the library's data has another name")
        subprocess.run(
            ["objcopy", "-O", "binary", "--only-section=.rodata", "icu_packaged_data.cpp.o", "all.dat"], cwd=folder, check=True)
        with open(os.path.join(folder, "all.dat"), "rb") as file:
            data = file.read()
        small = trimmed(data)
        with open(os.path.join(folder, "small.dat"), "wb") as file:
            file.write(small)
        with open(os.path.join(folder, "data.S"), "w") as file:
            file.write(
                f'.section .rodata\n.globl {symbol[0]}\n.type {symbol[0]}, @object\n.p2align 4\n{symbol[0]}:\n'
                f'.incbin "small.dat"\n.size {symbol[0]}, {len(small)}\n.section .note.GNU-stack,"",@progbits\n')
        subprocess.run([os.path.join(toolchain, "bin/clang"), "-c", "data.S", "-o", out], cwd=folder, check=True)
    print(f"ICU's data: {len(data) / 1e6:.1f} MB, {len(small) / 1e6:.1f} MB of it linked")


main()
