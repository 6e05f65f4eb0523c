// What eight lanes of AVX-512 compute. doc.go shows how; bounds and their proofs are in lanes.c.
#include <stdint.h>

#define BASE_WIDTH 10 // bits of a digit of the generator's comb
#define KEY_WIDTH 7   // and of a signer's
#define BLOCK 17      // words of a Keccak block
#ifndef LANES_PLAIN
#define LANES_PLAIN 0 // 1: plain C instead of the instructions, for tests
#endif

// A table is a comb as package curve lays it out: points of eight words, x and y. Factors are eight
// words, k of the generator's table and k of the signer's. A sum has sixteen words: x, y, zz, zzz.

// lanes_sum adds up one sum with all lanes.
void lanes_sum(const uint64_t *base, const uint64_t *key, const uint64_t *factors, uint64_t *sum);

// lanes_sums adds up eight sums, one in each lane.
void lanes_sums(const uint64_t *base, const uint64_t *key0, const uint64_t *key1,
	const uint64_t *key2, const uint64_t *key3, const uint64_t *key4, const uint64_t *key5,
	const uint64_t *key6, const uint64_t *key7, const uint64_t *factors, uint64_t *sums);

// lanes_keccak hashes eight messages of n padded blocks each: message i begins at word
// i * MESSAGE of messages, hash i at word 4 * i of hashes.
#define MESSAGE (4 * BLOCK)
void lanes_keccak(const uint64_t *messages, int n, uint64_t *hashes);

// lanes_field is for tests. It computes with eight pairs a, b of field elements, four words each,
// and writes eight results of FIELD_RESULTS kinds: result k of pair i at word (8 * k + i) * 4.
#define FIELD_RESULTS 10
void lanes_field(const uint64_t *pairs, uint64_t *results);
