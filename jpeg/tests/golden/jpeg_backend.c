/* Makes jpeg_backend.txt: what libjpeg-turbo decodes from random coefficients.
 *
 *     cc -O2 jpeg_backend.c -o jpeg_backend -ljpeg && ./jpeg_backend > jpeg_backend.txt
 *
 * On x86-64 with AVX2 and libjpeg-turbo 2.1.5. Every line says how a file of coefficients is made
 * and how it is decoded: transform, eighths of the size, fancy upsampling, kind, seed, width,
 * height, components and the two sampling factors of each; after the colon stands the FNV-1a hash
 * of the rows. The test in src/jpeg/tests.rs makes the same coefficients. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

static uint32_t state;

static uint32_t next(uint32_t below) {
  state = state * 1664525u + 1013904223u;
  return (state >> 16) % below;
}

static const int zigzag[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

/* Kind 0: like a photograph. 1: as large as a file can say. 2: 16-bit tables, so that products
 * overflow. 3: the same with the first row of coefficients only. */
static void make_table(int kind, unsigned int *table) {
  for (int at = 0; at < 64; at++)
    table[at] = 1 + (kind == 0 ? next(24) : kind == 1 ? next(255) : next(65535));
}

static void make_block(int kind, short *block) {
  memset(block, 0, 64 * sizeof(short));
  int end = 1 + (next(2) ? next(64) : next(10));
  for (int k = 0; k < end; k++) {
    int most = kind == 0 ? 400 / (1 + 2 * k) + 1 : 1023;
    int value = (int)next(2 * most + 1) - most;
    if (next(3) == 0 && kind != 1) value = 0;
    if (kind == 3 && zigzag[k] >= 8) value = 0;
    block[zigzag[k]] = (short)value;
  }
}

struct picture {
  int kind, seed, width, height, components;
  int h[3], v[3];
};

/* A file of coefficients: per component its table and its blocks, row by row. */
static unsigned long encode(const struct picture *p, unsigned char **file) {
  struct jpeg_compress_struct c;
  struct jpeg_error_mgr errors;
  jvirt_barray_ptr arrays[3];
  unsigned long size = 0;
  *file = NULL;
  state = (uint32_t)p->seed;
  c.err = jpeg_std_error(&errors);
  jpeg_create_compress(&c);
  jpeg_mem_dest(&c, file, &size);
  c.image_width = (JDIMENSION)p->width;
  c.image_height = (JDIMENSION)p->height;
  c.input_components = p->components;
  c.in_color_space = p->components == 1 ? JCS_GRAYSCALE : JCS_YCbCr;
  jpeg_set_defaults(&c);
  c.optimize_coding = TRUE;
  int h_max = 1, v_max = 1;
  for (int i = 0; i < p->components; i++) {
    c.comp_info[i].h_samp_factor = p->h[i];
    c.comp_info[i].v_samp_factor = p->v[i];
    c.comp_info[i].quant_tbl_no = i;
    h_max = p->h[i] > h_max ? p->h[i] : h_max;
    v_max = p->v[i] > v_max ? p->v[i] : v_max;
  }
  int wide[3], high[3];
  for (int i = 0; i < p->components; i++) {
    int h = p->h[i], v = p->v[i];
    wide[i] = (p->width * h + 8 * h_max - 1) / (8 * h_max);
    high[i] = (p->height * v + 8 * v_max - 1) / (8 * v_max);
    arrays[i] = (*c.mem->request_virt_barray)((j_common_ptr)&c, JPOOL_IMAGE, TRUE,
                                              (JDIMENSION)((wide[i] + h - 1) / h * h),
                                              (JDIMENSION)((high[i] + v - 1) / v * v),
                                              (JDIMENSION)v);
  }
  unsigned int tables[3][64];
  short *blocks[3];
  for (int i = 0; i < p->components; i++) {
    make_table(p->kind, tables[i]);
    /* Not by jpeg_add_quant_table, which stops at 32767. */
    if (c.quant_tbl_ptrs[i] == NULL) c.quant_tbl_ptrs[i] = jpeg_alloc_quant_table((j_common_ptr)&c);
    for (int at = 0; at < 64; at++) c.quant_tbl_ptrs[i]->quantval[at] = (UINT16)tables[i][at];
    c.quant_tbl_ptrs[i]->sent_table = FALSE;
    blocks[i] = malloc(sizeof(short) * 64 * (size_t)(wide[i] * high[i]));
    for (int at = 0; at < wide[i] * high[i]; at++) make_block(p->kind, blocks[i] + 64 * at);
  }
  jpeg_write_coefficients(&c, arrays);
  for (int i = 0; i < p->components; i++) {
    for (int row = 0; row < high[i]; row++) {
      JBLOCKARRAY to = (*c.mem->access_virt_barray)((j_common_ptr)&c, arrays[i], (JDIMENSION)row,
                                                    1, TRUE);
      memcpy(to[0], blocks[i] + 64 * row * wide[i], sizeof(JBLOCK) * (size_t)wide[i]);
    }
    free(blocks[i]);
  }
  jpeg_finish_compress(&c);
  jpeg_destroy_compress(&c);
  return size;
}

