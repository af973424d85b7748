// branches: y[i] = 2^16 x[i], each element by one of `paths` equal ways.
//
// Idea: a warp has one program counter for the lanes that agree; where they part, the hardware runs
// each side with the other lanes switched off. So the time of a warp is the sum over the different
// paths of its lanes. bytes: 8 an element; FLOP: 16 an element; shapes: x and y hold n float32.

// Which path: a chain of comparisons, so that each path is code of its own.
__device__ __forceinline__ float walked(float v, int path, float two) {
    for (int p = 0; p < 32; p++)
        if (p == path) {
#pragma unroll 1
            for (int i = 0; i < 16; i++) v *= two;
        }
    return v;
}

extern "C" __global__ void per_lane(float* y, const float* x, long long n, int paths, float two) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = walked(x[i], static_cast<int>(i % paths), two);
}

extern "C" __global__ void per_warp(float* y, const float* x, long long n, int paths, float two) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = walked(x[i], static_cast<int>(i / 32 % paths), two);
}
