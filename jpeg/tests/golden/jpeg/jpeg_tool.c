/* Makes odd JPEGs with libjpeg and decodes JPEGs with its defaults; make.py runs it.
 *
 *     jpeg_tool encode key=value ... < pixels > file     (keys: see `encode_options`)
 *     jpeg_tool decode < file > pixels                   (RGB, or CMYK as libjpeg gives it)
 *
 * Build: cc -O2 -o jpeg_tool jpeg_tool.c -ljpeg. An error of libjpeg ends it with status 1, and a
 * warning (damaged data) with status 2.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>

static int argument_count;
static char **arguments;

/* The value of a key=value argument, or NULL. */
static const char *value(const char *key) {
    size_t length = strlen(key);
    for (int i = 2; i < argument_count; i++)
        if (!strncmp(arguments[i], key, length) && arguments[i][length] == '=')
            return arguments[i] + length + 1;
    return NULL;
}

static int number(const char *key, int otherwise) {
    const char *text = value(key);
    return text ? atoi(text) : otherwise;
}

/* Numbers of a list such as 2x1,1x1 or 0-63, one after another; returns how many. */
static int numbers(const char *text, int *out, int max) {
    int count = 0;
    while (text && *text && count < max) {
        char *end;
        out[count++] = (int)strtol(text, &end, 10);
        text = *end ? end + 1 : end;
    }
    return count;
}

static J_COLOR_SPACE colours(const char *name) {
    if (!name || !strcmp(name, "ycc")) return JCS_YCbCr;
    if (!strcmp(name, "gray")) return JCS_GRAYSCALE;
    if (!strcmp(name, "rgb")) return JCS_RGB;
    if (!strcmp(name, "cmyk")) return JCS_CMYK;
    if (!strcmp(name, "ycck")) return JCS_YCCK;
    return JCS_UNKNOWN;
}