static void decode(const struct picture *p, int eighths, int fancy) {
  unsigned char *file;
  unsigned long size = encode(p, &file);
  struct jpeg_decompress_struct d;
  struct jpeg_error_mgr errors;
  d.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&d);
  jpeg_mem_src(&d, file, size);
  jpeg_read_header(&d, TRUE);
  d.dct_method = JDCT_ISLOW;
  d.scale_num = (unsigned int)eighths;
  d.scale_denom = 8;
  d.do_fancy_upsampling = fancy;
  if (p->components == 3) d.out_color_space = JCS_RGB;
  jpeg_start_decompress(&d);
  uint64_t hash = 0xcbf29ce484222325u;
  size_t bytes = (size_t)d.output_width * (size_t)d.output_components;
  unsigned char *row = malloc(bytes);
  while (d.output_scanline < d.output_height) {
    jpeg_read_scanlines(&d, &row, 1);
    for (size_t at = 0; at < bytes; at++) hash = (hash ^ row[at]) * 0x100000001b3u;
  }
  printf("islow %d %d %d %d %d %d %d", eighths, fancy, p->kind, p->seed, p->width, p->height,
         p->components);
  for (int i = 0; i < p->components; i++) printf(" %d %d", p->h[i], p->v[i]);
  printf(" : %016llx\n", (unsigned long long)hash);
  free(row);
  jpeg_finish_decompress(&d);
  jpeg_destroy_decompress(&d);
  free(file);
}

int main(void) {
  int seed = 1;
  for (int kind = 0; kind < 4; kind++)
    for (int round = 0; round < 4; round++) {
      struct picture p = {kind, seed++, 8 * (37 + round), 64, 1, {1}, {1}};
      decode(&p, 8, 1);
      decode(&p, 4, 1);
      decode(&p, 2, 1);
      decode(&p, 1, 1);
    }
  static const int factors[][6] = {
      {1, 1, 1, 1, 1, 1}, {2, 1, 1, 1, 1, 1}, {2, 2, 1, 1, 1, 1}, {1, 2, 1, 1, 1, 1},
      {4, 1, 1, 1, 1, 1}, {4, 2, 1, 1, 1, 1}, {2, 2, 2, 1, 1, 2}, {3, 1, 1, 1, 3, 1},
      {2, 2, 1, 2, 2, 1},
  };
  static const int sizes[][2] = {{1, 1},   {2, 2},   {3, 5},   {4, 3},    {5, 17},
                                 {16, 16}, {33, 20}, {67, 35}, {131, 19}, {300, 40}};
  for (size_t f = 0; f < sizeof factors / sizeof *factors; f++)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
      for (int fancy = 0; fancy < 2; fancy++) {
        const int *g = factors[f];
        struct picture p = {0, seed++, sizes[s][0], sizes[s][1], 3, {g[0], g[2], g[4]},
                            {g[1], g[3], g[5]}};
        decode(&p, 8, fancy);
      }
  return 0;
}
