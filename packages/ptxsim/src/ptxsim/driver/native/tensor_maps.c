/* cuTensorMapEncode*: the 128 bytes of a map are the simulator's own record (units/tensormap.py). */
#include "standin.h"
#include <string.h>

/* Marks of both kinds. Bit 21 is 0, because CUTLASS clears it afterwards in the maps of tensors below 128 KB. */
enum { TILED = 0x70416d74, IM2COL = 0x634d6d74, MOST_RANK = 5 };
typedef struct __attribute__((packed)) {
  uint64_t address;
  uint32_t mark;
  uint16_t box[5];
  uint8_t steps[5], rank, type, interleave, swizzle, atomicity, fill;
  uint32_t dims[5];
  uint64_t strides[4];
  int16_t lower[3], upper[3]; /* of im2col: corners along W, H, D */
  uint16_t pixels;
} Record;

static const uint8_t bits[] = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};
/* by CUtensorMapDataType */
static const uint8_t types[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12, 13, 14, 15}; /* its .elemtype in PTX */

enum { FP4 = 13, PADDED4, PADDED6 }; /* CUtensorMapDataType: 16 elements, the last two padded to 16 B */

/* CUtensorMapSwizzle -> bytes of a row, .swizzle_mode and .swizzle_atomicity in PTX */
static const struct { uint8_t span, mode, atomicity; } swizzles[] = {
    {0, 0, 0}, {32, 1, 0}, {64, 2, 0}, {128, 3, 0}, {128, 3, 1}, {0, 0, 0}, {128, 3, 3}};

static const char *wrong_padding(uint32_t type, uint32_t rank, const uint64_t *dims, const uint64_t *strides,
                                 const uint32_t *box, int swizzle, int fill, uint64_t base) {
  if (base % 32) return "the address is not a multiple of 32 B, as padded elements need";
  if (dims[0] % 128 || box[0] != 128) return "rows of padded elements are multiples of 128, boxes 128 wide";
  for (uint32_t i = 1; i < rank; i++)
    if (strides[i - 1] % 32) return "a stride is not a multiple of 32 B, as padded elements need";
  if (swizzle == 1 || swizzle == 2 || (swizzle == 6 && type == PADDED4))
    return "padded elements do not go with this swizzle";
  return fill ? "elements below a byte have no NaN to fill with" : NULL;
}

static const char *wrong(uint32_t type, uint32_t rank, const uint64_t *dims, const uint64_t *strides,
                         const uint32_t *box, const uint32_t *steps, int interleave, int swizzle,
                         int fill, uint64_t base) {
  if (type >= COUNT(bits)) return "there is no such data type";
  if (interleave || swizzle >= (int)COUNT(swizzles) || (swizzle && !swizzles[swizzle].span))
    return "interleaved layouts and swizzles that flip 8 B are not modelled";
  if (!rank || rank > MOST_RANK) return "the rank must be 1 to 5";
  if (base % 16) return "the address is not a multiple of 16 B";
  uint32_t inner = box[0] * bits[type] / 8;
  if (type == FP4 && dims[0] % 2) return "the innermost extent of 4-bit elements is odd";
  if (inner % 16 || box[0] * bits[type] % 8) return "the innermost box is not a multiple of 16 B";
  if (swizzle && inner > swizzles[swizzle].span) return "the innermost box is wider than the swizzle";
  for (uint32_t i = 0; i < rank; i++) {
    if (!dims[i] || dims[i] > (uint64_t)1 << 32) return "an extent is outside 1..2^32";
    if (!box[i] || box[i] > 256) return "an extent of the box is outside 1..256";
    if (!steps[i] || steps[i] > 8) return "an element stride is outside 1..8";
    if (i && (strides[i - 1] % 16 || strides[i - 1] >> 40))
      return "a stride is not a multiple of 16 B below 2^40";
  }
  return type >= PADDED4 ? wrong_padding(type, rank, dims, strides, box, swizzle, fill, (uint64_t)base) : NULL;
}

