// Philox-4x32-10: four random numbers of 32 bits from a counter and a key, and nothing else.
//
// J. Salmon, M. Moraes, R. Dror, D. Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
#pragma once

#include "assay.cuh"

namespace assay {

__device__ __forceinline__ Vec<unsigned, 4> philox(unsigned long long counter,
                                                   unsigned long long key) {
  unsigned c0 = unsigned(counter), c1 = unsigned(counter >> 32), c2 = 0, c3 = 0;
  unsigned k0 = unsigned(key), k1 = unsigned(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
    const unsigned high1 = __umulhi(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// In [0, 1): the upper 24 bits, which is all that a float holds evenly.
__device__ __forceinline__ float uniform(unsigned bits) { return float(bits >> 8) * 0x1p-24f; }

}  // namespace assay
