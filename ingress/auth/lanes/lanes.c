//go:build cgo && amd64

// Sums of points of secp256k1 in eight lanes of AVX-512 IFMA.
//
// A vector holds one limb of eight numbers. A number has five limbs to the base 2^52; the
// instructions multiply the lowest 52 bits of two limbs and add the low or the high half of the
// product. p = 2^256 - C is the prime of the field. Numbers are of three kinds, and each function
// says which it takes and makes. With LANES_CHECK every number is held to its kind when it is made.
//
//	NARROW  limbs 0 to 3 in [0, 2^52), limb 4 in [0, 2^48 + 2^6]:       below 2^256 + 2^215
//	WIDE    limbs 0 to 3 in [0, 2^52), limb 4 in [0, 2^49 + 2^6]:       below 2^257 + 2^215
//	FACTOR  any limbs whose sum limb[i]·2^52i is in [0, 2^259), carried: limb 4 is in [0, 2^51), and
//	        the low 52 bits of limbs 0 to 3 are digits of the sum. Bits above these may be set,
//	        because the multiplier ignores them.
//
// NARROW numbers are WIDE, and WIDE ones are FACTORs.
#include <string.h>

#include "vec.h"

typedef struct { vec v[5]; } num;
typedef unsigned __int128 u128;

#define SET(x) _mm512_set1_epi64((long long)(x))
#define ADD _mm512_add_epi64
#define SUB _mm512_sub_epi64
#define AND _mm512_and_si512
#define OR _mm512_or_si512
#define SRL _mm512_srli_epi64 // shift right
#define SRA _mm512_srai_epi64 // shift right, keeping the sign
#define SLL _mm512_slli_epi64
#define LOW _mm512_madd52lo_epu64  // c + the low 52 bits of a·b
#define HIGH _mm512_madd52hi_epu64 // c + the bits of a·b above them

#define M52 0xfffffffffffffULL
#define M48 0xffffffffffffULL
#define C 0x1000003d1ULL // 2^256 - p, 33 bits

#ifdef LANES_CHECK
#include <stdio.h>
#include <stdlib.h>

// held ends the process if limbs 0 to 3, after the given mask, or limb 4 of a lane are too large.
LANES static void held(const char *kind, const num *a, uint64_t mask, uint64_t top) {
	uint64_t w[5][8];
	for (int i = 0; i < 5; i++) _mm512_storeu_si512(w[i], a->v[i]);
	for (int l = 0; l < 8; l++)
		for (int i = 0; i < 5; i++)
			if (i < 4 ? (w[i][l] & mask) > M52 : w[i][l] > top) {
				fprintf(stderr, "BUG: lanes: limb %d of lane %d is %llx, not %s\n", i, l,
					(unsigned long long)w[i][l], kind);
				abort();
			}
}
#define NARROW(a) held("narrow", &(a), ~0ULL, (1ULL << 48) + 64)
#define WIDE(a) held("wide", &(a), ~0ULL, (1ULL << 49) + 64)
#define FACTOR(a) held("a factor", &(a), M52, (1ULL << 51) - 1)

// below ends the process if a word of a lane is not below 2^bits.
LANES static void below(vec a, int bits) {
	uint64_t w[8];
	_mm512_storeu_si512(w, a);
	for (int l = 0; l < 8; l++)
		if (w[l] >> bits) {
			fprintf(stderr, "BUG: lanes: %llx has more than %d bits\n", (unsigned long long)w[l], bits);
			abort();
		}
}
#define BELOW(a, bits) below(a, bits)
#else
#define NARROW(a) ((void)0)
#define WIDE(a) ((void)0)
#define FACTOR(a) ((void)0)
#define BELOW(a, bits) ((void)0)
#endif

