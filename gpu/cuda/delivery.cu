// Bytes of a batch of pictures to the elements of a tensor: the last step of a recipe, after bytes
// have crossed the bus.
//
// Threads read and write whole vectors: neighbouring threads store neighbouring 16 bytes. A count of
// bytes that is no multiple of a vector ends with single elements.
namespace delivery {

// Vectors of a thread that are loaded before the first of them is stored.
static const u32 AHEAD = 4;

// Orders of the axes: see `Order` in src/delivery/conversion.rs.
static const u32 PLANES = 0, PIXELS = 1, PIXELS_TO_PLANES = 2;

template <u32 BYTES> struct Word;
template <> struct Word<4> {
    u32 word;
    __device__ __forceinline__ u32 byte(u32 at) const { return word >> (8 * at) & 255; }
};
template <> struct alignas(8) Word<8> {
    u32 words[2];
    __device__ __forceinline__ u32 byte(u32 at) const { return words[at / 4] >> (8 * (at % 4)) & 255; }
};

// Elements that a table has for the 256 values of each channel.
template <class T> struct Table {
    typedef T Element;
    const T *values;
    __device__ __forceinline__ T element(u32 channel, u32 byte) const { return values[256 * channel + byte]; }
};

// `(byte * scale - mean) / std`, or with `byte / scale`, each step rounded to float32.
struct Arithmetic {
    typedef u32 Element;
    float scale, mean[3], std[3];
    u32 divides;
    __device__ __forceinline__ u32 element(u32 channel, u32 byte) const {
        // The bits of 2^23 + byte, exactly, without a conversion instruction.
        float value = __fsub_rn(__uint_as_float(0x4b000000u | byte), 8388608.0f);
        value = divides ? __fdiv_rn(value, scale) : __fmul_rn(value, scale);
        float m = channel == 0 ? mean[0] : channel == 1 ? mean[1] : mean[2];
        float s = channel == 0 ? std[0] : channel == 1 ? std[1] : std[2];
        return __float_as_uint(__fdiv_rn(__fsub_rn(value, m), s));
    }
};

template <class T> struct Vector;
template <> struct Vector<u32> {
    u32 at[4];
    __device__ __forceinline__ uint4 bits() const { return make_uint4(at[0], at[1], at[2], at[3]); }
};
template <> struct Vector<u16> {
    u16 at[8];
    __device__ __forceinline__ uint4 bits() const {
        return make_uint4(at[0] | (u32)at[1] << 16, at[2] | (u32)at[3] << 16,
                          at[4] | (u32)at[5] << 16, at[6] | (u32)at[7] << 16);
    }
};

// The channel of an element, and of those after it. Planes: each has `plane` elements.
struct PlaneWalk {
    u32 plane, channels, channel, rest;
    __device__ __forceinline__ PlaneWalk(u32 plane, u32 channels, u32 at) : plane(plane), channels(channels) {
        u32 number = at / plane;
        channel = number % channels;
        rest = at - number * plane;
    }
    __device__ __forceinline__ bool is_constant(u32 count) const { return rest + count <= plane; }
    __device__ __forceinline__ void next() {
        if (++rest < plane) return;
        rest = 0;
        if (++channel == channels) channel = 0;
    }
};
struct PixelWalk {
    u32 channel;
    __device__ __forceinline__ PixelWalk(u32, u32, u32 at) : channel(at % 3) {}
    __device__ __forceinline__ bool is_constant(u32) const { return false; }
    __device__ __forceinline__ void next() { channel = channel == 2 ? 0 : channel + 1; }
};

// Elements in the order of their bytes.
template <class Walk, class From> __device__ static __forceinline__ void in_order(
    const u8 *bytes, u8 *elements, u32 plane, u32 channels, u32 count, const From &from) {
    typedef typename From::Element T;
    const u32 EACH = 16 / sizeof(T);
    const Word<EACH> *words = (const Word<EACH> *)bytes;
    u32 vectors = count / EACH, stride = blockDim.x;
    for (u32 first = blockIdx.x * stride * AHEAD + threadIdx.x; first < vectors; first += gridDim.x * stride * AHEAD) {
        Word<EACH> loaded[AHEAD];
#pragma unroll
        for (u32 i = 0; i < AHEAD; i++)
            if (first + i * stride < vectors) loaded[i] = words[first + i * stride];
#pragma unroll
        for (u32 i = 0; i < AHEAD; i++) {
            u32 at = first + i * stride;
            if (at >= vectors) break;
            Walk walk(plane, channels, at * EACH);
            Vector<T> vector;
            if (walk.is_constant(EACH)) {
#pragma unroll
                for (u32 k = 0; k < EACH; k++) vector.at[k] = from.element(walk.channel, loaded[i].byte(k));
            } else {
#pragma unroll
                for (u32 k = 0; k < EACH; k++) {
                    vector.at[k] = from.element(walk.channel, loaded[i].byte(k));
                    walk.next();
                }
            }
            ((uint4 *)elements)[at] = vector.bits();
        }
    }
    u32 last = vectors * EACH + blockIdx.x * stride + threadIdx.x;
    if (last < count) ((T *)elements)[last] = from.element(Walk(plane, channels, last).channel, bytes[last]);
}

// Pixels of three bytes to three planes.
template <class From> __device__ static __forceinline__ void to_planes(
    const u8 *bytes, u8 *elements, u32 plane, u32 count, const From &from) {
    typedef typename From::Element T;
    const u32 EACH = 16 / sizeof(T);
    u32 stride = gridDim.x * blockDim.x, begin = blockIdx.x * blockDim.x + threadIdx.x;
    if (plane % EACH) {
        // Vectors of most planes would not be aligned.
        T *out = (T *)elements;
        for (u32 pixel = begin; pixel < count / 3; pixel += stride) {
            u32 sample = pixel / plane, at = 3 * sample * plane + (pixel - sample * plane);
            for (u32 channel = 0; channel < 3; channel++)
                out[at + channel * plane] = from.element(channel, bytes[3 * pixel + channel]);
        }
        return;
    }
    // `EACH` pixels: three words, and a vector of each plane.
    const Word<EACH> *words = (const Word<EACH> *)bytes;
    u32 vectors = plane / EACH;
    for (u32 group = begin; group < count / 3 / EACH; group += stride) {
        Word<EACH> loaded[3];
#pragma unroll
        for (u32 i = 0; i < 3; i++) loaded[i] = words[3 * group + i];
        u32 sample = group / vectors, at = 3 * sample * vectors + (group - sample * vectors);
#pragma unroll
        for (u32 channel = 0; channel < 3; channel++) {
            Vector<T> vector;
#pragma unroll
            for (u32 k = 0; k < EACH; k++) {
                u32 byte = 3 * k + channel;
                vector.at[k] = from.element(channel, loaded[byte / EACH].byte(byte % EACH));
            }
            ((uint4 *)elements)[at + channel * vectors] = vector.bits();
        }
    }
}

template <class From> __device__ static __forceinline__ void convert(
    const u8 *bytes, u8 *elements, u32 order, u32 plane, u32 channels, u32 count, const From &from) {
    if (order == PLANES) in_order<PlaneWalk>(bytes, elements, plane, channels, count, from);
    else if (order == PIXELS) in_order<PixelWalk>(bytes, elements, plane, channels, count, from);
    else to_planes(bytes, elements, plane, count, from);
}

template <class T> __device__ static __forceinline__ Table<T> shared_table(T *shared, const T *table) {
    for (u32 at = threadIdx.x; at < 3 * 256; at += blockDim.x) shared[at] = table[at];
    __syncthreads();
    return Table<T>{shared};
}

}  // namespace delivery

// `count` bytes, of whole samples: `channels` times `plane` each.

extern "C" __global__ void __launch_bounds__(256) delivery_table_float32(const u8 *bytes, u8 *elements, u32 order, u32 plane, u32 channels, u32 count, const u32 *table) {
    __shared__ u32 values[3 * 256];
    delivery::convert(bytes, elements, order, plane, channels, count, delivery::shared_table(values, table));
}

extern "C" __global__ void __launch_bounds__(256) delivery_table_float16(const u8 *bytes, u8 *elements, u32 order, u32 plane, u32 channels, u32 count, const u16 *table) {
    __shared__ u16 values[3 * 256];
    delivery::convert(bytes, elements, order, plane, channels, count, delivery::shared_table(values, table));
}

extern "C" __global__ void __launch_bounds__(256) delivery_arithmetic_float32(const u8 *bytes, u8 *elements, u32 order, u32 plane, u32 channels, u32 count, u32 divides, float scale, float mean0, float mean1, float mean2, float std0, float std1, float std2) {
    delivery::Arithmetic arithmetic = {scale, {mean0, mean1, mean2}, {std0, std1, std2}, divides};
    delivery::convert(bytes, elements, order, plane, channels, count, arithmetic);
}
