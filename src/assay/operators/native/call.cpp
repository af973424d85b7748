// A whole ordinary call of an operator without Python: guards, look-up, outputs, launches, autograd.
//
// `Table` belongs to one operator. `table.call(args)` answers what direct.py's own function would:
// the outputs, or `elsewhere` where the dispatcher has to be asked. A form that it has no plan for,
// and a call while another device is current, it hands to that function, which is in Python.

#include "forms.h"
#include "given.h"

#include <c10/core/GradMode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace assay {
namespace {

struct Table {
  PyObject_HEAD
  State* state;
};

struct Released {  // the GIL: a full queue of launches waits, and other threads go on
  PyThreadState* state = PyEval_SaveThread();
  ~Released() { PyEval_RestoreThread(state); }
};

// What the driver said of the first launch that it refused, and which that was.
struct Refusal {
  int status = 0;
  size_t launch = 0;
};

Refusal launched(const State& s, const Plan& plan, size_t from, const void* const* addresses) {
  void* stream = nullptr;
  TORCH_CHECK(s.driver.stream(plan.index, &stream) == 0, "no current stream of device ", plan.index);
  for (size_t i = from; i < plan.launches.size(); ++i) {
    const int status = plan.launches[i](s.driver, addresses, stream);
    if (status != 0) return {status, i};
  }
  return {};
}

// Raises what `refused` raises, and gives false.
bool run(const State& s, const Plan& plan, const Inputs& inputs, Outputs& outputs) {
  const void* addresses[MOST_TENSORS];
  Refusal found;
  {
    Released gil;
    size_t count = 0;
    for (const auto& one : plan.outputs) {
      outputs.push_back(one.made(plan.device));
      addresses[count++] = outputs.back().mutable_data_ptr();
    }
    for (const auto* x : inputs.tensors) {
      if (x != nullptr) addresses[count++] = x->const_data_ptr();
    }
    found = launched(s, plan, 0, addresses);
  }
  if (found.status == INVALID_CONTEXT) {
    PyObject* done = PyObject_CallNoArgs(plan.launches[found.launch].here);
    if (done == nullptr) return false;
    Py_DECREF(done);
    Released gil;
    found = launched(s, plan, found.launch, addresses);
  }
  if (found.status == 0) return true;
  PyObject* none = PyObject_CallFunction(
      s.refused, "si", plan.launches[found.launch].name.c_str(), found.status);
  if (none != nullptr) {
    Py_DECREF(none);
    PyErr_SetString(PyExc_SystemError, "a refused launch was not told");
  }
  return false;
}

PyObject* answer(Outputs& outputs) {
  if (outputs.size() == 1) return THPVariable_Wrap(std::move(outputs[0]));
  THPObjectPtr made(PyTuple_New(static_cast<Py_ssize_t>(outputs.size())));
  if (!made) return nullptr;
  for (size_t i = 0; i < outputs.size(); ++i) {
    PyObject* one = THPVariable_Wrap(std::move(outputs[i]));
    if (one == nullptr) return nullptr;
    PyTuple_SET_ITEM(made.get(), i, one);
  }
  return made.release();
}

PyObject* guarded(PyObject* (*body)(Table*, PyObject*), Table* self, PyObject* args) {
  try {
    return body(self, args);
  } catch (...) {  // as torch says it: torch.OutOfMemoryError and so on
    torch::translate_exception_to_python(std::current_exception());
    return nullptr;
  }
}

PyObject* called(Table* self, PyObject* args) {
  State& s = *self->state;
  Inputs inputs;
  const auto found = s.ordinary.thread_is() ? read(s, args, inputs, true) : Found::elsewhere;
  if (found == Found::elsewhere) return Py_NewRef(s.elsewhere);
  const bool gradient = inputs.wants && c10::GradMode::is_enabled();
  if (gradient && !s.has_gradient) return Py_NewRef(s.elsewhere);
  const Kept plan = found == Found::call ? looked_up(s, inputs.form) : nullptr;
  if (plan == nullptr || s.driver.current() != plan->index) {
    return PyObject_CallOneArg(s.missed, args);
  }
  Outputs outputs;
  if (!run(s, *plan, inputs, outputs)) return nullptr;
  if (gradient) remember(s.rules, plan, inputs.tensors, outputs);
  return answer(outputs);
}

PyObject* call(PyObject* self, PyObject* args) {
  return guarded(called, reinterpret_cast<Table*>(self), args);
}

PyObject* asked(Table* self, PyObject* args) {
  State& s = *self->state;
  Inputs inputs;
  const auto found = s.ordinary.thread_is() ? read(s, args, inputs, true) : Found::elsewhere;
  if (found == Found::elsewhere) return PyUnicode_FromString("elsewhere");
  const Kept plan = found == Found::call ? looked_up(s, inputs.form) : nullptr;
  if (plan == nullptr) return PyUnicode_FromString("missed");
  return PyUnicode_FromString(s.driver.current() == plan->index ? "native" : "device");
}

PyObject* way(PyObject* self, PyObject* args) {
  return guarded(asked, reinterpret_cast<Table*>(self), args);
}

// (args, device index, outputs, launches, saves, noted, owner): whether the form is served from now on.
PyObject* added(Table* self, PyObject* given) {
  State& s = *self->state;
  try {
    Inputs inputs;
    if (read(s, item(given, 0), inputs, false) != Found::call) Py_RETURN_FALSE;
    const auto plan = std::make_shared<Plan>();
    plan->form.assign(inputs.form.words, inputs.form.words + inputs.form.count);
    for (const auto* x : inputs.tensors) {
      if (x != nullptr) plan->device = x->device().type();
    }
    plan->index = static_cast<int>(whole(item(given, 1)));
    PyObject *outputs = item(given, 2), *launches = item(given, 3), *saves = item(given, 4);
    for (Py_ssize_t i = 0; i < length(outputs); ++i) {
      plan->outputs.push_back(output_of(item(outputs, i)));
    }
    for (Py_ssize_t i = 0; i < length(launches); ++i) {
      plan->launches.push_back(launch_of(item(launches, i)));
    }
    for (Py_ssize_t i = 0; i < length(saves); ++i) {
      PyObject* one = item(saves, i);
      plan->saves.push_back({item(one, 0) == Py_True, static_cast<int>(whole(item(one, 1)))});
    }
    plan->noted = Py_NewRef(item(given, 5));
    plan->owner = Py_NewRef(item(given, 6));
    if (!fits(*plan, inputs.tensors.size()) || looked_up(s, inputs.form)) Py_RETURN_FALSE;
    keep(s, plan);
    Py_RETURN_TRUE;
  } catch (const Wrong&) {
    return nullptr;
  }
}

PyObject* add(PyObject* self, PyObject* given) {
  return guarded(added, reinterpret_cast<Table*>(self), given);
}

int32_t current_gpu() {
  return c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA)->getDevice().index();
}

