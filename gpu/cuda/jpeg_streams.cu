// Huffman codes to coefficients for a picture whose data have few known beginnings: a block of
// threads decodes parts of the data at the same time. Codes synchronise by themselves: decoding
// that begins anywhere soon arrives at the states of decoding from the beginning (Weissenberger and
// Schmidt, "Accelerating JPEG Decompression on GPUs", 2021).

#define JPEG_STREAM_THREADS 256
// Bits of a part.
#define JPEG_PART_BITS 2048

struct JpegStream {
    u32 picture;
    // Bits of its data, from which stuffed bytes were taken out.
    u32 bits;
    // Behind the last needed block, counted through the scan.
    u32 block_end;
    // Where decoding begins: its first bit and block, and the DC values before.
    u32 first_bit, first_block;
    i16 dc[3], reserved;
    // Entry points behind the beginning.
    u32 first_check, check_count;
};

// What decoding must find at an entry point, where the CPU's decoder begins anew.
struct JpegCheck {
    u32 block, at;
    i16 dc[3], reserved;
};

// Where decoding stands: the next bit, and the block in the MCU with the zigzag position of the
// next coefficient in it.
struct JpegState {
    u32 at;
    u16 number, position;

    __device__ __forceinline__ bool differs(const JpegState &other) const {
        return at != other.at || number != other.number || position != other.position;
    }
};

// Blocks that end in a part, and the sum of its DC differences for each component.
struct JpegSums {
    u32 values[4];
};

// Bits of data without stuffed bytes.
struct JpegStreamBits {
    const u32 *words;
    u64 next;
    // The word behind the next bits is loaded before it is needed.
    u32 count, word, ahead;

    __device__ __forceinline__ u32 load() { return __byte_perm(words[word++], 0, 0x0123); }
    __device__ __forceinline__ void start(const u32 *data, u32 at) {
        words = data, word = at / 32;
        next = (u64)load() << 32;
        next |= load();
        ahead = load();
        next <<= at % 32;
        count = 64 - at % 32;
    }
    __device__ __forceinline__ void refill() {
        if (count > 32) return;
        next |= (u64)ahead << (32 - count);
        count += 32, ahead = load();
    }
    __device__ __forceinline__ void skip(u32 bits) { next <<= bits, count -= bits; }
};

// Decodes up to a bit without storing anything. What no decoder accepts advances it somehow: from
// the true state, the pass that stores finds it too.
__device__ static __forceinline__ void jpeg_walk(const JpegShared &shared, u32 unit_count,
    const u32 *words, JpegState &state, u32 until, JpegSums &sums) {
    JpegStreamBits bits;
    bits.start(words, state.at);
    u32 at = state.at, number = state.number, position = state.position;
    u32 unit = shared.units[number];
    u32 blocks = 0, dc0 = 0, dc1 = 0, dc2 = 0;
    while (at < until) {
        bits.refill();
        bool is_dc = position == 0;
        JpegSymbol symbol = jpeg_symbol(shared.table(unit, is_dc), bits.next);
        u32 taken = symbol.length ? symbol.length + symbol.size : 1;
        bits.skip(taken);
        at += taken;
        if (symbol.length == 0) continue;
        if (is_dc) {
            u32 component = unit & 15;
            dc0 += component == 0 ? (u32)symbol.value : 0;
            dc1 += component == 1 ? (u32)symbol.value : 0;
            dc2 += component == 2 ? (u32)symbol.value : 0;
            position = 1;
            continue;
        }
        position = jpeg_is_end(symbol) ? 64 : position + symbol.zeros + 1;
        if (position < 64) continue;
        position = 0, blocks += 1, number += 1;
        if (number == unit_count) number = 0;
        unit = shared.units[number];
    }
    state.at = at, state.number = (u16)number, state.position = (u16)position;
    sums = {{blocks, dc0, dc1, dc2}};
}

