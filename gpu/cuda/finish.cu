// Noise, and changes of finished tensors: rectangles that are replaced, and samples that are mixed
// with one another.

namespace finish {

struct Erasure {
    u32 top, left, height, width;
    u32 is_noise;
    // The bits of an element of each channel; of noise, the key.
    u32 values[3];
};

struct Erased {
    u8 *tensor;
    const Erasure *erasures;
    u32 count;
    u32 width, height;
    u32 unused;
};

// `Field` sets two planes of float32 to numbers from -1 to 1.
enum NoiseForm { Gaussian, Sensor, Field };

// A range of random integers: the smallest, and their number.
struct NoiseRange {
    i32 low;
    u32 count;
};

struct Noisy {
    u8 *picture;
    double mean, sigma;
    u32 row_bytes, plane_bytes;
    u32 width, height;
    u32 key[2];
    // Of a sensor: the ranges for red and blue, and for green.
    NoiseRange coarse, fine;
    u32 form;
    u32 is_clipped, is_grey;
    u32 first_block;
};

struct Mix {
    u32 form;
    // Of a blend, the bits of the own weight and that of the partner.
    u32 own_weight, partner_weight;
    u32 top, bottom, left, right;
    u32 unused;
};

enum Form { Keep, Blend, Paste };

// A float32 as the nearest float16, ties to even.
__device__ static inline u32 half_of(float number) {
    u32 bits = __float_as_uint(number), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000) return sign | 0x7e00 | (size >> 13 & 0x3ff);
    if (size >= 0x47800000) return sign | 0x7c00;
    if (size < 0x38800000) {
        // Below the normal numbers: in units of 2^-24, which 0.5 has in float32.
        float units = __fadd_rn(__uint_as_float(size), 0.5f);
        return sign | (__float_as_uint(units) - 0x3f000000);
    }
    u32 rounded = size + 0xfff + (size >> 13 & 1);
    return sign | ((rounded - 0x38000000) >> 13);
}

__device__ static inline float float_of(u32 half) {
    u32 sign = (half & 0x8000) << 16, size = half & 0x7fff;
    if (size >= 0x7c00)
        return __uint_as_float(sign | 0x7f800000 | (size & 0x3ff) << 13 |
                               (size > 0x7c00 ? 0x400000 : 0));
    if (size < 0x400) {
        float number = __fmul_rn((float)(i32)size, 5.9604644775390625e-8f);
        return __uint_as_float(sign | __float_as_uint(number));
    }
    return __uint_as_float(sign | ((size << 13) + 0x38000000));
}

__device__ static inline double product(double a, double b) { return __dmul_rn(a, b); }
__device__ static inline double sum(double a, double b) { return __dadd_rn(a, b); }

// The natural logarithm of a normal number above 0, in the operations of `e_log.c` of FreeBSD:
//
// Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved. Developed at SunSoft, a Sun
// Microsystems, Inc. business. Permission to use, copy, modify, and distribute this software is
// freely granted, provided that this notice is preserved.
__device__ static inline double logarithm(double x) {
    u64 bits = (u64)__double_as_longlong(x);
    u32 high = (u32)(bits >> 32) + (0x3ff00000 - 0x3fe6a09e);
    double exponent = (double)((i32)(high >> 20) - 0x3ff);
    high = (high & 0x000fffff) + 0x3fe6a09e;
    double f = sum(__longlong_as_double((i64)((u64)high << 32 | (bits & 0xffffffff))), -1.0);
    double half_square = product(product(0.5, f), f);
    double s = __ddiv_rn(f, sum(2.0, f)), z = product(s, s), w = product(z, z);
    double even = product(
        w, sum(3.999999999940941908e-01,
               product(w, sum(2.222219843214978396e-01, product(w, 1.531383769920937332e-01)))));
    double odd =
        product(z, sum(6.666666666666735130e-01,
                       product(w, sum(2.857142874366239149e-01,
                                      product(w, sum(1.818357216161805012e-01,
                                                     product(w, 1.479819860511658591e-01)))))));
    double result = sum(product(s, sum(half_square, sum(odd, even))),
                        product(exponent, 1.90821492927058770002e-10));
    return sum(sum(sum(result, -half_square), f), product(exponent, 6.93147180369123816490e-01));
}

// A polynomial of degree 7, the highest coefficient first.
__device__ static inline double polynomial(double a, double b, double c, double d, double e,
                                           double f, double g, double h, double at) {
    double result = sum(product(a, at), b);
    result = sum(product(result, at), c);
    result = sum(product(result, at), d);
    result = sum(product(result, at), e);
    result = sum(product(result, at), f);
    result = sum(product(result, at), g);
    return sum(product(result, at), h);
}

