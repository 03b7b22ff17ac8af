// A loader's fetch(index). While it runs, the loader's fetcher has a timed dataset and collate function, and
// calls of the user's transforms are timed; the user's own objects stay as they are.
#include <Python.h>

#include <bit>
#include <vector>

#include "crossing.h"
#include "headrace/metrics/clock.h"
#include "headrace/profile/worker_pauses.h"
#include "recording/function_sample.h"
#include "recording/heap_type.h"
#include "recording/object_calls.h"

namespace headrace::python {
namespace {

/// An attribute of a library's object that has a timed object while a batch is fetched.
struct Swap {
  PyObject* container;  ///< null: the fetcher
  PyObject* key;
  PyObject* bare;
  PyObject* timed;
};

/// A few batches (the 2nd, 4th, 8th ...), where a batch takes long enough for names of functions to mean something: the
/// first ones are made before workers meet each other. One batch in many may do the work of all: while those that were
/// followed take less than half of what a batch takes on average, others are followed, too.
class SampledBatches {
 public:
  /// Around `fetch`, which returns a batch.
  template <class Fetch>
  PyObject* around(Fetch&& fetch) {
    const bool samples = is_worth_following() && sample_.begin();
    const std::int64_t begun_ns = metrics::Clock::now_ns();
    PyObject* batch = fetch();
    last_ns_ = metrics::Clock::now_ns() - begun_ns;
    all_ns_ += last_ns_;
    if (samples) {
      sample_.end();
      ++followed_;
    }
    ++seen_;
    return batch;
  }
  bool enough() const noexcept { return seen_ >= kWatched; }

 private:
  static constexpr std::int64_t kLongEnough_ns = 2'000'000;
  static constexpr int kWatched = 256;

  bool is_worth_following() const noexcept {
    if (std::has_single_bit(static_cast<unsigned>(seen_ + 1))) return last_ns_ >= kLongEnough_ns;
    const bool followed_the_cheap = 2 * sample_.elapsed_ns() * seen_ < all_ns_ * followed_ || followed_ == 0;
    return all_ns_ >= seen_ * kLongEnough_ns && followed_the_cheap;
  }

  FunctionSample sample_;
  std::int64_t last_ns_ = 0;
  std::int64_t all_ns_ = 0;
  int seen_ = 0;
  int followed_ = 0;
};

struct TimedFetch {
  Owned function;  ///< of the fetcher's class
  Owned fetcher;   ///< weak: it holds us in its attributes
  Owned plan;      ///< the tuples that `swaps` points into
  std::vector<Swap> swaps;
  std::unique_ptr<ObjectCalls> calls;       ///< null: none
  std::shared_ptr<SampledBatches> sampled;  ///< null: none, or enough

  static constexpr const char* kName = "headrace._core.TimedFetch";
  static constexpr auto kReferences =
      std::array{&TimedFetch::function, &TimedFetch::fetcher, &TimedFetch::plan};
  static constexpr auto kWrapped = &TimedFetch::function;

  static PyObject* make(PyTypeObject* type, PyObject* args, PyObject*);
  PyObject* call(const Arguments& arguments);
};

/// Puts `to` where `from` is; leaves alone what somebody else has changed meanwhile.
void put_instead(PyObject* container, PyObject* key, PyObject* from, PyObject* to) {
  if (const Owned held(PyObject_GenericGetAttr(container, key)); held.get() == from)
    PyObject_GenericSetAttr(container, key, to);
  PyErr_Clear();
}

PyObject* TimedFetch::call(const Arguments& arguments) {
  const Owned target = Owned::ref(PyWeakref_GetObject(fetcher.get()));
  if (target.get() == Py_None) {
    PyErr_SetString(PyExc_ReferenceError, "the fetcher of this call is gone");
    return nullptr;
  }
  // The plan may be replaced while the fetch runs (an iterator that the dataset itself makes).
  const Owned keep = Owned::ref(plan.get());
  const auto place = [&](const Swap& swap) {
    return swap.container != nullptr ? swap.container : target.get();
  };
  for (const Swap& swap : swaps) put_instead(place(swap), swap.key, swap.bare, swap.timed);

  // One index is what a fetch is asked for.
  const Py_ssize_t count = arguments.count();
  PyObject* pair[] = {target.get(), arguments.at(0)};
  std::vector<PyObject*> more;
  if (count != 1 || arguments.keywords() != 0) {
    more.push_back(target.get());
    more.insert(more.end(), arguments.values, arguments.values + count + arguments.keywords());
  }
  const Arguments with_fetcher{more.empty() ? pair : more.data(), static_cast<std::size_t>(count) + 1,
                               arguments.kwnames};
  const ObjectCalls none;
  const auto fetch = [&] {
    const ObjectCalls::Scope timed(calls ? *calls : none);
    return with_fetcher.pass_to(function.get());
  };
  const std::shared_ptr<SampledBatches> samples = sampled;
  profile::has_data_again();
  PyObject* batch = samples ? samples->around(fetch) : fetch();
  // A stream's fetcher says so; what goes wrong in a dataset is another exception.
  if (batch == nullptr && PyErr_ExceptionMatches(PyExc_StopIteration) != 0) profile::ran_out_of_data();
  if (samples && samples->enough()) sampled.reset();

  KeptError error;
  for (auto swap = swaps.rbegin(); swap != swaps.rend(); ++swap)
    put_instead(place(*swap), swap->key, swap->timed, swap->bare);
  error.restore();
  return batch;
}

/// swaps: a tuple of (container, key, bare, timed), as in Swap; container None: the fetcher. calls: a tuple
/// of (object, operator). names_functions: a few early batches are sampled.
PyObject* TimedFetch::make(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* fetcher = nullptr;
  PyObject* plan = nullptr;
  PyObject* timed_calls = nullptr;
  int names_functions = 0;
  if (!PyArg_ParseTuple(args, "OO!|pO!", &fetcher, &PyTuple_Type, &plan, &names_functions, &PyTuple_Type,
                        &timed_calls))
    return nullptr;
  Owned function(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(fetcher)), "fetch"));
  Owned weak(function ? PyWeakref_NewRef(fetcher, nullptr) : nullptr);
  if (!weak) return nullptr;
  std::vector<Swap> swaps;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(plan); ++i) {
    Swap swap{};
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(plan, i), "OOOO", &swap.container, &swap.key, &swap.bare,
                          &swap.timed))
      return nullptr;
    if (swap.container == Py_None) swap.container = nullptr;
    swaps.push_back(swap);
  }
  const Py_ssize_t count = timed_calls != nullptr ? PyTuple_GET_SIZE(timed_calls) : 0;
  auto calls = count > 0 ? std::make_unique<ObjectCalls>() : nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* object = nullptr;
    PyObject* op = nullptr;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(timed_calls, i), "OO", &object, &op)) return nullptr;
    auto handle = operator_handle_of(op);
    if (handle == nullptr) return nullptr;
    if (!calls->add(object, std::move(handle))) return nullptr;
  }
  return HeapType<TimedFetch>::create(type, std::move(function), std::move(weak), Owned::ref(plan),
                                      std::move(swaps), std::move(calls),
                                      names_functions != 0 ? std::make_shared<SampledBatches>() : nullptr);
}

}  // namespace

bool add_timed_fetch(PyObject* module) { return HeapType<TimedFetch>::add(module); }

}  // namespace headrace::python