// Decodes the same from the true state, stores the coefficients and returns what is wrong.
__device__ static __forceinline__ u32 jpeg_store_part(const JpegShared &shared,
    const JpegPicture *picture, const JpegStream &stream, const u32 *words, JpegState state,
    u32 until, const JpegSums &before, const JpegCheck *checks, i16 *coefficients) {
    JpegStreamBits bits;
    bits.start(words, state.at);
    JpegTarget target = {shared.components, coefficients};
    u32 unit_count = picture->unit_count, mcus_wide = picture->mcus_wide;
    u32 at = state.at, number = state.number, position = state.position;
    u32 index = before.values[0];
    u32 dc0 = before.values[1], dc1 = before.values[2], dc2 = before.values[3];
    u32 mcu = index / unit_count, column = mcu % mcus_wide, row = mcu / mcus_wide;
    u32 unit = shared.units[number];
    i16 *block = target.block(unit, column, row);
    // The first check behind the block.
    u32 check = stream.first_check, check_end = stream.first_check + stream.check_count;
    for (u32 end = check_end; check < end;) {
        u32 middle = (check + end) / 2;
        if (checks[middle].block <= index) check = middle + 1; else end = middle;
    }
    u32 check_at = check < check_end ? checks[check].block : 0xffffffffu;
    while (at < until && index < stream.block_end) {
        bits.refill();
        bool is_dc = position == 0;
        JpegSymbol symbol = jpeg_symbol(shared.table(unit, is_dc), bits.next);
        if (symbol.length == 0) return JPEG_NO_CODE;
        bits.skip(symbol.length + symbol.size);
        at += symbol.length + symbol.size;
        if (at > stream.bits) return JPEG_OVERRUN;
        if (is_dc) {
            u32 component = unit & 15;
            dc0 += component == 0 ? (u32)symbol.value : 0;
            dc1 += component == 1 ? (u32)symbol.value : 0;
            dc2 += component == 2 ? (u32)symbol.value : 0;
            if (block) block[0] = (i16)(component == 0 ? dc0 : component == 1 ? dc1 : dc2);
            position = 1;
            continue;
        }
        if (jpeg_is_end(symbol)) {
            position = 64;
        } else {
            position += symbol.zeros;
            if (position > 63) return JPEG_TOO_MANY;
            if (block && symbol.size != 0) block[shared.natural[position]] = (i16)symbol.value;
            position += 1;
        }
        if (position < 64) continue;
        position = 0, index += 1, number += 1;
        if (number == unit_count) {
            number = 0, column += 1;
            if (column == mcus_wide) column = 0, row += 1;
        }
        if (index == check_at) {
            JpegCheck found = checks[check];
            bool is_right = at == found.at && (i16)dc0 == found.dc[0] && (i16)dc1 == found.dc[1] &&
                            (i16)dc2 == found.dc[2];
            if (!is_right) return JPEG_WRONG_END;
            check += 1;
            check_at = check < check_end ? checks[check].block : 0xffffffffu;
        }
        unit = shared.units[number];
        block = target.block(unit, column, row);
    }
    return 0;
}

// One block of threads for each picture. It takes as many parts as it has threads at a time.
extern "C" __global__ void __launch_bounds__(256) jpeg_decode_streams(const u8 *area,
    const JpegPicture *pictures, const JpegComponent *all_components, const JpegTable *all_tables,
    const JpegStream *streams, const JpegCheck *checks, i16 *coefficients, u32 *status) {
    __shared__ JpegShared shared;
    __shared__ JpegState ends[JPEG_STREAM_THREADS];
    __shared__ JpegSums scanned[JPEG_STREAM_THREADS];
    u32 thread = threadIdx.x;
    const JpegStream stream = streams[blockIdx.x];
    const JpegPicture *picture = pictures + stream.picture;
    u32 unit_count = picture->unit_count;
    const u32 *words = (const u32 *)(area + picture->data_offset);
    shared.load(picture, all_components, all_tables);
    __syncthreads();

    // The true state at the beginning of the parts, and what lies before them.
    JpegState start = {stream.first_bit, 0, 0};
    JpegSums before = {{stream.first_block, (u32)(i32)stream.dc[0], (u32)(i32)stream.dc[1],
                        (u32)(i32)stream.dc[2]}};
    const u32 step = JPEG_STREAM_THREADS * JPEG_PART_BITS;
    for (u32 base = 0; base < stream.bits && before.values[0] < stream.block_end; base += step) {
        u32 from = base + thread * JPEG_PART_BITS;
        bool is_used = from < stream.bits;
        u32 until = from + JPEG_PART_BITS < stream.bits ? from + JPEG_PART_BITS : stream.bits;
        JpegState entry = {from, 0, 0};
        if (thread == 0) entry = start;
        JpegState end = entry;
        JpegSums sums = {{0, 0, 0, 0}};
        bool is_new = is_used;
        do {
            if (is_new) {
                end = entry;
                jpeg_walk(shared, unit_count, words, end, until, sums);
                ends[thread] = end;
            }
            __syncthreads();
            is_new = thread > 0 && is_used && entry.differs(ends[thread - 1]);
            if (is_new) entry = ends[thread - 1];
        } while (__syncthreads_or(is_new));

        scanned[thread] = sums;
        for (u32 distance = 1; distance < JPEG_STREAM_THREADS; distance *= 2) {
            __syncthreads();
            JpegSums other = {{0, 0, 0, 0}};
            if (thread >= distance) other = scanned[thread - distance];
            __syncthreads();
#pragma unroll
            for (u32 i = 0; i < 4; i++) scanned[thread].values[i] += other.values[i];
        }
        __syncthreads();
        JpegSums own = before;
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            own.values[i] += scanned[thread].values[i] - sums.values[i];
            before.values[i] += scanned[JPEG_STREAM_THREADS - 1].values[i];
        }
        // Behind the last part nothing follows, so that its end may stay as it was.
        start = ends[JPEG_STREAM_THREADS - 1];
        if (is_used && own.values[0] < stream.block_end) {
            u32 problem = jpeg_store_part(shared, picture, stream, words, entry, until, own,
                checks, coefficients);
            if (problem) atomicOr(status + stream.picture, problem);
        }
        __syncthreads();
    }
    bool is_short = before.values[0] < stream.block_end;
    if (thread == 0 && is_short) atomicOr(status + stream.picture, JPEG_OVERRUN);
}
