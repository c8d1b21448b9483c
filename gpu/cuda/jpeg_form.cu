// Converts coefficient forms to coefficients (docs/coefficient-form.md). One warp handles one row
// of MCUs. For the compact form, its first threads decode one lane each to the bytes of a row of
// the fast form. Any violation of the format, including unused half bytes other than 0, is
// reported.

#define JPEG_WRONG_FORM 16u

// The byte that is replaced by the next byte of the list of escapes.
#define JPEG_ESCAPE 0x99u

// A row of a form: its bytes, their number, and the structure of its blocks.
struct JpegRow {
    const u8 *bytes;
    u32 length;
    const JpegForm *form;
    u32 class_bytes, dc_groups;

    __device__ __forceinline__ u32 nibble(u32 from, u32 index) const {
        return bytes[from + index / 2] >> index % 2 * 4 & 15;
    }
    __device__ __forceinline__ u32 class_of(u32 block) const { return nibble(0, block); }
    __device__ __forceinline__ u32 dc_width(u32 group) const {
        u32 code = nibble(class_bytes, group);
        return code + (code == 15);
    }
    // Offset of the groups of DC differences.
    __device__ __forceinline__ u32 head() const { return class_bytes + (dc_groups + 1) / 2; }
};

// Bytes of the two groups whose widths are in one byte.
__device__ static __forceinline__ u32 jpeg_pair_bytes(u32 widths) {
    u32 low = widths & 15, high = widths >> 4;
    return low + high + (low == 15) + (high == 15);
}

// The sum of the values of the lower threads of the warp; `all` is the sum of all threads.
__device__ static __forceinline__ u32 jpeg_sum_before(u32 value, u32 &all) {
    u32 sum = value;
#pragma unroll
    for (u32 distance = 1; distance < 32; distance *= 2) {
        u32 other = __shfl_up_sync(0xffffffffu, sum, distance);
        sum += threadIdx.x >= distance ? other : 0;
    }
    all = __shfl_sync(0xffffffffu, sum, 31);
    return sum - value;
}

// The number at `index` of a group, as unsigned bits. Loads up to two bytes past the group.
__device__ static __forceinline__ u32 jpeg_number(const u8 *group, u32 width, u32 index) {
    u32 bit = index * width;
    const u8 *at = group + bit / 8;
    u32 bits = (u32)at[0] | (u32)at[1] << 8 | (u32)at[2] << 16;
    return bits >> bit % 8 & ((1u << width) - 1);
}

// Computes the sums of the classes of a row and of the widths of its groups of DC differences.
// Returns whether both lists are valid.
__device__ static bool jpeg_form_sums(const JpegRow &row, u32 &classes, u32 &dc_bytes) {
    const JpegForm *form = row.form;
    bool is_wrong = row.length < row.head();
    if (is_wrong) return false;
    if (form->blocks % 2) is_wrong = row.class_of(form->blocks) != 0;
    if (row.dc_groups % 2) is_wrong |= row.nibble(row.class_bytes, row.dc_groups) != 0;
    u32 own = 0, own_dc = 0;
    for (u32 block = threadIdx.x; block < form->blocks; block += 32) {
        u32 number = row.class_of(block);
        is_wrong |= number > 4;
        own += number;
    }
    for (u32 group = threadIdx.x; group < row.dc_groups; group += 32) own_dc += row.dc_width(group);
    jpeg_sum_before(own, classes);
    jpeg_sum_before(own_dc, dc_bytes);
    return !__any_sync(0xffffffffu, is_wrong);
}

// Sets `at` to the index of the coefficients of the block in this line and column of a row of
// MCUs. Returns whether they are needed.
__device__ static __forceinline__ bool jpeg_form_place(const JpegComponent &component, u32 mcu_row,
    u32 line, u32 column, u64 &at) {
    u32 across = column - component.left;
    u32 down = mcu_row * component.v + line - component.top;
    // Negative differences wrap to large values and fail the comparisons.
    at = 64 * ((u64)component.first_block + (u64)down * component.wide + across);
    return across < component.wide && down < component.high;
}

// Reads the groups of DC differences, which begin at `from`, and stores the DC values.
__device__ static void jpeg_form_dc(const JpegRow &row, const JpegComponent *components,
    u32 mcu_row, u32 from, i16 *coefficients) {
    const JpegForm *form = row.form;
    u32 lane = threadIdx.x, group = 0;
    for (u32 index = 0; index < form->component_count; index++) {
        const JpegComponent component = components[index];
        u32 wide = form->mcus_wide * component.h, groups = (wide + 7) / 8;
        u32 above = 0;
        for (u32 line = 0; line < component.v; line++) {
            u32 before = above;
            for (u32 start = 0; start < groups; start += 32) {
                u32 own = start + lane;
                bool is_used = own < groups;
                u32 width = is_used ? row.dc_width(group + own) : 0, all = 0;
                u32 offset = jpeg_sum_before(width, all);
                u32 count = is_used ? min_of(8, (i32)(wide - 8 * own)) : 0;
                u32 sums[8], sum = 0;
#pragma unroll
                for (u32 i = 0; i < 8; i++) {
                    if (i < count && width) {
                        u32 folded = jpeg_number(row.bytes + from + offset, width, i);
                        sum += folded >> 1 ^ -(folded & 1);
                    }
                    sums[i] = sum;
                }
                u32 total = 0;
                u32 base = before + jpeg_sum_before(sum, total);
                for (u32 i = 0; i < count; i++) {
                    u64 at;
                    if (jpeg_form_place(component, mcu_row, line, 8 * own + i, at))
                        coefficients[at] = (i16)(base + sums[i]);
                }
                if (start == 0) above = __shfl_sync(0xffffffffu, base + sums[0], 0);
                before += total;
                from += all;
            }
            group += groups;
        }
    }
}

