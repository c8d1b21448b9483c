// Huffman codes to coefficients (T.81 F.2.2): one thread for each segment of the data.

extern "C" __global__ void __launch_bounds__(32) jpeg_decode_segments(const u8 *area,
    const JpegPicture *pictures, const JpegComponent *components, const JpegTable *tables,
    const JpegSegment *segments, const JpegGroup *groups, i16 *coefficients, u32 *status) {
    __shared__ JpegShared shared;
    __shared__ u32 dc_of_lanes[3][32];
    u32 lane = threadIdx.x;
    const JpegGroup group = groups[blockIdx.x];
    const JpegPicture *picture = pictures + group.picture;
    shared.load(picture, components, tables);
    __syncwarp();
    if (lane >= group.count) return;

    const JpegSegment segment = segments[group.first_segment + lane];
#pragma unroll
    for (u32 i = 0; i < 3; i++) dc_of_lanes[i][lane] = (u32)(i32)segment.dc[i];
    const u32 *words = (const u32 *)(area + picture->data_offset);
    JpegState state = {segment.bit, 0, 0};
    JpegStored stored = jpeg_store(shared, picture, segment, words, state, segment.bit_end,
        segment.block, &dc_of_lanes[0][lane], 32, coefficients);
    u32 problem = stored.problem;
    if (!problem && stored.index < segment.block_end) problem = JPEG_OVERRUN;
    u32 dc[3];
#pragma unroll
    for (u32 i = 0; i < 3; i++) dc[i] = dc_of_lanes[i][lane];
    if (!problem) problem = jpeg_end_problem(segment, picture->component_count, stored.at, dc);
    if (problem) atomicOr(status + group.picture, problem);
}
