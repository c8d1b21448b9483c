"""Changes to the bytes of a JPEG, each as a function from the old file to the new one."""

import struct


def segments(data):
    """(offset, marker, length with marker) up to and with the first SOS."""
    at = 2
    while True:
        marker, length = data[at + 1], struct.unpack(">H", data[at + 2 : at + 4])[0] + 2
        yield at, marker, length
        if marker == 0xDA:
            return
        at += length


def inserted(marker, payload):
    """A segment put behind SOI."""
    segment = bytes([0xFF, marker]) + struct.pack(">H", len(payload) + 2) + payload
    return lambda data: data[:2] + segment + data[2:]


def orientation(value):
    """An Exif segment that says how the picture lies."""
    exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0" + struct.pack("<HHIHH", 0x0112, 3, 1, value, 0)
    return inserted(0xE1, exif + b"\0\0\0\0")


def fill_bytes(data):
    """Three more 0xFF before every marker segment and before EOI, one before each RST."""
    out, last = bytearray(data[:2]), 2
    for at, _, length in segments(data):
        out += b"\xff\xff\xff" + data[at : at + length]
        last = at + length
    scan = data[last:-2]
    for index in range(8):
        scan = scan.replace(bytes([0xFF, 0xD0 + index]), bytes([0xFF, 0xFF, 0xD0 + index]))
    return bytes(out) + scan + b"\xff\xff\xff" + data[-2:]


def without(*markers):
    """Drops segments."""

    def change(data):
        out, last = bytearray(data[:2]), 2
        for at, marker, length in segments(data):
            if marker not in markers:
                out += data[at : at + length]
            last = at + length
        return bytes(out) + data[last:]

    return change


def patched(marker, offset, new):
    """Overwrites bytes of the first segment of a kind; offset 0 is its length field."""

    def change(data):
        for at, found, _ in segments(data):
            if found == marker:
                at += 2 + offset
                return data[:at] + bytes(new) + data[at + len(new) :]
        raise ValueError(f"no marker {marker:02x}")

    return change


def split_tables(data):
    """Each Huffman table in a segment of its own, all first sent wrong and then right."""
    out, wrong = bytearray(data[:2]), bytearray()
    rest = bytearray()
    for at, marker, length in segments(data):
        segment = data[at : at + length]
        if marker != 0xC4:
            rest += segment
            last = at + length
            continue
        at = 4
        while at < len(segment):
            count = 17 + sum(segment[at + 1 : at + 17])
            table = segment[at : at + count]
            head = b"\xff\xc4" + struct.pack(">H", count + 2)
            # The same symbols backwards: a valid table with other meanings.
            wrong += head + table[:17] + bytes(reversed(table[17:]))
            out += head + table
            at += count
        last = at + length if marker == 0xC4 else last
    right = bytes(out[2:])
    return data[:2] + bytes(wrong) + right + bytes(rest) + data[last:]


def lines_in_dnl(data):
    """The height 0 in the frame header and a DNL segment behind the scan."""
    for at, marker, _ in segments(data):
        if marker == 0xC0:
            height = data[at + 5 : at + 7]
            data = data[: at + 5] + b"\0\0" + data[at + 7 :]
    return data[:-2] + b"\xff\xdc\0\x04" + height + data[-2:]


def cut(count):
    """Breaks the file off, `count` bytes before its end."""
    return lambda data: data[:-count]


def wrong_restart(data):
    """The second restart marker has a wrong number."""
    return data.replace(b"\xff\xd1", b"\xff\xd5", 1)


def after(*changes):
    def change(data):
        for step in changes:
            data = step(data)
        return data

    return change


def in_data(*changes):
    """Overwrites bytes of the data of the last scan, each at a share of its length."""

    def change(data):
        at = data.rindex(b"\xff\xda") + 2
        at += struct.unpack(">H", data[at : at + 2])[0]
        data, length = bytearray(data), len(data) - 2 - at
        for share, new in changes:
            place = at + int(length * share)
            data[place : place + len(new)] = new
        return bytes(data)

    return change


def first_scans(count):
    """Ends the file behind a given number of scans."""

    def change(data):
        at = 0
        for _ in range(count + 1):
            at = data.index(b"\xff\xda", at + 2)
        # The segments in front of the scan that goes may stay.
        return data[:at] + b"\xff\xd9"

    return change