// Stores the other coefficients. `widths` and `groups` are the offsets of the widths and groups.
// Returns false if the groups do not end exactly at the end of the row.
__device__ static bool jpeg_form_blocks(const JpegRow &row, const JpegComponent *components,
    u32 mcu_row, u32 widths, u32 groups, i16 *coefficients) {
    const JpegForm *form = row.form;
    u32 first = 0;
    for (u32 index = 0; index < form->component_count; index++) {
        const JpegComponent component = components[index];
        u32 wide = form->mcus_wide * component.h, count = wide * component.v;
        for (u32 start = 0; start < count; start += 32) {
            u32 block = start + threadIdx.x, class_of = 0, bytes = 0, all = 0;
            if (block < count) class_of = row.class_of(first + block);
            u32 at_widths = widths + jpeg_sum_before(class_of, all);
            widths += all;
            for (u32 band = 0; band < class_of; band++)
                bytes += jpeg_pair_bytes(row.bytes[at_widths + band]);
            u32 at_groups = groups + jpeg_sum_before(bytes, all);
            groups += all;
            // No thread may read past the row.
            if (groups > row.length) return false;
            u64 to;
            if (block >= count ||
                !jpeg_form_place(component, mcu_row, block / wide, block % wide, to))
                continue;
            for (u32 number = 0; number < 2 * class_of; number++) {
                u32 code = row.bytes[at_widths + number / 2] >> number % 2 * 4 & 15;
                u32 width = code + (code == 15);
                if (width == 0) continue;
                u32 values[8];
#pragma unroll
                for (u32 i = 0; i < 8; i++) {
                    u32 bits = jpeg_number(row.bytes + at_groups, width, i);
                    values[i] = (u32)((i32)(bits << (32 - width)) >> (32 - width)) & 0xffff;
                }
                at_groups += width;
                i16 *half = coefficients + to + 16 * (number / 2) + 4 * (number % 2);
                // The first value of the first group is DC, which is already stored.
                if (number == 0) values[0] = (u16)half[0];
                *(uint2 *)half = make_uint2(values[0] | values[1] << 16, values[2] | values[3] << 16);
                *(uint2 *)(half + 8) =
                    make_uint2(values[4] | values[5] << 16, values[6] | values[7] << 16);
            }
        }
        first += count;
    }
    return groups == row.length;
}

// A lane and the destination of its bytes.
struct JpegLane {
    const u8 *bytes;
    const u16 *lookups;
    // Bit positions in the row: the current one, and the end of the lane.
    u32 at, end;
    u8 *out;

    __device__ __forceinline__ void read(u32 code, u32 index) {
        // Does not read past the end of the lane; the caller detects the error by `at`.
        if (at >= end) {
            at = end + 8;
            out[index] = 0;
            return;
        }
        u32 bits = ((u32)bytes[at / 8] | (u32)bytes[at / 8 + 1] << 8) >> at % 8 & 511;
        u32 entry = lookups[code << 9 | bits];
        out[index] = (u8)(entry >> 8);
        at += entry & 255;
    }
};

// Index in `maps` of the code for a byte of a group of this width.
__device__ static __forceinline__ u32 jpeg_map_index(u32 map, u32 width, u32 byte) {
    return map * JPEG_MAP_BYTES + width * (width - 1) / 2 + byte;
}

