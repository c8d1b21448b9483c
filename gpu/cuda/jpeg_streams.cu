// Huffman codes to coefficients for long segments: the threads of a warp, or of a block, decode
// parts of a segment at the same time. Codes synchronise by themselves: decoding that begins
// anywhere soon arrives at the states of decoding from the beginning (Weissenberger and Schmidt,
// "Accelerating JPEG Decompression on GPUs", 2021).

#define JPEG_WARPS_THREADS 256
#define JPEG_BLOCK_THREADS 512

// Positions in a part whose states are remembered, so that decoding it again from another state
// ends where both agree.
#define JPEG_MARKS 3
// No state looks like this.
#define JPEG_NO_MARK 0x8000u

// Decodes up to a bit without storing anything and counts the blocks that end. What no decoder
// accepts advances it somehow: from the true state, storing finds it too. `marks` are words of
// shared memory, `stride` apart. `state` is where it begins, `end` and `blocks` what was found
// last time.
__device__ static __forceinline__ void jpeg_walk(const JpegShared &shared, u32 unit_count,
    const u32 *words, const JpegState &state, u32 from, u32 until, u32 spacing, u32 *marks,
    u32 stride, JpegState &end, u32 &blocks) {
    JpegReader reader;
    reader.start(words, state.at);
    u32 at = state.at, number = state.number, position = state.position;
    u32 tables = shared.units[number].tables, count = 0;
    // Those that decoding from any state passes: a symbol has at most 31 bits.
    u32 mark = 0, mark_at = from + spacing;
    if (mark_at + 31 >= until) mark_at = 0xffffffffu;
    while (at < until) {
        bool is_dc = position == 0;
        JpegEntry entry = shared.entry(tables, is_dc, reader.peek());
        reader.skip(entry.taken());
        at += entry.taken();
        position += is_dc ? 1 : entry.advance();
        if (position >= 64) {
            position = 0, count += 1, number += 1;
            if (number == unit_count) number = 0;
            tables = shared.units[number].tables;
        }
        if (at < mark_at) continue;
        u32 now = (at - mark_at) | number << 5 | position << 9;
        u32 known = marks[mark * stride];
        if ((known & 0xffff) == now) {
            u32 more = count - (known >> 16);
            for (; mark < JPEG_MARKS; mark++) marks[mark * stride] += more << 16;
            blocks = (blocks + more) & 0xffff;
            return;
        }
        marks[mark * stride] = now | count << 16;
        mark += 1, mark_at += spacing;
        if (mark == JPEG_MARKS || mark_at + 31 >= until) mark_at = 0xffffffffu;
    }
    end = {at, number, position}, blocks = count;
}

// Parts of a segment, one for each thread of a team, and what all walks through them need.
struct JpegParts {
    const JpegShared &shared;
    u32 unit_count;
    const u32 *words;
    // Where the first part begins, bits of each, and where the last one ends.
    u32 base, bits, bit_end;
    // Marks of the first part; those of the next ones follow.
    u32 *marks;
    u32 stride;

    __device__ __forceinline__ void walk(u32 part, const JpegState &state, JpegState &end,
        u32 &blocks) const {
        u32 from = base + part * bits, until = from + bits < bit_end ? from + bits : bit_end;
        if (from < bit_end)
            jpeg_walk(shared, unit_count, words, state, from, until, bits / (JPEG_MARKS + 1),
                marks + part, stride, end, blocks);
    }
};

// The threads of a warp.
struct JpegWarpTeam {
    enum : u32 { SIZE = 32, PART_BITS_MIN = 512, PART_BITS_MAX = 2048 };
    u32 thread;

    // Finds the states at the beginning of the parts from guesses, the first of which is right.
    // `before` is the end of the part before; the last one's for the first thread.
    __device__ __forceinline__ void settle(const JpegParts &parts, bool is_used, JpegState &entry,
        JpegState &before, u32 &blocks) const {
        JpegState end = entry;
        blocks = 0;
        bool is_new = is_used;
        do {
            if (is_new) parts.walk(thread, entry, end, blocks);
            before = of_before(end);
            is_new = thread > 0 && is_used && entry.differs(before);
            if (is_new) entry = before;
        } while (__any_sync(0xffffffffu, is_new));
    }
    __device__ __forceinline__ JpegState of_before(const JpegState &state) const {
        u32 from = (thread + 31) % 32;
        u32 where = __shfl_sync(0xffffffffu, state.number << 8 | state.position, from);
        return {__shfl_sync(0xffffffffu, state.at, from), where >> 8, where & 255};
    }
    // The sum of the values of all threads before, and of all.
    __device__ __forceinline__ u32 sum_before(u32 value, u32 &all) const {
        u32 sum = value;
#pragma unroll
        for (u32 distance = 1; distance < 32; distance *= 2) {
            u32 other = __shfl_up_sync(0xffffffffu, sum, distance);
            sum += thread >= distance ? other : 0;
        }
        all = __shfl_sync(0xffffffffu, sum, 31);
        return sum - value;
    }
};

