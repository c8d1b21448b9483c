/* A flat interface to libjpeg-turbo: one reused object to decompress and one to compress.
 *
 * Every function returns 0, or -1 with the reason in `turbo_message`: libjpeg's errors come back
 * here by longjmp, before any Rust frame. Warnings, which libjpeg gives for damaged data that it
 * decodes all the same, are counted. */
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>

typedef struct {
    struct jpeg_error_mgr errors; /* First: libjpeg hands back a pointer to it. */
    jmp_buf back;
    char message[JMSG_LENGTH_MAX];
    struct jpeg_decompress_struct in;
    struct jpeg_compress_struct out;
    unsigned char *row;
    size_t row_bytes;
} turbo;

/* How to decode; the layout is that of ffi.rs. */
typedef struct {
    int scale_eighths; /* 8 is the whole size. */
    int fast_idct;
    int plain_upsampling;
} turbo_mode;

/* How to encode; the layout is that of ffi.rs. */
typedef struct {
    int quality;
    int luma_across, luma_down;
    int optimise;
    int progressive;
    int restart_interval;
} turbo_encoding;

static void on_error(j_common_ptr cinfo) {
    turbo *t = (turbo *)cinfo->err;
    (*cinfo->err->format_message)(cinfo, t->message);
    longjmp(t->back, 1);
}

static void on_message(j_common_ptr cinfo) {
    (void)cinfo;
}

static int create(turbo *t) {
    t->in.err = jpeg_std_error(&t->errors);
    t->out.err = &t->errors;
    t->errors.error_exit = on_error;
    t->errors.output_message = on_message;
    if (setjmp(t->back)) return -1;
    jpeg_create_decompress(&t->in);
    jpeg_create_compress(&t->out);
    return 0;
}

turbo *turbo_new(void) {
    turbo *t = calloc(1, sizeof *t);
    if (t && create(t)) {
        free(t);
        return NULL;
    }
    return t;
}

void turbo_free(turbo *t) {
    jpeg_destroy_decompress(&t->in);
    jpeg_destroy_compress(&t->out);
    free(t->row);
    free(t);
}

const char *turbo_message(const turbo *t) {
    return t->message;
}

long turbo_warnings(const turbo *t) {
    return t->errors.num_warnings;
}

static void read_header(turbo *t, const unsigned char *data, size_t bytes) {
    jpeg_abort_decompress(&t->in);
    t->errors.num_warnings = 0;
    jpeg_mem_src(&t->in, data, bytes);
    jpeg_read_header(&t->in, TRUE);
    if (t->in.jpeg_color_space == JCS_GRAYSCALE) t->in.out_color_space = JCS_RGB;
}

static void set_mode(turbo *t, const turbo_mode *mode) {
    t->in.scale_num = (unsigned int)mode->scale_eighths;
    t->in.scale_denom = 8;
    t->in.dct_method = mode->fast_idct ? JDCT_IFAST : JDCT_ISLOW;
    t->in.do_fancy_upsampling = !mode->plain_upsampling;
}

/* Width, height and channels of what `turbo_decode` gives. */
int turbo_size(turbo *t, const unsigned char *data, size_t bytes, const turbo_mode *mode,
               unsigned int size[3]) {
    if (setjmp(t->back)) return -1;
    read_header(t, data, bytes);
    set_mode(t, mode);
    jpeg_calc_output_dimensions(&t->in);
    size[0] = t->in.output_width;
    size[1] = t->in.output_height;
    size[2] = (unsigned int)t->in.output_components;
    return 0;
}

/* The whole picture, after `turbo_size` said how large `out` must be; the header is not read again.
 * What stands behind the only scan of a file is looked at only if it is to `finish`. */
int turbo_decode(turbo *t, unsigned char *out, size_t out_bytes, int finish) {
    if (setjmp(t->back)) return -1;
    jpeg_start_decompress(&t->in);
    size_t row_bytes = (size_t)t->in.output_width * (size_t)t->in.output_components;
    if (out_bytes != row_bytes * t->in.output_height) return -1;
    while (t->in.output_scanline < t->in.output_height) {
        JSAMPROW rows[4];
        for (size_t i = 0; i < 4; i++) {
            size_t y = t->in.output_scanline + i;
            rows[i] = out + (y < t->in.output_height ? y : t->in.output_height - 1) * row_bytes;
        }
        jpeg_read_scanlines(&t->in, rows, t->in.output_height - t->in.output_scanline < 4
                                              ? t->in.output_height - t->in.output_scanline : 4);
    }
    if (finish) jpeg_finish_decompress(&t->in);
    else jpeg_abort_decompress(&t->in);
    return 0;
}