// Decodes the lanes of a row to `out`, which has room for `room` bytes. Returns the number of
// bytes, or 0 if the row is invalid.
__device__ static u32 jpeg_form_lanes(const JpegForm *form, const JpegRow &stored, u32 row_bytes,
    const u16 *lookups, const u8 *maps, u8 *out, u32 room) {
    u32 lane = threadIdx.x, lanes = form->lanes;
    if (row_bytes * 16ull < form->blocks) return 0;
    // All threads read the lengths of all lanes.
    u32 at = 0, before = 0, begin = 0, end = 0, sum = 0;
    for (u32 number = 0; number < lanes; number++) {
        u32 value = 0, shift = 0, byte = 128;
        for (; byte & 128; shift += 7) {
            // A length has 32 bits, so at most four bits of the fifth byte are used.
            if (at >= row_bytes || shift > 28) return 0;
            byte = stored.bytes[at++];
            if (shift == 28 && (byte & 0xf0)) return 0;
            value |= (byte & 127) << shift;
        }
        // A length of 2^31 or more exceeds `row_bytes` and is rejected.
        i64 length = number == 0 ? (i64)value : (i64)before + ((i64)(value >> 1) ^ -(i64)(value & 1));
        if (length < 0 || length > row_bytes) return 0;
        before = (u32)length;
        if (number < lane) begin += before;
        if (number <= lane) end += before;
        sum += before;
        if (sum > row_bytes) return 0;
    }
    if (at + sum > row_bytes) return 0;
    u32 escape = at + sum;
    JpegLane source = {stored.bytes, lookups, 8 * (at + begin), 8 * (at + end), out};
    JpegRow row = stored;
    row.bytes = out;

    u32 done = 0, classes = 0, dc_bytes = 0;
    for (u32 run = 0; run < 3; run++) {
        u32 bytes = row.head(), own = 0, all = 0;
        if (run == 1) {
            row.length = done;
            if (!jpeg_form_sums(row, classes, dc_bytes)) return 0;
            bytes = dc_bytes + classes;
        } else if (run == 2) {
            for (u32 pair = lane; pair < classes; pair += 32)
                own += jpeg_pair_bytes(out[row.head() + dc_bytes + pair]);
            jpeg_sum_before(own, bytes);
        }
        if (done + (u64)bytes > 8ull * row_bytes || done + (u64)bytes > room) return 0;
        // Byte i of a run is the next code word of lane i % lanes.
        u32 next = lane, base = 0;
        if (lane < lanes && run == 0) {
            for (; next < bytes; next += lanes) {
                u32 kind = form->component_count > 1 && next >= form->first_class_bytes;
                u32 code = next < row.class_bytes ? form->codes[kind][0] : form->dc_widths;
                source.read(code, next);
            }
        } else if (lane < lanes && run == 1) {
            for (u32 group = 0; group < row.dc_groups; group++) {
                u32 width = row.dc_width(group);
                for (; next < base + width; next += lanes)
                    source.read(maps[jpeg_map_index(16, width, next - base)], done + next);
                base += width;
            }
            for (u32 block = 0; block < form->blocks; block++) {
                u32 class_of = row.class_of(block), kind = block >= form->first_blocks;
                const u8 *codes = form->codes[kind] + 1 + class_of * (class_of - 1) / 2;
                for (; next < base + class_of; next += lanes)
                    source.read(codes[next - base], done + next);
                base += class_of;
            }
        } else if (lane < lanes) {
            u32 pair = row.head() + dc_bytes;
            for (u32 block = 0; block < form->blocks; block++) {
                u32 class_of = row.class_of(block), kind = block >= form->first_blocks;
                for (u32 number = 0; number < 2 * class_of; number++) {
                    u32 code = out[pair + number / 2] >> number % 2 * 4 & 15;
                    u32 width = code + (code == 15), map = 8 * kind + number;
                    for (; next < base + width; next += lanes)
                        source.read(maps[jpeg_map_index(map, width, next - base)], done + next);
                    base += width;
                }
                pair += class_of;
            }
        }
        __syncwarp();
        for (u32 start = 0; start < bytes; start += 32) {
            u32 index = start + lane;
            bool is_escape = index < bytes && out[done + index] == JPEG_ESCAPE;
            u32 offset = jpeg_sum_before(is_escape, all);
            if (escape + (u64)all > row_bytes) return 0;
            if (is_escape) out[done + index] = stored.bytes[escape + offset];
            escape += all;
        }
        __syncwarp();
        done += bytes;
    }
    bool is_wrong = lane < lanes && (source.at + 7) / 8 != source.end / 8;
    if (__any_sync(0xffffffffu, is_wrong) || escape != row_bytes) return 0;
    return done;
}

extern "C" __global__ void __launch_bounds__(32) jpeg_decode_forms(const u8 *area,
    const JpegComponent *components, const JpegForm *forms, const JpegFormRow *rows,
    const u16 *lookups, const u8 *maps, u8 *scratch, i16 *coefficients, u32 *status) {
    const JpegFormRow here = rows[blockIdx.x];
    const JpegForm *form = forms + here.form;
    const JpegComponent *own = components + form->first_component;
    JpegRow row = {area + here.offset, here.bytes, form, (form->blocks + 1) / 2, form->dc_groups};
    bool is_right = true;
    if (form->lanes) {
        u8 *out = scratch + (here.scratch[0] | (u64)here.scratch[1] << 32);
        row.length =
            jpeg_form_lanes(form, row, here.bytes, lookups, maps, out, here.scratch_bytes);
        row.bytes = out;
        is_right = row.length > 0;
    }
    u32 classes = 0, dc_bytes = 0;
    is_right = is_right && jpeg_form_sums(row, classes, dc_bytes);
    u64 groups = (u64)row.head() + dc_bytes + classes;
    is_right = is_right && groups <= row.length;
    if (is_right) {
        jpeg_form_dc(row, own, here.mcu_row, row.head(), coefficients);
        __syncwarp();
        is_right = jpeg_form_blocks(row, own, here.mcu_row, row.head() + dc_bytes, (u32)groups,
            coefficients);
    }
    if (!is_right && threadIdx.x == 0) atomicOr(status + form->picture, JPEG_WRONG_FORM);
}
