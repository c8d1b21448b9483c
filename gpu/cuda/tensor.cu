// Bytes of pictures to the elements of tensors.

// Each byte becomes the element that a table has for it: `elements` values of `bytes` bytes for each
// of the 256 values of a byte and each of three channels.

extern "C" __global__ void elements_of_pixels(const u8 *pixels, float *elements, const float *table, u32 count) {
    u32 pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= count) return;
    for (u32 channel = 0; channel < 3; channel++)
        elements[channel * count + pixel] = table[256 * channel + pixels[3 * pixel + channel]];
}
