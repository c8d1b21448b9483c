// Warps of pictures: each pixel of a result comes from a position of its source, in the arithmetic
// of Pillow. Jobs are those of gpu/src/pictures/jobs.rs; block b of a launch works on job
// `jobs_of_blocks[b]`.

namespace warp {

// The `Moved` forms displace each pixel by an individual distance.
enum Form { Fixed, Nearest, Bilinear, Bicubic, MovedNearest, MovedBilinear };

struct Warp {
    const u8 *source;
    u8 *target;
    // Planes of float32: the displacements along rows and along columns. A value of 1 stands for
    // half of `map[0]` and of `map[1]` pixels.
    const u8 *field;
    double map[8];
    u32 source_row_bytes, source_plane_bytes;
    u32 target_row_bytes, target_plane_bytes;
    u32 source_width, source_height;
    u32 width, height;
    // Fixed point: column and row of the first pixel, of a step along a row, and along a column.
    i32 begin[2];
    i32 across[2];
    i32 down[2];
    u32 form;
    u32 is_perspective;
    u32 samples;
    u32 fill;
    u32 first_block;
    u32 field_row_bytes, field_plane_bytes;
    u32 unused;
};

__device__ static inline double product(double a, double b) { return __dmul_rn(a, b); }
__device__ static inline double sum(double a, double b) { return __dadd_rn(a, b); }
__device__ static inline double difference(double a, double b) { return __dadd_rn(a, -b); }

// A position without its fraction, from 0 to 2^31 - 1; of NaN, 0.
__device__ static inline i32 whole(double position) {
    return position >= 2147483647.0 ? 2147483647 : position > 0.0 ? (i32)position : 0;
}

// The value between two numbers.
__device__ static inline double between(double left, double right, double at) {
    return sum(left, product(difference(right, left), at));
}

// The cubic through four values, between the second and the third.
__device__ static inline double cubic(double v1, double v2, double v3, double v4, double at) {
    double p2 = sum(-v1, v3);
    double p3 = difference(sum(product(2.0, difference(v1, v2)), v3), v4);
    double p4 = sum(difference(sum(-v1, v2), v3), v4);
    return sum(v2, product(at, sum(p2, product(at, sum(p3, product(at, p4))))));
}

struct Position {
    double column, row;
};

__device__ static inline Position position_of(const Warp &job, u32 x, u32 y) {
    double column = sum((double)(i32)x, 0.5), row = sum((double)y, 0.5);
    const double *map = job.map;
    Position at;
    at.column = sum(sum(product(map[0], column), product(map[1], row)), map[2]);
    at.row = sum(sum(product(map[3], column), product(map[4], row)), map[5]);
    if (job.is_perspective) {
        double divisor = sum(sum(product(map[6], column), product(map[7], row)), 1.0);
        at.column = __ddiv_rn(at.column, divisor);
        at.row = __ddiv_rn(at.row, divisor);
    }
    return at;
}

// Rounds a number whose magnitude is below 2^31 to the nearest integer, halves to even: from 2^52
// on, float64 represents integers only.
__device__ static inline i32 rounded(double number) {
    return (i32)(u32)(u64)__double_as_longlong(sum(number, 6755399441055744.0));
}

// Rounds down a number whose magnitude is below 2^31.
__device__ static inline i32 below(double number) {
    i32 result = (i32)number;
    return (double)result > number ? result - 1 : result;
}

__device__ static inline double displaced(const Warp &job, u32 x, u32 y, u32 axis) {
    const u8 *row = job.field + (u64)axis * job.field_plane_bytes + (u64)y * job.field_row_bytes;
    double by = product(product((double)((const float *)row)[x], job.map[axis]), 0.5);
    return sum((double)(axis ? y : x), by);
}

// The pixel at a displaced position, as in kernels/src/operations/elastic_transform.rs.
__device__ static inline void moved(const Warp &job, u32 x, u32 y, u32 *colour) {
    double column = displaced(job, x, y, 0), row = displaced(job, x, y, 1);
    i32 width = (i32)job.source_width, height = (i32)job.source_height;
    u32 fill[3];
    for (u32 plane = 0; plane < 3; plane++) {
        fill[plane] = job.fill >> (8 * plane) & 255;
        colour[plane] = fill[plane];
    }
    // False for NaN.
    bool is_near = column > -1.0 && column < (double)width && row > -1.0 && row < (double)height;
    if (!is_near) return;
    if (job.form == MovedNearest) {
        i32 left = rounded(column), top = rounded(row);
        if (left < 0 || left >= width || top < 0 || top >= height) return;
        const u8 *at = job.source + (u64)top * job.source_row_bytes + left;
        for (u32 plane = 0; plane < 3; plane++)
            colour[plane] = at[(u64)plane * job.source_plane_bytes];
        return;
    }
    i32 left = below(column), top = below(row);
    double across = difference(column, (double)left), down = difference(row, (double)top);
    double sums[3] = {0.0, 0.0, 0.0}, share = 0.0;
    for (i32 corner = 0; corner < 4; corner++) {
        i32 is_right = corner & 1, is_lower = corner >> 1;
        double weight = product(is_right ? across : difference(1.0, across),
                                is_lower ? down : difference(1.0, down));
        i32 at_x = left + is_right, at_y = top + is_lower;
        if (at_x < 0 || at_x >= width || at_y < 0 || at_y >= height) continue;
        const u8 *at = job.source + (u64)at_y * job.source_row_bytes + at_x;
        for (u32 plane = 0; plane < 3; plane++) {
            double value = (double)at[(u64)plane * job.source_plane_bytes];
            sums[plane] = sum(sums[plane], product(weight, value));
        }
        share = sum(share, weight);
    }
    for (u32 plane = 0; plane < 3; plane++) {
        double base = (double)fill[plane];
        double value = sum(product(difference(sums[plane], base), share), base);
        colour[plane] = clamp_to_byte(rounded(value));
    }
}

// A pixel of the result, or of one that is larger by `samples`.
__device__ static inline void pixel(const Warp &job, u32 x, u32 y, u32 *colour) {
    i32 width = (i32)job.source_width, height = (i32)job.source_height;
    i32 column, row;
    double across = 0.0, down = 0.0;
    bool is_inside;
    if (job.form == Fixed) {
        column = (i32)((u32)job.begin[0] + (u32)job.across[0] * x + (u32)job.down[0] * y) >> 16;
        row = (i32)((u32)job.begin[1] + (u32)job.across[1] * x + (u32)job.down[1] * y) >> 16;
        is_inside = (u32)column < job.source_width && (u32)row < job.source_height;
    } else {
        Position at = position_of(job, x, y);
        // NaN is not inside.
        is_inside = at.column >= 0.0 && at.column < (double)width && at.row >= 0.0 &&
                    at.row < (double)height;
        if (job.form == Nearest) {
            column = whole(at.column);
            row = whole(at.row);
        } else {
            double middle_x = difference(at.column, 0.5), middle_y = difference(at.row, 0.5);
            column = middle_x < 0.0 ? -1 : whole(middle_x);
            row = middle_y < 0.0 ? -1 : whole(middle_y);
            across = difference(middle_x, (double)column);
            down = difference(middle_y, (double)row);
        }
    }
    if (!is_inside) {
        for (u32 plane = 0; plane < 3; plane++) colour[plane] = job.fill >> (8 * plane) & 255;
        return;
    }
    if (job.form == Fixed || job.form == Nearest) {
        const u8 *at = job.source + (u64)row * job.source_row_bytes + column;
        for (u32 plane = 0; plane < 3; plane++)
            colour[plane] = at[(u64)plane * job.source_plane_bytes];
        return;
    }
    if (job.form == Bilinear) {
        // Beyond the ends both pixels are the same.
        if (column < 0 || column >= width - 1) across = 0.0;
        if (row < 0 || row >= height - 1) down = 0.0;
        i32 left = max_of(column, 0), top = max_of(row, 0);
        i32 right = min_of(left + 1, width - 1), bottom = min_of(top + 1, height - 1);
        for (u32 plane = 0; plane < 3; plane++) {
            const u8 *above =
                job.source + (u64)plane * job.source_plane_bytes + (u64)top * job.source_row_bytes;
            const u8 *below = job.source + (u64)plane * job.source_plane_bytes +
                              (u64)bottom * job.source_row_bytes;
            double upper = between((double)above[left], (double)above[right], across);
            double lower = between((double)below[left], (double)below[right], across);
            colour[plane] = (u32)whole(between(upper, lower, down)) & 255;
        }
        return;
    }
    i32 columns[4];
    u64 rows[4];
    for (i32 tap = 0; tap < 4; tap++) {
        columns[tap] = max_of(0, min_of(column + tap - 1, width - 1));
        rows[tap] = (u64)max_of(0, min_of(row + tap - 1, height - 1)) * job.source_row_bytes;
    }
    for (u32 plane = 0; plane < 3; plane++) {
        double lines[4];
        for (u32 tap = 0; tap < 4; tap++) {
            const u8 *at = job.source + (u64)plane * job.source_plane_bytes + rows[tap];
            lines[tap] = cubic((double)at[columns[0]], (double)at[columns[1]],
                               (double)at[columns[2]], (double)at[columns[3]], across);
        }
        double value = cubic(lines[0], lines[1], lines[2], lines[3], down);
        colour[plane] = (u32)whole(value < 255.0 ? value : 255.0);
    }
}

} // namespace warp

