#include "recording/object_calls.h"

#include "recording/function_sample.h"

namespace headrace::python {
namespace {

/// The slot that a class had; guarded by the interpreter lock.
std::unordered_map<PyTypeObject*, ternaryfunc>& bare_slots() {
  static auto* const slots =
      new std::unordered_map<PyTypeObject*, ternaryfunc>;  // loops may end after the module
  return *slots;
}

/// A class that was made with a replaced slot of its base calls as that one.
ternaryfunc bare_slot_of(PyTypeObject* type) {
  const auto& slots = bare_slots();
  for (PyTypeObject* each = type; each != nullptr; each = each->tp_base)
    if (const auto found = slots.find(each); found != slots.end()) return found->second;
  return nullptr;
}

thread_local const ObjectCalls* in_scope = nullptr;

}  // namespace

bool ObjectCalls::possible(PyObject* object) noexcept {
  constexpr unsigned long kUnsuited = Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_VECTORCALL;
  const PyTypeObject* type = Py_TYPE(object);
  return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 && (type->tp_flags & kUnsuited) == 0 &&
         type->tp_call != nullptr && PyType_SUPPORTS_WEAKREFS(Py_TYPE(object)) != 0;
}

bool ObjectCalls::add(PyObject* object, Operator handle) {
  Owned weak(PyWeakref_NewRef(object, nullptr));
  if (!weak) return false;
  PyTypeObject* type = Py_TYPE(object);
  if (type->tp_call != &ObjectCalls::call) {
    bare_slots()[type] = type->tp_call;
    type->tp_call = &ObjectCalls::call;
  }
  recorded_.insert_or_assign(object, Recorded{std::move(weak), std::move(handle)});
  return true;
}

PyObject* ObjectCalls::call(PyObject* self, PyObject* args, PyObject* kwargs) {
  const ternaryfunc bare = bare_slot_of(Py_TYPE(self));
  if (bare == nullptr) {
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not callable", Py_TYPE(self)->tp_name);
    return nullptr;
  }
  const ObjectCalls* calls = in_scope;
  if (calls == nullptr) return bare(self, args, kwargs);
  const auto found = calls->recorded_.find(self);
  if (found == calls->recorded_.end() || PyWeakref_GetObject(found->second.object.get()) != self)
    return bare(self, args, kwargs);
  const Operator handle = found->second.handle;
  if (!handle->begin()) return bare(self, args, kwargs);
  PyObject* result = sampled(handle, [&] { return bare(self, args, kwargs); });
  handle->end(result == nullptr);
  return result;
}

ObjectCalls::Scope::Scope(const ObjectCalls& calls) noexcept : before_(in_scope) { in_scope = &calls; }
ObjectCalls::Scope::~Scope() { in_scope = before_; }

}  // namespace headrace::python
