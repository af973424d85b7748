// strides: y[i] = x[i * stride].
//
// Idea: none, it is what to avoid. Lane l reads 4 bytes at 4 * stride * l: the warp's request
// touches min(32, 4 * stride) sectors of 32 bytes, where four would do. bytes: 4 written and
// 4 * min(stride, 8) read an element; FLOP: 0; shapes: y holds n float32, x n * stride.
extern "C" __global__ void strided(float* y, const float* x, long long n, int stride) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i * stride];
}
