// What Python hands over (table.py), read: tuples of numbers, names, dtypes and functions.
#pragma once

#include "plan.h"

#include <torch/csrc/Dtype.h>

namespace assay {

struct Wrong {};  // a Python error is set

inline PyObject* item(PyObject* sequence, Py_ssize_t i) {
  if (!PyTuple_Check(sequence) || i >= PyTuple_GET_SIZE(sequence)) {
    PyErr_SetString(PyExc_TypeError, "assay_native: a tuple was expected, or a longer one");
    throw Wrong();
  }
  return PyTuple_GET_ITEM(sequence, i);
}

inline Py_ssize_t length(PyObject* sequence) {
  if (!PyTuple_Check(sequence)) {
    PyErr_SetString(PyExc_TypeError, "assay_native: a tuple was expected");
    throw Wrong();
  }
  return PyTuple_GET_SIZE(sequence);
}

inline uint64_t whole(PyObject* value) {
  const auto found = PyLong_AsUnsignedLongLong(value);
  if (PyErr_Occurred()) throw Wrong();
  return found;
}

inline std::string text(PyObject* value) {
  const char* found = PyUnicode_AsUTF8(value);
  if (found == nullptr) throw Wrong();
  return found;
}

// (handle, grid, block, shared, name, bytes, pointers, offsets, here)
inline Launch launch_of(PyObject* given) {
  Launch made;
  made.handle = reinterpret_cast<void*>(whole(item(given, 0)));
  for (int i = 0; i < 3; ++i) {
    made.grid[i] = static_cast<unsigned>(whole(item(item(given, 1), i)));
    made.block[i] = static_cast<unsigned>(whole(item(item(given, 2), i)));
  }
  made.shared = static_cast<unsigned>(whole(item(given, 3)));
  made.name = text(item(given, 4));
  char* bytes = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(item(given, 5), &bytes, &size) != 0) throw Wrong();
  made.bytes.assign(bytes, static_cast<size_t>(size));
  PyObject* pointers = item(given, 6);
  for (Py_ssize_t i = 0; i < length(pointers); ++i) {
    PyObject* one = item(pointers, i);
    made.pointers.emplace_back(whole(item(one, 0)), whole(item(one, 1)));
  }
  PyObject* offsets = item(given, 7);
  for (Py_ssize_t i = 0; i < length(offsets); ++i) {
    made.offsets.push_back(static_cast<int>(whole(item(offsets, i))));
  }
  made.here = Py_NewRef(item(given, 8));
  return made;
}

inline Output output_of(PyObject* given) {
  Output made;
  PyObject* shape = item(given, 0);
  for (Py_ssize_t i = 0; i < length(shape); ++i) {
    made.shape.push_back(static_cast<int64_t>(whole(item(shape, i))));
  }
  PyObject* dtype = item(given, 1);
  if (!THPDtype_Check(dtype)) {
    PyErr_SetString(PyExc_TypeError, "assay_native: a torch.dtype was expected");
    throw Wrong();
  }
  made.dtype = reinterpret_cast<THPDtype*>(dtype)->scalar_type;
  return made;
}

// Whether it fits the room that a call has on the stack.
inline bool fits(const Plan& plan, size_t inputs) {
  bool all = plan.outputs.size() + inputs <= MOST_TENSORS;
  for (const auto& one : plan.launches) {
    all = all && one.bytes.size() <= MOST_BYTES && one.offsets.size() <= MOST_WORDS;
    for (const auto& [word, place] : one.pointers) {
      all = all && 8 * static_cast<size_t>(word) + 8 <= one.bytes.size() &&
          static_cast<size_t>(place) < plan.outputs.size() + inputs;
    }
  }
  return all;
}

}  // namespace assay