// reduce makes a NARROW number of ten columns, which come from one or two products of FACTORs. A
// column is a sum of at most 18 halves, so it is below 18·2^52. The sum of the products is below
// 2·2^518, so after the carries column 9 is below 2^(519 - 468) = 2^51.
INLINE num reduce(vec z[10]) {
	const vec fold = SET(C << 4), c = SET(C), m52 = SET(M52), m48 = SET(M48);
	// Columns 5 to 9 become digits, but for bits above 52, which the multiplier ignores.
	z[6] = ADD(z[6], SRL(z[5], 52));
	z[7] = ADD(z[7], SRL(z[6], 52));
	z[8] = ADD(z[8], SRL(z[7], 52));
	z[9] = ADD(z[9], SRL(z[8], 52));
	BELOW(z[9], 51);
	// 2^260 is 16·C modulo p, a number of 37 bits. Each t is below 18·2^52 + 2·2^52 < 2^57.
	vec t0 = LOW(z[0], z[5], fold), t1 = HIGH(z[1], z[5], fold), t2 = HIGH(z[2], z[6], fold);
	vec t3 = HIGH(z[3], z[7], fold), t4 = HIGH(z[4], z[8], fold);
	vec t5 = HIGH(_mm512_setzero_si512(), z[9], fold); // below 2^(51 + 37 - 52) = 2^36
	t1 = LOW(t1, z[6], fold);
	t2 = LOW(t2, z[7], fold);
	t3 = LOW(t3, z[8], fold);
	t4 = LOW(t4, z[9], fold);
	// The bits from 2^256 on, below 2^9 + 2^40, times C: less than 2^74, so its high half is small.
	vec top = ADD(SRL(t4, 48), SLL(t5, 4));
	BELOW(top, 41);
	t4 = AND(t4, m48);
	t0 = LOW(t0, top, c); // below 2^57 + 2^52
	t1 = HIGH(t1, top, c);
	num r;
	t1 = ADD(t1, SRL(t0, 52));
	r.v[0] = AND(t0, m52);
	t2 = ADD(t2, SRL(t1, 52));
	r.v[1] = AND(t1, m52);
	t3 = ADD(t3, SRL(t2, 52)); // below 2^57 + 2^6, so it carries less than 2^6 into limb 4
	r.v[2] = AND(t2, m52);
	r.v[4] = ADD(t4, SRL(t3, 52));
	r.v[3] = AND(t3, m52);
	NARROW(r);
	return r;
}

INLINE void columns(vec z[10], const num *a, const num *b) {
	FACTOR(*a);
	FACTOR(*b);
	for (int i = 0; i < 5; i++)
		for (int j = 0; j < 5; j++) {
			z[i + j] = LOW(z[i + j], a->v[i], b->v[j]);
			z[i + j + 1] = HIGH(z[i + j + 1], a->v[i], b->v[j]);
		}
}

INLINE void clear(vec z[10]) {
	for (int i = 0; i < 10; i++) z[i] = _mm512_setzero_si512();
}

// mul makes the NARROW product of two FACTORs.
INLINE num mul(num a, num b) {
	vec z[10];
	clear(z);
	columns(z, &a, &b);
	return reduce(z);
}

// mul2 makes the NARROW a·b + c·d of FACTORs.
INLINE num mul2(num a, num b, num c, num d) {
	vec z[10];
	clear(z);
	columns(z, &a, &b);
	columns(z, &c, &d);
	return reduce(z);
}

// square makes the NARROW square of a FACTOR. Products of different limbs occur twice.
INLINE num square(num a) {
	FACTOR(a);
	vec z[10];
	clear(z);
	for (int i = 0; i < 5; i++)
		for (int j = i + 1; j < 5; j++) {
			z[i + j] = LOW(z[i + j], a.v[i], a.v[j]);
			z[i + j + 1] = HIGH(z[i + j + 1], a.v[i], a.v[j]);
		}
	for (int i = 1; i < 9; i++) z[i] = ADD(z[i], z[i]);
	for (int i = 0; i < 5; i++) {
		z[2 * i] = LOW(z[2 * i], a.v[i], a.v[i]);
		z[2 * i + 1] = HIGH(z[2 * i + 1], a.v[i], a.v[i]);
	}
	return reduce(z);
}

// four_p is 4p = 2^258 - 4C in limbs that are as large as can be, so that subtracting a digit from
// one leaves little to borrow.
INLINE num four_p(void) {
	num k;
	k.v[0] = SET(M52 & (0ULL - 4 * C));
	k.v[1] = k.v[2] = k.v[3] = SET(M52);
	k.v[4] = SET((1ULL << 50) - 1);
	return k;
}

