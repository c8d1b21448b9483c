"""A second reader of the coefficient form, written from docs/coefficient-form.md.

    python read_form.py                  checks the forms of forms.txt against their hashes
    python read_form.py FILE             prints size, form and hash of a stored form

It decodes slowly and plainly, and shares no code with the reader in Rust. Only the code lengths
are read from jpeg/src/form/codes.txt, which is part of the format.
"""

import hashlib
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).parent
CODES = HERE / "../../src/form/codes.txt"

def int16(number):
    """The number modulo 2^16, as 16-bit two's complement."""
    return (number + 32768) % 65536 - 32768


class Code:
    """A canonical prefix code: {(length, code): symbol}."""

    def __init__(self, lengths):
        self.symbols = {}
        code = 0
        for length in range(1, 11):
            code <<= 1
            for symbol, its in enumerate(lengths):
                if its == length:
                    self.symbols[length, code] = symbol
                    code += 1


def read_codes():
    """The codes by name, and the maps of codes of groups."""
    lines = {}
    for line in CODES.read_text().splitlines():
        if not line.startswith("#"):
            name, digits = line.split()
            lines.setdefault(name, []).append([int(digit, 36) for digit in digits])
    codes = {name: [Code(lengths) for lengths in lines[name]]
             for name in ["group", "width", "class", "dc", "dc_width"]}
    return codes, lines["group_map"], lines["dc_map"][0]


