// One template for the hand-written types of this module. A type is a struct, and what the struct has decides
// what Python sees. Hand-written because a pybind11 class costs 300 ns a call, one of these 25.
//
//     struct TimedNext {
//       Owned original;  ///< the Python objects that it holds, and whatever else it needs
//
//       static constexpr const char* kName = "headrace._core.TimedNext";
//       static constexpr auto kReferences = std::array{&TimedNext::original};
//       static constexpr auto kWrapped = &TimedNext::original;
//       static constexpr bool kIsMethod = true;
//
//       static PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs);  // ends in HeapType::create
//       PyObject* call(const Arguments& arguments);
//     };
//     bool add_timed_next(PyObject* module) { return HeapType<TimedNext>::add(module); }
//
//     in the struct      in Python
//     kName, make        the name and the constructor
//     kReferences        objects that the garbage collector visits and clears
//     call               what a call does (vectorcall)
//     kIsMethod          found in a class it becomes a method, as a function does
//     bind               `__get__`, where binding takes more than that
//     next               an iterator: what `next()` does; `iter()` gives the iterator itself
//     kWrapped           `__wrapped__`
//     kOperator          `headrace_operator`
//     kOwnAttributes     every other attribute is that of the wrapped object ...
//     kForwardsWrites    ... also when it is set
//     stands_in          true in an object that replaces the user's own: `__class__` is that of the wrapped one, too
//     repr, reduce       `repr()` and `__reduce__`
//     kMethods, kAttributes, slots    whatever else it has: methods, properties, other slots of a type
//     before_end         runs first when the object ends, with its references in place
//
// An object may be used by any thread that holds the interpreter lock. Whatever runs Python code lets others in
// meanwhile, so a member function takes its own reference to a part that may be replaced. At the end of the
// interpreter a thread is parked in such a call (see interpreter_lock.h).
#pragma once

#include <Python.h>
#include <structmember.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "crossing.h"

namespace headrace::python {

/// The arguments of a call, as vectorcall passes them: borrowed, for the time of the call.
struct Arguments {
  PyObject* const* values;
  std::size_t nargsf;
  PyObject* kwnames;

  /// Positional arguments.
  Py_ssize_t count() const noexcept { return PyVectorcall_NARGS(nargsf); }
  Py_ssize_t keywords() const noexcept { return kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames); }
  /// A positional argument; null where there are fewer.
  PyObject* at(Py_ssize_t index) const noexcept { return index < count() ? values[index] : nullptr; }
  PyObject* pass_to(PyObject* callable) const {
    return calling_python([&] { return PyObject_Vectorcall(callable, values, nargsf, kwnames); });
  }
};

/// A function in a slot table.
template <class Function>
void* slot(Function* function) {
  return reinterpret_cast<void*>(function);
}

/// Head of each object, before the struct.
struct ObjectHead {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* weakrefs;
};

template <class T>
class HeapType {
 public:
  /// The type, once it was added; kept for ever.
  static inline PyTypeObject* type = nullptr;

  static T& contents(PyObject* object) noexcept {
    return *std::launder(reinterpret_cast<T*>(reinterpret_cast<std::byte*>(object) + kContentsAt));
  }
  static PyObject* object(T& contents) noexcept {
    return reinterpret_cast<PyObject*>(reinterpret_cast<std::byte*>(&contents) - kContentsAt);
  }

  /// A new object of the type or of a class that is derived from it, with the struct's members as given; null
  /// with an exception set.
  template <class... Members>
  static PyObject* create(PyTypeObject* its_type, Members&&... members) {
    PyObject* self = its_type->tp_alloc(its_type, 0);
    if (self == nullptr) return nullptr;
    if constexpr (kIsCallable) head(self).vectorcall = vectorcall;
    new (reinterpret_cast<std::byte*>(self) + kContentsAt) T{std::forward<Members>(members)...};
    return self;
  }