// Each thread makes a pixel.
extern "C" __global__ void __launch_bounds__(256) warp_pixels(const warp::Warp *jobs, const u32 *jobs_of_blocks) {
    using namespace warp;
    const Warp &job = jobs[jobs_of_blocks[blockIdx.x]];
    u32 index = (blockIdx.x - job.first_block) * blockDim.x + threadIdx.x;
    if (index >= job.width * job.height) return;
    u32 y = index / job.width, x = index - y * job.width;
    u32 colour[3];
    if (job.form >= MovedNearest) {
        moved(job, x, y, colour);
    } else if (job.samples == 1) {
        pixel(job, x, y, colour);
    } else {
        u32 sums[3] = {0, 0, 0}, count = job.samples * job.samples, share = (1u << 24) / count;
        for (u32 inner = 0; inner < count; inner++) {
            u32 inner_y = inner / job.samples, inner_x = inner - inner_y * job.samples;
            pixel(job, x * job.samples + inner_x, y * job.samples + inner_y, colour);
            for (u32 plane = 0; plane < 3; plane++) sums[plane] += colour[plane];
        }
        for (u32 plane = 0; plane < 3; plane++)
            colour[plane] = ((sums[plane] + count / 2) * share) >> 24;
    }
    u8 *at = job.target + (u64)y * job.target_row_bytes + x;
    for (u32 plane = 0; plane < 3; plane++)
        at[(u64)plane * job.target_plane_bytes] = (u8)colour[plane];
}
