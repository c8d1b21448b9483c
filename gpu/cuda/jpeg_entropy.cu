// Huffman codes to coefficients (T.81 F.2.2): one thread for each segment of the data.

__constant__ u8 jpeg_natural[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

// Reads bits, taking out stuffed bytes. At a marker and behind the end it reads zeros and counts
// them.
struct JpegBits {
    const u32 *words;
    u32 at, end;
    // The words that hold the next bytes: loaded one refill before they are needed.
    u32 low, high;
    // The next bits, the first one being the highest, and how many there are.
    u64 next;
    u32 count;
    u32 made_up;

    __device__ __forceinline__ void load() {
        low = words[at >> 2];
        high = words[(at >> 2) + 1];
    }
    __device__ __forceinline__ void start(const u32 *data, u32 byte, u32 bytes, u32 bits) {
        words = data, at = byte < bytes ? byte : bytes, end = bytes;
        next = 0, count = 0, made_up = 0;
        load();
        refill();
        skip(bits);
    }
    __device__ __forceinline__ void skip(u32 bits) { next <<= bits, count -= bits; }

    // At least 32 bits are there afterwards.
    __device__ __forceinline__ void refill() {
        if (count >= 32) return;
        u32 bytes = __byte_perm(__funnelshift_r(low, high, (at & 3) * 8), 0, 0x0123);
        // A byte of ~bytes that is zero borrows from its highest bit.
        bool has_ff = ((~bytes - 0x01010101u) & bytes & 0x80808080u) != 0;
        if (at + 4 > end || has_ff) return refill_slowly();
        next |= (u64)bytes << (32 - count);
        count += 32, at += 4;
        low = high, high = words[(at >> 2) + 1];
    }
    __device__ __forceinline__ void refill_slowly() {
        const u8 *bytes = (const u8 *)words;
#pragma unroll 1
        for (u32 i = 0; i < 4; i++) {
            u32 byte = at < end ? bytes[at] : 0xff;
            if (byte != 0xff) {
                at += 1;
            } else if (at + 1 < end && bytes[at + 1] == 0) {
                at += 2;
            } else {
                byte = 0, made_up += 8;
            }
            next |= (u64)byte << (56 - count);
            count += 8;
        }
        load();
    }
    __device__ __forceinline__ bool is_overrun() const { return count < made_up; }

    // Whether the next bit is the one at this position. It must not be overrun.
    __device__ bool is_at(u32 byte, u32 bits) const {
        const u8 *bytes = (const u8 *)words;
        u32 unread = count - made_up, position = at;
        for (u32 i = 0; i < (unread + 7) / 8 && position > 0; i++) {
            bool stuffed = position >= 2 && bytes[position - 2] == 0xff && bytes[position - 1] == 0;
            position -= stuffed ? 2 : 1;
        }
        return position == byte && (0 - unread & 7) == bits;
    }
    // Whether less than a byte is left before the marker whose 0xff is at this position. Fill bytes
    // may precede it. It must not be overrun.
    __device__ bool is_before_marker(u32 marker) const {
        const u8 *bytes = (const u8 *)words;
        u32 position = at;
        while (position < marker && bytes[position] == 0xff) position++;
        return position == marker && count - made_up < 8;
    }
};

// The code at the beginning of the bits, which no lookup finds: length << 8 | symbol, 0 for none.
__device__ static __noinline__ u32 jpeg_long_code(const JpegTable *table, u32 bits) {
    for (u32 length = JPEG_PEEK_BITS + 1; length <= 16; length++) {
        if (bits >= table->ends[length]) continue;
        i32 index = (i32)(bits >> (16 - length)) + table->offsets[length];
        return length << 8 | table->symbols[index & 255];
    }
    return 0;
}

// Where the blocks of a picture go.
struct JpegTarget {
    const JpegComponent *components;
    i16 *coefficients;

    // The block of a unit in an MCU; null for one that is not needed.
    __device__ __forceinline__ i16 *block(u32 unit, u32 column, u32 row) const {
        const JpegComponent *component = components + (unit & 15);
        u32 x = column * component->h + (unit >> 4 & 15) - component->left;
        u32 y = row * component->v + (unit >> 8 & 15) - component->top;
        if (x >= component->wide || y >= component->high) return nullptr;
        return coefficients + 64 * (u64)(component->first_block + y * component->wide + x);
    }
};

extern "C" __global__ void __launch_bounds__(32) jpeg_decode_segments(const u8 *area, const JpegPicture *pictures, const JpegComponent *all_components, const JpegTable *all_tables, const JpegSegment *segments, const JpegGroup *groups, i16 *coefficients, u32 *status) {
    __shared__ uint4 table_quads[JPEG_TABLES_MAX * JPEG_TABLE_QUADS];
    __shared__ JpegComponent components[3];
    __shared__ u32 units[JPEG_UNITS_MAX];
    __shared__ u8 natural[64];
    __shared__ i32 dc_of_lanes[3][32];
    u32 lane = threadIdx.x;
    const JpegGroup group = groups[blockIdx.x];
    const JpegPicture *picture = pictures + group.picture;
    const JpegTable *tables = (const JpegTable *)table_quads;
    u32 unit_count = picture->unit_count, mcus_wide = picture->mcus_wide;

    for (u32 table = 0; table < picture->table_count; table++) {
        const uint4 *from = (const uint4 *)(all_tables + picture->tables[table]);
        for (u32 i = lane; i < JPEG_TABLE_QUADS; i += 32)
            table_quads[table * JPEG_TABLE_QUADS + i] = from[i];
    }
    if (lane < picture->component_count) components[lane] = all_components[picture->first_component + lane];
    if (lane < unit_count) units[lane] = picture->units[lane];
    natural[lane] = jpeg_natural[lane], natural[lane + 32] = jpeg_natural[lane + 32];
    __syncwarp();
    if (lane >= group.count) return;

    const JpegSegment segment = segments[group.first_segment + lane];
#pragma unroll
    for (u32 i = 0; i < 3; i++) dc_of_lanes[i][lane] = segment.dc[i];
    JpegTarget target = {components, coefficients};
    JpegBits bits;
    bits.start((const u32 *)(area + picture->data_offset), segment.byte, picture->data_bytes, segment.bits);
    u32 mcu = segment.mcu, column = mcu % mcus_wide, row = mcu / mcus_wide;
    u32 number = 0, unit = units[0], problem = 0;
    i16 *block = target.block(unit, column, row);
    // Zigzag position of the next coefficient. All threads of a warp take one symbol in each round,
    // of whatever kind, so that they do not wait for each other's blocks to end.
    u32 position = 0;
    while (mcu < segment.mcu_end) {
        bits.refill();
        bool is_dc = position == 0;
        const JpegTable *table = tables + (is_dc ? unit >> 12 & 15 : unit >> 16);
        u32 look = table->looks[bits.next >> (64 - JPEG_PEEK_BITS)];
        if (look == 0) {
            look = jpeg_long_code(table, (u32)(bits.next >> 48));
            if (look == 0) { problem = JPEG_NO_CODE; break; }
        }
        u32 length = look >> 8, size = look & 15, zeros = look >> 4 & 15;
        // The value of the next bits (T.81 Figure F.12, EXTEND).
        u64 rest = bits.next << length;
        i32 value = (i32)((rest >> 1) >> (63 - size));
        if (!(rest >> 63)) value += 1 - (1 << size);
        bits.skip(length + size);
        bool is_end;
        if (is_dc) {
            i32 *dc = &dc_of_lanes[unit & 15][lane];
            *dc = (i32)((u32)*dc + (u32)value);
            if (block) block[0] = (i16)*dc;
            position = 1, is_end = false;
        } else if (size == 0 && zeros != 15) {
            is_end = true;
        } else {
            position += zeros;
            if (position > 63) { problem = JPEG_TOO_MANY; break; }
            if (block && size != 0) block[natural[position]] = (i16)value;
            position += 1, is_end = position == 64;
        }
        if (!is_end) continue;
        position = 0, number += 1;
        if (number == unit_count) {
            number = 0, mcu += 1, column += 1;
            if (column == mcus_wide) column = 0, row += 1;
            if (bits.is_overrun()) break;
        }
        unit = units[number];
        block = target.block(unit, column, row);
    }
    if (bits.is_overrun()) {
        problem |= JPEG_OVERRUN;
    } else if (!problem && segment.end == 1) {
        bool is_right = bits.is_at(segment.end_byte, segment.end_bits);
#pragma unroll
        for (u32 i = 0; i < 3; i++)
            is_right &= i >= picture->component_count || (i16)dc_of_lanes[i][lane] == segment.end_dc[i];
        if (!is_right) problem = JPEG_WRONG_END;
    } else if (!problem && segment.end == 2 && !bits.is_before_marker(segment.end_byte)) {
        problem = JPEG_WRONG_END;
    }
    if (problem) atomicOr(status + group.picture, problem);
}
