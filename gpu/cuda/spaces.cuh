// Colour spaces as in kernels/src/colour/spaces.rs, equal to OpenCV's cvtColor of bytes.

namespace spaces {

enum Space { Hsv, Hls, Lab, Ycrcb };

// Rounds a fixed-point number with `bits` fractional bits to the nearest integer, halves up.
__device__ static inline i32 descaled(i32 number, u32 bits) {
    return (number + (1 << (bits - 1))) >> bits;
}

// Rounds a number from 0 to 255 to the nearest integer, halves to even: from 2^23 on, float32
// represents integers only.
__device__ static inline u32 rounded(float number) {
    return __float_as_uint(__fadd_rn(number, 8388608.0f)) & 255;
}

// Rounds a quotient to the nearest integer, halves to even; 0 if the divisor is 0.
__device__ static inline i32 quotient(u32 number, u32 by) {
    if (by == 0) return 0;
    u32 whole = number / by, rest = 2 * (number - whole * by);
    return (i32)(whole + (rest > by || (rest == by && (whole & 1)) ? 1 : 0));
}

__device__ static inline void to_hsv(u32 *colour) {
    const u32 BITS = 12;
    i32 red = (i32)colour[0], green = (i32)colour[1], blue = (i32)colour[2];
    i32 value = max_of(max_of(red, green), blue);
    i32 range = value - min_of(min_of(red, green), blue);
    i32 saturation = descaled(range * quotient(255 << BITS, (u32)value), BITS);
    i32 hue = value == red     ? green - blue
              : value == green ? blue - red + 2 * range
                               : red - green + 4 * range;
    hue = descaled(hue * quotient(30 << BITS, (u32)range), BITS);
    colour[0] = clamp_to_byte(hue < 0 ? hue + 180 : hue);
    colour[1] = clamp_to_byte(saturation);
    colour[2] = (u32)value;
}

__device__ static inline void to_hls(u32 *colour) {
    float channels[3];
    for (u32 plane = 0; plane < 3; plane++)
        channels[plane] = __fmul_rn((float)(i32)colour[plane], (float)(1.0 / 255.0));
    float red = channels[0], green = channels[1], blue = channels[2];
    float most = red > green ? red : green, least = red < green ? red : green;
    most = most > blue ? most : blue;
    least = least < blue ? least : blue;
    float range = __fsub_rn(most, least), both = __fadd_rn(most, least);
    float lightness = __fmul_rn(both, 0.5f);
    colour[1] = rounded(__fmul_rn(lightness, 255.0f));
    // The distance from 1 to the next larger float32.
    if (range <= 1.1920928955078125e-7f) {
        colour[0] = colour[2] = 0;
        return;
    }
    float saturation = __fdiv_rn(range, lightness < 0.5f ? both : __fsub_rn(2.0f, both));
    float part, turn;
    if (most == red) {
        part = __fsub_rn(green, blue);
        turn = green < blue ? 360.0f : 0.0f;
    } else if (most == green) {
        part = __fsub_rn(blue, red);
        turn = 120.0f;
    } else {
        part = __fsub_rn(red, green);
        turn = 240.0f;
    }
    // The product is exact in float64.
    double angle = __dmul_rn((double)part, (double)__fdiv_rn(60.0f, range));
    float hue = (float)__dadd_rn(angle, (double)turn);
    colour[0] = rounded(__fmul_rn(hue, 0.5f));
    colour[2] = rounded(__fmul_rn(saturation, 255.0f));
}

// `table` holds the linear values of the 256 bytes, followed by the cube roots of linear values.
__device__ static inline void to_lab(u32 *colour, const u16 *table) {
    const u32 BITS = 12, ROOT_BITS = 15;
    const i32 SCALE = (116 * 255 + 50) / 100, SHIFT = (16 * 255 * (1 << ROOT_BITS) + 50) / 100;
    const i32 MIDDLE = 128 << ROOT_BITS;
    const u16 *roots = table + 256;
    i32 red = table[colour[0]], green = table[colour[1]], blue = table[colour[2]];
    i32 x = roots[descaled(1777 * red + 1541 * green + 778 * blue, BITS)];
    i32 y = roots[descaled(871 * red + 2929 * green + 296 * blue, BITS)];
    i32 z = roots[descaled(73 * red + 448 * green + 3575 * blue, BITS)];
    colour[0] = clamp_to_byte(descaled(SCALE * y - SHIFT, ROOT_BITS));
    colour[1] = clamp_to_byte(descaled(500 * (x - y) + MIDDLE, ROOT_BITS));
    colour[2] = clamp_to_byte(descaled(200 * (y - z) + MIDDLE, ROOT_BITS));
}

__device__ static inline void to_ycrcb(u32 *colour) {
    const u32 BITS = 14;
    const i32 MIDDLE = 128 << BITS;
    i32 red = (i32)colour[0], green = (i32)colour[1], blue = (i32)colour[2];
    i32 luma = descaled(4899 * red + 9617 * green + 1868 * blue, BITS);
    colour[0] = clamp_to_byte(luma);
    colour[1] = clamp_to_byte(descaled(11682 * (red - luma) + MIDDLE, BITS));
    colour[2] = clamp_to_byte(descaled(9241 * (blue - luma) + MIDDLE, BITS));
}

__device__ static inline void convert(u32 space, u32 *colour, const u8 *table) {
    switch (space) {
    case Hsv: to_hsv(colour); break;
    case Hls: to_hls(colour); break;
    case Lab: to_lab(colour, (const u16 *)table); break;
    case Ycrcb: to_ycrcb(colour); break;
    }
}

} // namespace spaces
