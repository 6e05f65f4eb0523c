// The instructions that the lanes use, in plain C: any amd64 runs the tests of a build with the tag
// lanesplain. No program is built so. Each body does to the lanes l, and to nothing else, what the
// manual says of the instruction; none is written for speed. A body that is wrong cannot agree with
// the tests, which compare with other implementations.
#include <stdint.h>
#include <string.h>

#define LANES // no instructions beyond those of any amd64

typedef uint64_t __m512i __attribute__((vector_size(64)));
typedef uint8_t __mmask8;
typedef __m512i plain;

#define PLAIN static inline __attribute__((always_inline, unused)) plain
#define EACH(x) \
	plain r; \
	for (int l = 0; l < 8; l++) r[l] = (x); \
	return r

PLAIN _mm512_set1_epi64(long long x) { EACH((uint64_t)x); }
PLAIN _mm512_setzero_si512(void) { EACH(0); }
PLAIN _mm512_set_epi64(long long h, long long g, long long f, long long e, long long d, long long c,
	long long b, long long a) {
	const long long x[8] = {a, b, c, d, e, f, g, h};
	EACH((uint64_t)x[l]);
}

PLAIN _mm512_loadu_si512(const void *p) {
	plain r;
	memcpy(&r, p, sizeof r);
	return r;
}
static inline void _mm512_storeu_si512(void *p, plain a) { memcpy(p, &a, sizeof a); }

PLAIN _mm512_add_epi64(plain a, plain b) { EACH(a[l] + b[l]); }
PLAIN _mm512_sub_epi64(plain a, plain b) { EACH(a[l] - b[l]); }
PLAIN _mm512_and_si512(plain a, plain b) { EACH(a[l] & b[l]); }
PLAIN _mm512_or_si512(plain a, plain b) { EACH(a[l] | b[l]); }
PLAIN _mm512_xor_si512(plain a, plain b) { EACH(a[l] ^ b[l]); }

// A shift by 64 or more leaves nothing, or only the sign.
PLAIN _mm512_srli_epi64(plain a, unsigned n) { EACH(n < 64 ? a[l] >> n : 0); }
PLAIN _mm512_slli_epi64(plain a, unsigned n) { EACH(n < 64 ? a[l] << n : 0); }
PLAIN _mm512_srai_epi64(plain a, unsigned n) {
	EACH((uint64_t)((int64_t)a[l] >> (n < 64 ? n : 63)));
}
PLAIN _mm512_rol_epi64(plain a, int n) { EACH(a[l] << (n & 63) | a[l] >> (-n & 63)); }

// Bit 4·a + 2·b + c of table is the result for bits a, b, c.
PLAIN _mm512_ternarylogic_epi64(plain a, plain b, plain c, int table) {
	plain r = {0};
	for (int i = 0; i < 8; i++)
		if (table >> i & 1) r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
	return r;
}

// The multiplier sees the lowest 52 bits of its factors, and adds to all 64 bits of c.
static inline unsigned __int128 plain_product(uint64_t a, uint64_t b) {
	return (unsigned __int128)(a & 0xfffffffffffff) * (b & 0xfffffffffffff);
}
PLAIN _mm512_madd52lo_epu64(plain c, plain a, plain b) {
	EACH(c[l] + ((uint64_t)plain_product(a[l], b[l]) & 0xfffffffffffff));
}
PLAIN _mm512_madd52hi_epu64(plain c, plain a, plain b) {
	EACH(c[l] + (uint64_t)(plain_product(a[l], b[l]) >> 52));
}

PLAIN _mm512_mask_mov_epi64(plain a, __mmask8 mask, plain b) { EACH(mask >> l & 1 ? b[l] : a[l]); }
PLAIN _mm512_permutexvar_epi64(plain from, plain a) { EACH(a[from[l] & 7]); }
PLAIN _mm512_unpacklo_epi64(plain a, plain b) { EACH(l & 1 ? b[l - 1] : a[l]); }
PLAIN _mm512_unpackhi_epi64(plain a, plain b) { EACH(l & 1 ? b[l] : a[l + 1]); }

// Pair k of the result is the pair of a, for k = 2 and 3 of b, that bits 2k and 2k + 1 name.
PLAIN _mm512_shuffle_i64x2(plain a, plain b, int pairs) {
	EACH((l < 4 ? a : b)[(pairs >> (l & ~1) & 3) * 2 + (l & 1)]);
}

#undef PLAIN
#undef EACH
