// Stages of recipes: crops, resizes, canvases, changes of single pixels, and the tensor.
//
// A stage has up to two passes, each of which gives bytes. `first_pass` writes what lies between
// the two. `last_pass` puts its result on the canvas, changes the colours, and writes a picture or
// a tensor. Pictures are three planes of bytes. Jobs are those of gpu/src/pictures/jobs.rs; block b
// of a launch works on job `jobs_of_blocks[b]`.

namespace stages {

enum Axis { Shift, Pick, Weigh };
enum Change { Table, Tables, Saturation, Hue, Grey, Channels, Space };
enum Flag { Mirrored = 1, Flipped = 2, IsTensor = 4 };

struct ChangeOfPixels {
    u32 change;
    // A number of the change, or its bits.
    u32 number;
    const u8 *table;
};

struct Pass {
    // The first pixel of red after turning and mirroring.
    const u8 *source;
    u8 *target;
    const i32 *across_words;
    const i32 *down_words;
    const ChangeOfPixels *changes;
    // Bytes from a row of the turned source to the next.
    i32 row_step;
    u32 source_plane_bytes;
    u32 target_row_bytes, target_plane_bytes;
    // Bytes from a column of the turned source to the next; 1 unless it is turned or mirrored.
    i32 column_step;
    u32 across, down;
    // Of the result of the pass.
    u32 width, height;
    u32 canvas_width, canvas_height;
    // Where the result is on the canvas.
    u32 left, top;
    // Red in the lowest byte, then green and blue.
    u32 fill, outside;
    u32 flags;
    u32 change_count;
    u32 first_block;
};

static const u32 QUAD = 4;
static const u32 WEIGHT_BITS = 22;
static const u32 HALF = 1u << (WEIGHT_BITS - 1);

// Sums wrap in 32 bits, as those of the CPU.
__device__ static inline u32 weighed(u32 sum, i32 weight, u32 value) {
    return sum + (u32)weight * value;
}
__device__ static inline u32 clipped(u32 sum) {
    return (u32)clamp_to_byte((i32)sum >> WEIGHT_BITS);
}

__device__ static inline u32 byte_of(u32 word, u32 index) { return word >> (8 * index) & 255; }

// A number without its fraction, from 0 to 255.
__device__ static inline u32 truncated(float number) {
    number = number > 0.0f ? number : 0.0f;
    number = number < 255.0f ? number : 255.0f;
    return (u32)(i32)number;
}

// Pillow's `Image.blend` of two values: `from` at 0, `to` at 1.
__device__ static inline u32 blended(u32 from, u32 to, float factor) {
    float begin = (float)(i32)from;
    return truncated(__fadd_rn(begin, __fmul_rn(factor, __fsub_rn((float)(i32)to, begin))));
}

__device__ static inline u32 luma(const u32 *colour) {
    return (19595 * colour[0] + 38470 * colour[1] + 7471 * colour[2] + 0x8000) >> 16;
}

// Pillow's mode HSV and back, with a number added to the hue; as kernels/src/colour/hue.rs.
__device__ static inline void turn_hue(u32 *colour, u32 shift) {
    i32 red = (i32)colour[0], green = (i32)colour[1], blue = (i32)colour[2];
    i32 most = max_of(max_of(red, green), blue), range = most - min_of(min_of(red, green), blue);
    float middle = red == most ? 0.0f : green == most ? 2.0f : 4.0f;
    i32 before = red == most ? green : green == most ? blue : red;
    i32 after = red == most ? blue : green == most ? red : green;
    float share = __fdiv_rn((float)(most - max_of(before, after)), (float)max_of(range, 1));
    float turns = before > after ? __fsub_rn(__fadd_rn(middle, 1.0f), share)
                                 : __fadd_rn(__fsub_rn(middle, 1.0f), share);
    turns = __fdiv_rn(turns, 6.0f);
    turns = turns < 0.0f ? __fadd_rn(turns, 1.0f) : turns;
    u32 hue = range == 0 ? 0 : truncated(__fmul_rn(turns, 255.0f));
    i32 taken = (i32)truncated(__fdiv_rn(__fmul_rn(255.0f, (float)range), (float)max_of(most, 1)));

    const i32 SECTOR = 85, WHOLE = SECTOR * 255;
    i32 position = 2 * (i32)((hue + shift) & 255);
    i32 sector = (position * 772) >> 16;
    i32 inside = position - SECTOR * sector;
    u32 value = (u32)most;
    i32 least = most * (255 - taken) + 128;
    u32 low = (u32)((least + (least >> 8)) >> 8) & 255;
    i32 part = sector & 1 ? inside : SECTOR - inside;
    float product = __fmul_rn((float)(most * (WHOLE - taken * part)), 1.0f / (float)WHOLE);
    u32 between = truncated(__fadd_rn(product, 0.5f));
    sector = sector == 6 ? 0 : sector;
    colour[0] = sector == 0 || sector == 5 ? value : sector == 1 || sector == 4 ? between : low;
    colour[1] = sector == 1 || sector == 2 ? value : sector == 0 || sector == 3 ? between : low;
    colour[2] = sector == 3 || sector == 4 ? value : sector == 2 || sector == 5 ? between : low;
}

__device__ static inline void change_pixel(const ChangeOfPixels &by, u32 *colour) {
    switch (by.change) {
    case Table:
        for (u32 plane = 0; plane < 3; plane++) colour[plane] = by.table[colour[plane]];
        break;
    case Tables:
        for (u32 plane = 0; plane < 3; plane++)
            colour[plane] = by.table[256 * plane + colour[plane]];
        break;
    case Saturation: {
        u32 grey = luma(colour);
        float factor = __uint_as_float(by.number);
        for (u32 plane = 0; plane < 3; plane++)
            colour[plane] = blended(grey, colour[plane], factor);
        break;
    }
    case Hue: turn_hue(colour, by.number); break;
    case Grey: colour[0] = colour[1] = colour[2] = luma(colour); break;
    case Channels: {
        u32 old[3] = {colour[0], colour[1], colour[2]};
        for (u32 plane = 0; plane < 3; plane++) {
            u32 from = byte_of(by.number, plane);
            colour[plane] = from == 0 ? old[0] : from == 1 ? old[1] : old[2];
        }
        break;
    }
    case Space: spaces::convert(by.number, colour, by.table); break;
    }
}

// Four pixels of each plane: four sums of columns that follow one another, in aligned words.
__device__ static inline void weigh_down_words(const Pass &pass, u32 y, u32 offset, u32 *quads) {
    u32 first = (u32)pass.down_words[y], count = (u32)pass.down_words[pass.height + y];
    const i32 *weights = pass.down_words + 2 * pass.height + y;
    const u8 *at = pass.source + (i64)pass.row_step * first + offset;
    u32 sums[3][QUAD];
    for (u32 plane = 0; plane < 3; plane++)
        for (u32 i = 0; i < QUAD; i++) sums[plane][i] = HALF;
    for (u32 tap = 0; tap < count; tap++) {
        i32 weight = __ldg(weights);
        for (u32 plane = 0; plane < 3; plane++) {
            u32 word = *(const u32 *)(at + (u64)plane * pass.source_plane_bytes);
            for (u32 i = 0; i < QUAD; i++)
                sums[plane][i] = weighed(sums[plane][i], weight, byte_of(word, i));
        }
        weights += pass.height;
        at += pass.row_step;
    }
    for (u32 plane = 0; plane < 3; plane++) {
        quads[plane] = 0;
        for (u32 i = 0; i < QUAD; i++) quads[plane] |= clipped(sums[plane][i]) << (8 * i);
    }
}

// A pixel of the result of a pass along the columns.
__device__ static inline void weigh_down(const Pass &pass, u32 x, u32 y, u32 *colour) {
    u32 first = (u32)pass.down_words[y], count = (u32)pass.down_words[pass.height + y];
    const i32 *weights = pass.down_words + 2 * pass.height + y;
    const u8 *at = pass.source + (i64)pass.row_step * first + (i64)pass.column_step * x;
    u32 sums[3] = {HALF, HALF, HALF};
    for (u32 tap = 0; tap < count; tap++) {
        for (u32 plane = 0; plane < 3; plane++)
            sums[plane] =
                weighed(sums[plane], __ldg(weights), at[(u64)plane * pass.source_plane_bytes]);
        weights += pass.height;
        at += pass.row_step;
    }
    for (u32 plane = 0; plane < 3; plane++) colour[plane] = clipped(sums[plane]);
}

// A pixel of the result of a pass along the rows.
__device__ static inline void weigh_across(const Pass &pass, u32 x, u32 y, u32 *colour) {
    u32 first = (u32)pass.across_words[x], count = (u32)pass.across_words[pass.width + x];
    const i32 *weights = pass.across_words + 2 * pass.width + x;
    const u8 *at = pass.source + (i64)pass.row_step * y + (i64)pass.column_step * first;
    u32 sums[3] = {HALF, HALF, HALF};
    for (u32 tap = 0; tap < count; tap++) {
        for (u32 plane = 0; plane < 3; plane++)
            sums[plane] =
                weighed(sums[plane], __ldg(weights), at[(u64)plane * pass.source_plane_bytes]);
        weights += pass.width;
        at += pass.column_step;
    }
    for (u32 plane = 0; plane < 3; plane++) colour[plane] = clipped(sums[plane]);
}

// A pixel of the result of axes that move or pick pixels.
__device__ static inline void picked(const Pass &pass, u32 x, u32 y, u32 *colour) {
    i32 column = pass.across == Pick ? pass.across_words[x] : (i32)x;
    i32 row = pass.down == Pick ? pass.down_words[y] : (i32)y;
    bool is_inside = column >= 0 && row >= 0;
    const u8 *at = pass.source + (i64)pass.row_step * max_of(row, 0) +
                   (i64)pass.column_step * max_of(column, 0);
    for (u32 plane = 0; plane < 3; plane++)
        colour[plane] =
            is_inside ? at[(u64)plane * pass.source_plane_bytes] : byte_of(pass.outside, plane);
}

// Four pixels of the canvas from column x on, which may lie behind its end.
__device__ static inline void quads_of_canvas(const Pass &pass, u32 x, u32 y, u32 *quads) {
    // Before the window these are beyond every window.
    u32 inner_x = x - pass.left, inner_y = y - pass.top;
    bool is_inside = inner_y < pass.height && inner_x < pass.width && inner_x + QUAD <= pass.width;
    bool is_aligned = ((u64)(pass.source + inner_x) & 3) == 0 &&
                      (((u32)pass.row_step | pass.source_plane_bytes) & 3) == 0;
    if (is_inside && is_aligned && pass.column_step == 1 && pass.across == Shift &&
        pass.down != Pick) {
        if (pass.down == Weigh) return weigh_down_words(pass, inner_y, inner_x, quads);
        const u8 *at = pass.source + (i64)pass.row_step * inner_y + inner_x;
        for (u32 plane = 0; plane < 3; plane++)
            quads[plane] = *(const u32 *)(at + (u64)plane * pass.source_plane_bytes);
        return;
    }
    quads[0] = quads[1] = quads[2] = 0;
    for (u32 i = 0; i < QUAD; i++) {
        u32 colour[3] = {byte_of(pass.fill, 0), byte_of(pass.fill, 1), byte_of(pass.fill, 2)};
        if (inner_y < pass.height && inner_x + i < pass.width) {
            if (pass.down == Weigh) weigh_down(pass, inner_x + i, inner_y, colour);
            else if (pass.across == Weigh) weigh_across(pass, inner_x + i, inner_y, colour);
            else picked(pass, inner_x + i, inner_y, colour);
        }
        for (u32 plane = 0; plane < 3; plane++) quads[plane] |= colour[plane] << (8 * i);
    }
}

__device__ static inline void change_quads(const Pass &pass, u32 *quads) {
    for (u32 number = 0; number < pass.change_count; number++) {
        ChangeOfPixels change = pass.changes[number];
        u32 changed[3] = {0, 0, 0};
        for (u32 i = 0; i < QUAD; i++) {
            u32 colour[3] = {byte_of(quads[0], i), byte_of(quads[1], i), byte_of(quads[2], i)};
            change_pixel(change, colour);
            for (u32 plane = 0; plane < 3; plane++) changed[plane] |= colour[plane] << (8 * i);
        }
        for (u32 plane = 0; plane < 3; plane++) quads[plane] = changed[plane];
    }
}

__device__ static inline u32 reversed(u32 word) { return __byte_perm(word, 0, 0x0123); }

// Writes words to an address that is aligned to them.
__device__ static inline void store_words(u8 *at, const u32 *words, u32 count) {
    if (count % 4 == 0 && ((u64)at & 15) == 0) {
        for (u32 i = 0; i < count; i += 4)
            *(uint4 *)(at + 4 * i) = make_uint4(words[i], words[i + 1], words[i + 2], words[i + 3]);
    } else {
        for (u32 i = 0; i < count; i++) *(u32 *)(at + 4 * i) = words[i];
    }
}

// An element of a tensor; `BYTES` are those of an element.
template <u32 BYTES>
__device__ static inline u32 element(const u32 *table, u32 channel, u32 value) {
    if (BYTES == 4) return table[256 * channel + value];
    if (BYTES == 2) return ((const u16 *)table)[256 * channel + value];
    return value;
}

template <u32 BYTES> __device__ static inline void store_element(u8 *at, u32 bits) {
    if (BYTES == 4) *(u32 *)at = bits;
    else if (BYTES == 2) *(u16 *)at = (u16)bits;
    else *at = (u8)bits;
}

template <u32 BYTES> __device__ static inline void store_tensor(const Pass &pass, u32 x, u32 y,
                                                                const u32 *quads, const u32 *table,
                                                                u32 channels, u32 is_interleaved) {
    const u32 PER_WORD = 4 / BYTES;
    u32 width = pass.canvas_width, count = (u32)min_of(QUAD, (i32)(width - x));
    u64 pixel = (u64)y * width + x, pixels = (u64)pass.canvas_height * width;
    if (is_interleaved && channels == 3) {
        u8 *at = pass.target + pixel * 3 * BYTES;
        if (count == QUAD && ((u64)at & 3) == 0) {
            u32 words[3 * BYTES];
            for (u32 i = 0; i < 3 * BYTES; i++) words[i] = 0;
            for (u32 i = 0; i < 3 * QUAD; i++) {
                u32 bits = element<BYTES>(table, i % 3, byte_of(quads[i % 3], i / 3));
                words[i / PER_WORD] |= bits << (8 * BYTES * (i % PER_WORD));
            }
            return store_words(at, words, 3 * BYTES);
        }
        for (u32 i = 0; i < count; i++)
            for (u32 channel = 0; channel < 3; channel++)
                store_element<BYTES>(at + (3 * i + channel) * BYTES,
                                     element<BYTES>(table, channel, byte_of(quads[channel], i)));
        return;
    }
    for (u32 channel = 0; channel < 3; channel++) {
        if (channel >= channels) break;
        u8 *at = pass.target + (channel * pixels + pixel) * BYTES;
        if (count == QUAD && ((u64)at & 3) == 0) {
            u32 words[BYTES];
            for (u32 i = 0; i < BYTES; i++) words[i] = 0;
            for (u32 i = 0; i < QUAD; i++) {
                u32 bits = element<BYTES>(table, channel, byte_of(quads[channel], i));
                words[i / PER_WORD] |= bits << (8 * BYTES * (i % PER_WORD));
            }
            store_words(at, words, BYTES);
        } else {
            for (u32 i = 0; i < count; i++)
                store_element<BYTES>(at + i * BYTES,
                                     element<BYTES>(table, channel, byte_of(quads[channel], i)));
        }
    }
}

__device__ static inline void store_picture(const Pass &pass, u32 x, u32 y, const u32 *quads) {
    u8 *at = pass.target + (u64)y * pass.target_row_bytes + x;
    // Rows of pictures here have room for whole words.
    for (u32 plane = 0; plane < 3; plane++)
        *(u32 *)(at + (u64)plane * pass.target_plane_bytes) = quads[plane];
}

template <u32 BYTES> __device__ static inline void last(const Pass &pass, u32 block,
                                                        const u32 *table, u32 channels,
                                                        u32 is_interleaved, u32 quads_per_thread) {
    u32 width = pass.canvas_width, quads_per_row = (width + QUAD - 1) / QUAD;
    // A picture has at most 2^28 pixels.
    u32 quads_count = quads_per_row * pass.canvas_height;
    u32 index = block * blockDim.x * quads_per_thread + threadIdx.x;
    for (u32 turn = 0; turn < quads_per_thread && index < quads_count;
         turn++, index += blockDim.x) {
        u32 row = index / quads_per_row, x = (index - row * quads_per_row) * QUAD;
        u32 y = pass.flags & Flipped ? pass.canvas_height - 1 - row : row;
        u32 quads[3];
        if (pass.flags & Mirrored) {
            // Of the last pixels of a row, some may lie before the first column of the canvas.
            u32 canvas_x = width - QUAD - x;
            quads_of_canvas(pass, canvas_x, y, quads);
            for (u32 plane = 0; plane < 3; plane++) quads[plane] = reversed(quads[plane]);
        } else {
            quads_of_canvas(pass, x, y, quads);
        }
        change_quads(pass, quads);
        if (pass.flags & IsTensor)
            store_tensor<BYTES>(pass, x, row, quads, table, channels, is_interleaved);
        else store_picture(pass, x, row, quads);
    }
}

// Copies the job of a block to the memory that its threads share, which saves registers.
__device__ static inline void load_job(Pass *to, const Pass *from) {
    for (u32 i = threadIdx.x; i < sizeof(Pass) / sizeof(u32); i += blockDim.x)
        ((u32 *)to)[i] = ((const u32 *)from)[i];
    __syncthreads();
}

} // namespace stages

