// A loader's fetch(index): while it runs, the user's dataset, transforms and collate function are timed ones;
// before and after it everything is the user's own.
#include <Python.h>
#include <structmember.h>

#include <vector>

#include "crossing.h"
#include "function_sample.h"
#include "headrace/metrics/clock.h"
#include "headrace/profile/worker_pauses.h"
#include "heap_type.h"

namespace headrace::python {
namespace {

/// One place that holds a timed object while a batch is fetched.
struct Swap {
  PyObject* container;  ///< a list, a dict, or an object that has the attribute; null: the fetcher
  PyObject* key;
  PyObject* bare;
  PyObject* timed;
};

/// A few batches early on, where a batch takes long enough for names of functions to mean something.
class SampledBatches {
 public:
  /// Around `fetch`, which returns a batch.
  template <class Fetch>
  PyObject* around(Fetch&& fetch) {
    const bool samples = last_ns_ >= kLongEnough_ns && sample_.begin();
    const std::int64_t begun_ns = metrics::Clock::now_ns();
    PyObject* batch = fetch();
    last_ns_ = metrics::Clock::now_ns() - begun_ns;
    if (samples) sample_.end();
    ++seen_;
    return batch;
  }
  bool enough() const noexcept { return seen_ >= kMaxBatches || sample_.elapsed_ns() >= kEnough_ns; }

 private:
  static constexpr std::int64_t kLongEnough_ns = 2'000'000;
  static constexpr std::int64_t kEnough_ns = 100'000'000;
  static constexpr int kMaxBatches = 10;

  FunctionSample sample_;
  std::int64_t last_ns_ = 0;
  int seen_ = 0;
};

struct FetchState {
  std::vector<Swap> swaps;
  std::shared_ptr<SampledBatches> sampled;  ///< null: none, or enough
};

struct TimedFetch {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;  ///< of the fetcher's class
  PyObject* fetcher;   ///< weak: it holds us in its attributes
  PyObject* swaps;     ///< the tuples that `state` points into
  PyObject* weakrefs;
  FetchState state;
  static constexpr auto kReferences =
      std::array{&TimedFetch::function, &TimedFetch::fetcher, &TimedFetch::swaps};
};

using Type = HeapType<TimedFetch>;

/// Puts `to` where `from` is; leaves alone what somebody else has changed meanwhile. An object's dict is not asked for:
/// Python 3.11 and 3.12 would make one, and the object would be slower from then on.
void put_instead(PyObject* container, PyObject* key, PyObject* from, PyObject* to) {
  if (PyList_CheckExact(container) != 0) {
    const Py_ssize_t index = PyLong_AsSsize_t(key);
    if (index < 0 || index >= PyList_GET_SIZE(container) || PyList_GET_ITEM(container, index) != from) return;
    PyList_SetItem(container, index, Py_NewRef(to));
  } else if (PyDict_Check(container) != 0) {
    if (PyDict_GetItemWithError(container, key) == from) PyDict_SetItem(container, key, to);
  } else if (const Owned held(PyObject_GenericGetAttr(container, key)); held.get() == from) {
    PyObject_GenericSetAttr(container, key, to);
  }
  PyErr_Clear();
}

PyObject* fetch_vectorcall(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* kwnames) {
  TimedFetch* timed = Type::cast(self);
  const Owned fetcher(Py_NewRef(PyWeakref_GetObject(timed->fetcher)));
  if (fetcher.get() == Py_None) {
    PyErr_SetString(PyExc_ReferenceError, "the fetcher of this call is gone");
    return nullptr;
  }
  // The plan may be replaced while the fetch runs (an iterator that the dataset itself makes).
  const Owned keep(Py_XNewRef(timed->swaps));
  const std::vector<Swap>& swaps = timed->state.swaps;
  const auto place = [&](const Swap& swap) {
    return swap.container != nullptr ? swap.container : fetcher.get();
  };
  for (const Swap& swap : swaps) put_instead(place(swap), swap.key, swap.bare, swap.timed);

  const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
  const Py_ssize_t named = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  // One index is what a fetch is asked for.
  PyObject* pair[] = {fetcher.get(), count == 1 ? args[0] : nullptr};
  std::vector<PyObject*> more;
  if (count != 1 || named != 0) {
    more.push_back(fetcher.get());
    more.insert(more.end(), args, args + count + named);
  }
  const auto fetch = [&] {
    return calling_python([&] {
      return PyObject_Vectorcall(timed->function, more.empty() ? pair : more.data(),
                                 static_cast<std::size_t>(count) + 1, kwnames);
    });
  };
  const std::shared_ptr<SampledBatches> sampled = timed->state.sampled;
  profile::has_data_again();
  PyObject* batch = sampled ? sampled->around(fetch) : fetch();
  // A stream's fetcher says so; what goes wrong in a dataset is another exception.
  if (batch == nullptr && PyErr_ExceptionMatches(PyExc_StopIteration) != 0) profile::ran_out_of_data();
  if (sampled && sampled->enough()) timed->state.sampled.reset();

  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  for (auto swap = swaps.rbegin(); swap != swaps.rend(); ++swap)
    put_instead(place(*swap), swap->key, swap->timed, swap->bare);
  PyErr_Restore(type, value, trace);
  return batch;
}

/// swaps: a tuple of (container, key, bare, timed), as in Swap; container None: the fetcher. names_functions: a few
/// early batches are sampled.
PyObject* fetch_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* fetcher = nullptr;
  PyObject* swaps = nullptr;
  int names_functions = 0;
  if (!PyArg_ParseTuple(args, "OO!|p", &fetcher, &PyTuple_Type, &swaps, &names_functions)) return nullptr;
  Owned function(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(fetcher)), "fetch"));
  Owned weak(function ? PyWeakref_NewRef(fetcher, nullptr) : nullptr);
  if (!weak) return nullptr;
  TimedFetch* self = Type::make(type);
  if (self == nullptr) return nullptr;
  self->vectorcall = fetch_vectorcall;
  self->function = function.release();
  self->fetcher = weak.release();
  self->swaps = Py_NewRef(swaps);
  if (names_functions != 0) self->state.sampled = std::make_shared<SampledBatches>();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(swaps); ++i) {
    Swap swap{};
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(swaps, i), "OOOO", &swap.container, &swap.key, &swap.bare,
                          &swap.timed)) {
      Py_DECREF(self);
      return nullptr;
    }
    if (swap.container == Py_None) swap.container = nullptr;
    self->state.swaps.push_back(swap);
  }
  return Type::object(self);
}

PyMemberDef fetch_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(TimedFetch, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TimedFetch, weakrefs), READONLY, nullptr},
    {"__wrapped__", T_OBJECT_EX, offsetof(TimedFetch, function), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot fetch_slots[] = {
    HEAP_TYPE_SLOTS(TimedFetch),
    {Py_tp_new, slot(fetch_new)},
    {Py_tp_call, slot(PyVectorcall_Call)},
    {Py_tp_members, fetch_members},
    {0, nullptr},
};

PyType_Spec fetch_spec = {
    "headrace._core.TimedFetch",
    sizeof(TimedFetch),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    fetch_slots,
};

}  // namespace

bool add_timed_fetch(PyObject* module) { return add_type(module, fetch_spec, "TimedFetch"); }

}  // namespace headrace::python
