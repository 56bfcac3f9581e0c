/* cuTensorMapEncodeTiled: the 128 bytes of a map are the simulator's own record (units/tensormap.py). */
#include "standin.h"
#include <string.h>

enum { MARK = 0x70616d74, MOST_RANK = 5 };
typedef struct __attribute__((packed)) {
  uint64_t address;
  uint32_t mark;
  uint16_t box[5];
  uint8_t steps[5], rank, type, interleave, swizzle, atomicity, fill;
  uint32_t dims[5];
  uint64_t strides[4];
} Record;

static const uint8_t bits[] = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4};
/* by CUtensorMapDataType */
static const uint8_t types[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12, 13}; /* its .elemtype in PTX */

static const char *wrong(uint32_t type, uint32_t rank, const uint64_t *dims, const uint64_t *strides,
                         const uint32_t *box, const uint32_t *steps, int interleave, int swizzle,
                         uint64_t base) {
  if (type >= COUNT(bits)) return "padded 4- and 6-bit elements are not modelled";
  if (interleave || swizzle > 3) return "interleaved layouts and swizzles of other atoms are not modelled";
  if (!rank || rank > MOST_RANK) return "the rank is 1 to 5";
  if (base % 16) return "the address is not a multiple of 16 B";
  static const uint32_t spans[] = {0, 32, 64, 128};
  uint32_t inner = box[0] * bits[type] / 8;
  if (bits[type] == 4 && dims[0] % 2) return "the innermost extent of 4-bit elements is odd";
  if (inner % 16 || box[0] * bits[type] % 8) return "the innermost box is not a multiple of 16 B";
  if (swizzle && inner > spans[swizzle]) return "the innermost box is wider than the swizzle";
  for (uint32_t i = 0; i < rank; i++) {
    if (!dims[i] || dims[i] > (uint64_t)1 << 32) return "an extent is outside 1..2^32";
    if (!box[i] || box[i] > 256) return "an extent of the box is outside 1..256";
    if (!steps[i] || steps[i] > 8) return "an element stride is outside 1..8";
    if (i && (strides[i - 1] % 16 || strides[i - 1] >> 40))
      return "a stride is no multiple of 16 B below 2^40";
  }
  return NULL;
}

API Err cuTensorMapEncodeTiled(void *map, uint32_t type, uint32_t rank, void *base, const uint64_t *dims,
                               const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                               int interleave, int swizzle, int promotion, int fill) {
  (void)promotion;
  const char *why = wrong(type, rank, dims, strides, box, steps, interleave, swizzle, (uint64_t)base);
  if (why) return complain("cuTensorMapEncodeTiled: %s", why), INVALID_VALUE;
  Record record = {.address = (uint64_t)base,
                   .mark = MARK,
                   .rank = rank - 1,
                   .type = types[type],
                   .swizzle = swizzle,
                   .fill = fill};
  for (uint32_t i = 0; i < rank; i++) {
    record.dims[i] = (uint32_t)dims[i], record.box[i] = box[i], record.steps[i] = i ? steps[i] : 1;
    if (i) record.strides[i - 1] = strides[i - 1];
  }
  memset(map, 0, 128);
  memcpy(map, &record, sizeof record);
  return OK;
}

API Err cuTensorMapReplaceAddress(void *map, void *base) {
  if ((uint64_t)base % 16) return INVALID_VALUE;
  uint64_t address = (uint64_t)base;
  memcpy(map, &address, sizeof address);
  return OK;
}

API Err cuTensorMapEncodeIm2col(void) {
  return complain("im2col tensor maps are not modelled"), NOT_SUPPORTED;
}
API Err cuTensorMapEncodeIm2colWide(void) { return cuTensorMapEncodeIm2col(); }
