// Changes of whole pictures that need more than one pixel: by the values of all pixels, by
// neighbours, and by other pictures. Jobs are those of gpu/src/pictures/jobs.rs.

namespace colour {

enum Change { Contrast, Autocontrast, Equalize };

struct Statistic {
    const u8 *picture;
    // How often each of 256 values occurs in each of three channels; then the sum of the luma of
    // all pixels, in eight bytes.
    u32 *counts;
    u8 *tables;
    u32 row_bytes, plane_bytes;
    u32 width, height;
    u32 change;
    u32 number;
    u32 first_block;
    u32 unused;
};

struct Neighbours {
    const u8 *source;
    u8 *target;
    u32 source_row_bytes, source_plane_bytes;
    u32 target_row_bytes, target_plane_bytes;
    u32 width, height;
    u32 number;
    u32 first_block;
};

// `Begin` sets the sum to the weighted original, and copies the original to the picture. `Add` adds
// the picture to the sum, and sets it to the original again. `End` adds it and sets it to the sum.
enum SumForm { Begin, Add, End };

// A step of a weighted sum of pictures; `sum` has planes of float32.
struct Weighted {
    u8 *picture;
    const u8 *original;
    u8 *sum;
    u32 row_bytes, plane_bytes;
    u32 original_row_bytes, original_plane_bytes;
    u32 sum_row_bytes, sum_plane_bytes;
    u32 width, height;
    float weight;
    u32 form;
    u32 first_block;
    u32 unused;
};

static const u32 VALUES = 256;
static const u32 QUAD = 4;
static const u32 COUNTED_QUADS = 1 << 12;

__device__ static inline u32 byte_of(u32 word, u32 index) { return word >> (8 * index) & 255; }

__device__ static inline u32 luma(u32 red, u32 green, u32 blue) {
    return (19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16;
}

// A number without its fraction, from 0 to 255.
__device__ static inline u32 truncated(float number) {
    number = number > 0.0f ? number : 0.0f;
    number = number < 255.0f ? number : 255.0f;
    return (u32)(i32)number;
}

__device__ static inline u32 blended(u32 from, u32 to, float factor) {
    float begin = (float)(i32)from;
    return truncated(__fadd_rn(begin, __fmul_rn(factor, __fsub_rn((float)(i32)to, begin))));
}

// A number without its fraction, from 0 to 255, as Rust's `as u8`.
__device__ static inline u32 truncated_double(double number) {
    return number >= 255.0 ? 255 : number > 0.0 ? (u32)(i32)number : 0;
}

} // namespace colour

// Counts the values of pictures, or sums up their luma. A block counts up to 4096 groups of four
// pixels of a row.
extern "C" __global__ void __launch_bounds__(256) count_values(const colour::Statistic *jobs, const u32 *jobs_of_blocks) {
    using namespace colour;
    __shared__ u32 counts[3 * VALUES];
    const Statistic job = jobs[jobs_of_blocks[blockIdx.x]];
    bool is_luma = job.change == Contrast;
    if (!is_luma)
        for (u32 i = threadIdx.x; i < 3 * VALUES; i += blockDim.x) counts[i] = 0;
    __syncthreads();
    u32 quads_per_row = (job.width + QUAD - 1) / QUAD, quads = quads_per_row * job.height;
    u32 first = (blockIdx.x - job.first_block) * COUNTED_QUADS;
    u32 end = (u32)min_of((i32)(first + COUNTED_QUADS), (i32)quads);
    // At most 64 pixels of a thread.
    u32 sum = 0;
    for (u32 index = first + threadIdx.x; index < end; index += blockDim.x) {
        u32 y = index / quads_per_row, x = (index - y * quads_per_row) * QUAD;
        const u8 *at = job.picture + (u64)y * job.row_bytes + x;
        u32 words[3];
        for (u32 plane = 0; plane < 3; plane++)
            words[plane] = *(const u32 *)(at + (u64)plane * job.plane_bytes);
        for (u32 i = 0; i < QUAD; i++) {
            if (x + i >= job.width) break;
            if (is_luma)
                sum += luma(byte_of(words[0], i), byte_of(words[1], i), byte_of(words[2], i));
            else
                for (u32 plane = 0; plane < 3; plane++)
                    atomicAdd(&counts[VALUES * plane + byte_of(words[plane], i)], 1u);
        }
    }
    if (is_luma) {
        for (u32 by = 16; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffffu, sum, by);
        if (threadIdx.x % 32 == 0) atomicAdd((u64 *)(job.counts + 3 * VALUES), (u64)sum);
        return;
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < 3 * VALUES; i += blockDim.x)
        if (counts[i]) atomicAdd(&job.counts[i], counts[i]);
}

// Makes the tables of changes of what was counted: a block for each job, a thread for each value.
extern "C" __global__ void __launch_bounds__(256) make_tables(const colour::Statistic *jobs) {
    using namespace colour;
    __shared__ u32 counts[VALUES];
    __shared__ u32 before[VALUES];
    __shared__ u32 ends[2];
    const Statistic job = jobs[blockIdx.x];
    u32 value = threadIdx.x;
    if (job.change == Contrast) {
        double sum = (double)*(const u64 *)(job.counts + 3 * VALUES);
        double pixels = (double)((u64)job.width * job.height);
        u32 mean = truncated_double(__dadd_rn(__ddiv_rn(sum, pixels), 0.5));
        u32 changed = blended(mean, value, __uint_as_float(job.number));
        for (u32 plane = 0; plane < 3; plane++) job.tables[VALUES * plane + value] = (u8)changed;
        return;
    }
    for (u32 plane = 0; plane < 3; plane++) {
        if (value == 0) ends[0] = VALUES, ends[1] = 0;
        u32 own = job.counts[VALUES * plane + value];
        counts[value] = own;
        before[value] = own;
        __syncthreads();
        if (own) atomicMin(&ends[0], value), atomicMax(&ends[1], value);
        // The sum of all up to each value.
        for (u32 by = 1; by < VALUES; by *= 2) {
            u32 added = value >= by ? before[value - by] : 0;
            __syncthreads();
            before[value] += added;
            __syncthreads();
        }
        u32 low = ends[0], high = ends[1], changed = value;
        if (job.change == Autocontrast && low < high) {
            double scale = __ddiv_rn(255.0, (double)(high - low));
            double offset = __dmul_rn(-(double)low, scale);
            changed = truncated_double(__dadd_rn(__dmul_rn((double)value, scale), offset));
        }
        if (job.change == Equalize) {
            u32 step = (before[VALUES - 1] - counts[high]) / 255;
            if (step > 0)
                changed = (u32)min_of((i32)((step / 2 + before[value] - own) / step), 255);
        }
        job.tables[VALUES * plane + value] = (u8)changed;
        __syncthreads();
    }
}

// Blends pictures with smoothed ones: each value with the sum of those around it and five times
// itself, divided by 13. The border stays. A thread makes four pixels of a row.
extern "C" __global__ void __launch_bounds__(256) sharpen(const colour::Neighbours *jobs, const u32 *jobs_of_blocks) {
    using namespace colour;
    const Neighbours job = jobs[jobs_of_blocks[blockIdx.x]];
    u32 quads_per_row = (job.width + QUAD - 1) / QUAD;
    u32 index = (blockIdx.x - job.first_block) * blockDim.x + threadIdx.x;
    if (index >= quads_per_row * job.height) return;
    u32 y = index / quads_per_row, x = (index - y * quads_per_row) * QUAD;
    bool is_border = y == 0 || y == job.height - 1 || job.width < 3;
    float factor = __uint_as_float(job.number);
    for (u32 plane = 0; plane < 3; plane++) {
        const u8 *row =
            job.source + (u64)plane * job.source_plane_bytes + (u64)y * job.source_row_bytes;
        u32 word = 0;
        for (u32 i = 0; i < QUAD; i++) {
            u32 column = x + i;
            if (column >= job.width) break;
            u32 middle = row[column], smooth = middle;
            if (!is_border && column > 0 && column < job.width - 1) {
                u32 sum = 4 * middle;
                for (i32 from = -1; from <= 1; from++) {
                    const u8 *at = row + (i64)from * job.source_row_bytes + column;
                    sum += (u32)at[-1] + at[0] + at[1];
                }
                smooth = ((sum + 6) * 40330) >> 19;
            }
            word |= blended(smooth, middle, factor) << (8 * i);
        }
        *(u32 *)(job.target + (u64)plane * job.target_plane_bytes + (u64)y * job.target_row_bytes +
                 x) = word;
    }
}

// Each thread computes one pixel.
extern "C" __global__ void __launch_bounds__(256) add_weighted(const colour::Weighted *jobs, const u32 *jobs_of_blocks) {
    using namespace colour;
    const Weighted &job = jobs[jobs_of_blocks[blockIdx.x]];
    u32 index = (blockIdx.x - job.first_block) * blockDim.x + threadIdx.x;
    if (index >= job.width * job.height) return;
    u32 y = index / job.width, x = index - y * job.width;
    for (u32 plane = 0; plane < 3; plane++) {
        u8 *at = job.picture + (u64)plane * job.plane_bytes + (u64)y * job.row_bytes + x;
        u32 original = job.original[(u64)plane * job.original_plane_bytes +
                                    (u64)y * job.original_row_bytes + x];
        float *sum = (float *)(job.sum + (u64)plane * job.sum_plane_bytes +
                               (u64)y * job.sum_row_bytes) + x;
        u32 value = job.form == Begin ? original : *at;
        float weighted = __fmul_rn(job.weight, (float)(i32)value);
        if (job.form != Begin) weighted = __fadd_rn(*sum, weighted);
        *sum = weighted;
        *at = (u8)(job.form == End ? truncated(weighted) : original);
    }
}