  /// Adds the type to a module; false with an exception set.
  static bool add(PyObject* module) {
    std::vector<PyType_Slot> slots = own_slots();
    if constexpr (requires { T::slots(); }) {
      for (const PyType_Slot& slot : T::slots()) slots.push_back(slot);
    }
    slots.push_back({0, nullptr});
    PyType_Spec spec{T::kName, kContentsAt + sizeof(T), 0, flags(), slots.data()};
    type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, nullptr));
    return type != nullptr && PyModule_AddObjectRef(module, std::strrchr(T::kName, '.') + 1,
                                                    reinterpret_cast<PyObject*>(type)) == 0;
  }

 private:
  static constexpr bool kIsCallable = requires(T& self, const Arguments& arguments) { self.call(arguments); };
  static constexpr bool kIsMethod = requires { T::kIsMethod; };
  static constexpr bool kForwards = requires { T::kOwnAttributes; };
  static constexpr bool kHasDict = requires(T& self) { self.dict; };

  static_assert(alignof(T) <= alignof(std::max_align_t), "Python's memory is aligned no better");
  static constexpr int kContentsAt =
      static_cast<int>((sizeof(ObjectHead) + alignof(T) - 1) / alignof(T) * alignof(T));

  static ObjectHead& head(PyObject* self) noexcept { return *reinterpret_cast<ObjectHead*>(self); }
  static PyObject* wrapped(PyObject* self) noexcept { return (contents(self).*T::kWrapped).get(); }

  // --- life ---

  static int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    for (const auto reference : T::kReferences) Py_VISIT((contents(self).*reference).get());
    if constexpr (requires(T& its) { its.traverse(visit, arg); }) return contents(self).traverse(visit, arg);
    return 0;
  }
  static int clear(PyObject* self) {
    for (const auto reference : T::kReferences) contents(self).*reference = Owned();
    if constexpr (requires(T& its) { its.clear(); }) contents(self).clear();
    return 0;
  }
  static void dealloc(PyObject* self) {
    PyTypeObject* its_type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (head(self).weakrefs != nullptr) PyObject_ClearWeakRefs(self);
    if constexpr (requires(T& its) { its.before_end(); }) contents(self).before_end();
    clear(self);
    std::destroy_at(&contents(self));
    its_type->tp_free(self);
    Py_DECREF(its_type);
  }

  // --- calls ---

  static PyObject* vectorcall(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
    return contents(self).call({args, nargsf, kwnames});
  }
  static PyObject* bind(PyObject* self, PyObject* object, PyObject* owner) {
    if (object == nullptr || object == Py_None) return Py_NewRef(self);
    if constexpr (requires(T& its) { its.bind(object, owner); }) return contents(self).bind(object, owner);
    return PyMethod_New(self, object);
  }

  // --- attributes ---

  static bool is_own([[maybe_unused]] PyObject* self, std::string_view name) noexcept {
    if constexpr (requires(T& its) { its.stands_in; }) {
      if (name == "__class__" && contents(self).stands_in) return false;
    }
    return std::ranges::find(T::kOwnAttributes, name) != T::kOwnAttributes.end();
  }
  static PyObject* get_attribute(PyObject* self, PyObject* name) {
    const char* text = PyUnicode_AsUTF8(name);
    if (text == nullptr) return nullptr;
    return is_own(self, text) ? PyObject_GenericGetAttr(self, name) : PyObject_GetAttr(wrapped(self), name);
  }
  static int set_attribute(PyObject* self, PyObject* name, PyObject* value) {
    return PyObject_SetAttr(wrapped(self), name, value);
  }
  template <auto Reference>
  static PyObject* get_reference(PyObject* self, void* name) {
    PyObject* object = (contents(self).*Reference).get();
    if (object == nullptr) PyErr_SetString(PyExc_AttributeError, static_cast<const char*>(name));
    return Py_XNewRef(object);
  }
  template <auto Reference>
  static PyGetSetDef attribute(const char* name) {
    return {name, get_reference<Reference>, nullptr, nullptr, const_cast<char*>(name)};
  }

  // --- what the type is made of ---

  static unsigned int flags() {
    unsigned long flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
    if (kIsCallable) flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    if (kIsMethod) flags |= Py_TPFLAGS_METHOD_DESCRIPTOR;
    if (kHasDict) flags |= Py_TPFLAGS_BASETYPE;
    return static_cast<unsigned int>(flags);
  }

  // The tables live as long as the type, so they are never freed.

  static PyMemberDef* offsets() {
    static auto& offsets = *new std::vector<PyMemberDef>;
    const auto add_offset = [](const char* name, std::size_t offset) {
      offsets.push_back({name, T_PYSSIZET, static_cast<Py_ssize_t>(offset), READONLY, nullptr});
    };
    add_offset("__weaklistoffset__", offsetof(ObjectHead, weakrefs));
    if constexpr (kIsCallable) add_offset("__vectorcalloffset__", offsetof(ObjectHead, vectorcall));
    if constexpr (kHasDict) add_offset("__dictoffset__", kContentsAt + offsetof(T, dict));
    offsets.push_back({});
    return offsets.data();
  }
  static PyGetSetDef* attributes() {
    static auto& attributes = *new std::vector<PyGetSetDef>;
    if constexpr (requires { T::kWrapped; }) attributes.push_back(attribute<T::kWrapped>("__wrapped__"));
    if constexpr (requires { T::kOperator; })
      attributes.push_back(attribute<T::kOperator>("headrace_operator"));
    if constexpr (requires { T::kAttributes; })
      attributes.insert(attributes.end(), std::begin(T::kAttributes), std::end(T::kAttributes));
    attributes.push_back({});
    return attributes.data();
  }
  static PyMethodDef* methods() {
    static auto& methods = *new std::vector<PyMethodDef>;
    if constexpr (requires(T& self) { self.reduce(); })
      methods.push_back({"__reduce__", [](PyObject* self, PyObject*) { return contents(self).reduce(); },
                         METH_NOARGS, nullptr});
    if constexpr (requires { T::kMethods; })
      methods.insert(methods.end(), std::begin(T::kMethods), std::end(T::kMethods));
    methods.push_back({});
    return methods.data();
  }

  static std::vector<PyType_Slot> own_slots() {
    std::vector<PyType_Slot> slots{{Py_tp_new, slot(T::make)},       {Py_tp_dealloc, slot(dealloc)},
                                   {Py_tp_traverse, slot(traverse)}, {Py_tp_clear, slot(clear)},
                                   {Py_tp_members, offsets()},       {Py_tp_getset, attributes()},
                                   {Py_tp_methods, methods()}};
    if constexpr (kIsCallable) slots.push_back({Py_tp_call, slot(PyVectorcall_Call)});
    if constexpr (kIsMethod || requires { &T::bind; }) slots.push_back({Py_tp_descr_get, slot(bind)});
    if constexpr (requires(T& self) { self.next(); }) {
      slots.push_back({Py_tp_iter, slot(PyObject_SelfIter)});
      slots.push_back({Py_tp_iternext, slot(+[](PyObject* self) { return contents(self).next(); })});
    }
    if constexpr (requires(T& self) { self.repr(); })
      slots.push_back({Py_tp_repr, slot(+[](PyObject* self) { return contents(self).repr(); })});
    if constexpr (kForwards) slots.push_back({Py_tp_getattro, slot(get_attribute)});
    if constexpr (requires { T::kForwardsWrites; }) slots.push_back({Py_tp_setattro, slot(set_attribute)});
    return slots;
  }
};

/// The C function of a slot or a method that calls a member function of the struct:
/// `{Py_mp_length, calls<&TimedDataset::length>()}`.
template <auto Member>
struct MemberCall;
template <class T, class Result, class... Args, Result (T::*Member)(Args...)>
struct MemberCall<Member> {
  static Result call(PyObject* self, Args... args) { return (HeapType<T>::contents(self).*Member)(args...); }
};
template <auto Member>
void* calls() {
  return slot(MemberCall<Member>::call);
}
/// A function in a method table, whichever arguments its flags give it.
template <class Function>
PyCFunction method(Function* function) {
  return reinterpret_cast<PyCFunction>(slot(function));
}
template <auto Member>
PyCFunction method() {
  return method(MemberCall<Member>::call);
}

/// The arguments of a constructor, as PyArg_ParseTupleAndKeywords reads them; `names` end in null.
template <std::size_t N, class... Into>
bool parse(PyObject* args, PyObject* kwargs, const char* format, const char* const (&names)[N],
           Into*... into) {
  return PyArg_ParseTupleAndKeywords(args, kwargs, format, const_cast<char**>(names), into...) != 0;
}

}  // namespace headrace::python