/* Writes the fields that all kinds of maps share; of the box only the innermost extent, and no mark of a kind. */
static Record *encode(const char *name, void *map, uint32_t type, uint32_t rank, void *base,
                      const uint64_t *dims, const uint64_t *strides, const uint32_t *box,
                      const uint32_t *steps, int interleave, int swizzle, int fill) {
  const char *why = wrong(type, rank, dims, strides, box, steps, interleave, swizzle, fill, (uint64_t)base);
  if (why) return complain("%s: %s", name, why), NULL;
  Record *record = memset(map, 0, 128);
  record->address = (uint64_t)base, record->rank = rank - 1, record->type = types[type];
  record->swizzle = swizzles[swizzle].mode, record->atomicity = swizzles[swizzle].atomicity;
  record->fill = fill;
  for (uint32_t i = 0; i < rank; i++) {
    record->dims[i] = (uint32_t)dims[i], record->box[i] = box[i], record->steps[i] = i ? steps[i] : 1;
    if (i) record->strides[i - 1] = strides[i - 1];
  }
  return record;
}

API Err cuTensorMapEncodeTiled(void *map, uint32_t type, uint32_t rank, void *base, const uint64_t *dims,
                               const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                               int interleave, int swizzle, int promotion, int fill) {
  (void)promotion;
  Record *record = encode("cuTensorMapEncodeTiled", map, type, rank, base, dims, strides, box, steps,
                          interleave, swizzle, fill);
  if (!record) return INVALID_VALUE;
  return record->mark = TILED, OK;
}

static const char *wrong_pixels(uint32_t rank, const int *lower, const int *upper, uint32_t pixels,
                                int most) {
  if (rank < 3 || rank > MOST_RANK) return "the rank must be 3 to 5";
  if (!pixels || pixels > 1024) return "the pixels of a column are outside 1..1024";
  for (uint32_t i = 0; i < rank - 2; i++)
    if (lower[i] < -most || lower[i] >= most || upper[i] < -most || upper[i] >= most)
      return "a corner of the bounding box is out of range";
  return NULL;
}

/* Corners along W, H, D: innermost first, like extents. */
static Err im2col(const char *name, void *map, uint32_t type, uint32_t rank, void *base, const uint64_t *dims,
                  const uint64_t *strides, const int *lower, const int *upper, int most, uint32_t channels,
                  uint32_t pixels, const uint32_t *steps, int interleave, int swizzle, int fill) {
  const uint32_t box[MOST_RANK] = {channels, 1, 1, 1, 1};
  const char *why = wrong_pixels(rank, lower, upper, pixels, most);
  if (why) return complain("%s: %s", name, why), INVALID_VALUE;
  Record *record = encode(name, map, type, rank, base, dims, strides, box, steps, interleave, swizzle, fill);
  if (!record) return INVALID_VALUE;
  record->mark = IM2COL, record->pixels = pixels;
  for (uint32_t i = 0; i < rank - 2; i++) record->lower[i] = lower[i], record->upper[i] = upper[i];
  return OK;
}

API Err cuTensorMapEncodeIm2col(void *map, uint32_t type, uint32_t rank, void *base, const uint64_t *dims,
                                const uint64_t *strides, const int *lower, const int *upper,
                                uint32_t channels, uint32_t pixels, const uint32_t *steps, int interleave,
                                int swizzle, int promotion, int fill) {
  static const int most[] = {[3] = 1 << 15, [4] = 1 << 7, [5] = 1 << 4};
  (void)promotion;
  return im2col("cuTensorMapEncodeIm2col", map, type, rank, base, dims, strides, lower, upper,
                rank < COUNT(most) ? most[rank] : 0, channels, pixels, steps, interleave, swizzle, fill);
}

API Err cuTensorMapEncodeIm2colWide(void *map, uint32_t type, uint32_t rank, void *base, const uint64_t *dims,
                                    const uint64_t *strides, int lower, int upper, uint32_t channels,
                                    uint32_t pixels, const uint32_t *steps, int interleave, int mode,
                                    int swizzle, int promotion, int fill) {
  enum { W128 = 1 };
  const int low[3] = {lower}, high[3] = {upper};
  (void)promotion;
  return im2col("cuTensorMapEncodeIm2colWide", map, type, rank, base, dims, strides, low, high, 1 << 15,
                channels, mode == W128 ? 128 : pixels, steps, interleave, swizzle, fill);
}

API Err cuTensorMapReplaceAddress(void *map, void *base) {
  if ((uint64_t)base % 16) return INVALID_VALUE;
  uint64_t address = (uint64_t)base;
  memcpy(map, &address, sizeof address);
  return OK;
}