/* A region by jpeg_crop_scanline and jpeg_skip_scanlines, after `turbo_size`. What lies below is not
 * decoded. At its sides chroma may differ from the whole picture's: libjpeg cuts before upsampling. */
int turbo_decode_region(turbo *t, const unsigned int region[4], unsigned char *out,
                        size_t out_bytes) {
    if (setjmp(t->back)) return -1;
    jpeg_start_decompress(&t->in);
    size_t channels = (size_t)t->in.output_components;
    size_t kept_bytes = region[2] * channels;
    JDIMENSION left = region[0], width = region[2];
    if (out_bytes != kept_bytes * region[3]) return -1;
    jpeg_crop_scanline(&t->in, &left, &width);
    size_t skipped_bytes = (region[0] - left) * channels;
    if (t->row_bytes < t->in.output_width * channels) {
        free(t->row);
        t->row_bytes = t->in.output_width * channels;
        t->row = malloc(t->row_bytes);
        if (!t->row) abort();
    }
    if (region[1]) jpeg_skip_scanlines(&t->in, region[1]);
    for (unsigned int y = 0; y < region[3]; y++) {
        jpeg_read_scanlines(&t->in, &t->row, 1);
        memcpy(out + y * kept_bytes, t->row + skipped_bytes, kept_bytes);
    }
    jpeg_abort_decompress(&t->in);
    return 0;
}

/* Entropy decoding alone, coefficients into libjpeg's arrays. `planes` gets blocks across
 * and blocks down of each component, without the padding to whole MCUs. */
int turbo_read_coefficients(turbo *t, const unsigned char *data, size_t bytes,
                            unsigned int *components, unsigned int planes[4][2],
                            jvirt_barray_ptr **arrays) {
    if (setjmp(t->back)) return -1;
    read_header(t, data, bytes);
    *arrays = jpeg_read_coefficients(&t->in);
    *components = (unsigned int)t->in.num_components;
    if (*components > 4) return -1;
    for (unsigned int c = 0; c < *components; c++) {
        planes[c][0] = t->in.comp_info[c].width_in_blocks;
        planes[c][1] = t->in.comp_info[c].height_in_blocks;
    }
    return 0;
}

/* The quantisation values of a component, in natural order, after `turbo_read_coefficients`. */
void turbo_quantisation(const turbo *t, unsigned int component, unsigned short out[64]) {
    const JQUANT_TBL *table = t->in.comp_info[component].quant_table;
    for (int k = 0; k < 64; k++) out[k] = table ? table->quantval[k] : 0;
}

/* A row of blocks after `turbo_read_coefficients`, 64 values a block in natural order. */
int turbo_coefficient_row(turbo *t, jvirt_barray_ptr *arrays, unsigned int component,
                          unsigned int y, short *out, size_t blocks) {
    if (setjmp(t->back)) return -1;
    JBLOCKARRAY row = (*t->in.mem->access_virt_barray)((j_common_ptr)&t->in, arrays[component], y,
                                                       1, FALSE);
    memcpy(out, row[0], blocks * sizeof(JBLOCK));
    return 0;
}

/* RGB to a JPEG with standard tables; `*file` is the caller's to give to
 * `turbo_free_file`. */
int turbo_encode(turbo *t, const unsigned char *rgb, unsigned int width, unsigned int height,
                 const turbo_encoding *how, unsigned char **file, unsigned long *file_bytes) {
    if (setjmp(t->back)) return -1;
    jpeg_abort_compress(&t->out);
    jpeg_mem_dest(&t->out, file, file_bytes);
    t->out.image_width = width;
    t->out.image_height = height;
    t->out.input_components = 3;
    t->out.in_color_space = JCS_RGB;
    t->out.scan_info = NULL;
    t->out.num_scans = 0;
    jpeg_set_defaults(&t->out);
    jpeg_set_quality(&t->out, how->quality, TRUE);
    t->out.comp_info[0].h_samp_factor = how->luma_across;
    t->out.comp_info[0].v_samp_factor = how->luma_down;
    t->out.optimize_coding = how->optimise;
    t->out.restart_interval = (unsigned int)how->restart_interval;
    if (how->progressive) jpeg_simple_progression(&t->out);
    jpeg_start_compress(&t->out, TRUE);
    while (t->out.next_scanline < height) {
        JSAMPROW row = (JSAMPROW)rgb + (size_t)t->out.next_scanline * width * 3;
        jpeg_write_scanlines(&t->out, &row, 1);
    }
    jpeg_finish_compress(&t->out);
    return 0;
}

void turbo_free_file(unsigned char *file) {
    free(file);
}