// carry_up moves what is above 52 bits of limbs 0 to 3 up, rounding down, and leaves it there, too.
// The sum of the limbs that the multiplier sees stays the same.
INLINE num carry_up(num a) {
	for (int i = 0; i < 4; i++) a.v[i + 1] = ADD(a.v[i + 1], SRA(a.v[i], 52));
	return a;
}

// settle makes a WIDE number of limbs 0 to 3 in (-3·2^52, 4·2^52) and limb 4 in [2^49, 2^52). It
// folds what is above 2^256, but for one 2^256: so limb 4 is in [2^48, 2^49) before the carries, of
// which each is in [-3, 4], and no borrow makes it negative. Without that, a number just above a
// multiple of 2^256 could end just below 0, once in 2^46 random ones.
INLINE num settle(num a) {
	BELOW(a.v[4], 52);
	vec top = SUB(SRA(a.v[4], 48), SET(1)); // in [1, 14]
	BELOW(top, 4);
	a.v[4] = SUB(a.v[4], SLL(top, 48));
	a.v[0] = LOW(a.v[0], top, SET(C)); // top·C has 37 bits
	a = carry_up(a);
	for (int i = 0; i < 4; i++) a.v[i] = AND(a.v[i], SET(M52));
	WIDE(a);
	return a;
}

// minus makes a - b + 4p, not carried, of WIDE numbers. Its limbs 0 to 3 are in (-2^52, 2·2^52).
// The sum is at least 2^258 - 4C - 2^257 - 2^215 > 0, and below 2^258 + 2^257 + 2^215 < 2^259.
INLINE num minus(num a, num b) {
	WIDE(a);
	WIDE(b);
	num k = four_p(), r;
	for (int i = 0; i < 5; i++) r.v[i] = ADD(SUB(a.v[i], b.v[i]), k.v[i]);
	return r;
}

// difference makes the FACTOR a - b of WIDE numbers.
INLINE num difference(num a, num b) {
	num r = carry_up(minus(a, b));
	FACTOR(r);
	return r;
}

// total makes the FACTOR a + b of WIDE numbers: below 2^258 + 2^216.
INLINE num total(num a, num b) {
	WIDE(a);
	WIDE(b);
	num r;
	for (int i = 0; i < 5; i++) r.v[i] = ADD(a.v[i], b.v[i]);
	r = carry_up(r);
	FACTOR(r);
	return r;
}

// new_x makes the WIDE a - b - 2·c + 8p of NARROW numbers. Before the carries its limbs 0 to 3 are
// in (-3·2^52, 3·2^52), and limb 4 is in [2^51 - 2 - 3·(2^48 + 2^6), 2^51 + 2^48 + 2^6], which lies
// in [5·2^48 - 2^8, 9·2^48 + 2^6].
INLINE num new_x(num a, num b, num c) {
	NARROW(a);
	NARROW(b);
	NARROW(c);
	num k = four_p(), r;
	for (int i = 0; i < 5; i++)
		r.v[i] = ADD(SUB(SUB(a.v[i], b.v[i]), ADD(c.v[i], c.v[i])), ADD(k.v[i], k.v[i]));
	return settle(r);
}

// opposite makes the WIDE -a of a NARROW number: limb 4 of 4p - a is in [2^50 - 1 - 2^48 - 2^6,
// 2^50 - 1], above 2^49.
INLINE num opposite(num a) {
	NARROW(a);
	num k = four_p(), r;
	for (int i = 0; i < 5; i++) r.v[i] = SUB(k.v[i], a.v[i]);
	return settle(r);
}

// blend takes the lanes of b where mask is set, and those of a where not.
INLINE num blend(__mmask8 mask, num a, num b) {
	num r;
	for (int i = 0; i < 5; i++) r.v[i] = _mm512_mask_mov_epi64(a.v[i], mask, b.v[i]);
	return r;
}

// limbs makes a NARROW number of four words, whatever they are: below 2^256.
INLINE num limbs(const vec w[4]) {
	const vec m52 = SET(M52);
	num r;
	r.v[0] = AND(w[0], m52);
	r.v[1] = AND(OR(SRL(w[0], 52), SLL(w[1], 12)), m52);
	r.v[2] = AND(OR(SRL(w[1], 40), SLL(w[2], 24)), m52);
	r.v[3] = AND(OR(SRL(w[2], 28), SLL(w[3], 36)), m52);
	r.v[4] = SRL(w[3], 16);
	NARROW(r);
	return r;
}

