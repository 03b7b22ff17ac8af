// A callable around which something else runs, without a Python frame of its own: the tracebacks of what it
// calls are those of the bare call.
#include <Python.h>

#include <algorithm>
#include <array>
#include <vector>

#include "crossing.h"
#include "recording/heap_type.h"

namespace headrace::python {
namespace {

struct HookedCall {
  Owned original;  ///< None: there is nothing to call, the result is None
  Owned before;    ///< before(*args) -> None, or a tuple in place of the arguments where none has a keyword
  Owned after;     ///< after(result, *args as the caller gave them) -> None or what takes its place
  Owned failed;    ///< failed(*args) when the original raised
  bool stands_in = false;  ///< for the user's own function: it is pickled by that one's name

  static constexpr const char* kName = "headrace._core.HookedCall";
  static constexpr auto kReferences =
      std::array{&HookedCall::original, &HookedCall::before, &HookedCall::after, &HookedCall::failed};
  static constexpr auto kWrapped = &HookedCall::original;
  static constexpr bool kIsMethod = true;
  static constexpr auto kOwnAttributes = std::to_array<std::string_view>(
      {"__class__", "__wrapped__", "__reduce__", "__reduce_ex__", "__get__", "__call__"});
  static constexpr bool kForwardsWrites = true;

  static PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs);
  PyObject* call(const Arguments& arguments);
  /// In a message it is what it stands for.
  PyObject* repr() { return PyObject_Repr(original.get()); }
  PyObject* reduce();
};

using Type = HeapType<HookedCall>;

/// A hook's own failure is never the caller's: it is printed nowhere and changes nothing. An interrupt stays set.
Owned call_hook(const Owned& hook, PyObject* first, const Arguments& arguments) {
  std::array<PyObject*, 8> few;  // most calls, without an allocation
  std::vector<PyObject*> many;
  const auto room = static_cast<std::size_t>(arguments.count()) + 2;
  if (room > few.size()) many.resize(room);
  PyObject** const all =
      (room > few.size() ? many.data() : few.data()) + 1;  // in front: a bound method's self
  PyObject** end = all;
  if (first != nullptr) *end++ = first;
  end = std::copy(arguments.values, arguments.values + arguments.count(), end);
  const auto given = static_cast<std::size_t>(end - all);
  Owned result(Arguments{all, given | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr}.pass_to(hook.get()));
  if (!result) forget_failure();
  return result;
}

PyObject* call_original(PyObject* original, const Arguments& arguments, PyObject* changed) {
  if (original == Py_None) return Py_NewRef(Py_None);
  if (changed == nullptr) return arguments.pass_to(original);
  const auto count = static_cast<std::size_t>(PyTuple_GET_SIZE(changed));
  return Arguments{&PyTuple_GET_ITEM(changed, 0), count, nullptr}.pass_to(original);
}

PyObject* HookedCall::call(const Arguments& arguments) {
  Owned changed;
  if (before.get() != Py_None) {
    changed = call_hook(before, nullptr, arguments);
    if (PyErr_Occurred() != nullptr) return nullptr;
    const bool replaces = changed && PyTuple_Check(changed.get()) && arguments.kwnames == nullptr;
    if (!replaces) changed = Owned();
  }
  Owned result(call_original(original.get(), arguments, changed.get()));
  if (!result) {
    if (failed.get() != Py_None) {
      KeptError error;
      call_hook(failed, nullptr, arguments);
      if (PyErr_Occurred() == nullptr) error.restore();
    }
    return nullptr;
  }
  if (after.get() == Py_None) return result.release();
  Owned replaced = call_hook(after, result.get(), arguments);
  if (PyErr_Occurred() != nullptr) return nullptr;
  return replaced && replaced.get() != Py_None ? replaced.release() : result.release();
}

PyObject* HookedCall::make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* original = nullptr;
  PyObject* before = Py_None;
  PyObject* after = Py_None;
  PyObject* failed = Py_None;
  int stands_in = 0;
  if (!parse(args, kwargs, "O|OOOp", {"original", "before", "after", "failed", "stands_in", nullptr},
             &original, &before, &after, &failed, &stands_in))
    return nullptr;
  return Type::create(type, Owned::ref(original), Owned::ref(before), Owned::ref(after), Owned::ref(failed),
                      stands_in != 0);
}

PyObject* HookedCall::reduce() {
  if (stands_in) return PyObject_GetAttrString(original.get(), "__qualname__");
  return Py_BuildValue("O(OOOO)", Type::type, original.get(), before.get(), after.get(), failed.get());
}

}  // namespace

bool add_hooked_call(PyObject* module) { return Type::add(module); }

}  // namespace headrace::python
