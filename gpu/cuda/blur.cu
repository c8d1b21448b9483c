// Blurs of pictures, one direction at a time. Jobs are those of gpu/src/pictures/jobs.rs; block b
// of a launch works on job `jobs_of_blocks[b]`.

namespace blur {

// Kernel forms store float32 between the two directions; field forms read and write only float32.
enum Form { BoxAcross, BoxDown, KernelAcross, KernelDown, FieldAcross, FieldDown };

struct Blur {
    const u8 *source;
    u8 *target;
    const float *weights;
    u32 source_row_bytes, source_plane_bytes;
    u32 target_row_bytes, target_plane_bytes;
    u32 width, height;
    u32 form;
    // Of a kernel, its weights; of a box, the values on each side that count in full.
    u32 count;
    // Of a box, the weights of these and of the two outer values, in 1 / 2^24.
    u32 inner_weight, outer_weight;
    u32 first_block;
    u32 planes;
};

static const u32 QUAD = 4;

__device__ static inline i32 inside(i32 position, i32 length) {
    return max_of(0, min_of(position, length - 1));
}

// A position outside mirrored at the first and the last one.
__device__ static inline i32 mirrored(i32 position, i32 length) {
    i32 last = length - 1;
    if (position >= 0 && position <= last) return position;
    if (last == 0) return 0;
    i32 rest = position % (2 * last);
    if (rest < 0) rest += 2 * last;
    return rest > last ? 2 * last - rest : rest;
}

// Values of a box around a position of a line, whose ends are repeated.
__device__ static inline u32 box(const Blur &job, const u8 *line, u32 step, i32 length, i32 at) {
    i32 radius = (i32)job.count;
    u32 sum = 0;
    for (i32 from = -radius; from <= radius; from++)
        sum += line[(u64)inside(at + from, length) * step];
    u32 outer = (u32)line[(u64)inside(at - radius - 1, length) * step] +
                line[(u64)inside(at + radius + 1, length) * step];
    return (sum * job.inner_weight + outer * job.outer_weight + (1u << 23)) >> 24;
}

} // namespace blur

// Each block makes 256 groups of four pixels of a row.
extern "C" __global__ void __launch_bounds__(256) blur_once(const blur::Blur *jobs, const u32 *jobs_of_blocks) {
    using namespace blur;
    const Blur job = jobs[jobs_of_blocks[blockIdx.x]];
    u32 quads_per_row = (job.width + QUAD - 1) / QUAD;
    u32 index = (blockIdx.x - job.first_block) * blockDim.x + threadIdx.x;
    if (index >= quads_per_row * job.height) return;
    u32 y = index / quads_per_row, x = (index - y * quads_per_row) * QUAD;
    i32 width = (i32)job.width, height = (i32)job.height;
    bool is_across = job.form == KernelAcross || job.form == FieldAcross;
    bool has_bytes = job.form != KernelAcross && job.form != FieldAcross && job.form != FieldDown;
    for (u32 plane = 0; plane < job.planes; plane++) {
        const u8 *source = job.source + (u64)plane * job.source_plane_bytes;
        u8 *target =
            job.target + (u64)plane * job.target_plane_bytes + (u64)y * job.target_row_bytes;
        const u8 *row = source + (u64)y * job.source_row_bytes;
        u32 word = 0;
        for (u32 i = 0; i < QUAD; i++) {
            i32 column = (i32)(x + i);
            if (column >= width) break;
            if (job.form == BoxAcross) {
                word |= box(job, row, 1, width, column) << (8 * i);
            } else if (job.form == BoxDown) {
                word |= box(job, source + column, job.source_row_bytes, height, (i32)y) << (8 * i);
            } else {
                i32 radius = (i32)job.count / 2;
                float sum = 0.0f;
                for (i32 tap = 0; tap < (i32)job.count; tap++) {
                    float value;
                    if (is_across) {
                        i32 from = mirrored(column + tap - radius, width);
                        value = job.form == KernelAcross ? (float)(i32)row[from]
                                                         : ((const float *)row)[from];
                    } else {
                        i32 from = mirrored((i32)y + tap - radius, height);
                        value =
                            ((const float *)(source + (u64)from * job.source_row_bytes))[column];
                    }
                    sum = __fadd_rn(sum, __fmul_rn(__ldg(job.weights + tap), value));
                }
                if (!has_bytes) ((float *)target)[column] = sum;
                // From 2^23 on, whole numbers are next to each other.
                else word |= (__float_as_uint(__fadd_rn(sum, 8388608.0f)) & 255) << (8 * i);
            }
        }
        if (has_bytes) *(u32 *)(target + x) = word;
    }
}
