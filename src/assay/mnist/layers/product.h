// Product of matrices, c[m, n] = sum_k a(m, k) b[k, n] (+ bias[n]): a tile of 8 rows by 2 vectors in
// registers, over panels of b copied together so that they are read without gaps.
//
// a is read at a[m * am + k * ak], so a transposed matrix needs no copy; b and c are row-major.
// Every element is added up in the order of k, whatever the number of threads.
#pragma once
#include "vectors.h"

namespace {

constexpr int64_t TILE_ROWS = 8;
constexpr int64_t CHUNK_ROWS = 64;  // rows of c of one task
constexpr int64_t DEPTH = 256;      // of a panel: 256 * 128 bytes stay in the L1 cache

template <typename T, int ROWS>
inline void product_tile(T* c, int64_t ldc, const T* a, int64_t am, int64_t ak, const T* panel,
                         int64_t depth, int64_t columns, const T* start) {
  constexpr int64_t L = LANES<T>;
  Vector<T> sum[ROWS][2];
  for (int r = 0; r < ROWS; ++r)
    for (int j = 0; j < 2; ++j) {
      T part[L] = {};
      const int64_t count = least(L, columns - j * L);
      const T* from = start ? start : c + r * ldc;
      if (count > 0) std::memcpy(part, from + j * L, count * sizeof(T));
      sum[r][j] = load(part);
    }
  for (int64_t k = 0; k < depth; ++k) {
    const Vector<T> left = load(panel + k * 2 * L), right = load(panel + k * 2 * L + L);
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; ++r) {
      const T factor = a[r * am + k * ak];
      sum[r][0] += factor * left;
      sum[r][1] += factor * right;
    }
  }
  for (int r = 0; r < ROWS; ++r)
    for (int j = 0; j < 2; ++j) {
      const int64_t count = least(L, columns - j * L);
      if (count > 0) store(c + r * ldc + j * L, sum[r][j], count);
    }
}

template <typename T>
void product(T* c, const T* a, int64_t am, int64_t ak, const T* b, const T* bias, int64_t m,
             int64_t n, int64_t depth) {
  constexpr int64_t WIDTH = 2 * LANES<T>;
  const int64_t panels = pieces(n, WIDTH), chunks = pieces(m, CHUNK_ROWS);
  const std::vector<T> zeros(WIDTH, T(0));
#pragma omp parallel for collapse(2) schedule(dynamic)
  for (int64_t p = 0; p < panels; ++p)
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      const int64_t first = p * WIDTH, columns = least(WIDTH, n - first);
      alignas(64) T panel[DEPTH * WIDTH];
      for (int64_t k0 = 0; k0 == 0 || k0 < depth; k0 += DEPTH) {
        const int64_t deep = least(DEPTH, depth - k0);
        for (int64_t k = 0; k < deep; ++k) {
          std::memcpy(panel + k * WIDTH, b + (k0 + k) * n + first, columns * sizeof(T));
          for (int64_t j = columns; j < WIDTH; ++j) panel[k * WIDTH + j] = 0;
        }
        const T* start = k0 ? nullptr : bias ? bias + first : zeros.data();
        const int64_t end = least(m, (chunk + 1) * CHUNK_ROWS);
        int64_t row = chunk * CHUNK_ROWS;
        for (; row + TILE_ROWS <= end; row += TILE_ROWS)
          product_tile<T, TILE_ROWS>(c + row * n + first, n, a + row * am + k0 * ak, am, ak, panel,
                                     deep, columns, start);
        for (; row < end; ++row)
          product_tile<T, 1>(c + row * n + first, n, a + row * am + k0 * ak, am, ak, panel, deep,
                             columns, start);
      }
    }
}

}  // namespace
