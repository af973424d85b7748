// Copies from global to shared memory that are on their way while a thread goes on (cp.async).
#pragma once

#include "assay.cuh"

namespace assay {

// 16 bytes from global to shared memory, while the thread goes on; below sm_80 it waits.
__device__ __forceinline__ void copy_vector(unsigned to, const void* from) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to),
               "l"(__cvta_generic_to_global(from))
               : "memory");
#else
  *static_cast<uint4*>(__cvta_shared_to_generic(to)) = *static_cast<const uint4*>(from);
#endif
}
// The same, or 16 bytes of zeros where nothing is to be read: `from` is then not looked at.
__device__ __forceinline__ void copy_vector_or_zeros(unsigned to, const void* from, bool inside) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
               "l"(__cvta_generic_to_global(from)), "r"(inside ? 16 : 0)
               : "memory");
#else
  *static_cast<uint4*>(__cvta_shared_to_generic(to)) =
      inside ? *static_cast<const uint4*>(from) : make_uint4(0, 0, 0, 0);
#endif
}
// What was sent for since the last call is one group; await_copies<LATER> waits for all groups but
// the last LATER.
__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int LATER>
__device__ __forceinline__ void await_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory");
#endif
}

}  // namespace assay
