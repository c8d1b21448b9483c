// Descriptions of the pictures of a batch, as gpu/src/jpeg/layout.rs writes them.
#ifndef MEETPOINT_JPEG
#define MEETPOINT_JPEG

// Bits of a lookup of a Huffman code.
#define JPEG_PEEK_BITS 10
// Three components have at most six tables and ten blocks in an MCU (T.81 B.2.3).
#define JPEG_TABLES_MAX 6
#define JPEG_UNITS_MAX 10
// What a block of threads does after it has found its component or picture: blocks of coefficients
// to transform, and times eight pixels to make.
#define JPEG_GROUP_BLOCKS 128
#define JPEG_GROUP_ITEMS 1024

// Reasons why a picture must be decoded by the CPU, as bits of its status.
#define JPEG_NO_CODE 1u
#define JPEG_TOO_MANY 2u
#define JPEG_OVERRUN 4u
#define JPEG_WRONG_END 8u

struct JpegTable {
    // By the next bits, what the code at their beginning means, as JpegEntry.
    u32 looks[1 << JPEG_PEEK_BITS];
    // By length: the first code after those of that length, moved to the top of 16 bits.
    u32 ends[18];
    // By length: index of the symbol less the code.
    i32 offsets[18];
    u8 symbols[256];
};
#define JPEG_TABLE_QUADS (sizeof(JpegTable) / 16)

struct JpegPicture {
    // Its data in the uploaded area, without stuffed bytes; a multiple of 16.
    u32 data_offset;
    u32 first_component, component_count;
    u32 mcus_wide;
    u32 table_count, tables[JPEG_TABLES_MAX];
    // Component, column and row in the MCU, DC table, AC table: 4 bits each from the lowest on.
    u32 unit_count, units[JPEG_UNITS_MAX];
    // 0: grey, 1: YCbCr to RGB, 2: RGB, 3: RGB to grey.
    u32 colours;
    // The region in pixels of the picture.
    u32 x, y, width, height;
    // The first block of threads that makes its pixels.
    u32 first_pixel_group;
};

struct JpegComponent {
    // The first block of threads that transforms it.
    u32 first_group;
    // Its first block among the coefficients; its samples begin at 64 times as many bytes.
    u32 first_block;
    // The needed blocks. Their samples have rows of 8 * wide bytes.
    u32 left, top, wide, high;
    // Sampling factors.
    u32 h, v;
    // Samples that are not padding.
    u32 width, height;
    // 0: none, 1: FancyH2V1, 2: FancyH1V2, 3: FancyH2V2, 4: Replicate, by these factors.
    u32 upsampling, across, down;
    u32 reserved[3];
    i16 steps[64];
};

// What follows a segment.
#define JPEG_END_ANY 0
// An entry point: decoding must arrive there, with its DC values.
#define JPEG_END_ENTRY 1
// A restart marker: less than a byte may be left.
#define JPEG_END_MARKER 2
// What no decoding arrives at.
#define JPEG_END_NOWHERE 3

struct JpegSegment {
    // Bits of the data of the picture.
    u32 bit, bit_end;
    // Blocks, counted through the scan.
    u32 block, block_end;
    u32 end;
    // DC values before its first block, and those behind its last block before an entry point.
    i16 dc[3], end_dc[3];
};

// A coefficient form. All of its rows of MCUs have the same blocks.
struct JpegForm {
    u32 picture, first_component, component_count;
    u32 mcus_wide;
    // Lanes of the compact form; 0 for the fast form.
    u32 lanes;
    // For each row: blocks of all components and of the first component, bytes of classes up to
    // the end of the first component, groups of DC differences, and the code of their widths.
    u32 blocks, first_blocks, first_class_bytes, dc_groups, dc_widths;
    // For blocks of the first component and of the others: the code of classes, then the codes of
    // widths by class and band.
    u8 codes[2][12];
};

// Sum of the widths 1 to 16: each byte of a group of each width has its own code.
#define JPEG_MAP_BYTES 136

// A row of MCUs of a coefficient form.
struct JpegFormRow {
    u32 form, mcu_row;
    // Offset in the uploaded area, and length.
    u32 offset, bytes;
    // Room for the decoded bytes of the fast form: its size, and its offset as two words.
    u32 scratch_bytes, scratch[2];
    u32 reserved;
};

// Segments of one picture that a block of threads decodes.
struct JpegGroup {
    u32 picture, first_segment, count;
};

#endif
