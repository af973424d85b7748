// The form of a call's inputs, and the plans that are kept by it.
//
// A form is what running.py keeps plans by (dtypes, devices, shapes, strides, numbers) as a row of
// 8-byte words, hashed once and compared exactly.
#pragma once

#include "node.h"
#include "ordinary.h"
#include "plan.h"

#include <deque>
#include <unordered_map>

namespace assay {

using Kept = std::shared_ptr<const Plan>;

struct State {
  std::string kinds;  // of each input: t(ensor), b(ool), i(nt), f(loat)
  Ordinary ordinary;
  Driver driver;
  std::shared_ptr<Rules> rules;
  bool has_gradient = false;
  size_t most = 0;  // plans
  PyObject *missed = nullptr, *elsewhere = nullptr, *refused = nullptr;
  std::unordered_multimap<uint64_t, Kept> plans;
  std::deque<Kept> order;  // the oldest first
  Kept last;               // a model calls with the same form again and again
};

struct Form {
  int64_t words[MOST_WORDS];
  size_t count = 0;
  bool fits = true;
  void add(int64_t word) {
    if (count < MOST_WORDS) words[count++] = word;
    else fits = false;
  }
  void add(c10::IntArrayRef many) {
    for (const auto one : many) add(one);
  }
};

enum class Found { call, elsewhere, missed };

// One call's inputs, as far as they are asked about.
struct Inputs {
  Form form;
  Tensors tensors;
  bool wants = false;  // whether one requires a gradient
};

inline void add_tensor(Form& form, const at::Tensor& x) {
  const auto device = x.device();
  form.add(
      static_cast<int64_t>(x.scalar_type()) | static_cast<int64_t>(device.type()) << 8 |
      static_cast<int64_t>(static_cast<uint8_t>(device.index())) << 16 | x.dim() << 24);
  form.add(x.sizes());
  form.add(x.strides());
}

inline const at::Tensor* dense_of(PyObject* value) {
  if (!THPVariable_Check(value)) return nullptr;
  const at::Tensor& found = THPVariable_Unpack(value);
  return found.layout() == at::kStrided && !found.is_nested() ? &found : nullptr;
}

// plain: whether every tensor has to be a plain one, as in a call; else its form alone is asked for.
inline Found read(const State& s, PyObject* args, Inputs& into, bool plain) {
  if (!PyTuple_CheckExact(args)) return Found::elsewhere;
  if (static_cast<size_t>(PyTuple_GET_SIZE(args)) != s.kinds.size()) return Found::elsewhere;
  auto found = Found::call;
  for (size_t i = 0; i < s.kinds.size(); ++i) {
    PyObject* value = PyTuple_GET_ITEM(args, i);
    const at::Tensor* tensor = nullptr;
    if (s.kinds[i] == 't') {
      tensor = plain ? s.ordinary.tensor_of(value) : dense_of(value);
      if (tensor == nullptr) return Found::elsewhere;
      into.wants = into.wants || tensor->requires_grad();
      add_tensor(into.form, *tensor);
    } else if (s.kinds[i] == 'b') {
      if (!PyBool_Check(value)) return Found::elsewhere;
      into.form.add(value == Py_True);
    } else if (s.kinds[i] == 'f') {
      if (!PyFloat_CheckExact(value)) return Found::elsewhere;
      const double number = PyFloat_AS_DOUBLE(value);
      int64_t bits = 0;  // so that 0.0 and -0.0 are two
      std::memcpy(&bits, &number, sizeof bits);
      into.form.add(bits);
    } else {
      if (!PyLong_CheckExact(value)) return Found::elsewhere;
      int over = 0;
      into.form.add(PyLong_AsLongLongAndOverflow(value, &over));
      if (over != 0) found = Found::missed;
    }
    into.tensors.push_back(tensor);
  }
  return into.form.fits ? found : Found::missed;
}

inline Kept looked_up(State& s, const Form& form) {
  const auto same = [&](const Kept& plan) {
    return plan->form.size() == form.count &&
        std::memcmp(plan->form.data(), form.words, 8 * form.count) == 0;
  };
  if (s.last && same(s.last)) return s.last;
  const auto [first, end] = s.plans.equal_range(hashed(form.words, form.count));
  for (auto each = first; each != end; ++each) {
    if (same(each->second)) return s.last = each->second;
  }
  return nullptr;
}

// Keeps a plan, and lets the oldest go where there are too many.
inline void keep(State& s, const Kept& plan) {
  s.plans.emplace(hashed(plan->form.data(), plan->form.size()), plan);
  s.order.push_back(plan);
  while (s.order.size() > s.most) {
    const Kept old = s.order.front();
    s.order.pop_front();
    const auto [first, end] = s.plans.equal_range(hashed(old->form.data(), old->form.size()));
    for (auto each = first; each != end; ++each) {
      if (each->second == old) {
        s.plans.erase(each);
        break;
      }
    }
  }
}

}  // namespace assay
