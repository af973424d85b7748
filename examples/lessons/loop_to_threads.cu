// affine: y[i] = w * x[i] + b for n float32. bytes: 8 an element; FLOP: 2 an element.
//
// __global__   a kernel: runs on the GPU, is launched from the host with a grid and a block.
// __device__   runs on the GPU and is called from there; a launch of it is an error.
// __host__     runs on the CPU; it is what a function without any of these words is. Both words
//              together compile it twice, once for each. NVRTC compiles for the GPU alone: the host
//              half of such a function is only parsed here.

__host__ __device__ __forceinline__ float line(float x, float w, float b) { return w * x + b; }

// Step 2. The loop as it was, in one of the card's many thousand threads.
extern "C" __global__ void one_thread(float* y, const float* x, long long n, float w, float b) {
    for (long long i = 0; i < n; i++) y[i] = line(x[i], w, b);
}

// Step 3. The loop is dealt out. Begin at your own number, go on by the number of all threads:
// neighbours touch neighbours, and the grid need not know n.
extern "C" __global__ void strided(float* y, const float* x, long long n, float w, float b) {
    const long long first = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    for (long long i = first; i < n; i += (long long)gridDim.x * blockDim.x) y[i] = line(x[i], w, b);
}

// Step 4. One thread an element. The end of the loop is an `if`: the last block may reach beyond n.
extern "C" __global__ void naive(float* y, const float* x, long long n, float w, float b) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = line(x[i], w, b);
}