class Bytes:
    """Reads from front to back."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if self.at + count > len(self.data):
            raise ValueError(f"ends within {count} bytes at {self.at}")
        self.at += count
        return self.data[self.at - count : self.at]

    def unpack(self, layout):
        return struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout)))

    def number(self):
        number, shift = 0, 0
        while True:
            (byte,) = self.take(1)
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number


class Lanes:
    """Symbols from several streams of bits in turn."""

    def __init__(self, streams):
        joined = [int.from_bytes(stream, "little") for stream in streams]
        self.bits, self.at = joined, [0] * len(streams)

    def symbol(self, lane, code):
        length, bits = 0, 0
        while (length, bits) not in code.symbols:
            if length > 10:
                raise ValueError("no such code")
            bits = bits << 1 | self.bits[lane] >> self.at[lane] & 1
            length += 1
            self.at[lane] += 1
        return code.symbols[length, bits]


class Form:
    def __init__(self, data):
        head = Bytes(data)
        if head.take(8) != b"\x89MPC\r\n\x1a\n":
            raise ValueError("no coefficient form")
        version, form, self.colour, components, tables = head.unpack("5B")
        if version != 2 or form not in (0, 1):
            raise ValueError("unknown version or form")
        self.form = ["fast", "compact"][form]
        self.width, self.height = head.unpack("2H")
        self.sampling = []
        for _ in range(components):
            factors, _table = head.unpack("2B")
            self.sampling.append((factors >> 4, factors & 15))
        self.tables = []
        for _ in range(tables):
            (wide,) = head.take(1)
            self.tables.append(head.unpack("64H" if wide else "64B"))
        self.kinds = []
        if form == 1:
            (self.lanes,) = head.take(1)
            for _ in range(min(2, components)):
                (classes,) = head.take(1)
                widths = [half for byte in head.take(5) for half in (byte & 15, byte >> 4)]
                self.kinds.append((classes, widths))
        skeleton = head.number()
        wide = 8 * max(h for h, _ in self.sampling)
        high = 8 * max(v for _, v in self.sampling)
        self.mcus_wide = (self.width + wide - 1) // wide
        self.mcus_high = (self.height + high - 1) // high
        lengths = [head.number() for _ in range(self.mcus_high)]
        self.planes = [[] for _ in self.sampling]
        for length in lengths:
            self.row(head.take(length))
        self.skeleton = head.take(skeleton)
        if head.at != len(data):
            raise ValueError("bytes after the end")

    def lines(self):
        """(component, kind, blocks) of each line of blocks of a row of MCUs."""
        for component, (horizontal, vertical) in enumerate(self.sampling):
            for _ in range(vertical):
                yield component, min(component, 1), horizontal * self.mcus_wide

    def row(self, data):
        if self.form == "compact":
            data = self.decoded_row(data)
        differences, groups = self.fast_row(data)
        block, before = 0, None
        above, last = 0, None
        for component, _kind, wide in self.lines():
            if component != last:
                above, last = 0, component
            before = above
            for index in range(wide):
                before = int16(before + differences[block])
                above = before if index == 0 else above
                natural = [0] * 64
                for index_of, group in enumerate(groups[block]):
                    for number, value in enumerate(group):
                        row = 2 * (index_of // 2) + number // 4
                        natural[8 * row + 4 * (index_of % 2) + number % 4] = value
                natural[0] = before
                self.planes[component].append(natural)
                block += 1

    def fast_row(self, data):
        source = Bytes(data)
        blocks = sum(wide for _, _, wide in self.lines())
        dc_groups = [(wide - first) if wide - first < 8 else 8
                     for _, _, wide in self.lines() for first in range(0, wide, 8)]

        def nibbles(count):
            stored = source.take((count + 1) // 2)
            return [half for byte in stored for half in (byte & 15, byte >> 4)][:count]

        def numbers(code):
            bits = 16 if code == 15 else code
            stored = int.from_bytes(source.take(bits), "little")
            return bits, [stored >> (bits * index) & ((1 << bits) - 1) for index in range(8)]

        def group(code):
            return [number >> 1 ^ -(number & 1) for number in numbers(code)[1]]

        def signed_group(code):
            bits, stored = numbers(code)
            return [number - (1 << bits) if number >> (bits - 1) else number
                    for number in stored] if bits else stored

        classes = nibbles(blocks)
        codes = nibbles(len(dc_groups))
        differences = []
        for code, count in zip(codes, dc_groups):
            differences += group(code)[:count]
        widths = [nibbles(2 * of_block) for of_block in classes]
        groups = [[signed_group(code) for code in codes] for codes in widths]
        if source.at != len(data):
            raise ValueError("bytes after a row")
        return differences, groups

    def decoded_row(self, data):
        """The row of the fast form that a row of the compact form stands for."""
        codes, group_map, dc_map = read_codes()
        source = Bytes(data)
        lengths = [source.number()]
        while len(lengths) < self.lanes:
            folded = source.number()
            lengths.append(lengths[-1] + (folded >> 1 ^ -(folded & 1)))
        streams = [source.take(length) for length in lengths]
        lanes = Lanes(streams)
        escapes = iter(source.data[source.at :])

        def run(codes_of):
            listed = enumerate(codes_of)
            symbols = [lanes.symbol(index % self.lanes, code) for index, code in listed]
            return [next(escapes) if symbol == 0x99 else symbol for symbol in symbols]

        def bytes_of(pair, maps, codes):
            """The codes of the bytes of two groups whose widths are in a byte."""
            found = []
            for code, its in zip((pair & 15, pair >> 4), maps):
                width = 16 if code == 15 else code
                found += [codes[its[width * (width - 1) // 2 + place]] for place in range(width)]
            return found

        kinds = [kind for _, kind, wide in self.lines() for _ in range(wide)]
        groups = sum((wide + 7) // 8 for _, _, wide in self.lines())
        of_classes = [codes["class"][self.kinds[kind][0]] for kind in kinds[::2]]
        first = run(of_classes + [codes["dc_width"][0]] * ((groups + 1) // 2))
        pairs, dc_widths = first[: len(of_classes)], first[len(of_classes) :]
        classes = [half for byte in pairs for half in (byte & 15, byte >> 4)][: len(kinds)]
        of_dc = sum((bytes_of(pair, [dc_map] * 2, codes["dc"]) for pair in dc_widths), [])
        blocks = zip(kinds, classes)
        places = [(kind, which, band) for kind, which in blocks for band in range(which)]
        of_widths = [codes["width"][self.kinds[kind][1][which * (which - 1) // 2 + band]]
                     for kind, which, band in places]
        second = run(of_dc + of_widths)
        of_groups = []
        for pair, (kind, _which, band) in zip(second[len(of_dc) :], places):
            first_map = 8 * kind + 2 * band
            of_groups += bytes_of(pair, group_map[first_map : first_map + 2], codes["group"])
        row = first + second + run(of_groups)
        if [(at + 7) // 8 for at in lanes.at] != lengths or list(escapes):
            raise ValueError("a lane has another length, or there are more escapes")
        return bytes(row)

    def hash(self):
        values = [value for plane in self.planes for block in plane for value in block]
        return hashlib.sha256(struct.pack(f"<{len(values)}h", *values)).hexdigest()


def main():
    if len(sys.argv) > 1:
        form = Form(pathlib.Path(sys.argv[1]).read_bytes())
        print(f"{form.form} {form.width}x{form.height} {form.sampling} {form.hash()}")
        return
    for line in (HERE / "forms.txt").read_text().splitlines():
        name, stored = line.split(" : ")
        digits, expected = stored.split()
        form = Form(bytes.fromhex(digits))
        if form.hash() != expected or form.skeleton != b"skeleton":
            sys.exit(f"{name}: other coefficients")
        print(f"{name}: {form.width}x{form.height} as stored")


if __name__ == "__main__":
    main()