void fill(State& s, PyObject* given) {
  s.kinds = text(item(given, 0));
  auto rules = std::make_shared<Rules>();
  rules->name = text(item(given, 1));
  for (const char kind : s.kinds) rules->tensors.push_back(kind == 't');
  PyObject* threads = item(given, 2);
  for (Py_ssize_t i = 0; i < length(threads); ++i) {
    PyObject* one = item(threads, i);
    s.ordinary.threads.emplace_back(whole(item(one, 0)), whole(item(one, 1)));
  }
  PyObject* tensors = item(given, 3);
  for (Py_ssize_t i = 0; i < length(tensors); ++i) {
    s.ordinary.tensors.push_back(whole(item(tensors, i)));
  }
  PyObject* types = item(given, 4);
  for (Py_ssize_t i = 0; i < length(types); ++i) {
    s.ordinary.types.push_back(reinterpret_cast<PyTypeObject*>(Py_NewRef(item(types, i))));
  }
  s.ordinary.forward_ad = Py_NewRef(item(given, 5));
  s.ordinary.level = PyUnicode_InternFromString("_current_level");
  s.missed = Py_NewRef(item(given, 6));
  s.elsewhere = Py_NewRef(item(given, 7));
  s.refused = Py_NewRef(item(given, 8));
  PyObject* backward = item(given, 9);
  s.has_gradient = backward != Py_None;
  rules->backward = Py_NewRef(backward);
  s.rules = rules;
  PyObject* addresses = item(given, 10);
  s.driver.launch = reinterpret_cast<LaunchKernel>(whole(item(addresses, 0)));
  s.driver.stream = reinterpret_cast<StreamOf>(whole(item(addresses, 1)));
  const auto current = whole(item(addresses, 2));
  s.driver.current = current != 0 ? reinterpret_cast<Current>(current) : current_gpu;
  s.most = whole(item(given, 11));
}

PyObject* table_new(PyTypeObject* type, PyObject* args, PyObject*) {
  auto* self = reinterpret_cast<Table*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->state = new State();
  try {
    fill(*self->state, args);
  } catch (const Wrong&) {
    Py_DECREF(self);
    return nullptr;
  }
  return reinterpret_cast<PyObject*>(self);
}

int table_clear(PyObject* object) {
  auto* s = reinterpret_cast<Table*>(object)->state;
  Py_CLEAR(s->missed);  // a function that holds this table again
  return 0;
}

int table_traverse(PyObject* object, visitproc visit, void* arg) {
  auto* s = reinterpret_cast<Table*>(object)->state;
  if (s != nullptr) Py_VISIT(s->missed);
  return 0;
}

void table_free(PyObject* object) {
  PyObject_GC_UnTrack(object);
  auto* s = reinterpret_cast<Table*>(object)->state;
  Py_XDECREF(s->missed);
  Py_XDECREF(s->elsewhere);
  Py_XDECREF(s->refused);
  Py_XDECREF(s->ordinary.forward_ad);
  Py_XDECREF(s->ordinary.level);
  for (auto* type : s->ordinary.types) Py_XDECREF(type);
  delete s;
  Py_TYPE(object)->tp_free(object);
}

PyMethodDef METHODS[] = {
    {"call", call, METH_O, "The outputs of a call with this tuple of inputs, or `elsewhere`."},
    {"way", way, METH_O, "`native`, `missed`, `device` (another is current) or `elsewhere`."},
    {"add", add, METH_O, "Keeps a plan; whether it is served from now on. See table.py."},
    {nullptr, nullptr, 0, nullptr}};

PyTypeObject TYPE = {PyVarObject_HEAD_INIT(nullptr, 0)};

PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "assay_native", "Calls of operators without Python.", -1, nullptr};

}  // namespace
}  // namespace assay

PyMODINIT_FUNC PyInit_assay_native() {
  using namespace assay;
  TYPE.tp_name = "assay_native.Table";
  TYPE.tp_basicsize = sizeof(Table);
  TYPE.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  TYPE.tp_new = table_new;
  TYPE.tp_dealloc = table_free;
  TYPE.tp_traverse = table_traverse;
  TYPE.tp_clear = table_clear;
  TYPE.tp_methods = METHODS;
  if (PyType_Ready(&TYPE) != 0) return nullptr;
  PyObject* module = PyModule_Create(&MODULE);
  if (module == nullptr) return nullptr;
  if (PyModule_AddObjectRef(module, "Table", reinterpret_cast<PyObject*>(&TYPE)) != 0) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
