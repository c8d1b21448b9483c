/* Writes tiny JPEGs of many kinds and the CRC-32 of their coefficients as libjpeg-turbo reads
 * them.
 *
 *     cc -O2 coefficients.c -ljpeg -o coefficients && ./coefficients > coefficients.txt
 *
 * Each line: name, file in hexadecimal digits, colon, CRC-32 over the blocks of all components that
 * are not padding, row by row, natural order, 16 bits with the low byte first. Made with
 * libjpeg-turbo 2.1.5.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

enum { BASELINE, OPTIMISED, PROGRESSIVE, SEPARATE, BITWISE };

struct kind {
  const char *name;
  int width, height, components, sampling[4], scans, restart, quality;
};

static const struct kind KINDS[] = {
  { "one", 1, 1, 1, { 0x11 }, BASELINE, 0, 75 },
  { "grey", 33, 47, 1, { 0x11 }, BASELINE, 0, 60 },
  { "grey-2x2", 20, 9, 1, { 0x22 }, BASELINE, 3, 60 },
  { "grey-progressive", 33, 21, 1, { 0x11 }, PROGRESSIVE, 0, 90 },
  { "444", 17, 19, 3, { 0x11, 0x11, 0x11 }, BASELINE, 0, 50 },
  { "422", 33, 15, 3, { 0x21, 0x11, 0x11 }, OPTIMISED, 0, 50 },
  { "420", 35, 33, 3, { 0x22, 0x11, 0x11 }, BASELINE, 0, 30 },
  { "420-restarts", 35, 33, 3, { 0x22, 0x11, 0x11 }, BASELINE, 2, 30 },
  { "420-separate", 35, 33, 3, { 0x22, 0x11, 0x11 }, SEPARATE, 2, 30 },
  { "440", 15, 33, 3, { 0x12, 0x11, 0x11 }, OPTIMISED, 0, 50 },
  { "411", 40, 15, 3, { 0x41, 0x11, 0x11 }, OPTIMISED, 1, 50 },
  { "chroma-larger", 25, 17, 3, { 0x11, 0x21, 0x22 }, OPTIMISED, 0, 20 },
  { "three", 30, 20, 3, { 0x31, 0x11, 0x31 }, OPTIMISED, 0, 40 },
  { "progressive", 33, 29, 3, { 0x22, 0x11, 0x11 }, PROGRESSIVE, 0, 80 },
  { "progressive-restarts", 33, 29, 3, { 0x21, 0x11, 0x11 }, PROGRESSIVE, 3, 60 },
  { "bitwise", 25, 17, 3, { 0x22, 0x12, 0x11 }, BITWISE, 0, 80 },
  { "bitwise-restarts", 25, 17, 3, { 0x11, 0x11, 0x11 }, BITWISE, 2, 40 },
  { "cmyk", 17, 15, 4, { 0x11, 0x11, 0x11, 0x11 }, OPTIMISED, 0, 40 },
  { "cmyk-2x2", 17, 15, 4, { 0x22, 0x11, 0x11, 0x22 }, PROGRESSIVE, 0, 40 },
};

/* Bit after bit, each band of each component alone. */
static int bitwise(jpeg_scan_info *scans, int components) {
  int count = 0;
  memset(scans, 0, 64 * sizeof *scans);
#define SCAN(c, first, last, high, low)                                                            \
  scans[count++] = (jpeg_scan_info) { 1, { c }, first, last, high, low }
  for (int c = 0; c < components; c++) SCAN(c, 0, 0, 0, 2);
  for (int c = 0; c < components; c++) {
    SCAN(c, 1, 2, 0, 0);
    SCAN(c, 3, 63, 0, 2);
  }
  for (int bit = 2; bit > 0; bit--)
    for (int c = 0; c < components; c++) {
      SCAN(c, 3, 63, bit, bit - 1);
      SCAN(c, 0, 0, bit, bit - 1);
    }
  return count;
}

