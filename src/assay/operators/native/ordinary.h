// Whether a call is an ordinary one: the questions of ordinary.py, asked without Python.
//
// What is usual (key sets of threads and of tensors, types) is what ordinary.py found; only the
// asking is written twice. tests/test_direct.py attacks both.
#pragma once

#include <Python.h>

#include <ATen/Context.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace torch::profiler::impl {
TORCH_API bool profilerEnabled();  // its own header brings all of the profiler's
}

namespace assay {

struct Ordinary {
  std::vector<std::pair<uint64_t, uint64_t>> threads;  // included and excluded keys
  std::vector<uint64_t> tensors;                       // key sets
  std::vector<PyTypeObject*> types;
  PyObject* forward_ad = nullptr;  // the names of torch.autograd.forward_ad
  PyObject* level = nullptr;       // "_current_level"

  // Whether nothing is switched on in this thread that would see or change a call.
  bool thread_is() const {
    const auto keys = c10::impl::tls_local_dispatch_key_set();
    const std::pair<uint64_t, uint64_t> found{keys.included_.raw_repr(), keys.excluded_.raw_repr()};
    return std::find(threads.begin(), threads.end(), found) != threads.end() &&
        at::impl::PythonTorchFunctionTLS::stack_len() == 0 && !is_dual() &&
        !torch::profiler::impl::profilerEnabled() && !at::globalContext().deterministicAlgorithms();
  }

  // The tensor in plain memory of the CPU or a GPU, of no type of its own; else none.
  const at::Tensor* tensor_of(PyObject* value) const {
    if (std::find(types.begin(), types.end(), Py_TYPE(value)) == types.end()) return nullptr;
    const at::Tensor& found = THPVariable_Unpack(value);
    const uint64_t keys = found.key_set().raw_repr();
    return std::find(tensors.begin(), tensors.end(), keys) == tensors.end() ? nullptr : &found;
  }

 private:
  bool is_dual() const {
    PyObject* now = PyDict_GetItemWithError(forward_ad, level);  // borrowed
    if (now == nullptr) {  // gone from this torch: then nothing is known
      PyErr_Clear();
      return true;
    }
    const long found = PyLong_AsLong(now);
    if (found == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      return true;
    }
    return found >= 0;
  }
};

}  // namespace assay