static unsigned int state = 12345;
static unsigned int next_random(void) {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

/* A coefficient of one of the patterns of `coefficients=`. */
static JCOEF coefficient(const char *pattern, int k, int block) {
    int random = (int)(next_random() % 2047) - 1023;
    if (!strcmp(pattern, "zero")) return 0;
    if (!strcmp(pattern, "dc")) return k ? 0 : (JCOEF)random;
    if (!strcmp(pattern, "largest")) return k ? (random & 1 ? 1023 : -1023) : (block & 1 ? 1023 : -1024);
    if (!strcmp(pattern, "last")) return k == 63 ? (JCOEF)(random / 8) : (k ? 0 : (JCOEF)(random / 4));
    if (!strcmp(pattern, "row")) return k < 8 ? (JCOEF)(random >> (2 + k / 2)) : 0;
    if (!strcmp(pattern, "column")) return k % 8 == 0 ? (JCOEF)(random >> (2 + k / 16)) : 0;
    if (!strcmp(pattern, "sparse")) return next_random() % 12 == 0 || !k ? (JCOEF)(random / 24) : 0;
    return (JCOEF)(random / (1 + 2 * k)); /* "noise" */
}

static void fill_coefficients(j_compress_ptr cinfo, jvirt_barray_ptr *arrays, const char *pattern) {
    for (int c = 0; c < cinfo->num_components; c++) {
        jpeg_component_info *component = &cinfo->comp_info[c];
        for (JDIMENSION y = 0; y < component->height_in_blocks; y++) {
            JBLOCKARRAY row = (*cinfo->mem->access_virt_barray)(
                (j_common_ptr)cinfo, arrays[c], y, 1, TRUE);
            for (JDIMENSION x = 0; x < component->width_in_blocks; x++)
                for (int k = 0; k < DCTSIZE2; k++)
                    row[0][x][k] = coefficient(pattern, k, (int)(x + y));
        }
    }
}

/* Scans as `0,1,2:0-63:0-0;...`: components : first-last coefficient : high-low bit. */
static jpeg_scan_info *scans(const char *text, int *count) {
    static jpeg_scan_info found[64];
    for (*count = 0; text && *text && *count < 64; (*count)++) {
        jpeg_scan_info *scan = &found[*count];
        int range[4] = { 0, 63, 0, 0 };
        char *end = (char *)text;
        scan->comps_in_scan = 0;
        do {
            scan->component_index[scan->comps_in_scan++] = (int)strtol(text, &end, 10);
            text = end + 1;
        } while (*end == ',');
        if (*end == ':') sscanf(end, ":%d-%d:%d-%d", &range[0], &range[1], &range[2], &range[3]);
        scan->Ss = range[0];
        scan->Se = range[1];
        scan->Ah = range[2];
        scan->Al = range[3];
        text = strchr(end, ';');
        if (text) text++;
    }
    return found;
}

static void encode_options(j_compress_ptr cinfo) {
    int list[32], count;
    if (value("space")) jpeg_set_colorspace(cinfo, colours(value("space")));
    if (value("scale")) /* Of the quantisation tables, percent; up to 65535 a value. */
        jpeg_set_linear_quality(cinfo, number("scale", 100), FALSE);
    else
        jpeg_set_quality(cinfo, number("quality", 75), number("quality", 75) >= 25 || number("baseline", 1));
    count = numbers(value("sampling"), list, 8);
    for (int i = 0; i < count / 2 && i < cinfo->num_components; i++) {
        cinfo->comp_info[i].h_samp_factor = list[2 * i];
        cinfo->comp_info[i].v_samp_factor = list[2 * i + 1];
    }
    count = numbers(value("ids"), list, 4);
    for (int i = 0; i < count; i++) cinfo->comp_info[i].component_id = list[i];
    count = numbers(value("dc"), list, 4);
    for (int i = 0; i < count; i++) cinfo->comp_info[i].dc_tbl_no = list[i];
    count = numbers(value("ac"), list, 4);
    for (int i = 0; i < count; i++) cinfo->comp_info[i].ac_tbl_no = list[i];
    count = numbers(value("quant"), list, 4);
    for (int i = 0; i < count; i++) {
        int slot = list[i];
        cinfo->comp_info[i].quant_tbl_no = slot;
        if (!cinfo->quant_tbl_ptrs[slot]) {
            cinfo->quant_tbl_ptrs[slot] = jpeg_alloc_quant_table((j_common_ptr)cinfo);
            for (int k = 0; k < DCTSIZE2; k++)
                cinfo->quant_tbl_ptrs[slot]->quantval[k] = (UINT16)(1 + (k * (slot + 3)) % 40);
        }
    }
    cinfo->optimize_coding = number("optimize", 0);
    cinfo->arith_code = number("arithmetic", 0);
    cinfo->restart_interval = (unsigned int)number("restart", 0);
    cinfo->restart_in_rows = number("restart_rows", 0);
    cinfo->write_JFIF_header = number("jfif", cinfo->write_JFIF_header);
    cinfo->write_Adobe_marker = number("adobe", cinfo->write_Adobe_marker);
    if (number("progressive", 0)) jpeg_simple_progression(cinfo);
    if (value("scans")) cinfo->scan_info = scans(value("scans"), &cinfo->num_scans);
}

static int encode(void) {
    struct jpeg_compress_struct cinfo;
    struct jpeg_error_mgr errors;
    const char *pattern = value("coefficients");
    cinfo.err = jpeg_std_error(&errors);
    jpeg_create_compress(&cinfo);
    jpeg_stdio_dest(&cinfo, stdout);
    cinfo.image_width = (JDIMENSION)number("width", 1);
    cinfo.image_height = (JDIMENSION)number("height", 1);
    cinfo.in_color_space = colours(value("input") ? value("input") : "rgb");
    cinfo.input_components = cinfo.in_color_space == JCS_GRAYSCALE ? 1
        : cinfo.in_color_space == JCS_CMYK || cinfo.in_color_space == JCS_YCCK ? 4 : 3;
    cinfo.input_components = number("components", cinfo.input_components);
    jpeg_set_defaults(&cinfo);
    encode_options(&cinfo);
    if (pattern) {
        jvirt_barray_ptr arrays[4];
        int widest = 1, highest = 1;
        for (int c = 0; c < cinfo.num_components; c++) {
            jpeg_component_info *component = &cinfo.comp_info[c];
            if (component->h_samp_factor > widest) widest = component->h_samp_factor;
            if (component->v_samp_factor > highest) highest = component->v_samp_factor;
        }
        for (int c = 0; c < cinfo.num_components; c++) {
            jpeg_component_info *component = &cinfo.comp_info[c];
            int h = component->h_samp_factor, v = component->v_samp_factor;
            int mcus_wide = ((int)cinfo.image_width + 8 * widest - 1) / (8 * widest);
            int mcus_high = ((int)cinfo.image_height + 8 * highest - 1) / (8 * highest);
            arrays[c] = (*cinfo.mem->request_virt_barray)((j_common_ptr)&cinfo, JPOOL_IMAGE, TRUE,
                (JDIMENSION)(mcus_wide * h), (JDIMENSION)(mcus_high * v), (JDIMENSION)v);
        }
        jpeg_write_coefficients(&cinfo, arrays);
        fill_coefficients(&cinfo, arrays, pattern);
    } else {
        size_t row_bytes = (size_t)cinfo.image_width * (size_t)cinfo.input_components;
        JSAMPROW row = malloc(row_bytes);
        jpeg_start_compress(&cinfo, TRUE);
        while (cinfo.next_scanline < cinfo.image_height) {
            if (fread(row, 1, row_bytes, stdin) != row_bytes) return 3;
            jpeg_write_scanlines(&cinfo, &row, 1);
        }
        free(row);
    }
    jpeg_finish_compress(&cinfo);
    jpeg_destroy_compress(&cinfo);
    return 0;
}

static int decode(void) {
    struct jpeg_decompress_struct cinfo;
    struct jpeg_error_mgr errors;
    cinfo.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&cinfo);
    /* All of it at once: how libjpeg reads damaged data depends on how many bytes it holds. */
    size_t bytes = 0, room = 1 << 20;
    unsigned char *file = malloc(room);
    for (size_t got; (got = fread(file + bytes, 1, room - bytes, stdin)) > 0; bytes += got) {
        if (bytes + got == room) file = realloc(file, room *= 2);
    }
    jpeg_mem_src(&cinfo, file, bytes);
    jpeg_read_header(&cinfo, TRUE);
    if (cinfo.jpeg_color_space == JCS_GRAYSCALE) cinfo.out_color_space = JCS_RGB;
    jpeg_start_decompress(&cinfo);
    size_t row_bytes = (size_t)cinfo.output_width * (size_t)cinfo.output_components;
    JSAMPROW row = malloc(row_bytes);
    while (cinfo.output_scanline < cinfo.output_height) {
        jpeg_read_scanlines(&cinfo, &row, 1);
        fwrite(row, 1, row_bytes, stdout);
    }
    free(row);
    if (number("damaged", 0)) {
        fflush(stdout);
        jpeg_abort_decompress(&cinfo);
        return 0;
    }
    jpeg_finish_decompress(&cinfo);
    int warnings = (int)errors.num_warnings;
    jpeg_destroy_decompress(&cinfo);
    return warnings ? 2 : 0;
}

int main(int count, char **values) {
    argument_count = count;
    arguments = values;
    if (count >= 2 && !strcmp(values[1], "encode")) return encode();
    if (count >= 2 && !strcmp(values[1], "decode")) return decode();
    fprintf(stderr, "usage: jpeg_tool encode|decode key=value ...\n");
    return 64;
}
