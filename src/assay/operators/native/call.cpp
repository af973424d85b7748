// A whole ordinary call of an operator without Python: guards, look-up, outputs, launches, autograd.
//
// `Table` belongs to one operator. `table.call(args)` answers what direct.py's own function would:
// the outputs, or `elsewhere` where the dispatcher has to be asked. A form that it has no plan for,
// and a call while another device is current, it hands to that function, which is in Python.

#include "node.h"
#include "ordinary.h"
#include "plan.h"

#include <c10/core/GradMode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/Dtype.h>

#include <deque>
#include <unordered_map>

namespace assay {
namespace {

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

struct Table {
  PyObject_HEAD
  State* state;
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

void add_tensor(Form& form, const at::Tensor& x) {
  const auto device = x.device();
  form.add(
      static_cast<int64_t>(x.scalar_type()) | static_cast<int64_t>(device.type()) << 8 |
      static_cast<int64_t>(static_cast<uint8_t>(device.index())) << 16 | x.dim() << 24);
  form.add(x.sizes());
  form.add(x.strides());
}

Found read(const State& s, PyObject* args, Inputs& into) {
  if (!PyTuple_CheckExact(args)) return Found::elsewhere;
  if (static_cast<size_t>(PyTuple_GET_SIZE(args)) != s.kinds.size()) return Found::elsewhere;
  auto found = Found::call;
  for (size_t i = 0; i < s.kinds.size(); ++i) {
    PyObject* value = PyTuple_GET_ITEM(args, i);
    const at::Tensor* tensor = nullptr;
    if (s.kinds[i] == 't') {
      tensor = s.ordinary.tensor_of(value);
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

Kept looked_up(State& s, const Form& form) {
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
  const auto found = s.ordinary.thread_is() ? read(s, args, inputs) : Found::elsewhere;
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
  const auto found = s.ordinary.thread_is() ? read(s, args, inputs) : Found::elsewhere;
  if (found == Found::elsewhere) return PyUnicode_FromString("elsewhere");
  const bool has = found == Found::call && looked_up(s, inputs.form) != nullptr;
  return PyUnicode_FromString(has ? "native" : "missed");
}

PyObject* way(PyObject* self, PyObject* args) {
  return guarded(asked, reinterpret_cast<Table*>(self), args);
}

// ---- what Python hands over ----------------------------------------------------------------------

struct Wrong {};  // a Python error is set

PyObject* item(PyObject* sequence, Py_ssize_t i) {
  if (!PyTuple_Check(sequence) || i >= PyTuple_GET_SIZE(sequence)) {
    PyErr_SetString(PyExc_TypeError, "assay_native: a tuple was expected, or a longer one");
    throw Wrong();
  }
  return PyTuple_GET_ITEM(sequence, i);
}

Py_ssize_t length(PyObject* sequence) {
  if (!PyTuple_Check(sequence)) {
    PyErr_SetString(PyExc_TypeError, "assay_native: a tuple was expected");
    throw Wrong();
  }
  return PyTuple_GET_SIZE(sequence);
}

uint64_t whole(PyObject* value) {
  const auto found = PyLong_AsUnsignedLongLong(value);
  if (PyErr_Occurred()) throw Wrong();
  return found;
}

std::string text(PyObject* value) {
  const char* found = PyUnicode_AsUTF8(value);
  if (found == nullptr) throw Wrong();
  return found;
}

// (handle, grid, block, shared, name, bytes, pointers, offsets, here)
Launch launch_of(PyObject* given) {
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

Output output_of(PyObject* given) {
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
bool fits(const Plan& plan, size_t inputs) {
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

// (args, device index, outputs, launches, saves, noted): whether the form is served from now on.
PyObject* added(Table* self, PyObject* given) {
  State& s = *self->state;
  try {
    Inputs inputs;
    if (read(s, item(given, 0), inputs) != Found::call) Py_RETURN_FALSE;
    auto plan = std::make_shared<Plan>();
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
    if (!fits(*plan, inputs.tensors.size()) || looked_up(s, inputs.form)) Py_RETURN_FALSE;
    const Kept kept = plan;
    s.plans.emplace(hashed(kept->form.data(), kept->form.size()), kept);
    s.order.push_back(kept);
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
      if (s.last == old) s.last = nullptr;
    }
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
    {"way", way, METH_O, "`native`, `missed` or `elsewhere`: what a call with these would do."},
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
