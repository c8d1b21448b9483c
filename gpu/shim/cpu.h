// CUDA C++ for the CPU: each thread of a block is a coroutine, so that barriers and the operations
// of a warp work as on a GPU. For tests; speed does not matter.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define __global__
#define __device__
#define __host__
#define __constant__ static const
// One block runs at a time, so its shared memory is static.
#define __shared__ static
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __restrict__
// Shared memory whose size the launch gives.
#define DYNAMIC_SHARED(type, name) type *name = (type *)shim::dynamic_shared

struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

namespace shim {
extern uint3 thread_index, block_index;
extern dim3 block_size, grid_size;
extern void *dynamic_shared;
// Waits until every thread of the block, or of the warp, waits there or has ended.
void block_barrier();
void warp_barrier();
// The number of the running thread in its warp, and memory that its warp shares.
unsigned lane();
uint64_t *warp_slots();
}  // namespace shim

#define threadIdx shim::thread_index
#define blockIdx shim::block_index
#define blockDim shim::block_size
#define gridDim shim::grid_size

static inline void __syncthreads() { shim::block_barrier(); }
static inline void __syncwarp(unsigned = 0xffffffffu) { shim::warp_barrier(); }
static inline void __threadfence() {}

// Every lane that has not ended takes part, whatever the mask says.
template <class T> static inline T shim_exchange(T value, unsigned from) {
    static_assert(sizeof(T) <= 8, "a value of a lane has at most eight bytes");
    uint64_t *slots = shim::warp_slots();
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(T));
    slots[shim::lane()] = bits;
    shim::warp_barrier();
    T result;
    memcpy(&result, &slots[from], sizeof(T));
    shim::warp_barrier();
    return result;
}
template <class T> static inline T __shfl_sync(unsigned, T value, unsigned lane, unsigned width = 32) {
    unsigned own = shim::lane();
    return shim_exchange(value, (own & ~(width - 1)) | (lane & (width - 1)));
}
template <class T> static inline T __shfl_up_sync(unsigned, T value, unsigned by, unsigned width = 32) {
    unsigned own = shim::lane();
    return shim_exchange(value, (own & (width - 1)) >= by ? own - by : own);
}
template <class T> static inline T __shfl_down_sync(unsigned, T value, unsigned by, unsigned width = 32) {
    unsigned own = shim::lane();
    return shim_exchange(value, (own & (width - 1)) + by < width ? own + by : own);
}
template <class T> static inline T __shfl_xor_sync(unsigned, T value, unsigned by, unsigned = 32) {
    return shim_exchange(value, shim::lane() ^ by);
}
unsigned __ballot_sync(unsigned, int predicate);
static inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
static inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
int __syncthreads_or(int predicate);

template <class T> static inline T atomicAdd(T *at, T value) { T old = *at; *at = old + value; return old; }
template <class T> static inline T atomicMin(T *at, T value) { T old = *at; if (value < old) *at = value; return old; }
template <class T> static inline T atomicMax(T *at, T value) { T old = *at; if (value > old) *at = value; return old; }
template <class T> static inline T atomicOr(T *at, T value) { T old = *at; *at = old | value; return old; }
template <class T> static inline T atomicExch(T *at, T value) { T old = *at; *at = value; return old; }
template <class T> static inline T atomicCAS(T *at, T expected, T value) {
    T old = *at;
    if (old == expected) *at = value;
    return old;
}

static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    uint64_t bytes = (uint64_t)y << 32 | x;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) {
        unsigned which = selector >> (4 * i) & 15;
        unsigned byte = bytes >> (8 * (which & 7)) & 255;
        if (which & 8) byte = byte & 128 ? 255 : 0;
        result |= byte << (8 * i);
    }
    return result;
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
    return (unsigned)(((uint64_t)high << 32 | low) << (by & 31) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    return (unsigned)(((uint64_t)high << 32 | low) >> (by & 31));
}
static inline int __clz(int value) { return value ? __builtin_clz((unsigned)value) : 32; }
static inline int __clzll(long long value) { return value ? __builtin_clzll((unsigned long long)value) : 64; }
static inline int __ffs(int value) { return __builtin_ffs(value); }
static inline int __popc(unsigned value) { return __builtin_popcount(value); }
static inline int __mul24(int a, int b) { return a * b; }
template <class T> static inline T __ldg(const T *at) { return *at; }
template <class T> static inline T __ldcs(const T *at) { return *at; }
template <class T> static inline void __stcs(T *at, T value) { *at = value; }
static inline float __int2float_rn(int value) { return (float)value; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline unsigned __float_as_uint(float value) { unsigned bits; memcpy(&bits, &value, 4); return bits; }
static inline float __uint_as_float(unsigned bits) { float value; memcpy(&value, &bits, 4); return value; }
static inline double __dsqrt_rn(double value) { return sqrt(value); }
static inline long long __double_as_longlong(double value) { long long bits; memcpy(&bits, &value, 8); return bits; }
static inline double __longlong_as_double(long long bits) { double value; memcpy(&value, &bits, 8); return value; }