// A term is the address of a point of a table, and 1 more for the point's opposite. Points begin at
// multiples of eight bytes.
typedef uint64_t term;

// load reads a point into each lane: a NARROW x and a WIDE y. An opposite has 2p - y, which is
// above 0 for whatever four words y has, and below 2^257.
INLINE void load(const term t[8], num *x, num *y) {
	vec r[8];
	unsigned turned = 0;
	for (int l = 0; l < 8; l++) {
		r[l] = _mm512_loadu_si512((const void *)(t[l] & ~1ULL));
		turned |= (unsigned)(t[l] & 1) << l;
	}
	transpose(r);
	*x = limbs(r);
	num n, p = limbs(r + 4);
	n.v[0] = SUB(SET(M52 & (0ULL - 2 * C)), p.v[0]);
	for (int i = 1; i < 4; i++) n.v[i] = SUB(SET(M52), p.v[i]);
	n.v[4] = SUB(SET((1ULL << 49) - 1), p.v[4]);
	n = carry_up(n);
	for (int i = 0; i < 4; i++) n.v[i] = AND(n.v[i], SET(M52));
	*y = blend(turned, p, n);
	WIDE(*y);
}

// sum is a point in each lane: x/zz and y/zzz, or x/zz and -y/zzz while it is turned. x and y are
// WIDE, zz and zzz NARROW. zz becomes 0 modulo p when an addition met two equal x, which the
// formulas cannot add, and then stays 0: each later zz is a multiple of it. The functions below are
// not inlined: all of them together fit the cache of instructions.
typedef struct { num x, y, zz, zzz; } sum;

// add_two sets s to the sum of two points, turned: its y is R·(X - Q) + y1·P³, and NARROW.
OUTLINE void add_two(sum *s, const term a[8], const term b[8]) {
	num x1, y1, x2, y2;
	load(a, &x1, &y1);
	load(b, &x2, &y2);
	num p = difference(x2, x1), r = difference(y2, y1);
	num pp = square(p), rr = square(r);
	num ppp = mul(p, pp), q = mul(x1, pp);
	s->x = new_x(rr, ppp, q);
	s->y = mul2(r, difference(s->x, q), y1, ppp);
	s->zz = pp;
	s->zzz = ppp;
}

// add adds a point to s and turns s: so y is a sum of two products, which needs one reduction and
// is NARROW. turned says whether s was turned before.
INLINE void add(sum *s, const term a[8], const int turned) {
	num x2, y2;
	load(a, &x2, &y2);
	num u = mul(x2, s->zz), t = mul(y2, s->zzz);
	num p = difference(u, s->x);
	num r = turned ? total(t, s->y) : difference(t, s->y);
	num pp = square(p), rr = square(r);
	num ppp = mul(p, pp), q = mul(s->x, pp);
	s->zz = mul(s->zz, pp);
	s->zzz = mul(s->zzz, ppp);
	num x = new_x(rr, ppp, q);
	num d = turned ? difference(q, x) : difference(x, q);
	s->y = mul2(r, d, s->y, ppp);
	s->x = x;
}

OUTLINE void add_to_turned(sum *s, const term a[8]) { add(s, a, 1); }

OUTLINE void add_to_straight(sum *s, const term a[8]) { add(s, a, 0); }

// add_some adds a point to the lanes of mask. s is straight before and after.
OUTLINE void add_some(sum *s, __mmask8 mask, const term a[8]) {
	sum q = *s;
	add_to_straight(&q, a);
	q.y = opposite(q.y);
	s->x = blend(mask, s->x, q.x);
	s->y = blend(mask, s->y, q.y);
	s->zz = blend(mask, s->zz, q.zz);
	s->zzz = blend(mask, s->zzz, q.zzz);
}

// across gives each lane i the number of lane from[i].
INLINE num across(num a, vec from) {
	num r;
	for (int i = 0; i < 5; i++) r.v[i] = _mm512_permutexvar_epi64(from, a.v[i]);
	return r;
}