// A standard normal number for a word: the quantile of (word + 1/2) / 2^32 by PPND16 of AS 241, as
// kernels/src/random.rs.
__device__ static inline double normal(u32 word) {
    double share = __ddiv_rn(sum((double)word, 0.5), 4294967296.0);
    double q = sum(share, -0.5), distance = q < 0.0 ? -q : q;
    if (distance <= 0.425) {
        double r = sum(0.180625, -product(q, q));
        double above = polynomial(2509.0809287301227, 33430.57558358813, 67265.7709270087,
                                  45921.95393154987, 13731.69376550946, 1971.5909503065513,
                                  133.14166789178438, 3.3871328727963665, r);
        double below =
            polynomial(5226.495278852854, 28729.085735721943, 39307.89580009271, 21213.794301586597,
                       5394.196021424751, 687.1870074920579, 42.31333070160091, 1.0, r);
        return __ddiv_rn(product(above, q), below);
    }
    double tail = q <= 0.0 ? share : sum(1.0, -share);
    double r = sum(__dsqrt_rn(-logarithm(tail)), -1.6);
    double above = polynomial(0.0007745450142783414, 0.022723844989269184, 0.2417807251774506,
                              1.2704582524523684, 3.6478483247632045, 5.769497221460691,
                              4.630337846156546, 1.4234371107496835, r);
    double below = polynomial(1.0507500716444169e-9, 0.0005475938084995345, 0.015198666563616457,
                              0.14810397642748008, 0.6897673349851, 1.6763848301838038,
                              2.053191626637759, 1.0, r);
    double value = __ddiv_rn(above, below);
    return q < 0.0 ? -value : value;
}

// A number without its fraction, at the ends of the range of i32 beyond it.
__device__ static inline i32 whole(double number) {
    if (number >= 2147483647.0) return 2147483647;
    return number > -2147483648.0 ? (i32)number : -2147483647 - 1;
}

// The word of Philox 4x32-10 with a counter, at an index.
__device__ static inline u32 random_word(u32 block, u32 row, u32 channel, u32 index, u32 first,
                                         u32 second) {
    u32 a = block, b = row, c = channel, d = 0;
    for (u32 round = 0; round < 10; round++) {
        u64 of_a = (u64)a * 0xd2511f53u, of_c = (u64)c * 0xcd9e8d57u;
        a = (u32)(of_c >> 32) ^ b ^ first;
        b = (u32)of_c;
        c = (u32)(of_a >> 32) ^ d ^ second;
        d = (u32)of_a;
        first += 0x9e3779b9u;
        second += 0xbb67ae85u;
    }
    return index == 0 ? a : index == 1 ? b : index == 2 ? c : d;
}

__device__ static inline i32 number_of(const NoiseRange &range, u32 word) {
    return range.low + (i32)((u64)word * range.count >> 32);
}

// The position of a row or column of a picture between two rows or columns of a coarser grid.
struct GridPosition {
    u32 first, second;
    // The distance from the first one, and 1 minus that.
    double behind, before;
};

__device__ static inline GridPosition in_grid(u32 at, u32 length, u32 coarse) {
    double step = __ddiv_rn((double)coarse, (double)length);
    double position = sum(product(sum((double)at, 0.5), step), -0.5), last = (double)(coarse - 1);
    position = position > 0.0 ? position : 0.0;
    position = position < last ? position : last;
    GridPosition result;
    result.first = (u32)(i32)position;
    result.second = (u32)min_of((i32)result.first + 1, (i32)coarse - 1);
    result.behind = sum(position, -(double)result.first);
    result.before = sum(1.0, -result.behind);
    return result;
}

// Interpolates the noise of a pixel in a grid, as in kernels/src/operations/random_sensor_noise.rs.
__device__ static inline i32 coarse_number(const Noisy &job, u32 x, u32 y, u32 channel) {
    GridPosition column = in_grid(x, job.width, (u32)max_of((i32)job.width / 2, 1));
    GridPosition row = in_grid(y, job.height, (u32)max_of((i32)job.height / 2, 1));
    double lines[2];
    for (u32 line = 0; line < 2; line++) {
        u32 grid_row = line ? row.second : row.first;
        double numbers[2];
        for (u32 side = 0; side < 2; side++) {
            u32 at = side ? column.second : column.first;
            u32 word = random_word(at / 4, grid_row, channel, at % 4, job.key[0], job.key[1]);
            numbers[side] = (double)number_of(job.coarse, word);
        }
        lines[line] = sum(product(numbers[0], column.before), product(numbers[1], column.behind));
    }
    double number = sum(product(lines[0], row.before), product(lines[1], row.behind));
    // Rounds halves to even: from 2^52 on, float64 represents integers only.
    return (i32)(u32)(u64)__double_as_longlong(sum(number, 6755399441055744.0));
}

