// What all kernels share. The build puts this before each of them; on the CPU, cpu.h comes first.
// Never anything that a host computes: descriptors are filled in Rust.

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

// The largest of a small array of constants, and the like, are written out: kernels use no library.
__device__ static inline i32 min_of(i32 a, i32 b) { return a < b ? a : b; }
__device__ static inline i32 max_of(i32 a, i32 b) { return a > b ? a : b; }
__device__ static inline u8 clamp_to_byte(i32 value) { return (u8)max_of(0, min_of(255, value)); }

// Shared memory whose size the launch names. On the CPU, cpu.h has another definition.
#ifndef DYNAMIC_SHARED
#define DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]
#endif