// join adds the sums of lanes i and i xor d, where d is 1, 2 or 4. The result is in the lanes that
// have bit d; the others hold numbers of the right kinds that mean nothing. The two lanes share the
// work: lo and hi are what a lane without and with bit d computes.
OUTLINE void join(sum *s, int d) {
	const __mmask8 hi = d == 4 ? 0xf0 : d == 2 ? 0xcc : 0xaa;
	const vec from = _mm512_xor_si512(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), SET(d));
	num zz = across(s->zz, from), zzz = across(s->zzz, from);
	num u = mul(s->x, zz), v = mul(s->y, zzz);
	num zs = mul(blend(hi, s->zz, s->zzz), blend(hi, zz, zzz)); // lo: zz·zz, hi: zzz·zzz
	num us = across(u, from), vs = across(v, from);
	num r = difference(blend(hi, us, v), blend(hi, u, vs)); // lo: P, hi: R
	num rr = square(r);
	num e = mul(blend(hi, r, us), blend(hi, rr, across(rr, from))); // lo: P³, hi: Q
	num es = across(e, from);
	num x = new_x(rr, es, e); // hi
	num t = difference(e, x); // hi
	num f = mul(blend(hi, v, r), blend(hi, e, t)); // lo: y1·P³, hi: R·(Q - X)
	num g = mul(zs, blend(hi, rr, es)); // lo: zz, hi: zzz
	// Limb 4 of f - f' + 4p is in [2^50 - 1 - 2^48 - 2^6, 2^50 - 1 + 2^48 + 2^6].
	s->y = settle(minus(f, across(f, from)));
	s->x = x;
	s->zz = across(g, from);
	s->zzz = g;
}

// store writes a WIDE number of lane l as four words, below 2^256 and maybe not below p.
INLINE void store(const num *a, int l, uint64_t w[4]) {
	uint64_t b[5][8];
	for (int i = 0; i < 5; i++) _mm512_storeu_si512(b[i], a->v[i]);
	u128 sum = (u128)b[0][l] + ((u128)b[1][l] << 52) + (u128)(b[4][l] >> 48) * C;
	w[0] = (uint64_t)sum;
	sum = (sum >> 64) + ((u128)b[2][l] << 40);
	w[1] = (uint64_t)sum;
	sum = (sum >> 64) + ((u128)b[3][l] << 28);
	w[2] = (uint64_t)sum;
	sum = (sum >> 64) + ((u128)(b[4][l] & M48) << 16);
	w[3] = (uint64_t)sum;
	if (sum >> 64) { // what is left is below 4·C, so this carries nothing out of word 1
		sum = (u128)w[0] + C;
		w[0] = (uint64_t)sum;
		w[1] += (uint64_t)(sum >> 64);
	}
}

INLINE void store_sum(const sum *s, int l, uint64_t w[16]) {
	store(&s->x, l, w);
	store(&s->y, l, w + 4);
	store(&s->zz, l, w + 8);
	store(&s->zzz, l, w + 12);
}

// terms lists what must be added for k times the point of a table, at every step-th place of list,
// and returns how many terms that are. Digits are as in package curve: from -2^(width-1) + 1 to
// 2^(width-1). width must not divide 256, so that the last digit carries nothing.
INLINE int terms(const uint64_t *table, const int width, const uint64_t *k, term *list, int step) {
	const uint64_t half = 1ULL << (width - 1);
	uint64_t carry = 0, row = (uint64_t)table;
	int n = 0;
	for (int at = 0; at < 256; at += width) {
		const int i = at / 64, shift = at % 64;
		uint64_t d = k[i] >> shift;
		if (shift + width > 64 && i < 3) d |= k[i + 1] << (64 - shift);
		d = (d & (2 * half - 1)) + carry;
		carry = d > half;
		d = carry ? 2 * half - d : d;
		list[n * step] = (row + (d - 1) * 64) | carry;
		n += d != 0;
		row += half * 64;
	}
	return n;
}

// most is how many terms a sum has at most, and one that terms may write behind them.
enum { most = 256 / BASE_WIDTH + 1 + 256 / KEY_WIDTH + 1 + 1 };

#define FETCH(t) __builtin_prefetch((const void *)((t) & ~1ULL))