// The first of two passes. Along the rows a block makes 32 columns of 32 rows, along the columns
// 128 columns of 8 rows.
extern "C" __global__ void __launch_bounds__(256) first_pass(const stages::Pass *jobs, const u32 *jobs_of_blocks) {
    using namespace stages;
    __shared__ Pass pass;
    load_job(&pass, &jobs[jobs_of_blocks[blockIdx.x]]);
    u32 block = blockIdx.x - pass.first_block, lane = threadIdx.x % 32, group = threadIdx.x / 32;
    if (pass.across == Weigh) {
        const u32 ROWS = 4;
        u32 blocks_per_row = (pass.width + 31) / 32;
        u32 x = block % blocks_per_row * 32 + lane, y = block / blocks_per_row * 8 * ROWS + group;
        if (x >= pass.width || y >= pass.height) return;
        u32 first = (u32)pass.across_words[x], count = (u32)pass.across_words[pass.width + x];
        const i32 *weights = pass.across_words + 2 * pass.width + x;
        const u8 *rows[ROWS];
        u32 sums[ROWS][3];
        for (u32 i = 0; i < ROWS; i++) {
            // Rows behind the last are computed as the last, and not written.
            u32 row = (u32)min_of((i32)(y + 8 * i), (i32)pass.height - 1);
            rows[i] = pass.source + (i64)pass.row_step * row + (i64)pass.column_step * first;
            for (u32 plane = 0; plane < 3; plane++) sums[i][plane] = HALF;
        }
        for (u32 tap = 0; tap < count; tap++) {
            i32 weight = __ldg(weights);
            weights += pass.width;
            for (u32 i = 0; i < ROWS; i++) {
                for (u32 plane = 0; plane < 3; plane++)
                    sums[i][plane] = weighed(sums[i][plane], weight,
                                             __ldg(rows[i] + (u64)plane * pass.source_plane_bytes));
                rows[i] += pass.column_step;
            }
        }
        for (u32 i = 0; i < ROWS; i++) {
            if (y + 8 * i >= pass.height) break;
            u8 *at = pass.target + (u64)(y + 8 * i) * pass.target_row_bytes + x;
            for (u32 plane = 0; plane < 3; plane++)
                at[(u64)plane * pass.target_plane_bytes] = (u8)clipped(sums[i][plane]);
        }
        return;
    }
    u32 blocks_per_row = (pass.width + 127) / 128;
    u32 x = block % blocks_per_row * 128 + lane * QUAD, y = block / blocks_per_row * 8 + group;
    if (x >= pass.width || y >= pass.height) return;
    u32 quads[3];
    quads_of_canvas(pass, x, y, quads);
    store_picture(pass, x, y, quads);
}

// The last pass, or the only one. `table` has the elements of the values of each channel.
extern "C" __global__ void __launch_bounds__(256) last_pass(const stages::Pass *jobs, const u32 *jobs_of_blocks, const u32 *table, u32 element_bytes, u32 channels, u32 is_interleaved, u32 quads_per_thread) {
    using namespace stages;
    __shared__ u32 elements[3 * 256];
    __shared__ Pass pass;
    load_job(&pass, &jobs[jobs_of_blocks[blockIdx.x]]);
    u32 block = blockIdx.x - pass.first_block;
    bool has_table = (pass.flags & IsTensor) && element_bytes > 1;
    if (has_table) {
        u32 words = channels * 256 * element_bytes / 4;
        for (u32 i = threadIdx.x; i < words; i += blockDim.x) elements[i] = table[i];
        __syncthreads();
    }
    if (element_bytes == 4)
        last<4>(pass, block, elements, channels, is_interleaved, quads_per_thread);
    else if (element_bytes == 2)
        last<2>(pass, block, elements, channels, is_interleaved, quads_per_thread);
    else last<1>(pass, block, elements, channels, is_interleaved, quads_per_thread);
}
