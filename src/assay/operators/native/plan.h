// What a call with inputs of one form does: outputs to allocate, launches packed but for pointers.
#pragma once

#include <Python.h>

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CPUAllocator.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace assay {

constexpr size_t MOST_BYTES = 4096;   // of packed arguments: what every GPU takes
constexpr size_t MOST_WORDS = 256;    // of a form, and of the arguments of a launch
constexpr size_t MOST_TENSORS = 64;   // inputs and outputs of a call
constexpr int INVALID_CONTEXT = 201;  // a thread that is new to CUDA

// cuLaunchKernel, by its address: no header of CUDA is needed.
using LaunchKernel = int (*)(
    void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
// aoti_torch_get_current_cuda_stream: the stream that torch has made the current one.
using StreamOf = int32_t (*)(int32_t, void**);
// The index of the device that is current in this thread.
using Current = int32_t (*)();

struct Driver {
  LaunchKernel launch = nullptr;
  StreamOf stream = nullptr;
  Current current = nullptr;
};

struct Launch {
  void* handle = nullptr;
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, shared = 0;
  std::string name;
  std::string bytes;                          // the arguments, with room for pointers
  std::vector<std::pair<int, int>> pointers;  // which 8 bytes, and which tensor's address
  std::vector<int> offsets;                   // where each argument begins
  PyObject* here = nullptr;                   // makes the device the current one of a thread

  // What the driver says. The arguments are on the stack, so that threads share nothing.
  int operator()(const Driver& driver, const void* const* addresses, void* stream) const {
    alignas(16) char packed[MOST_BYTES];
    void* table[MOST_WORDS];
    std::memcpy(packed, bytes.data(), bytes.size());
    for (const auto& [word, place] : pointers) {
      std::memcpy(packed + 8 * word, addresses + place, 8);
    }
    for (size_t i = 0; i < offsets.size(); ++i) table[i] = packed + offsets[i];
    return driver.launch(
        handle, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream, table, nullptr);
  }
};

struct Output {
  std::vector<int64_t> shape;
  at::ScalarType dtype = at::kFloat;

  // As at::empty makes it, without asking the dispatcher; contiguous.
  at::Tensor made(c10::DeviceType device) const {
    const bool gpu = device == c10::DeviceType::CUDA;
    c10::Allocator* allocator =
        gpu ? at::detail::getCUDAHooks().getCUDADeviceAllocator() : c10::GetCPUAllocator();
    const c10::DispatchKeySet keys(gpu ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU);
    return at::Tensor(at::detail::empty_generic(shape, allocator, keys, dtype, std::nullopt));
  }
};

struct Save {
  bool output = false;  // of the outputs, else of the inputs
  int place = 0;
};

struct Plan {
  std::vector<int64_t> form;
  c10::DeviceType device = c10::DeviceType::CUDA;
  int index = 0;  // of the device
  std::vector<Output> outputs;
  std::vector<Launch> launches;
  std::vector<Save> saves;    // the tensors that a backward reads again
  PyObject* noted = nullptr;  // what else a backward is told: see table.py
  PyObject* owner = nullptr;  // keeps what the handles of the launches belong to

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {  // maybe on a thread of autograd, which holds no GIL
    if (!Py_IsInitialized()) return;
    const auto state = PyGILState_Ensure();
    Py_XDECREF(noted);
    Py_XDECREF(owner);
    for (auto& launch : launches) Py_XDECREF(launch.here);
    PyGILState_Release(state);
  }
};

inline uint64_t hashed(const int64_t* words, size_t count) {
  uint64_t found = 0x9e3779b97f4a7c15ull + count;
  for (size_t i = 0; i < count; ++i) {
    found = (found ^ static_cast<uint64_t>(words[i])) * 0xff51afd7ed558ccdull;
    found ^= found >> 32;
  }
  return found;
}

}  // namespace assay
