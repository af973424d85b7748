// y[i] = x[i + 1], the last one kept, by one block through shared memory: right, and wrong by one
// barrier, one branch or one word at a time.
// shapes x, y: (n), n <= 256 threads. bytes 8 n.

extern "C" __global__ void shift(float* y, const float* x, int n) {
    __shared__ float s[256];
    const int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    const float next = t + 1 < n ? s[t + 1] : s[t];
    __syncthreads();
    s[t] = next;
    y[t] = s[t];
}

extern "C" __global__ void no_first_barrier(float* y, const float* x, int n) {
    __shared__ float s[256];
    const int t = threadIdx.x;
    s[t] = x[t];
    const float next = t + 1 < n ? s[t + 1] : s[t];
    __syncthreads();
    y[t] = next;
}

extern "C" __global__ void no_second_barrier(float* y, const float* x, int n) {
    __shared__ float s[256];
    const int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    const float next = t + 1 < n ? s[t + 1] : s[t];
    s[t] = next;
    y[t] = s[t];
}

extern "C" __global__ void barrier_in_branch(float* y, const float* x, int n) {
    __shared__ float s[256];
    const int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    float next = s[t];
    if (t + 1 < n) {
        next = s[t + 1];
        __syncthreads();
    }
    y[t] = next;
}

extern "C" __global__ void unwritten(float* y, const float* x, int n) {
    __shared__ float s[257];
    const int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    y[t] = s[t + 1];
}

// Four blocks write the same words with different values; the last one is right.
extern "C" __global__ void every_block(float* y, const float* x, int n) {
    const int t = threadIdx.x;
    const float next = t + 1 < n ? x[t + 1] : x[t];
    y[t] = blockIdx.x == gridDim.x - 1 ? next : -next;
}

// A lane that has left is asked for its word.
extern "C" __global__ void absent_lane(float* y, const float* x, int n) {
    const int t = threadIdx.x;
    if ((t & 31) == 31) {
        y[t] = t + 1 < n ? x[t + 1] : x[t];
        return;
    }
    y[t] = __shfl_down_sync(~0u, x[t], 1);
}
