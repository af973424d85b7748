// parent: y = x + 1 by a kernel that it launches itself. It does not build: see child_launch.py.
// bytes: 8 an element; FLOP: 1 an element; shapes: x and y hold 64 float32.
__global__ void child(float* y, const float* x) { y[threadIdx.x] = x[threadIdx.x] + 1.0f; }

extern "C" __global__ void parent(float* y, const float* x) { child<<<1, 64>>>(y, x); }
