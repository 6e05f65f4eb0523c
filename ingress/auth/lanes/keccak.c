//go:build cgo && amd64

// Keccak-256 of eight messages, one in each lane.
#include "vec.h"

#define XOR3(a, b, c) _mm512_ternarylogic_epi64(a, b, c, 0x96) // a ^ b ^ c
#define CHI(a, b, c) _mm512_ternarylogic_epi64(a, b, c, 0xd2)  // a ^ ~b & c
#define ROL _mm512_rol_epi64
#define XOR _mm512_xor_si512

static const uint64_t constants[24] = {
	0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000,
	0x000000000000808b, 0x0000000080000001, 0x8000000080008081, 0x8000000000008009,
	0x000000000000008a, 0x0000000000000088, 0x0000000080008009, 0x000000008000000a,
	0x000000008000808b, 0x800000000000008b, 0x8000000000008089, 0x8000000000008003,
	0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
	0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
};

// permute is Keccak-f[1600]. Word x + 5y of the state is a[x + 5y].
INLINE void permute(vec a[25]) {
	for (int round = 0; round < 24; round++) {
		vec c[5], r[5], b[25];
		for (int x = 0; x < 5; x++) c[x] = XOR3(XOR3(a[x], a[x + 5], a[x + 10]), a[x + 15], a[x + 20]);
		for (int x = 0; x < 5; x++) r[x] = ROL(c[x], 1);
#define MOVED(x, y) XOR3(a[(x) + 5 * (y)], c[((x) + 4) % 5], r[((x) + 1) % 5])
		b[0] = MOVED(0, 0);
		b[1] = ROL(MOVED(1, 1), 44);
		b[2] = ROL(MOVED(2, 2), 43);
		b[3] = ROL(MOVED(3, 3), 21);
		b[4] = ROL(MOVED(4, 4), 14);
		b[5] = ROL(MOVED(3, 0), 28);
		b[6] = ROL(MOVED(4, 1), 20);
		b[7] = ROL(MOVED(0, 2), 3);
		b[8] = ROL(MOVED(1, 3), 45);
		b[9] = ROL(MOVED(2, 4), 61);
		b[10] = ROL(MOVED(1, 0), 1);
		b[11] = ROL(MOVED(2, 1), 6);
		b[12] = ROL(MOVED(3, 2), 25);
		b[13] = ROL(MOVED(4, 3), 8);
		b[14] = ROL(MOVED(0, 4), 18);
		b[15] = ROL(MOVED(4, 0), 27);
		b[16] = ROL(MOVED(0, 1), 36);
		b[17] = ROL(MOVED(1, 2), 10);
		b[18] = ROL(MOVED(2, 3), 15);
		b[19] = ROL(MOVED(3, 4), 56);
		b[20] = ROL(MOVED(2, 0), 62);
		b[21] = ROL(MOVED(3, 1), 55);
		b[22] = ROL(MOVED(4, 2), 39);
		b[23] = ROL(MOVED(0, 3), 41);
		b[24] = ROL(MOVED(1, 4), 2);
		for (int y = 0; y < 25; y += 5)
			for (int x = 0; x < 5; x++) a[x + y] = CHI(b[x + y], b[(x + 1) % 5 + y], b[(x + 2) % 5 + y]);
		a[0] = XOR(a[0], _mm512_set1_epi64((long long)constants[round]));
	}
}

// absorb adds eight words of each message to words at to at + 7 of the state.
INLINE void absorb(vec *a, const uint64_t *messages) {
	vec r[8];
	for (int l = 0; l < 8; l++) r[l] = _mm512_loadu_si512(messages + l * MESSAGE);
	transpose(r);
	for (int i = 0; i < 8; i++) a[i] = XOR(a[i], r[i]);
}

LANES void lanes_keccak(const uint64_t *messages, int n, uint64_t *hashes) {
	vec a[25];
	for (int i = 0; i < 25; i++) a[i] = _mm512_setzero_si512();
	for (; n > 0; n--, messages += BLOCK) {
		uint64_t last[8];
		for (int l = 0; l < 8; l++) last[l] = messages[l * MESSAGE + 16];
		absorb(a, messages);
		absorb(a + 8, messages + 8);
		a[16] = XOR(a[16], _mm512_loadu_si512(last));
		permute(a);
	}
	for (int i = 0; i < 4; i++) {
		uint64_t w[8];
		_mm512_storeu_si512(w, a[i]);
		for (int l = 0; l < 8; l++) hashes[4 * l + i] = w[l];
	}
}