__device__ static inline void store(u8 *at, u32 element_bytes, u32 bits) {
    if (element_bytes == 4) *(u32 *)at = bits;
    else if (element_bytes == 2) *(u16 *)at = (u16)bits;
    else *at = (u8)bits;
}

// An element of bits `own` blended with that of its partner, each rounded step by step.
template <u32 BYTES>
__device__ static inline u32 blended(u32 own, u32 partner, float own_weight, float partner_weight) {
    if (BYTES == 4) {
        float first = __fmul_rn(__uint_as_float(own), own_weight);
        return __float_as_uint(
            __fadd_rn(first, __fmul_rn(__uint_as_float(partner), partner_weight)));
    }
    if (BYTES == 2) {
        float first = float_of(half_of(__fmul_rn(float_of(own), own_weight)));
        float second = float_of(half_of(__fmul_rn(float_of(partner), partner_weight)));
        return half_of(__fadd_rn(first, second));
    }
    float first = __fmul_rn((float)(i32)own, own_weight);
    float sum = __fadd_rn(first, __fmul_rn((float)(i32)partner, partner_weight));
    // From 2^23 on, whole numbers are next to each other.
    return __float_as_uint(__fadd_rn(sum, 8388608.0f)) & 255;
}

// Where an element is in its picture.
struct Place {
    u32 x, y;
};

template <u32 BYTES>
__device__ static inline u32 mixed(const Mix &mix, Place at, u32 own, u32 partner) {
    if (mix.form == Blend)
        return blended<BYTES>(own, partner, __uint_as_float(mix.own_weight),
                              __uint_as_float(mix.partner_weight));
    bool is_pasted = mix.form == Paste && at.y >= mix.top && at.y < mix.bottom &&
                     at.x >= mix.left && at.x < mix.right;
    return is_pasted ? partner : own;
}

// Elements as they are loaded and stored together: 4 bytes, or one element where samples do not
// begin at multiples of 4.
template <u32 BYTES, u32 GROUP> __device__ static inline u32 load_group(const u8 *at) {
    if (GROUP == 4) return *(const u32 *)at;
    if (GROUP == 2) return *(const u16 *)at;
    return *at;
}

template <u32 BYTES, u32 GROUP> __device__ static inline u32
mixed_group(const Mix &mix, const Place *places, u32 own, u32 partner) {
    if (mix.form == Keep) return own;
    if (BYTES == 4) return mixed<4>(mix, places[0], own, partner);
    u32 result = 0, mask = BYTES == 2 ? 0xffff : 0xff;
    for (u32 i = 0; i < GROUP / BYTES; i++) {
        u32 shift = 8 * BYTES * i;
        result |= mixed<BYTES>(mix, places[i], own >> shift & mask, partner >> shift & mask)
                  << shift;
    }
    return result;
}

// All samples at a group of elements, each given what its partner was before.
template <u32 BYTES, u32 GROUP>
__device__ static inline void mix_all(u8 *tensors, const Mix *mixes, u32 samples, u64 sample_bytes,
                                      u32 width, u32 height, u32 channels, u32 is_interleaved,
                                      u32 is_mirrored, u64 group) {
    Place places[GROUP / BYTES];
    for (u32 i = 0; i < GROUP / BYTES; i++) {
        u64 element = group * (GROUP / BYTES) + i;
        u32 pixel = (u32)(is_interleaved ? element / channels : element % ((u64)width * height));
        places[i].y = pixel / width;
        places[i].x = pixel - places[i].y * width;
    }
    u8 *at = tensors + group * GROUP;
    if (is_mirrored) {
        for (u32 own = 0; own < samples / 2; own++) {
            u32 other = samples - 1 - own;
            u8 *of_own = at + own * sample_bytes, *of_other = at + other * sample_bytes;
            u32 first = load_group<BYTES, GROUP>(of_own),
                second = load_group<BYTES, GROUP>(of_other);
            store(of_own, GROUP, mixed_group<BYTES, GROUP>(mixes[own], places, first, second));
            store(of_other, GROUP, mixed_group<BYTES, GROUP>(mixes[other], places, second, first));
        }
        return;
    }
    u32 last = load_group<BYTES, GROUP>(at + (samples - 1) * sample_bytes), own = last;
    for (u32 sample = samples - 1; sample > 0; sample--) {
        u32 partner = load_group<BYTES, GROUP>(at + (sample - 1) * sample_bytes);
        store(at + sample * sample_bytes, GROUP,
              mixed_group<BYTES, GROUP>(mixes[sample], places, own, partner));
        own = partner;
    }
    store(at, GROUP, mixed_group<BYTES, GROUP>(mixes[0], places, own, last));
}

} // namespace finish

