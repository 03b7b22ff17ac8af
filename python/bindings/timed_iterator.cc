// The iterator that a wrapped loader hands out: yields what the user's iterator yields and times every
// GetNext.
#include <Python.h>
#include <structmember.h>

#include <cstring>
#include <new>

#include "batch_contents.h"
#include "crossing.h"
#include "headrace/profile/relay.h"

namespace headrace::python {
namespace {

using Recorder = std::shared_ptr<profile::LoopRecorder>;

/// Batches after which a put is looked for.
constexpr int kMaxRelayOffers = 4;

/// Another thread may take the batches from a queue, into which this one puts them.
struct Relayed {
  std::shared_ptr<profile::LoaderHandle> loader;
  std::shared_ptr<profile::Relay> relay;
  int offers = kMaxRelayOffers;
  bool active() const { return relay != nullptr && relay->active(); }
};

struct TimedIterator {
  PyObject_HEAD PyObject* iterator;
  PyObject* owner;  ///< keeps the wrapped loader's record open
  /// Called before each GetNext: is the awaited batch ready? Where it answers None, it is asked again after it:
  /// was it? null: the recorded queues tell.
  PyObject* ready;
  iternextfunc next;
  PyObject* weakrefs;
  Recorder recorder;
  Relayed relayed;
  unsigned long thread_in_next;  ///< 0: none is, or it is the first GetNext, in which workers start
  bool delivered;
};

TimedIterator* cast(PyObject* object) { return reinterpret_cast<TimedIterator*>(object); }

/// 1 or 0; -1: not known, or the adapter's question failed (which must not disturb the loop). An interrupt, which
/// is the loop's, stays set.
int ask_ready(PyObject* ready) {
  const Owned answer(calling_python([&] { return PyObject_CallNoArgs(ready); }));
  if (answer.get() == Py_None) return -1;
  const int truth = answer ? PyObject_IsTrue(answer.get()) : -1;
  if (truth < 0 && PyErr_ExceptionMatches(PyExc_Exception) != 0) PyErr_Clear();
  return truth;
}

/// The next item, on the thread that feeds the training loop's queue.
PyObject* fed_next(TimedIterator* timed) {
  profile::Relay& relay = *timed->relayed.relay;
  relay.begin_feed();
  PyObject* item = timed->next(timed->iterator);
  const bool failed =
      item == nullptr && PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_StopIteration) == 0;
  relay.end_feed(item != nullptr, failed);
  return item;
}

void offer_relay(TimedIterator* timed, PyObject* item) {
  Relayed& relayed = timed->relayed;
  if (relayed.offers == 0 || !profile::Relay::possible_here()) return;
  --relayed.offers;
  if (relayed.relay == nullptr)
    relayed.relay = std::make_shared<profile::Relay>(relayed.loader, timed->recorder);
  look_for_relay(relayed.relay, reinterpret_cast<PyObject*>(timed), item);
}

PyObject* timed_next(PyObject* self) {
  TimedIterator* timed = cast(self);
  if (timed->relayed.active()) return fed_next(timed);
  int ready = timed->ready == nullptr ? -1 : ask_ready(timed->ready);
  if (ready < 0 && PyErr_Occurred() != nullptr) return nullptr;
  timed->recorder->begin_wait();
  if (timed->delivered) timed->thread_in_next = PyThread_get_thread_ident();
  PyObject* item = timed->next(timed->iterator);
  timed->thread_in_next = 0;
  timed->delivered |= item != nullptr;
  const bool failed =
      item == nullptr && PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_StopIteration) == 0;
  if (ready < 0 && timed->ready != nullptr && item != nullptr) ready = ask_ready(timed->ready);
  timed->recorder->end_wait(item != nullptr, failed, ready);
  if (item != nullptr && PyErr_Occurred() != nullptr) {
    Py_DECREF(item);
    return nullptr;
  }
  if (item != nullptr && timed->recorder->asks_for_size())
    timed->recorder->tell_size(contents_of(item).bytes);
  if (item != nullptr) offer_relay(timed, item);
  return item;
}