static unsigned char *make(const struct kind *kind, unsigned long *length) {
  struct jpeg_compress_struct c;
  struct jpeg_error_mgr error;
  jpeg_scan_info scans[64];
  unsigned char *file = NULL, row[256];
  unsigned state = 1;
  c.err = jpeg_std_error(&error);
  jpeg_create_compress(&c);
  jpeg_mem_dest(&c, &file, length);
  c.image_width = kind->width;
  c.image_height = kind->height;
  c.input_components = kind->components;
  c.in_color_space = kind->components == 1   ? JCS_GRAYSCALE
                     : kind->components == 3 ? JCS_RGB
                                             : JCS_CMYK;
  jpeg_set_defaults(&c);
  jpeg_set_quality(&c, kind->quality, TRUE);
  for (int i = 0; i < kind->components; i++) {
    c.comp_info[i].h_samp_factor = kind->sampling[i] >> 4;
    c.comp_info[i].v_samp_factor = kind->sampling[i] & 15;
  }
  c.restart_interval = kind->restart;
  c.optimize_coding = kind->scans == OPTIMISED;
  c.dct_method = JDCT_ISLOW;
  if (kind->scans == PROGRESSIVE) jpeg_simple_progression(&c);
  if (kind->scans == SEPARATE) {
    memset(scans, 0, sizeof scans);
    for (int i = 0; i < kind->components; i++)
      scans[i] = (jpeg_scan_info) { 1, { i }, 0, 63, 0, 0 };
    c.scan_info = scans;
    c.num_scans = kind->components;
  }
  if (kind->scans == BITWISE) {
    c.num_scans = bitwise(scans, kind->components);
    c.scan_info = scans;
  }
  jpeg_start_compress(&c, TRUE);
  while (c.next_scanline < c.image_height) {
    JSAMPROW rows = row;
    for (int i = 0; i < kind->width * kind->components; i++) {
      state = state * 1664525 + 1013904223;
      row[i] = (i * 5 + c.next_scanline * 9 + (state >> 28)) & 255;
    }
    jpeg_write_scanlines(&c, &rows, 1);
  }
  jpeg_finish_compress(&c);
  jpeg_destroy_compress(&c);
  return file;
}

static unsigned crc(unsigned crc, unsigned byte) {
  crc ^= byte;
  for (int i = 0; i < 8; i++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
  return crc;
}

static unsigned coefficients(const unsigned char *file, unsigned long length) {
  struct jpeg_decompress_struct d;
  struct jpeg_error_mgr error;
  unsigned sum = 0xffffffff;
  d.err = jpeg_std_error(&error);
  jpeg_create_decompress(&d);
  jpeg_mem_src(&d, file, length);
  jpeg_read_header(&d, TRUE);
  jvirt_barray_ptr *arrays = jpeg_read_coefficients(&d);
  for (int i = 0; i < d.num_components; i++) {
    int across = 8 * d.max_h_samp_factor, down = 8 * d.max_v_samp_factor;
    int wide = (d.image_width * d.comp_info[i].h_samp_factor + across - 1) / across;
    int high = (d.image_height * d.comp_info[i].v_samp_factor + down - 1) / down;
    for (int y = 0; y < high; y++) {
      JBLOCKROW row =
          d.mem->access_virt_barray((j_common_ptr) &d, arrays[i], y, 1, FALSE)[0];
      for (int x = 0; x < wide; x++)
        for (int k = 0; k < 64; k++) {
          sum = crc(sum, row[x][k] & 255);
          sum = crc(sum, row[x][k] >> 8 & 255);
        }
    }
  }
  jpeg_destroy_decompress(&d);
  return ~sum;
}

int main(void) {
  for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
    unsigned long length = 0;
    unsigned char *file = make(&KINDS[i], &length);
    printf("%s ", KINDS[i].name);
    for (unsigned long at = 0; at < length; at++) printf("%02x", file[at]);
    printf(" : %08x\n", coefficients(file, length));
    free(file);
  }
}
