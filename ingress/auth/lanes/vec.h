// A vector of eight words. The attribute makes a compiler that builds for any amd64 compile
// functions for processors with such vectors; on others nobody calls them.
#include "lanes.h"
#if LANES_PLAIN
#include "plain_test.h"
#else
#include <immintrin.h>
#define LANES __attribute__((target("avx512f,avx512ifma")))
#endif

#define INLINE static inline LANES __attribute__((always_inline))
#define OUTLINE static LANES __attribute__((noinline))

typedef __m512i vec;

// transpose turns eight rows of eight words: row i of the result holds word i of each row.
INLINE void transpose(vec r[8]) {
	vec a0 = _mm512_unpacklo_epi64(r[0], r[1]), a1 = _mm512_unpackhi_epi64(r[0], r[1]);
	vec a2 = _mm512_unpacklo_epi64(r[2], r[3]), a3 = _mm512_unpackhi_epi64(r[2], r[3]);
	vec a4 = _mm512_unpacklo_epi64(r[4], r[5]), a5 = _mm512_unpackhi_epi64(r[4], r[5]);
	vec a6 = _mm512_unpacklo_epi64(r[6], r[7]), a7 = _mm512_unpackhi_epi64(r[6], r[7]);
	// Block k of a pair's low part holds word 2k of both rows, of its high part word 2k + 1.
	vec b0 = _mm512_shuffle_i64x2(a0, a2, 0x88), b1 = _mm512_shuffle_i64x2(a0, a2, 0xdd);
	vec b2 = _mm512_shuffle_i64x2(a4, a6, 0x88), b3 = _mm512_shuffle_i64x2(a4, a6, 0xdd);
	vec c0 = _mm512_shuffle_i64x2(a1, a3, 0x88), c1 = _mm512_shuffle_i64x2(a1, a3, 0xdd);
	vec c2 = _mm512_shuffle_i64x2(a5, a7, 0x88), c3 = _mm512_shuffle_i64x2(a5, a7, 0xdd);
	r[0] = _mm512_shuffle_i64x2(b0, b2, 0x88);
	r[4] = _mm512_shuffle_i64x2(b0, b2, 0xdd);
	r[2] = _mm512_shuffle_i64x2(b1, b3, 0x88);
	r[6] = _mm512_shuffle_i64x2(b1, b3, 0xdd);
	r[1] = _mm512_shuffle_i64x2(c0, c2, 0x88);
	r[5] = _mm512_shuffle_i64x2(c0, c2, 0xdd);
	r[3] = _mm512_shuffle_i64x2(c1, c3, 0x88);
	r[7] = _mm512_shuffle_i64x2(c1, c3, 0xdd);
}