PyObject* timed_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"loader", "iterable", "owner", "ready", nullptr};
  PyObject* loader = nullptr;
  PyObject* iterable = nullptr;
  PyObject* owner = nullptr;
  PyObject* ready = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|O", const_cast<char**>(names), &loader, &iterable,
                                   &owner, &ready)) {
    return nullptr;
  }
  auto handle = loader_handle_of(loader);
  if (handle == nullptr) return nullptr;
  auto* self = cast(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  // The loop begins before iter(): the start of a loader's workers belongs to its first batch.
  new (&self->recorder) Recorder(new profile::LoopRecorder(handle));
  new (&self->relayed) Relayed{.loader = std::move(handle), .relay = nullptr};
  self->owner = Py_NewRef(owner);
  self->ready = ready == Py_None ? nullptr : Py_NewRef(ready);
  self->iterator = PyObject_GetIter(iterable);
  if (self->iterator == nullptr) {
    Py_DECREF(self);
    return nullptr;
  }
  self->next = Py_TYPE(self->iterator)->tp_iternext;
  return reinterpret_cast<PyObject*>(self);
}

int timed_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->iterator);
  Py_VISIT(cast(self)->owner);
  Py_VISIT(cast(self)->ready);
  return 0;
}

int timed_clear(PyObject* self) {
  Py_CLEAR(cast(self)->iterator);
  Py_CLEAR(cast(self)->owner);
  Py_CLEAR(cast(self)->ready);
  return 0;
}

void timed_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (cast(self)->weakrefs != nullptr) PyObject_ClearWeakRefs(self);
  if (cast(self)->relayed.active()) {
    cast(self)->relayed.relay->exhausted();
  } else if (cast(self)->recorder != nullptr) {
    cast(self)->recorder->end_loop();
  }
  timed_clear(self);
  cast(self)->relayed.~Relayed();
  cast(self)->recorder.~Recorder();
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* timed_iter(PyObject* self) { return Py_NewRef(self); }

/// send, throw, close, gi_frame, _workers ...: whatever the user's iterator has.
PyObject* timed_getattro(PyObject* self, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (text == nullptr) return nullptr;
  const bool own = std::strcmp(text, "__class__") == 0 || std::strcmp(text, "__next__") == 0 ||
                   std::strcmp(text, "__iter__") == 0 || std::strcmp(text, "__wrapped__") == 0 ||
                   std::strcmp(text, "__length_hint__") == 0;
  if (own) return PyObject_GenericGetAttr(self, name);
  return PyObject_GetAttr(cast(self)->iterator, name);
}

PyObject* timed_length_hint(PyObject* self, PyObject*) {
  const Py_ssize_t length = PyObject_LengthHint(cast(self)->iterator, 0);
  return length < 0 ? nullptr : PyLong_FromSsize_t(length);
}

PyMethodDef timed_methods[] = {
    {"__length_hint__", timed_length_hint, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef timed_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TimedIterator, weakrefs), READONLY, nullptr},
    {"__wrapped__", T_OBJECT_EX, offsetof(TimedIterator, iterator), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot timed_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(timed_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(timed_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(timed_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(timed_clear)},
    {Py_tp_iter, reinterpret_cast<void*>(timed_iter)},
    {Py_tp_iternext, reinterpret_cast<void*>(timed_next)},
    {Py_tp_getattro, reinterpret_cast<void*>(timed_getattro)},
    {Py_tp_methods, timed_methods},
    {Py_tp_members, timed_members},
    {0, nullptr},
};

PyType_Spec timed_spec = {
    "headrace._core.TimedIterator",          sizeof(TimedIterator), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, timed_slots,
};

PyTypeObject* timed_type = nullptr;

PyObject* thread_in_next(PyObject*, PyObject* iterator) {
  if (!PyObject_TypeCheck(iterator, timed_type)) return PyLong_FromLong(0);
  return PyLong_FromUnsignedLong(cast(iterator)->thread_in_next);
}

PyMethodDef timed_functions[] = {
    {"thread_in_next", thread_in_next, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool add_timed_iterator(PyObject* module) {
  return add_type(module, timed_spec, "TimedIterator", &timed_type) &&
         PyModule_AddFunctions(module, timed_functions) == 0;
}

}  // namespace headrace::python
