package api

// tokenBytes is room for a token id, a price and what stands around them.
const tokenBytes = 112
