// nvcuda::wmma and inline mma.sync, as people write them; compiled to PTX by NVRTC.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

// c = 2 a b + 1: a tile of A goes through padded shared memory. One warp for each 16 x 16 of c.
extern "C" __global__ void gemm_f16(const half* a, const half* b, float* c, int n, int k) {
    __shared__ __align__(32) half tile[16 * 24];
    const int row = blockIdx.y * 16, column = blockIdx.x * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int i = 0; i < k; i += 16) {
        for (int e = threadIdx.x; e < 256; e += 32)
            tile[e / 16 * 24 + e % 16] = a[(row + e / 16) * k + i + e % 16];
        __syncwarp();
        wmma::load_matrix_sync(fa, tile, 24);
        wmma::load_matrix_sync(fb, b + column * k + i, k);
        wmma::mma_sync(sum, fa, fb, sum);
        __syncwarp();
    }
    for (int e = 0; e < sum.num_elements; e++) sum.x[e] = sum.x[e] * 2.0f + 1.0f;
    wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}

extern "C" __global__ void tile_tf32(const float* a, const float* b, float* c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
    wmma::load_matrix_sync(fa, a, 8);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::load_matrix_sync(sum, c, 16, wmma::mem_col_major);
    for (int i = 0; i < fa.num_elements; i++) fa.x[i] = wmma::__float_to_tf32(fa.x[i]);
    for (int i = 0; i < fb.num_elements; i++) fb.x[i] = wmma::__float_to_tf32(fb.x[i]);
    wmma::mma_sync(sum, fa, fb, sum);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_col_major);
}

template <int M, int N, int K, bool CLAMP = false, class T, class Sum>
__device__ void tile(const T* a, const T* b, Sum* c) {
    wmma::fragment<wmma::matrix_a, M, N, K, T, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, T, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> sum;
    wmma::load_matrix_sync(sum, c, N, wmma::mem_row_major);
    wmma::load_matrix_sync(fa, a, K);
    wmma::load_matrix_sync(fb, b, K);
    if constexpr (CLAMP) wmma::mma_sync(sum, fa, fb, sum, true);
    else wmma::mma_sync(sum, fa, fb, sum);
    wmma::store_matrix_sync(c, sum, N, wmma::mem_row_major);
}
extern "C" __global__ void tile_s8(const signed char* a, const signed char* b, int* c) {
    tile<32, 8, 16, true>(a, b, c);
}
extern "C" __global__ void tile_f64(const double* a, const double* b, double* c) {
    tile<8, 8, 4>(a, b, c);
}
extern "C" __global__ void tile_bf16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
    tile<8, 32, 16>(a, b, c);
}
extern "C" __global__ void tile_half(const half* a, const half* b, half* c) {
    tile<16, 16, 16>(a, b, c);
}

__device__ void step(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// c = a b for A by rows and B by columns, through ldmatrix. One warp for each 16 x 8 of c.
extern "C" __global__ void gemm_inline(const half* a, const half* b, float* c, int n, int k) {
    __shared__ __align__(16) half ta[16 * 16], tb[8 * 16];
    const int row = blockIdx.y * 16, column = blockIdx.x * 8, lane = threadIdx.x;
    float sum[4] = {};
    for (int i = 0; i < k; i += 16) {
        for (int e = lane; e < 256; e += 32) ta[e] = a[(row + e / 16) * k + i + e % 16];
        for (int e = lane; e < 128; e += 32) tb[e] = b[(column + e / 16) * k + i + e % 16];
        __syncwarp();
        unsigned fa[4], fb[2];
        const unsigned at = __cvta_generic_to_shared(ta + lane % 16 * 16 + lane / 16 * 8);
        const unsigned bt = __cvta_generic_to_shared(tb + lane % 8 * 16 + lane / 8 % 2 * 8);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3]) : "r"(at));
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                     : "=r"(fb[0]), "=r"(fb[1]) : "r"(bt));
        step(sum, fa, fb);
        __syncwarp();
    }
    for (int e = 0; e < 4; e++)
        c[(row + lane / 4 + e / 2 * 8) * n + column + lane % 4 * 2 + e % 2] = sum[e];
}

// Wrong: the upper lanes do not take part.
extern "C" __global__ void half_a_warp(const unsigned* a, float* c) {
    float sum[4] = {};
    const unsigned fa[4] = {a[0], a[1], a[2], a[3]}, fb[2] = {a[4], a[5]};
    if (threadIdx.x < 16) step(sum, fa, fb);
    for (int e = 0; e < 4; e++) c[threadIdx.x * 4 + e] = sum[e];
}

// Wrong: the last row that is loaded lies beyond the matrix.
extern "C" __global__ void one_row_too_far(const double* a, const double* b, double* c) {
    tile<8, 8, 4>(a + 4, b, c);
}
