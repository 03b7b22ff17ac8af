// A callable that is timed as an operator: no Python frame, 40 ns over the bare call.
#include <Python.h>

#include "crossing.h"
#include "recording/function_sample.h"
#include "recording/heap_type.h"

namespace headrace::python {
namespace {

struct TimedCallable {
  Owned callable;
  Owned op;  ///< the Operator object, for pickling and for people
  std::shared_ptr<profile::OperatorHandle> handle;
  bool stands_in = false;

  static constexpr const char* kName = "headrace._core.TimedCallable";
  static constexpr auto kReferences = std::array{&TimedCallable::callable, &TimedCallable::op};
  static constexpr auto kWrapped = &TimedCallable::callable;
  static constexpr auto kOperator = &TimedCallable::op;
  /// The body's own attributes show through, __name__ and __doc__ too; only what pickling and unwrapping need
  /// is ours.
  static constexpr auto kOwnAttributes =
      std::to_array<std::string_view>({"__wrapped__", "__reduce__", "__reduce_ex__", "__class__", "__call__",
                                       "__get__", "headrace_operator"});
  static constexpr bool kForwardsWrites = true;

  static PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs);
  PyObject* call(const Arguments& arguments);
  PyObject* bind(PyObject* object, PyObject* owner);
  PyObject* repr();
  PyObject* reduce();
};

using Type = HeapType<TimedCallable>;

PyObject* TimedCallable::call(const Arguments& arguments) {
  profile::OperatorHandle& its = *handle;
  if (!its.begin()) return arguments.pass_to(callable.get());
  PyObject* result = sampled(handle, [&] { return arguments.pass_to(callable.get()); });
  its.end(result == nullptr);
  return result;
}

PyObject* TimedCallable::make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* callable = nullptr;
  PyObject* op = nullptr;
  int stands_in = 0;
  if (!parse(args, kwargs, "OO|p", {"callable", "operator", "stands_in", nullptr}, &callable, &op,
             &stands_in))
    return nullptr;
  if (!PyCallable_Check(callable)) {
    PyErr_Format(PyExc_TypeError, "an operator needs something callable, not %.200s",
                 Py_TYPE(callable)->tp_name);
    return nullptr;
  }
  auto handle = operator_handle_of(op);
  if (handle == nullptr) return nullptr;
  return Type::create(type, Owned::ref(callable), Owned::ref(op), std::move(handle), stands_in != 0);
}

/// Functions become methods; builtins, classes, partials and methods that are bound already stay what they
/// are. Below 0 with an exception set.
int becomes_method(PyObject* callable, PyObject* object, PyObject* owner) {
  if (Py_TYPE(callable) == Type::type)
    return becomes_method(Type::contents(callable).callable.get(), object, owner);
  const descrgetfunc get = Py_TYPE(callable)->tp_descr_get;
  if (get == nullptr || PyMethod_Check(callable)) return 0;
  if (PyFunction_Check(callable)) return 1;
  // functools.partial has a descriptor slot since Python 3.13, and still hands out itself.
  const Owned got(get(callable, object, owner));
  return !got ? -1 : got.get() != callable ? 1 : 0;
}

PyObject* TimedCallable::bind(PyObject* object, PyObject* owner) {
  PyObject* self = Type::object(*this);
  const int bound = becomes_method(callable.get(), object, owner);
  if (bound < 0) return nullptr;
  return bound != 0 ? PyMethod_New(self, object) : Py_NewRef(self);
}

PyObject* TimedCallable::repr() {
  return PyUnicode_FromFormat("<headrace operator '%s': %R>", handle->name().c_str(), callable.get());
}

PyObject* TimedCallable::reduce() {
  if (stands_in) return reduced_to(callable.get());
  const Owned reduce = imported("headrace.record.operator", "reduce_callable");
  return reduce ? PyObject_CallFunctionObjArgs(reduce.get(), Type::object(*this), callable.get(), op.get(),
                                               nullptr)
                : nullptr;
}

}  // namespace

bool add_timed_callable(PyObject* module) { return Type::add(module); }

}  // namespace headrace::python
