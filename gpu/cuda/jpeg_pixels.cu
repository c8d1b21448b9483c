// Samples to pixels: upsampling as in jpeg/src/upsample, colours as in jpeg/src/colour.

// The samples of a component around a pixel.
struct JpegPlane {
    const JpegComponent *component;
    const u8 *samples;
    u32 stride;

    __device__ __forceinline__ void open(const JpegComponent *of, const u8 *all) {
        component = of;
        samples = all + 64 * (u64)of->first_block;
        stride = 8 * of->wide;
    }
    // A row of the component. There is one whatever the number.
    __device__ __forceinline__ const u8 *row(i32 number) const {
        i32 last = min_of((i32)component->height, (i32)(component->top + component->high) * 8) - 1;
        i32 top = (i32)component->top * 8;
        return samples + (u64)(max_of(min_of(number, last), top) - top) * stride;
    }
    // The column of a sample in a row, that of the nearest one beyond the edges.
    __device__ __forceinline__ u32 column(i32 number) const {
        i32 left = (i32)component->left * 8;
        i32 last = min_of((i32)component->width, left + (i32)stride) - 1;
        return (u32)(max_of(min_of(number, last), left) - left);
    }

    // Eight pixels of a row from a column on.
    __device__ __forceinline__ void pixels(i32 x, i32 y, u8 out[8]) const {
        u32 kind = component->upsampling;
        if (kind == 1 || kind == 3) return twice(x, y, kind == 3, out);
        if (kind == 2) {
            const u8 *near = row(y >> 1), *far = row((y & 1) ? (y >> 1) + 1 : (y >> 1) - 1);
            u32 round = 1 + (y & 1);
#pragma unroll
            for (i32 i = 0; i < 8; i++) {
                u32 at = column(x + i);
                out[i] = (u8)((3 * near[at] + far[at] + round) >> 2);
            }
            return;
        }
        i32 across = kind == 4 ? (i32)component->across : 1;
        const u8 *near = row(kind == 4 ? y / (i32)component->down : y);
#pragma unroll
        for (i32 i = 0; i < 8; i++) out[i] = near[column(kind == 4 ? (x + i) / across : x + i)];
    }

    // The triangle filter along rows, and across them if there are half as many.
    __device__ __forceinline__ void twice(i32 x, i32 y, bool rows_too, u8 out[8]) const {
        i32 first = (x >> 1) - 1;
        u32 sums[7];
        u32 shift = rows_too ? 4 : 2;
        if (rows_too) {
            const u8 *near = row(y >> 1), *far = row((y & 1) ? (y >> 1) + 1 : (y >> 1) - 1);
#pragma unroll
            for (i32 i = 0; i < 7; i++) {
                u32 at = column(first + i);
                sums[i] = 3 * near[at] + far[at];
            }
        } else {
            const u8 *near = row(y);
#pragma unroll
            for (i32 i = 0; i < 7; i++) sums[i] = near[column(first + i)];
        }
        // From the even column at or before x on.
        u32 even = rows_too ? 8 : 1, odd = rows_too ? 7 : 2;
        u8 all[10];
#pragma unroll
        for (i32 i = 0; i < 5; i++) {
            all[2 * i] = (u8)((3 * sums[i + 1] + sums[i] + even) >> shift);
            all[2 * i + 1] = (u8)((3 * sums[i + 1] + sums[i + 2] + odd) >> shift);
        }
#pragma unroll
        for (i32 i = 0; i < 8; i++) out[i] = (x & 1) ? all[i + 1] : all[i];
    }
};

__device__ static __forceinline__ void jpeg_store(u8 *to, const u8 bytes[8]) {
    u32 words[2] = {0, 0};
#pragma unroll
    for (u32 i = 0; i < 8; i++) words[i / 4] |= (u32)bytes[i] << (i % 4 * 8);
    *(uint2 *)to = make_uint2(words[0], words[1]);
}

// The picture to whose groups of pixels one belongs.
__device__ static const JpegPicture *jpeg_picture_of(const JpegPicture *pictures, u32 count,
    u32 group) {
    u32 from = 0, end = count;
    while (end - from > 1) {
        u32 middle = (from + end) / 2;
        if (pictures[middle].first_pixel_group <= group) from = middle; else end = middle;
    }
    return pictures + from;
}

// Eight pixels of a row.
__device__ static __forceinline__ void jpeg_make_eight(const JpegPicture *picture,
    const JpegComponent *components, const u8 *samples, i32 x, i32 y, u8 planes[3][8]) {
    JpegPlane plane;
    u32 colours = picture->colours;
#pragma unroll
    for (u32 i = 0; i < 3; i++) {
        if (i > 0 && colours == 0) break;
        plane.open(components + i, samples);
        plane.pixels(x, y, planes[i]);
    }
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        if (colours == 1) {
            i32 luma = planes[0][i], cb = planes[1][i] - 128, cr = planes[2][i] - 128;
            planes[0][i] = clamp_to_byte(luma + ((91881 * cr + 32768) >> 16));
            planes[1][i] = clamp_to_byte(luma + ((-22554 * cb - 46802 * cr + 32768) >> 16));
            planes[2][i] = clamp_to_byte(luma + ((116130 * cb + 32768) >> 16));
        } else if (colours == 3) {
            i32 red = planes[0][i], green = planes[1][i], blue = planes[2][i];
            planes[0][i] = (u8)((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
        }
        if (colours == 0 || colours == 3) planes[1][i] = planes[2][i] = planes[0][i];
    }
}

// Each thread makes eight pixels of a row at a time.
extern "C" __global__ void __launch_bounds__(256) jpeg_make_pixels(const JpegPicture *pictures,
    u32 picture_count, const JpegComponent *components, const u8 *samples,
    const PictureDescriptor *descriptors) {
    const JpegPicture *picture = jpeg_picture_of(pictures, picture_count, blockIdx.x);
    const PictureDescriptor *descriptor = descriptors + (picture - pictures);
    u32 first = (blockIdx.x - picture->first_pixel_group) * JPEG_GROUP_ITEMS;
    u32 per_row = (picture->width + 7) / 8;
    u64 plane_stride = descriptor->plane_stride;
    for (u32 item = first + threadIdx.x; item < first + JPEG_GROUP_ITEMS; item += 256) {
        u32 row = item / per_row, column = item % per_row * 8;
        if (row >= picture->height) return;
        u8 planes[3][8];
        i32 x = (i32)(picture->x + column), y = (i32)(picture->y + row);
        jpeg_make_eight(picture, components + picture->first_component, samples, x, y, planes);
        u8 *to = (u8 *)descriptor->address + (u64)row * descriptor->row_stride + column;
#pragma unroll
        for (u32 i = 0; i < 3; i++) jpeg_store(to + i * plane_stride, planes[i]);
    }
}
