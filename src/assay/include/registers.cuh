// What the compiler may not keep in registers.
#pragma once

#include "assay.cuh"

namespace assay {

// A vector as it was loaded, as if it were new: what was widened of it before must be widened again.
// Of 2 bytes an element the widened one is twice the registers, and widening is one operation.
template <typename T>
__device__ __forceinline__ void widen_anew(Raw& raw) {
  if constexpr (sizeof(T) == 2)
    asm volatile("" : "+r"(raw[0]), "+r"(raw[1]), "+r"(raw[2]), "+r"(raw[3]));
}

}  // namespace assay
