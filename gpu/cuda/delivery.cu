// Bytes of a batch of pictures to the elements of a tensor: the last step of a recipe, after bytes
// have crossed the bus.
//
// A thread reads the bytes of a whole vector of 16 bytes of elements, and neighbouring threads store
// neighbouring vectors. Threads of a block are a multiple of 3 and vectors of a block begin at a
// multiple of 3, so that the first element of all vectors of a thread has the same channel.
namespace delivery {

// As in src/delivery/conversion.rs.
static const u32 THREADS = 192;
// Vectors of a thread that are loaded before the first of them is stored.
static const u32 AHEAD = 4;
// Vectors of a block in a segment, as in src/delivery/conversion.rs: enough that what it computes
// first does not matter, few enough that the last blocks do not keep most of a GPU waiting.
static const u32 OF_BLOCK = 2 * AHEAD * THREADS;

// How vectors lie: see `Shape` in src/delivery/conversion.rs.
static const u32 PLANES = 0, PIXELS = 1, ANY_PLANES = 2, PIXELS_TO_PLANES = 3;

template <u32 BYTES> struct Word;
template <> struct Word<4> {
    u32 words[1];
    __device__ __forceinline__ void load(const u8 *from, u32 at) { words[0] = __ldcs((const u32 *)from + at); }
};
template <> struct Word<8> {
    u32 words[2];
    __device__ __forceinline__ void load(const u8 *from, u32 at) {
        uint2 both = __ldcs((const uint2 *)from + at);
        words[0] = both.x;
        words[1] = both.y;
    }
};

// Three of something, one per channel, with the one of a vector's first element first.
template <class T> struct Three {
    T of[3];
    // Those for elements whose channels begin with `first` and increase by `step`, 0 or 1.
    __device__ __forceinline__ Three from(u32 first, u32 step) const {
        Three result;
#pragma unroll
        for (u32 k = 0; k < 3; k++) {
            u32 channel = first + k * step;
            channel = channel >= 3 ? channel - 3 : channel;
            result.of[k] = channel == 0 ? of[0] : channel == 1 ? of[1] : of[2];
        }
        return result;
    }
};

__device__ static __forceinline__ uint4 vector_of(const u32 *at) { return make_uint4(at[0], at[1], at[2], at[3]); }
__device__ static __forceinline__ uint4 vector_of(const u16 *at) {
    return make_uint4(at[0] | (u32)at[1] << 16, at[2] | (u32)at[3] << 16,
                      at[4] | (u32)at[5] << 16, at[6] | (u32)at[7] << 16);
}

// Elements that a table has for the 256 values of each channel.
template <class T> struct Table {
    typedef T Element;
    struct Channels {
        Three<const T *> values;
        __device__ __forceinline__ T element(u32 k, const u32 *words, u32 byte) const {
            return values.of[k][words[byte / 4] >> (8 * (byte % 4)) & 255];
        }
    };
    Three<const T *> values;
    __device__ __forceinline__ Channels channels(u32 first, u32 step) const { return Channels{values.from(first, step)}; }
};

// The bits of an element with the value of a float32.
__device__ static __forceinline__ void round_to(u32 &element, float value) { element = __float_as_uint(value); }
// bfloat16, to nearest, ties to even; never a NaN.
__device__ static __forceinline__ void round_to(u16 &element, float value) {
    u32 bits = __float_as_uint(value);
    element = (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// `(byte * scale - mean) / std`, or with `byte / scale`, each step rounded to float32. Quotients are
// products with a reciprocal, corrected by what remains; the host has compared all of them.
struct Constants {
    // `factor` is `scale` or its reciprocal, `offset` is -2^23 times that.
    float scale, factor, offset;
    Three<float> mean, std, reciprocal;
};
template <class T, bool DIVIDES> struct Arithmetic {
    typedef T Element;
    Constants constants;
    struct Channels {
        Constants of;
        __device__ __forceinline__ T element(u32 k, const u32 *words, u32 byte) const {
            // The bits of 2^23 + byte: a conversion instruction would take several times as long.
            float shifted = __uint_as_float(__byte_perm(words[byte / 4], 0x4b000000u, 0x7440u + byte % 4));
            float value = __fmaf_rn(shifted, of.factor, of.offset);
            if (DIVIDES) {
                float rest = __fmaf_rn(-value, of.scale, __fsub_rn(shifted, 8388608.0f));
                value = __fmaf_rn(rest, of.factor, value);
            }
            value = __fsub_rn(value, of.mean.of[k]);
            float quotient = __fmul_rn(value, of.reciprocal.of[k]);
            float rest = __fmaf_rn(-quotient, of.std.of[k], value);
            T result;
            round_to(result, __fmaf_rn(rest, of.reciprocal.of[k], quotient));
            return result;
        }
    };
    __device__ __forceinline__ Channels channels(u32 first, u32 step) const {
        const Constants &all = constants;
        return Channels{{all.scale, all.factor, all.offset, all.mean.from(first, step), all.std.from(first, step),
                         all.reciprocal.from(first, step)}};
    }
};

template <class Channels, class T> __device__ static __forceinline__ uint4 converted(
    const Channels &channels, const Word<16 / sizeof(T)> &word) {
    T elements[16 / sizeof(T)];
#pragma unroll
    for (u32 i = 0; i < 16 / sizeof(T); i++) elements[i] = channels.element(i % 3, word.words, i);
    return vector_of(elements);
}

// Elements in the order of their bytes: segments of whole vectors, each of one channel or of pixels.
template <class From> __device__ static __forceinline__ void in_order(
    const u8 *bytes, u8 *elements, bool are_pixels, u32 segment, u32 channels, u32 count, const From &from) {
    typedef typename From::Element T;
    const u32 EACH = 16 / sizeof(T);
    u32 vectors = segment / EACH, begin = blockIdx.x * OF_BLOCK + threadIdx.x;
    u32 end = blockIdx.x * OF_BLOCK + OF_BLOCK;
    end = end < vectors ? end : vectors;
    u32 segments = count / segment;
    for (u32 number = blockIdx.y; number < segments; number += gridDim.y) {
        u32 channel = are_pixels ? EACH * (begin % 3) % 3 : channels == 1 ? 0 : number % 3;
        typename From::Channels own = from.channels(channel, are_pixels);
        const u8 *read = bytes + number * segment;
        uint4 *written = (uint4 *)elements + number * vectors;
        u32 at = begin;
        for (; at + (AHEAD - 1) * THREADS < end; at += AHEAD * THREADS) {
            Word<EACH> loaded[AHEAD];
#pragma unroll
            for (u32 i = 0; i < AHEAD; i++) loaded[i].load(read, at + i * THREADS);
#pragma unroll
            for (u32 i = 0; i < AHEAD; i++)
                __stcs(written + at + i * THREADS, converted<typename From::Channels, T>(own, loaded[i]));
        }
        for (; at < end; at += THREADS) {
            Word<EACH> loaded;
            loaded.load(read, at);
            __stcs(written + at, converted<typename From::Channels, T>(own, loaded));
        }
        // A single segment may end with part of a vector.
        u32 last = vectors * EACH + threadIdx.x;
        if (blockIdx.x == 0 && last < segment) {
            u32 word = bytes[last];
            ((T *)elements)[last] = from.channels(are_pixels ? last % 3 : 0, 0).element(0, &word, 0);
        }
    }
}

// Elements of planes that do not begin at vectors, or, from pixels, in the order of planes.
template <class From> __device__ static __forceinline__ void one_by_one(
    const u8 *bytes, u8 *elements, bool are_pixels, u32 plane, u32 count, const From &from) {
    typedef typename From::Element T;
    T *out = (T *)elements;
    u32 pixels = count / 3, stride = gridDim.x * THREADS;
    for (u32 pixel = blockIdx.x * THREADS + threadIdx.x; pixel < pixels; pixel += stride) {
        u32 sample = pixel / plane, at = 2 * sample * plane + pixel;
#pragma unroll
        for (u32 channel = 0; channel < 3; channel++) {
            u32 to = at + channel * plane;
            u32 word = bytes[are_pixels ? 3 * pixel + channel : to];
            out[to] = from.channels(channel, 0).element(0, &word, 0);
        }
    }
}

template <class From> __device__ static __forceinline__ void convert(
    const u8 *bytes, u8 *elements, u32 shape, u32 segment, u32 channels, u32 count, const From &from) {
    if (shape == PLANES || shape == PIXELS)
        in_order(bytes, elements, shape == PIXELS, segment, channels, count, from);
    else one_by_one(bytes, elements, shape == PIXELS_TO_PLANES, segment, count, from);
}

template <class T> __device__ static __forceinline__ Table<T> shared_table(T *shared, const T *table) {
    for (u32 at = threadIdx.x; at < 3 * 256; at += THREADS) shared[at] = table[at];
    __syncthreads();
    return Table<T>{{{shared, shared + 256, shared + 512}}};
}

template <class T> __device__ static __forceinline__ void by_arithmetic(
    const u8 *bytes, u8 *elements, u32 shape, u32 segment, u32 channels, u32 count, u32 divides,
    float scale, float factor, Three<float> mean, Three<float> std, Three<float> reciprocal) {
    Constants constants = {scale, factor, __fmul_rn(factor, -8388608.0f), mean, std, reciprocal};
    if (divides) convert(bytes, elements, shape, segment, channels, count, Arithmetic<T, true>{constants});
    else convert(bytes, elements, shape, segment, channels, count, Arithmetic<T, false>{constants});
}

}  // namespace delivery

// `count` bytes in segments: planes, or all pixels; vectors of a segment are divided between blocks
// along x, segments between those along y.

extern "C" __global__ void __launch_bounds__(192) delivery_table_32(const u8 *bytes, u8 *elements, u32 shape, u32 segment, u32 channels, u32 count, const u32 *table) {
    __shared__ u32 values[3 * 256];
    delivery::convert(bytes, elements, shape, segment, channels, count, delivery::shared_table(values, table));
}

extern "C" __global__ void __launch_bounds__(192) delivery_table_16(const u8 *bytes, u8 *elements, u32 shape, u32 segment, u32 channels, u32 count, const u16 *table) {
    __shared__ u16 values[3 * 256];
    delivery::convert(bytes, elements, shape, segment, channels, count, delivery::shared_table(values, table));
}

extern "C" __global__ void __launch_bounds__(192) delivery_arithmetic_float32(const u8 *bytes, u8 *elements, u32 shape, u32 segment, u32 channels, u32 count, u32 divides, float scale, float factor, float mean0, float mean1, float mean2, float std0, float std1, float std2, float reciprocal0, float reciprocal1, float reciprocal2) {
    delivery::by_arithmetic<u32>(bytes, elements, shape, segment, channels, count, divides, scale, factor, {{mean0, mean1, mean2}}, {{std0, std1, std2}}, {{reciprocal0, reciprocal1, reciprocal2}});
}

extern "C" __global__ void __launch_bounds__(192) delivery_arithmetic_bfloat16(const u8 *bytes, u8 *elements, u32 shape, u32 segment, u32 channels, u32 count, u32 divides, float scale, float factor, float mean0, float mean1, float mean2, float std0, float std1, float std2, float reciprocal0, float reciprocal1, float reciprocal2) {
    delivery::by_arithmetic<u16>(bytes, elements, shape, segment, channels, count, divides, scale, factor, {{mean0, mean1, mean2}}, {{std0, std1, std2}}, {{reciprocal0, reciprocal1, reciprocal2}});
}

// float32 to bfloat16, to nearest, ties to even. `from` and `to` begin at multiples of 16 bytes.
extern "C" __global__ void __launch_bounds__(192) delivery_round_bfloat16(const u32 *from, u16 *to, u32 count) {
    u32 stride = gridDim.x * delivery::THREADS * 8;
    for (u32 begin = (blockIdx.x * delivery::THREADS + threadIdx.x) * 8; begin < count; begin += stride) {
        u16 rounded[8];
        if (begin + 8 <= count) {
            uint4 low = *(const uint4 *)(from + begin), high = *(const uint4 *)(from + begin + 4);
            u32 bits[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
            for (u32 i = 0; i < 8; i++) delivery::round_to(rounded[i], __uint_as_float(bits[i]));
            *(uint4 *)(to + begin) = delivery::vector_of(rounded);
        } else {
            for (u32 at = begin; at < count; at++) delivery::round_to(to[at], __uint_as_float(from[at]));
        }
    }
}