LANES void lanes_sum(
	const uint64_t *base, const uint64_t *key, const uint64_t *factors, uint64_t *out) {
	term t[most];
	int n = terms(base, BASE_WIDTH, factors, t, 1);
	n += terms(key, KEY_WIDTH, factors + 4, t + n, 1);
	if (n < 16) { // each lane begins with two
		memset(out, 0, 16 * sizeof *out);
		return;
	}
	for (int i = 0; i < n; i++) FETCH(t[i]);
	sum s;
	add_two(&s, t, t + 8);
	int i = 16;
	for (; i + 16 <= n; i += 16) {
		add_to_turned(&s, t + i);
		add_to_straight(&s, t + i + 8);
	}
	if (i + 8 <= n) {
		add_to_turned(&s, t + i);
		i += 8;
	} else {
		s.y = opposite(s.y);
	}
	if (i < n) {
		term last[8];
		for (int l = 0; l < 8; l++) last[l] = t[i + l < n ? i + l : i];
		add_some(&s, (1u << (n - i)) - 1, last);
	}
	join(&s, 4);
	join(&s, 2);
	join(&s, 1);
	store_sum(&s, 7, out);
}

#define FETCH_ROW(i) \
	for (int l = 0; l < 8; l++) FETCH(t[i][l])

LANES void lanes_sums(const uint64_t *base, const uint64_t *key0, const uint64_t *key1,
	const uint64_t *key2, const uint64_t *key3, const uint64_t *key4, const uint64_t *key5,
	const uint64_t *key6, const uint64_t *key7, const uint64_t *factors, uint64_t *out) {
	const uint64_t *keys[8] = {key0, key1, key2, key3, key4, key5, key6, key7};
	term t[most][8];
	int n[8], least = most, greatest = 0;
	unsigned short_lanes = 0;
	for (int l = 0; l < 8; l++) {
		n[l] = terms(base, BASE_WIDTH, factors + 8 * l, &t[0][l], 8);
		n[l] += terms(keys[l], KEY_WIDTH, factors + 8 * l + 4, &t[n[l]][l], 8);
		if (n[l] < 2) { // each lane begins with two: any, and its result will be 0
			short_lanes |= 1u << l;
			t[0][l] = (uint64_t)base;
			t[1][l] = (uint64_t)base + 64;
			n[l] = 2;
		}
		least = n[l] < least ? n[l] : least;
		greatest = n[l] > greatest ? n[l] : greatest;
	}
	// The tables are spread over megabytes: what is added four rounds later is fetched now.
	for (int i = 0; i < 6 && i < least; i++) FETCH_ROW(i);
	sum s;
	add_two(&s, t[0], t[1]);
	int i = 2;
	for (; i + 2 <= least; i += 2) {
		if (i + 4 < least) FETCH_ROW(i + 4);
		add_to_turned(&s, t[i]);
		if (i + 5 < least) FETCH_ROW(i + 5);
		add_to_straight(&s, t[i + 1]);
	}
	if (i < least)
		add_to_turned(&s, t[i++]);
	else
		s.y = opposite(s.y);
	for (; i < greatest; i++) {
		unsigned mask = 0;
		for (int l = 0; l < 8; l++) {
			if (i < n[l])
				mask |= 1u << l;
			else
				t[i][l] = t[0][l];
		}
		add_some(&s, mask, t[i]);
	}
	for (int l = 0; l < 8; l++) {
		store_sum(&s, l, out + 16 * l);
		if (short_lanes >> l & 1) memset(out + 16 * l, 0, 16 * sizeof *out);
	}
}

INLINE void put(num a, uint64_t **results) {
	for (int l = 0; l < 8; l++) store(&a, l, *results + 4 * l);
	*results += 32;
}

LANES void lanes_field(const uint64_t *pairs, uint64_t *results) {
	vec r[8];
	for (int l = 0; l < 8; l++) r[l] = _mm512_loadu_si512(pairs + 8 * l);
	transpose(r);
	num a = limbs(r), b = limbs(r + 4);
	num d = difference(a, b), e = difference(b, a), x = new_x(a, b, b);
	put(mul(a, b), &results);
	put(square(a), &results);
	put(settle(minus(a, b)), &results);
	put(x, &results);
	put(mul(d, d), &results);
	put(square(e), &results);
	put(mul2(d, e, settle(minus(a, b)), b), &results);
	put(mul(difference(b, x), difference(x, b)), &results);
	put(mul2(total(x, x), difference(a, x), x, total(a, x)), &results);
	put(opposite(a), &results);
}