// Adds noise to pictures. Each thread changes a pixel.
extern "C" __global__ void __launch_bounds__(256) add_noise(const finish::Noisy *jobs, const u32 *jobs_of_blocks) {
    using namespace finish;
    const Noisy &job = jobs[jobs_of_blocks[blockIdx.x]];
    u32 index = (blockIdx.x - job.first_block) * blockDim.x + threadIdx.x;
    if (index >= job.width * job.height) return;
    u32 y = index / job.width, x = index - y * job.width;
    u8 *row = job.picture + (u64)y * job.row_bytes, *at = row + x;
    if (job.form == Field) {
        for (u32 channel = 0; channel < 2; channel++) {
            u32 word = random_word(x / 4, y, channel, x % 4, job.key[0], job.key[1]);
            // 24 bits, which float32 represents exactly, in units of 2^-23.
            float number = __fmul_rn((float)(i32)(word >> 8), 1.1920928955078125e-7f);
            ((float *)(row + (u64)channel * job.plane_bytes))[x] = __fsub_rn(number, 1.0f);
        }
        return;
    }
    i32 noise = 0;
    for (u32 channel = 0; channel < 3; channel++) {
        if (job.form == Sensor && channel != 1 && !job.is_grey) {
            noise = coarse_number(job, x, y, channel);
        } else if (channel == 0 || !job.is_grey) {
            u32 word = random_word(x / 4, y, channel, x % 4, job.key[0], job.key[1]);
            noise = job.form == Sensor ? number_of(job.fine, word)
                                       : whole(sum(job.mean, product(normal(word), job.sigma)));
        }
        i32 value = (i32)(at[(u64)channel * job.plane_bytes] + (u32)noise);
        at[(u64)channel * job.plane_bytes] = job.is_clipped ? clamp_to_byte(value) : (u8)value;
    }
}

// Replaces rectangles of tensors, one after another: a block for each tensor.
extern "C" __global__ void __launch_bounds__(256) erase(const finish::Erased *jobs, u32 element_bytes, u32 channels, u32 is_interleaved) {
    using namespace finish;
    const Erased job = jobs[blockIdx.x];
    for (u32 number = 0; number < job.count; number++) {
        const Erasure erasure = job.erasures[number];
        u32 count = erasure.height * erasure.width;
        for (u32 index = threadIdx.x; index < count; index += blockDim.x) {
            u32 row = index / erasure.width, column = index - row * erasure.width;
            u64 pixel = (u64)(erasure.top + row) * job.width + erasure.left + column;
            for (u32 channel = 0; channel < channels; channel++) {
                u32 bits = erasure.values[channel];
                if (erasure.is_noise) {
                    u32 word = random_word(column / 4, row, channel, column % 4, erasure.values[0],
                                           erasure.values[1]);
                    float number = (float)normal(word);
                    bits = element_bytes == 4 ? __float_as_uint(number) : half_of(number);
                }
                u64 element = is_interleaved ? pixel * channels + channel
                                             : (u64)channel * job.width * job.height + pixel;
                store(job.tensor + element * element_bytes, element_bytes, bits);
            }
        }
        // The next rectangle may overlap.
        __syncthreads();
    }
}

// Mixes the samples of a batch. Each thread takes the same elements of all samples.
extern "C" __global__ void __launch_bounds__(256) mix_samples(u8 *tensors, const finish::Mix *mixes, u32 samples, u32 sample_bytes, u32 width, u32 height, u32 channels, u32 element_bytes, u32 is_interleaved, u32 is_mirrored) {
    using namespace finish;
    u64 group = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    bool is_whole = sample_bytes % 4 == 0;
    u32 group_bytes = is_whole ? 4 : element_bytes;
    if (group >= sample_bytes / group_bytes) return;
    if (element_bytes == 4)
        mix_all<4, 4>(tensors, mixes, samples, sample_bytes, width, height, channels,
                      is_interleaved, is_mirrored, group);
    else if (element_bytes == 2 && is_whole)
        mix_all<2, 4>(tensors, mixes, samples, sample_bytes, width, height, channels,
                      is_interleaved, is_mirrored, group);
    else if (element_bytes == 2)
        mix_all<2, 2>(tensors, mixes, samples, sample_bytes, width, height, channels,
                      is_interleaved, is_mirrored, group);
    else if (is_whole)
        mix_all<1, 4>(tensors, mixes, samples, sample_bytes, width, height, channels,
                      is_interleaved, is_mirrored, group);
    else
        mix_all<1, 1>(tensors, mixes, samples, sample_bytes, width, height, channels,
                      is_interleaved, is_mirrored, group);
}
