// The backward of a native call: keeps what the gradient saves, and asks the rules in Python.
//
// It behaves as a torch.autograd.Function with the rules of autograd.py: saved tensors know when
// they were changed in place, hooks on them are called, a graph is freed after its backward.
#pragma once

#include "plan.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/utils/object_ptr.h>

#include <c10/util/SmallVector.h>

#include <memory>
#include <type_traits>

namespace torch::autograd {
TORCH_API void deleteNode(Node*);  // of torch before 2.12; used there alone
}

namespace assay {

// An operator, as far as its backward needs it. Shared with graphs that outlive the operator.
struct Rules {
  std::string name;
  PyObject* backward = nullptr;  // backward(noted, saved, needs, grads) -> gradients of all inputs
  std::vector<bool> tensors;     // which inputs are tensors
  ~Rules() {
    if (!Py_IsInitialized()) return;
    const auto state = PyGILState_Ensure();
    Py_XDECREF(backward);
    PyGILState_Release(state);
  }
};

using Tensors = c10::SmallVector<const at::Tensor*, 8>;  // null for inputs that are no tensors
using Outputs = c10::SmallVector<at::Tensor, 4>;

struct Holding {  // the GIL
  PyGILState_STATE state = PyGILState_Ensure();
  ~Holding() { PyGILState_Release(state); }
};

[[noreturn]] inline void raise_python_error() {
  python_error found;
  found.persist();
  throw std::move(found);
}

struct Backward : torch::autograd::Node {
  std::shared_ptr<const Rules> rules;
  std::shared_ptr<const Plan> plan;
  std::vector<torch::autograd::SavedVariable> saved;
  c10::SmallVector<bool, 8> needs;  // which inputs required a gradient at the call
  bool freed = false;

  std::string name() const override { return rules->name + "Backward"; }

  void compiled_args(torch::autograd::CompiledNodeArgs&) const override {
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, name(), ": compiled autograd can't read a native call; say "
        "assay.operators.native.switch(False) before the forward");
  }

  // The GIL guards `saved`, as it does in the node of a torch.autograd.Function: a lock of our own
  // and the GIL, taken in turns by two threads, could wait for one another.
  void release_variables() override {
    if (!Py_IsInitialized()) return;
    Holding gil;
    for (auto& one : saved) one.reset_data();
    freed = true;
  }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    Holding gil;
    TORCH_CHECK(!freed, torch::autograd::ERR_BACKWARD_TWICE);
    THPObjectPtr kept(PyTuple_New(static_cast<Py_ssize_t>(saved.size())));
    if (!kept) raise_python_error();
    for (size_t i = 0; i < saved.size(); ++i) {
      PyTuple_SET_ITEM(kept.get(), i, wrapped(saved[i].unpack(getptr())));
    }
    THPObjectPtr wants(PyTuple_New(static_cast<Py_ssize_t>(needs.size())));
    if (!wants) raise_python_error();
    for (size_t i = 0; i < needs.size(); ++i) {
      PyTuple_SET_ITEM(wants.get(), i, Py_NewRef(needs[i] ? Py_True : Py_False));
    }
    THPObjectPtr given(PyTuple_New(static_cast<Py_ssize_t>(grads.size())));
    if (!given) raise_python_error();
    for (size_t i = 0; i < grads.size(); ++i) {
      // Where nobody used an output its gradient is zeros; one of integers has none.
      const auto& of = input_metadata(i);
      const bool none = !grads[i].defined() && of.was_default_constructed();
      PyTuple_SET_ITEM(
          given.get(), i,
          none ? Py_NewRef(Py_None) : wrapped(grads[i].defined() ? grads[i] : of.zeros_like()));
    }
    THPObjectPtr made(PyObject_CallFunctionObjArgs(
        rules->backward, plan->noted, kept.get(), wants.get(), given.get(), nullptr));
    if (!made) raise_python_error();
    return gradients(made.get());
  }

 private:
  static PyObject* wrapped(const at::Tensor& value) {
    PyObject* made = THPVariable_Wrap(value);
    if (made == nullptr) raise_python_error();
    return made;
  }

  // Of the inputs that are tensors, as autograd wants them.
  torch::autograd::variable_list gradients(PyObject* made) const {
    const auto count = static_cast<Py_ssize_t>(rules->tensors.size());
    TORCH_CHECK(PyTuple_Check(made) && PyTuple_GET_SIZE(made) == count, name(), ": not ", count,
                " gradients");
    torch::autograd::variable_list found;
    found.reserve(num_outputs());
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* one = PyTuple_GET_ITEM(made, i);
      if (!rules->tensors[i]) continue;
      if (one == Py_None) {
        found.emplace_back();
        continue;
      }
      TORCH_CHECK(THPVariable_Check(one), name(), ": gradient ", i, " is no tensor");
      found.emplace_back(THPVariable_Unpack(one));
    }
    return found;
  }
};

// How this torch holds nodes: by std::shared_ptr, and from 2.12 or so by an intrusive pointer.
using NodePtr = decltype(torch::autograd::Edge::function);

template <typename Ptr>
std::pair<Ptr, Backward*> fresh() {
  if constexpr (std::is_same_v<Ptr, std::shared_ptr<torch::autograd::Node>>) {
    auto* made = new Backward();
    return {Ptr(made, torch::autograd::deleteNode), made};
  } else {
    auto made = c10::make_intrusive<Backward>();
    auto* plain = made.get();
    return {Ptr(std::move(made)), plain};
  }
}

// Ties outputs to a node that keeps what the gradient saves. The GIL is held.
inline void remember(
    const std::shared_ptr<const Rules>& rules,
    const std::shared_ptr<const Plan>& plan,
    const Tensors& inputs,
    Outputs& outputs) {
  auto [owner, node] = fresh<NodePtr>();
  node->rules = rules;
  node->plan = plan;
  torch::autograd::edge_list edges;
  edges.reserve(inputs.size());
  node->needs.reserve(inputs.size());
  for (const auto* x : inputs) {
    node->needs.push_back(x != nullptr && x->requires_grad());
    if (x != nullptr) edges.push_back(torch::autograd::impl::gradient_edge(*x));
  }
  node->set_next_edges(std::move(edges));
  for (auto& y : outputs) {
    if (torch::autograd::isDifferentiableType(y.scalar_type())) {
      const auto place = node->add_input_metadata(y);
      torch::autograd::impl::set_gradient_edge(y, {owner, place});
    } else {
      node->add_input_metadata(torch::autograd::Node::undefined_input());
    }
  }
  node->saved.reserve(plan->saves.size());
  for (const auto& one : plan->saves) {
    const at::Tensor& value = one.output ? outputs[one.place] : *inputs[one.place];
    const bool own = one.output && torch::autograd::isDifferentiableType(value.scalar_type());
    node->saved.emplace_back(value, own);
  }
}

}  // namespace assay
