/*
 * CRC-64/NVME by multiplication: some ten times the speed of looking bytes up in a table, on processors that can multiply polynomials
 * (PCLMULQDQ: all of x86-64 of the last ten years). Compiled by scripts/native.mjs where there is a C compiler, and loaded by
 * src/crc64Bytes.ts; where it is not there, aws-crt does the work.
 *
 * A CRC is the remainder of the message, as a polynomial over GF(2), by a generator. A block of 16 bytes may be replaced by anything
 * with the same remainder, so it is multiplied by the power of x that brings it to where a later block is, and added to that one. In
 * the end 16 bytes stand for all before them, and those go through the table like the few that are left over.
 *
 * The order of this CRC is reflected: the lowest bit of the first byte is the highest power. A product of two reflected numbers comes
 * out multiplied by x once more, so that every factor below is one power lower than the distance says.
 */
#include "nodeApi.h"
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define WITH_MULTIPLICATION __attribute__((target("pclmul,sse4.1")))
#define GENERATOR 0x9a6c9329ac4bc9b5ull
#define BLOCK 16
#define STRIDE (4 * BLOCK)

static uint64_t table[256];
static __m128i over_a_block;
static __m128i over_a_stride;

static uint64_t times_x(uint64_t polynomial) {
  return (polynomial >> 1) ^ (polynomial & 1 ? GENERATOR : 0);
}

static uint64_t power_of_x(unsigned exponent) {
  uint64_t power = 1ull << 63;
  while (exponent-- > 0) power = times_x(power);
  return power;
}

/* What moves a block over so many bytes: one factor for its first half, which is 64 powers higher, and one for its second. */
static __m128i factors_over(unsigned bytes) {
  return _mm_set_epi64x((int64_t)power_of_x(8 * bytes - 1), (int64_t)power_of_x(8 * bytes + 63));
}

static void prepare(void) {
  for (unsigned byte = 0; byte < 256; byte++) {
    uint64_t remainder = byte;
    for (int bit = 0; bit < 8; bit++) remainder = times_x(remainder);
    table[byte] = remainder;
  }
  over_a_block = factors_over(BLOCK);
  over_a_stride = factors_over(STRIDE);
}

static uint64_t byte_by_byte(uint64_t remainder, const uint8_t *bytes, size_t length) {
  while (length-- > 0) remainder = (remainder >> 8) ^ table[(remainder ^ *bytes++) & 0xff];
  return remainder;
}

WITH_MULTIPLICATION static inline __m128i block_at(const uint8_t *bytes) {
  return _mm_loadu_si128((const __m128i *)bytes);
}

WITH_MULTIPLICATION static inline __m128i moved(__m128i block, __m128i factors, __m128i onto) {
  __m128i first = _mm_clmulepi64_si128(block, factors, 0x00);
  __m128i second = _mm_clmulepi64_si128(block, factors, 0x11);
  return _mm_xor_si128(onto, _mm_xor_si128(first, second));
}

WITH_MULTIPLICATION static uint64_t extended(uint64_t remainder, const uint8_t *bytes, size_t length) {
  if (length < STRIDE) return byte_by_byte(remainder, bytes, length);
  /* Four at a time, because the processor begins the next multiplication before the last is done. */
  __m128i a = _mm_xor_si128(block_at(bytes), _mm_set_epi64x(0, (int64_t)remainder));
  __m128i b = block_at(bytes + BLOCK);
  __m128i c = block_at(bytes + 2 * BLOCK);
  __m128i d = block_at(bytes + 3 * BLOCK);
  bytes += STRIDE;
  length -= STRIDE;
  for (; length >= STRIDE; bytes += STRIDE, length -= STRIDE) {
    a = moved(a, over_a_stride, block_at(bytes));
    b = moved(b, over_a_stride, block_at(bytes + BLOCK));
    c = moved(c, over_a_stride, block_at(bytes + 2 * BLOCK));
    d = moved(d, over_a_stride, block_at(bytes + 3 * BLOCK));
  }
  b = moved(a, over_a_block, b);
  c = moved(b, over_a_block, c);
  d = moved(c, over_a_block, d);
  for (; length >= BLOCK; bytes += BLOCK, length -= BLOCK) d = moved(d, over_a_block, block_at(bytes));
  uint8_t last[BLOCK];
  _mm_storeu_si128((__m128i *)last, d);
  return byte_by_byte(byte_by_byte(0, last, BLOCK), bytes, length);
}

/* extend(state, bytes): `state`, eight bytes with the lowest first, becomes the checksum of all before and these. */
static napi_value extend(napi_env env, napi_info info) {
  napi_value arguments[2];
  size_t count = 2;
  void *state;
  void *bytes;
  size_t state_length;
  size_t length;
  if (napi_get_cb_info(env, info, &count, arguments, NULL, NULL) != 0) return NULL;
  if (count < 2 || napi_get_buffer_info(env, arguments[0], &state, &state_length) != 0 ||
      napi_get_buffer_info(env, arguments[1], &bytes, &length) != 0 || state_length != sizeof(uint64_t)) {
    napi_throw_type_error(env, NULL, "extend takes a state of eight bytes and the bytes, both as Buffer");
    return NULL;
  }
  uint64_t crc;
  memcpy(&crc, state, sizeof(crc));
  crc = ~extended(~crc, bytes, length);
  memcpy(state, &crc, sizeof(crc));
  return NULL;
}

/* Exports nothing on a processor that cannot multiply. */
napi_value napi_register_module_v1(napi_env env, napi_value exports) {
  if (!__builtin_cpu_supports("pclmul") || !__builtin_cpu_supports("sse4.1")) return exports;
  prepare();
  return exporting(env, exports, "extend", extend);
}