// The threads of a block.
struct JpegBlockTeam {
    enum : u32 { SIZE = JPEG_BLOCK_THREADS, PART_BITS_MIN = 1024, PART_BITS_MAX = 4096 };
    u32 thread;
    // By thread: the end of its part in two words, with the count of blocks, and a part to walk.
    u32 *ends, *list;
    // By warp.
    u32 *sums;

    __device__ __forceinline__ JpegState end_of(u32 part) const {
        u32 where = ends[SIZE + part];
        return {ends[part], where >> 8 & 15, where & 255};
    }
    // Most parts are right after two walks. The others are distributed among as few warps as can
    // be: a warp takes as long for one of them as for 32.
    __device__ __forceinline__ void settle(const JpegParts &parts, bool is_used, JpegState &entry,
        JpegState &before, u32 &blocks) const {
        JpegState state = entry, end = entry;
        u32 part = thread, count = SIZE;
        blocks = 0;
        for (;;) {
            if (thread < count) parts.walk(part, state, end, blocks);
            __syncthreads();
            if (thread < count) {
                ends[part] = end.at;
                ends[SIZE + part] = blocks << 16 | end.number << 8 | end.position;
            }
            __syncthreads();
            before = end_of((thread + SIZE - 1) % SIZE);
            bool is_new = thread > 0 && is_used && entry.differs(before);
            if (is_new) entry = before;
            u32 index = sum_before(is_new, count);
            if (count == 0) break;
            if (is_new) list[index] = thread;
            __syncthreads();
            if (thread >= count) continue;
            part = list[thread];
            state = end_of(part - 1), end = end_of(part), blocks = ends[SIZE + part] >> 16;
        }
        blocks = ends[SIZE + thread] >> 16;
    }
    __device__ __forceinline__ u32 sum_before(u32 value, u32 &all) const {
        JpegWarpTeam warp = {thread % 32};
        u32 of_warp, of_warps = 0;
        u32 sum = warp.sum_before(value, of_warp);
        __syncthreads();
        if (warp.thread == 0) sums[thread / 32] = of_warp;
        __syncthreads();
        all = 0;
        for (u32 i = 0; i < SIZE / 32; i++) {
            if (i == thread / 32) of_warps = all;
            all += sums[i];
        }
        return of_warps + sum;
    }
};

// Adds what precedes a part to the DC values of the blocks that begin in it.
__device__ static __forceinline__ void jpeg_add_dc(const JpegShared &shared,
    const JpegPicture *picture, u32 number, u32 index, u32 count, const u32 *dc, u32 stride,
    i16 *coefficients) {
    u32 unit_count = picture->unit_count, mcus_wide = picture->mcus_wide;
    u32 mcu = index / unit_count, column = mcu % mcus_wide, row = mcu / mcus_wide;
    while (count > 0) {
        // Several at a time, which do not wait for each other.
        i16 *to[4];
        u32 sums[4];
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            to[i] = nullptr, sums[i] = 0;
            if (count == 0) continue;
            const JpegUnit *unit = shared.units + number;
            u32 block = unit->block(column, row);
            if (block != 0xffffffffu) {
                to[i] = coefficients + 64 * (u64)block;
                sums[i] = dc[unit->component * stride] + (u32)(i32)*to[i];
            }
            count -= 1, number += 1;
            if (number < unit_count) continue;
            number = 0, column += 1;
            if (column == mcus_wide) column = 0, row += 1;
        }
#pragma unroll
        for (u32 i = 0; i < 4; i++)
            if (to[i]) *to[i] = (i16)sums[i];
    }
}

