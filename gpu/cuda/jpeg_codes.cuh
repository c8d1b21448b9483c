// What the decoders of Huffman codes share: codes, zigzag order, where blocks go.
#ifndef MEETPOINT_JPEG_CODES
#define MEETPOINT_JPEG_CODES

__constant__ u8 jpeg_natural[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

// The code at the beginning of the bits, which no lookup finds: length << 8 | symbol, 0 for none.
__device__ static __noinline__ u32 jpeg_long_code(const JpegTable *table, u32 bits) {
    for (u32 length = JPEG_PEEK_BITS + 1; length <= 16; length++) {
        if (bits >= table->ends[length]) continue;
        i32 index = (i32)(bits >> (16 - length)) + table->offsets[length];
        return length << 8 | table->symbols[index & 255];
    }
    return 0;
}

// A code with the value of the bits behind it.
struct JpegSymbol {
    // Bits of the code, 0 if there is none, and of the value.
    u32 length, size;
    // Zeros before the value.
    u32 zeros;
    i32 value;
};

// The symbol at the beginning of the bits, which are at least 31.
__device__ static __forceinline__ JpegSymbol jpeg_symbol(const JpegTable *table, u64 bits) {
    u32 look = table->looks[bits >> (64 - JPEG_PEEK_BITS)];
    if (look == 0) look = jpeg_long_code(table, (u32)(bits >> 48));
    JpegSymbol symbol = {look >> 8, look & 15, look >> 4 & 15, 0};
    // T.81 Figure F.12, EXTEND.
    u64 rest = bits << symbol.length;
    symbol.value = (i32)((rest >> 1) >> (63 - symbol.size));
    if (!(rest >> 63)) symbol.value += 1 - (1 << symbol.size);
    return symbol;
}

// Whether an AC symbol ends its block.
__device__ static __forceinline__ bool jpeg_is_end(const JpegSymbol &symbol) {
    return symbol.size == 0 && symbol.zeros != 15;
}

// Where the blocks of a picture go.
struct JpegTarget {
    const JpegComponent *components;
    i16 *coefficients;

    // The block of a unit in an MCU; null for one that is not needed.
    __device__ __forceinline__ i16 *block(u32 unit, u32 column, u32 row) const {
        const JpegComponent *component = components + (unit & 15);
        u32 x = column * component->h + (unit >> 4 & 15) - component->left;
        u32 y = row * component->v + (unit >> 8 & 15) - component->top;
        if (x >= component->wide || y >= component->high) return nullptr;
        return coefficients + 64 * (u64)(component->first_block + y * component->wide + x);
    }
};

// What the threads of a block share of their picture.
struct JpegShared {
    uint4 table_quads[JPEG_TABLES_MAX * JPEG_TABLE_QUADS];
    JpegComponent components[3];
    u32 units[JPEG_UNITS_MAX];
    u8 natural[64];

    // All threads of the block load it; a barrier must follow.
    __device__ __forceinline__ void load(const JpegPicture *picture,
        const JpegComponent *all_components, const JpegTable *all_tables) {
        u32 thread = threadIdx.x, threads = blockDim.x;
        for (u32 table = 0; table < picture->table_count; table++) {
            const uint4 *from = (const uint4 *)(all_tables + picture->tables[table]);
            for (u32 i = thread; i < JPEG_TABLE_QUADS; i += threads)
                table_quads[table * JPEG_TABLE_QUADS + i] = from[i];
        }
        if (thread < picture->component_count)
            components[thread] = all_components[picture->first_component + thread];
        if (thread < picture->unit_count) units[thread] = picture->units[thread];
        for (u32 i = thread; i < 64; i += threads) natural[i] = jpeg_natural[i];
    }
    // The table of the next symbol of a block.
    __device__ __forceinline__ const JpegTable *table(u32 unit, bool is_dc) const {
        return (const JpegTable *)table_quads + (is_dc ? unit >> 12 & 15 : unit >> 16);
    }
};

#endif
