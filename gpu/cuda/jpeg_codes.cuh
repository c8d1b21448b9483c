// What the decoders of Huffman codes share: codes, where blocks go, and storing coefficients.
#ifndef MEETPOINT_JPEG_CODES
#define MEETPOINT_JPEG_CODES

__constant__ u8 jpeg_natural[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

// What a code means, a byte each from the lowest on: bits of the code and the value behind it, bits
// of the value, coefficients by which an AC code advances (64 where it ends its block), bits of
// the code.
struct JpegEntry {
    u32 word;

    __device__ __forceinline__ u32 taken() const { return word & 255; }
    __device__ __forceinline__ u32 size() const { return word >> 8 & 255; }
    __device__ __forceinline__ u32 advance() const { return word >> 16 & 255; }
    __device__ __forceinline__ u32 length() const { return word >> 24; }
};

// Bits that no code begins with: it takes one of them, so that decoding that is not known to have
// begun at a code comes to an end.
#define JPEG_NO_ENTRY 1u

// The code at the beginning of 16 bits, which no lookup finds.
__device__ static __noinline__ u32 jpeg_long_code(const JpegTable *table, u32 bits) {
    for (u32 length = JPEG_PEEK_BITS + 1; length <= 16; length++) {
        if (bits >= table->ends[length]) continue;
        i32 index = (i32)(bits >> (16 - length)) + table->offsets[length];
        u32 symbol = table->symbols[index & 255], size = symbol & 15, zeros = symbol >> 4;
        u32 advance = size == 0 && zeros != 15 ? 64 : zeros + 1;
        return (length + size) | size << 8 | advance << 16 | length << 24;
    }
    return JPEG_NO_ENTRY;
}

// Bits of data without stuffed bytes. The word behind the next 64 bits is loaded before it is
// needed.
struct JpegReader {
    const u32 *word;
    u32 high, low, ahead, offset;

    __device__ __forceinline__ u32 load() { return __byte_perm(*word++, 0, 0x0123); }
    __device__ __forceinline__ void start(const u32 *data, u32 at) {
        word = data + at / 32, offset = at % 32;
        high = load(), low = load(), ahead = load();
    }
    __device__ __forceinline__ u32 peek() const { return __funnelshift_l(low, high, offset); }
    // At most 32 bits.
    __device__ __forceinline__ void skip(u32 bits) {
        offset += bits;
        if (offset < 32) return;
        offset -= 32, high = low, low = ahead, ahead = load();
    }
};

// A block of an MCU: its tables and its part of the needed blocks.
struct alignas(16) JpegUnit {
    // Offsets in bytes of the tables for DC (low half) and AC (high half).
    u32 tables;
    u32 component;
    // Its position in the needed blocks is that of its MCU times these, plus those.
    u32 h, v, x, y;
    u32 wide, high;
    u32 first_block;
    u32 reserved[3];

    // The number of the block among all coefficients; 0xffffffff for one that is not needed.
    __device__ __forceinline__ u32 block(u32 column, u32 row) const {
        u32 left = column * h + x, top = row * v + y;
        return left < wide && top < high ? first_block + top * wide + left : 0xffffffffu;
    }
};

// What the threads of a block share of their picture.
struct JpegShared {
    uint4 table_quads[JPEG_TABLES_MAX * JPEG_TABLE_QUADS];
    JpegUnit units[JPEG_UNITS_MAX];
    u8 natural[64];

    // All threads of the block load it; a barrier must follow.
    __device__ __forceinline__ void load(const JpegPicture *picture,
        const JpegComponent *components, const JpegTable *tables) {
        u32 thread = threadIdx.x, threads = blockDim.x;
        for (u32 table = 0; table < picture->table_count; table++) {
            const uint4 *from = (const uint4 *)(tables + picture->tables[table]);
#pragma unroll 4
            for (u32 i = thread; i < JPEG_TABLE_QUADS; i += threads)
                table_quads[table * JPEG_TABLE_QUADS + i] = from[i];
        }
        if (thread < picture->unit_count) {
            u32 word = picture->units[thread];
            const JpegComponent &of = components[picture->first_component + (word & 15)];
            u32 bytes = sizeof(JpegTable);
            units[thread] = {(word >> 12 & 15) * bytes | (word >> 16) * bytes << 16, word & 15,
                of.h, of.v, (word >> 4 & 15) - of.left, (word >> 8 & 15) - of.top, of.wide, of.high,
                of.first_block, {0, 0, 0}};
        }
        for (u32 i = thread; i < 64; i += threads) natural[i] = jpeg_natural[i];
    }
    // The code at the beginning of 32 bits.
    __device__ __forceinline__ JpegEntry entry(u32 tables, bool is_dc, u32 bits) const {
        u32 offset = is_dc ? tables & 0xffff : tables >> 16;
        const JpegTable *table = (const JpegTable *)((const u8 *)table_quads + offset);
        u32 word = table->looks[bits >> (32 - JPEG_PEEK_BITS)];
        if (word == 0) word = jpeg_long_code(table, bits >> 16);
        return {word};
    }
};

// Where decoding stands: the next bit, and the block in the MCU with the zigzag position of the
// next coefficient in it.
struct JpegState {
    u32 at;
    u32 number, position;

    __device__ __forceinline__ bool differs(const JpegState &other) const {
        return at != other.at || number != other.number || position != other.position;
    }
};

// What decoding a part of a segment found.
struct JpegStored {
    u32 at;
    // Blocks that are finished, counted through the scan.
    u32 index;
    u32 problem;
    // Blocks whose DC value is in the part.
    u32 dc_count;
};

// Decodes from a known state, where `index` blocks precede it, and stores the coefficients. `dc`
// has the DC values of three components, `stride` words apart, and is updated.
__device__ static __forceinline__ JpegStored jpeg_store(const JpegShared &shared,
    const JpegPicture *picture, const JpegSegment &segment, const u32 *words, JpegState state,
    u32 until, u32 index, u32 *dc, u32 stride, i16 *coefficients) {
    JpegReader reader;
    reader.start(words, state.at);
    u32 unit_count = picture->unit_count, mcus_wide = picture->mcus_wide;
    u32 at = state.at, number = state.number, position = state.position;
    u32 mcu = index / unit_count, column = mcu % mcus_wide, row = mcu / mcus_wide;
    const JpegUnit *unit = shared.units + number;
    u32 tables = unit->tables, component = unit->component, block = unit->block(column, row);
    u32 before = dc[component * stride], dc_count = 0;
    // One symbol of whatever kind in each round, so that the threads of a warp do not wait for each
    // other's blocks to end.
    while (at < until && index < segment.block_end) {
        u32 bits = reader.peek();
        bool is_dc = position == 0;
        JpegEntry entry = shared.entry(tables, is_dc, bits);
        u32 taken = entry.taken(), size = entry.size(), advance = is_dc ? 1 : entry.advance();
        at += taken;
        reader.skip(taken);
        if (entry.length() == 0) return {at, index, JPEG_NO_CODE, dc_count};
        // T.81 Figure F.12, EXTEND.
        u32 rest = bits << entry.length();
        u32 value = rest >> 1 >> (31 - size);
        if (!(rest >> 31)) value += 1 - (1u << size);
        before += is_dc ? value : 0, dc_count += is_dc;
        position += advance;
        bool is_end = position >= 64;
        if (is_end && position > 64 && advance != 64) return {at, index, JPEG_TOO_MANY, dc_count};
        if (block != 0xffffffffu && (size != 0 || is_dc)) {
            u32 to = is_dc ? 0 : shared.natural[(position - 1) & 63];
            coefficients[64 * (u64)block + to] = (i16)(is_dc ? before : value);
        }
        if (!is_end) continue;
        position = 0, index += 1, number += 1;
        if (number == unit_count) {
            number = 0, column += 1;
            if (column == mcus_wide) column = 0, row += 1;
        }
        dc[component * stride] = before;
        unit = shared.units + number;
        tables = unit->tables, component = unit->component, block = unit->block(column, row);
        before = dc[component * stride];
    }
    dc[component * stride] = before;
    return {at, index, at > segment.bit_end ? JPEG_OVERRUN : 0, dc_count};
}

// What is wrong with the end of a segment whose last block ends at a bit.
__device__ static __forceinline__ u32 jpeg_end_problem(const JpegSegment &segment,
    u32 component_count, u32 at, const u32 dc[3]) {
    if (at > segment.bit_end) return JPEG_OVERRUN;
    bool is_right = segment.end != JPEG_END_NOWHERE;
    if (segment.end == JPEG_END_MARKER) is_right = segment.bit_end - at < 8;
    if (segment.end == JPEG_END_ENTRY) {
        is_right = at == segment.bit_end;
#pragma unroll
        for (u32 i = 0; i < 3; i++)
            if (i < component_count) is_right &= (i16)dc[i] == segment.end_dc[i];
    }
    return is_right ? 0 : JPEG_WRONG_END;
}

#endif
