// Huffman codes to coefficients (T.81 F.2.2): one thread for each segment of the data.

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

extern "C" __global__ void __launch_bounds__(32) jpeg_decode_segments(const u8 *area,
    const JpegPicture *pictures, const JpegComponent *all_components, const JpegTable *all_tables,
    const JpegSegment *segments, const JpegGroup *groups, i16 *coefficients, u32 *status) {
    __shared__ JpegShared shared;
    __shared__ i32 dc_of_lanes[3][32];
    u32 lane = threadIdx.x;
    const JpegGroup group = groups[blockIdx.x];
    const JpegPicture *picture = pictures + group.picture;
    u32 unit_count = picture->unit_count, mcus_wide = picture->mcus_wide;
    shared.load(picture, all_components, all_tables);
    __syncwarp();
    if (lane >= group.count) return;

    const JpegSegment segment = segments[group.first_segment + lane];
#pragma unroll
    for (u32 i = 0; i < 3; i++) dc_of_lanes[i][lane] = segment.dc[i];
    JpegTarget target = {shared.components, coefficients};
    JpegBits bits;
    bits.start((const u32 *)(area + picture->data_offset), segment.byte, picture->data_bytes,
        segment.bits);
    u32 mcu = segment.mcu, column = mcu % mcus_wide, row = mcu / mcus_wide;
    u32 number = 0, unit = shared.units[0], problem = 0;
    i16 *block = target.block(unit, column, row);
    // Zigzag position of the next coefficient. All threads of a warp take one symbol in each round,
    // of whatever kind, so that they do not wait for each other's blocks to end.
    u32 position = 0;
    while (mcu < segment.mcu_end) {
        bits.refill();
        bool is_dc = position == 0;
        JpegSymbol symbol = jpeg_symbol(shared.table(unit, is_dc), bits.next);
        if (symbol.length == 0) { problem = JPEG_NO_CODE; break; }
        bits.skip(symbol.length + symbol.size);
        bool is_end;
        if (is_dc) {
            i32 *dc = &dc_of_lanes[unit & 15][lane];
            *dc = (i32)((u32)*dc + (u32)symbol.value);
            if (block) block[0] = (i16)*dc;
            position = 1, is_end = false;
        } else if (jpeg_is_end(symbol)) {
            is_end = true;
        } else {
            position += symbol.zeros;
            if (position > 63) { problem = JPEG_TOO_MANY; break; }
            if (block && symbol.size != 0) block[shared.natural[position]] = (i16)symbol.value;
            position += 1, is_end = position == 64;
        }
        if (!is_end) continue;
        position = 0, number += 1;
        if (number == unit_count) {
            number = 0, mcu += 1, column += 1;
            if (column == mcus_wide) column = 0, row += 1;
            if (bits.is_overrun()) break;
        }
        unit = shared.units[number];
        block = target.block(unit, column, row);
    }
    if (bits.is_overrun()) {
        problem |= JPEG_OVERRUN;
    } else if (!problem && segment.end == 1) {
        bool is_right = bits.is_at(segment.end_byte, segment.end_bits);
#pragma unroll
        for (u32 i = 0; i < 3; i++)
            if (i < picture->component_count)
                is_right &= (i16)dc_of_lanes[i][lane] == segment.end_dc[i];
        if (!is_right) problem = JPEG_WRONG_END;
    } else if (!problem && segment.end == 2 && !bits.is_before_marker(segment.end_byte)) {
        problem = JPEG_WRONG_END;
    }
    if (problem) atomicOr(status + group.picture, problem);
}