// Decodes a segment. All threads of the team take part; each has three words at `own`, `stride`
// apart.
template <class Team>
__device__ static __forceinline__ void jpeg_decode_by(const Team &team, const JpegShared &shared,
    const JpegPicture *picture, const JpegSegment &segment, const u32 *words, u32 *own,
    u32 stride, i16 *coefficients, u32 *status) {
    const u32 thread = team.thread, unit_count = picture->unit_count;
    const u32 bit_end = segment.bit_end;
    u32 part = ((bit_end - segment.bit + Team::SIZE - 1) / Team::SIZE + 31) / 32 * 32;
    part = part < Team::PART_BITS_MIN ? Team::PART_BITS_MIN : part;
    part = part > Team::PART_BITS_MAX ? Team::PART_BITS_MAX : part;

    // The true state at the beginning of the parts, and what lies before them.
    JpegState start = {segment.bit, 0, 0};
    u32 index_before = segment.block, dc_before[3], problem = 0;
#pragma unroll
    for (u32 i = 0; i < 3; i++) dc_before[i] = (u32)(i32)segment.dc[i];
    for (u32 base = segment.bit; base < bit_end && index_before < segment.block_end;
         base += part * Team::SIZE) {
        u32 from = base + thread * part;
        bool is_used = from < bit_end;
        u32 until = from + part < bit_end ? from + part : bit_end;
        JpegState entry = {from, 0, 0};
        if (thread == 0) entry = start;
#pragma unroll
        for (u32 i = 0; i < JPEG_MARKS; i++) own[i * stride] = JPEG_NO_MARK;
        const JpegParts parts = {shared, unit_count, words, base, part, bit_end, own - thread,
            stride};
        JpegState before;
        u32 blocks;
        team.settle(parts, is_used, entry, before, blocks);

        u32 all_blocks, all;
        u32 index = index_before + team.sum_before(blocks, all_blocks);
#pragma unroll
        for (u32 i = 0; i < 3; i++) own[i * stride] = 0;
        JpegStored stored = {0, index, 0, 0};
        bool is_stored = is_used && index < segment.block_end;
        if (is_stored)
            stored = jpeg_store(shared, picture, segment, words, entry, until, index, own, stride,
                coefficients);
        problem |= stored.problem;
        u32 dc[3];
        bool is_moved = false;
#pragma unroll
        for (u32 i = 0; i < 3; i++) {
            u32 sum = own[i * stride];
            u32 first = dc_before[i] + team.sum_before(sum, all);
            dc_before[i] += all, dc[i] = first + sum;
            own[i * stride] = first, is_moved |= (i16)first != 0;
        }
        if (is_moved && stored.dc_count > 0) {
            // The DC value of a block that the part before began is there.
            u32 late = entry.position != 0, number = entry.number + late;
            if (number == unit_count) number = 0;
            jpeg_add_dc(shared, picture, number, index + late, stored.dc_count, own, stride,
                coefficients);
        }
        if (is_stored && !stored.problem && stored.index == segment.block_end)
            problem |= jpeg_end_problem(segment, picture->component_count, stored.at, dc);
        // Behind the last part nothing follows, so that its end may stay as it was.
        start = before, index_before += all_blocks;
    }
    if (index_before < segment.block_end) problem |= JPEG_OVERRUN;
    if (problem) atomicOr(status, problem);
}

// A warp for each segment.
extern "C" __global__ void __launch_bounds__(256) jpeg_decode_by_warps(const u8 *area,
    const JpegPicture *pictures, const JpegComponent *components, const JpegTable *tables,
    const JpegSegment *segments, const JpegGroup *groups, i16 *coefficients, u32 *status) {
    __shared__ JpegShared shared;
    __shared__ u32 own[3][JPEG_WARPS_THREADS];
    u32 thread = threadIdx.x;
    const JpegGroup group = groups[blockIdx.x];
    const JpegPicture *picture = pictures + group.picture;
    shared.load(picture, components, tables);
    __syncthreads();
    const u32 *words = (const u32 *)(area + picture->data_offset);
    JpegWarpTeam team = {thread % 32};
    for (u32 i = thread / 32; i < group.count; i += JPEG_WARPS_THREADS / 32) {
        const JpegSegment segment = segments[group.first_segment + i];
        jpeg_decode_by(team, shared, picture, segment, words, &own[0][thread], JPEG_WARPS_THREADS,
            coefficients, status + group.picture);
    }
}

// A block of threads for each segment.
extern "C" __global__ void __launch_bounds__(512) jpeg_decode_by_blocks(const u8 *area,
    const JpegPicture *pictures, const JpegComponent *components, const JpegTable *tables,
    const JpegSegment *segments, const JpegGroup *groups, i16 *coefficients, u32 *status) {
    __shared__ JpegShared shared;
    __shared__ u32 own[3][JPEG_BLOCK_THREADS];
    __shared__ u32 ends[2 * JPEG_BLOCK_THREADS], list[JPEG_BLOCK_THREADS];
    __shared__ u32 sums[JPEG_BLOCK_THREADS / 32];
    u32 thread = threadIdx.x;
    const JpegGroup group = groups[blockIdx.x];
    const JpegPicture *picture = pictures + group.picture;
    shared.load(picture, components, tables);
    __syncthreads();
    const u32 *words = (const u32 *)(area + picture->data_offset);
    JpegBlockTeam team = {thread, ends, list, sums};
    for (u32 i = 0; i < group.count; i++) {
        const JpegSegment segment = segments[group.first_segment + i];
        jpeg_decode_by(team, shared, picture, segment, words, &own[0][thread], JPEG_BLOCK_THREADS,
            coefficients, status + group.picture);
    }
}
