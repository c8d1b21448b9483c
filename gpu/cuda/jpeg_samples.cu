// Coefficients to samples: dequantisation and the exact inverse DCT, in libjpeg-turbo's order of
// operations and with its overflows (jpeg/src/idct/islow/portable.rs).

// Rows of a block in shared memory are this many values apart, and blocks eight times as many and
// a few more, so that eight threads reading a column or a row use different banks.
#define JPEG_ROW_STRIDE 9
#define JPEG_BLOCK_STRIDE (8 * JPEG_ROW_STRIDE)

// Two products added up.
__device__ static __forceinline__ u32 jpeg_pair(i32 first, i32 second, i32 first_weight,
    i32 second_weight) {
    return (u32)(first * first_weight) + (u32)(second * second_weight);
}

// One pass over a column of 16-bit values: rounded, shifted, clamped to 16 bits.
__device__ static __forceinline__ void jpeg_pass(i32 in[8], u32 shift) {
    u32 tmp0 = (u32)(i32)(i16)(in[0] + in[4]) << 13, tmp1 = (u32)(i32)(i16)(in[0] - in[4]) << 13;
    u32 tmp2 = jpeg_pair(in[2], in[6], 4433, 4433 - 15137);
    u32 tmp3 = jpeg_pair(in[2], in[6], 4433 + 6270, 4433);
    u32 even[4] = {tmp0 + tmp3, tmp1 + tmp2, tmp1 - tmp2, tmp0 - tmp3};
    i32 sum3 = (i16)(in[7] + in[3]), sum4 = (i16)(in[5] + in[1]);
    u32 z3 = jpeg_pair(sum3, sum4, 9633 - 16069, 9633);
    u32 z4 = jpeg_pair(sum3, sum4, 9633, 9633 - 3196);
    u32 odd[4] = {
        jpeg_pair(in[7], in[1], -7373, 12299 - 7373) + z4,
        jpeg_pair(in[5], in[3], -20995, 25172 - 20995) + z3,
        jpeg_pair(in[5], in[3], 16819 - 20995, -20995) + z4,
        jpeg_pair(in[7], in[1], 2446 - 7373, -7373) + z3,
    };
    u32 half = 1u << (shift - 1);
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        in[i] = max_of(-32768, min_of(32767, (i32)(even[i] + odd[i] + half) >> shift));
        in[7 - i] = max_of(-32768, min_of(32767, (i32)(even[i] - odd[i] + half) >> shift));
    }
}

// The component to whose groups of blocks one belongs.
__device__ static const JpegComponent *jpeg_component_of(const JpegComponent *components,
    u32 count, u32 group) {
    u32 from = 0, end = count;
    while (end - from > 1) {
        u32 middle = (from + end) / 2;
        if (components[middle].first_group <= group) from = middle; else end = middle;
    }
    return components + from;
}

// The rows of a block of coefficients in shared memory, as eight threads exchange them.
struct JpegTile {
    i32 values[JPEG_BLOCK_STRIDE];
};

// Transforms a block: `row` and `factors` are the own row of it and of the quantisation table,
// `own` its number. Returns the own row of samples. All threads of the warp take part.
__device__ static __forceinline__ uint2 jpeg_transform_block(JpegTile &tile, u32 own, uint4 row,
    uint4 factors) {
    u32 pairs[4] = {row.x, row.y, row.z, row.w};
    u32 steps[4] = {factors.x, factors.y, factors.z, factors.w};
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        i32 low = (i16)pairs[i], high = (i16)(pairs[i] >> 16);
        tile.values[own * JPEG_ROW_STRIDE + 2 * i] = (i16)(low * (i16)steps[i]);
        tile.values[own * JPEG_ROW_STRIDE + 2 * i + 1] = (i16)(high * (i16)(steps[i] >> 16));
    }
    u32 rows_with_values = __ballot_sync(0xffffffffu, (row.x | row.y | row.z | row.w) != 0);
    rows_with_values = rows_with_values >> (threadIdx.x % 32 & 24) & 0xff;
    __syncwarp();
    i32 line[8];
#pragma unroll
    for (u32 i = 0; i < 8; i++) line[i] = tile.values[i * JPEG_ROW_STRIDE + own];
    if ((rows_with_values & 0xfe) == 0) {
        // libjpeg-turbo's shortcut for columns of one coefficient: it wraps to 16 bits where the
        // transform would clamp.
        i32 value = (i16)((u32)line[0] << 2);
#pragma unroll
        for (u32 i = 0; i < 8; i++) line[i] = value;
    } else {
        jpeg_pass(line, 11);
    }
    __syncwarp();
#pragma unroll
    for (u32 i = 0; i < 8; i++) tile.values[i * JPEG_ROW_STRIDE + own] = line[i];
    __syncwarp();
#pragma unroll
    for (u32 i = 0; i < 8; i++) line[i] = tile.values[own * JPEG_ROW_STRIDE + i];
    __syncwarp();
    jpeg_pass(line, 18);
    u32 words[2] = {0, 0};
#pragma unroll
    for (u32 i = 0; i < 8; i++) words[i / 4] |= (u32)clamp_to_byte(line[i] + 128) << (i % 4 * 8);
    return make_uint2(words[0], words[1]);
}

// Eight threads for each block of coefficients, a row or a column each.
extern "C" __global__ void __launch_bounds__(256) jpeg_transform(const JpegComponent *components,
    u32 component_count, const i16 *coefficients, u8 *samples) {
    __shared__ JpegTile tiles[32];
    const JpegComponent *component = jpeg_component_of(components, component_count, blockIdx.x);
    u32 own = threadIdx.x % 8;
    u32 first = (blockIdx.x - component->first_group) * JPEG_GROUP_BLOCKS;
    u32 wide = component->wide, count = wide * component->high;
    u64 stride = 8 * (u64)wide;
    const uint4 *from = (const uint4 *)(coefficients + 64 * (u64)component->first_block);
    u8 *to = samples + 64 * (u64)component->first_block;
    uint4 factors = ((const uint4 *)component->steps)[own];
    for (u32 start = first; start < first + JPEG_GROUP_BLOCKS && start < count; start += 32) {
        u32 block = start + threadIdx.x / 8;
        uint4 row = {0, 0, 0, 0};
        if (block < count) row = from[8 * (u64)block + own];
        uint2 bytes = jpeg_transform_block(tiles[threadIdx.x / 8], own, row, factors);
        if (block >= count) continue;
        *(uint2 *)(to + (block / wide * 8 + own) * stride + block % wide * 8) = bytes;
    }
}
