// headrace.Pipeline's native half: operators whose bodies are Python callables, and the iterator.
#include "headrace/pipeline/pipeline.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "crossing.h"
#include "recording/native_body.h"
#include "recording/pipeline_item.h"

namespace py = pybind11;

namespace headrace::python {
namespace {

using pipeline::ItemMaker;
using pipeline::OnError;
using pipeline::OperatorError;
using pipeline::QueueChoice;
using pipeline::Shard;
using Chain = pipeline::Pipeline<Item>;
using queues::QueueStatus;

/// A reference to a callable that any thread may drop.
using Callable = std::shared_ptr<Item>;

Callable kept(const py::object& object) {
  Py_INCREF(object.ptr());
  return std::make_shared<Item>(object.ptr());
}

[[noreturn]] void throw_python_error() { throw py::error_already_set(); }

std::unique_ptr<pipeline::WaitHooks> interpreter_lock() { return std::make_unique<InterpreterLock>(); }

OnError on_error_named(const std::string& name) {
  if (name == "stop") return OnError::stop;
  if (name == "skip") return OnError::skip;
  throw UsageError("on_error is 'stop' or 'skip', not '" + name + "'");
}

QueueChoice queue_named(const std::string& name) {
  if (name == "auto") return QueueChoice::automatic;
  if (name == "ring") return QueueChoice::ring;
  if (name == "tbb") return QueueChoice::tbb;
  if (name == "spsc") return QueueChoice::spsc;
  throw UsageError("queue is 'auto', 'ring', 'spsc' or 'tbb', not '" + name + "'");
}

Item call_with(const Callable& body, Item&& item) {
  return made_by([&] { return PyObject_CallOneArg(body->get(), item.get()); });
}

ItemMaker<Item> items_of(const Callable& begin, const Shard& shard) {
  auto owned = std::make_shared<Item>(made_by([&] {
    return PyObject_CallFunction(begin->get(), "iiK", shard.index, shard.count,
                                 static_cast<unsigned long long>(shard.pass));
  }));
  if (PyIter_Check(owned->get()) == 0) {
    throw UsageError(std::string("a source gives an iterator, not ") + Py_TYPE(owned->get())->tp_name);
  }
  return [owned]() -> std::optional<Item> {
    PyObject* item = calling_python([&] { return PyIter_Next(owned->get()); });
    if (item != nullptr) return Item(item);
    if (PyErr_Occurred() != nullptr) throw BodyFailure();
    return std::nullopt;
  };
}

Item list_of_items(std::vector<Item>&& items) {
  Item list = made_by([&] { return PyList_New(static_cast<Py_ssize_t>(items.size())); });
  for (std::size_t i = 0; i < items.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), items[i].release());
  return list;
}

/// A chain that is being built, and then runs. Its calls hold the interpreter lock; those that may wait let
/// it go meanwhile.
///
/// `next`, `finish` and the end of the chain take turns (`turn_`), so any thread may call them. `turn_` is
/// waited for without the interpreter lock, and may be held while waiting for that one.
class NativePipeline {
 public:
  NativePipeline(const std::string& name, const py::object& begin, int workers, std::int64_t capacity,
                 const std::string& queue, const std::string& kind)
      : chain_(std::make_unique<Chain>(pipeline::generator<Item>(
            name, [begin = kept(begin)](const Shard& shard) { return items_of(begin, shard); },
            {.kind = kind,
             .workers = workers,
             .capacity = capacity,
             .queue = queue_named(queue),
             .hooks = interpreter_lock}))) {}
  ~NativePipeline() {
    // At the interpreter's end its threads are parked, and one of them may be using the chain.
    if (interpreter_is_ending()) {
      static_cast<void>(chain_.release());
      return;
    }
    const LockReleased released;
    chain_.reset();
  }
  NativePipeline(const NativePipeline&) = delete;
  NativePipeline& operator=(const NativePipeline&) = delete;

  void map(const std::string& name, const py::object& body, int workers, bool ordered, std::int64_t capacity,
           const std::string& queue, const std::string& on_error, bool in_processes,
           const std::string& kind) {
    pipeline::MapOptions options = map_options(workers, ordered, capacity, queue, on_error, in_processes);
    options.kind = kind;
    options.serial = options.kind == profile::OperatorKind::transfer;
    replace(std::move(*chain_).map(
        name, [body = kept(body)](Item&& item) { return call_with(body, std::move(item)); },
        std::move(options)));
  }
  void map_native(const std::string& name, const NativeBody& body, int workers, bool ordered,
                  std::int64_t capacity, const std::string& queue, const std::string& on_error) {
    replace(std::move(*chain_).map(
        name, [body](Item&& item) { return body.call(std::move(item)); },
        map_options(workers, ordered, capacity, queue, on_error, false)));
  }
  void filter(const std::string& name, const py::object& body, std::int64_t capacity,
              const std::string& on_error) {
    replace(std::move(*chain_).filter(
        name,
        [body = kept(body)](const Item& item) {
          const Item answer = made_by([&] { return PyObject_CallOneArg(body->get(), item.get()); });
          const int truth = calling_python([&] { return PyObject_IsTrue(answer.get()); });
          if (truth < 0) throw BodyFailure();
          return truth != 0;
        },
        {.capacity = capacity, .on_error = on_error_named(on_error), .hooks = interpreter_lock}));
  }
  void shuffle(std::int64_t buffer, std::uint64_t seed, bool every_pass_alike) {
    replace(std::move(*chain_).shuffle(buffer, seed, {.every_pass_alike = every_pass_alike}));
  }
  void batch(std::int64_t size, bool drop_last, const py::object& collate, const std::string& name,
             std::int64_t capacity, const std::string& on_error) {
    pipeline::BatchOptions options{.drop_last = drop_last,
                                   .capacity = capacity,
                                   .on_error = on_error_named(on_error),
                                   .name = name,
                                   .hooks = interpreter_lock};
    if (collate.is_none()) {
      replace(std::move(*chain_).batch(size, list_of_items, std::move(options)));
      return;
    }
    replace(std::move(*chain_).batch(
        size,
        [collate = kept(collate)](std::vector<Item>&& items) {
          return call_with(collate, list_of_items(std::move(items)));
        },
        std::move(options)));
  }
  void prefetch(std::int64_t capacity) { replace(std::move(*chain_).prefetch(capacity)); }

  /// The next item of a pass, a new reference; null with the body's exception, KeyboardInterrupt, or nothing
  /// set: the pass is over. `pass`: 0 begins one and is given its number.
  PyObject* next(std::uint64_t& pass) {
    // Data used without the interpreter lock is on this stack or never freed: see interpreter_lock.h.
    Chain& chain = *chain_;
    pipeline::Runtime& its = chain.runtime();
    if (its.is_of_another_process()) {
      throw UsageError(
          "this pass belongs to the process that began it: in a forked child, iterate over the pipeline "
          "anew");
    }
    if (is_mine()) throw UsageError("a signal handler cannot take from the pass that it interrupted");
    std::unique_lock turn(turn_, std::try_to_lock);
    while (!turn.owns_lock()) {
      {
        const LockReleased released;
        static_cast<void>(turn.try_lock_for(kSlice));
      }
      if (PyErr_CheckSignals() != 0) return nullptr;
    }
    const Holder holder(holder_);
    if (pass != 0 && (!its.in_pass() || its.passes() != pass)) return nullptr;  // somebody ended it
    chain.begin_next();
    pass = its.passes();
    std::optional<Item> item;
    QueueStatus status = guarded([&] { return chain.poll_next(item); });
    while (status == QueueStatus::timed_out || status == QueueStatus::not_now) {
      status = guarded([&] {
        const LockReleased released;
        return chain.wait_next(item, queues::after(kSlice));
      });
      if (status == QueueStatus::timed_out && PyErr_CheckSignals() != 0) {
        const LockReleased released;
        chain.give_up();
        return nullptr;
      }
    }
    return status == QueueStatus::done ? item->release() : nullptr;
  }

  void stop() noexcept { chain_->stop(); }
  bool drained() const noexcept { return chain_->drained(); }
  /// Ends the pass that runs, in whichever thread.
  void finish() {
    if (interpreter_is_ending() || runtime().is_of_another_process()) return;
    chain_->stop();
    if (is_mine()) return;  // a signal handler: the wait that it interrupted ends the pass
    const LockReleased released;
    const std::scoped_lock turn(turn_);
    chain_->finish();
  }
  pipeline::Runtime& runtime() noexcept { return chain_->runtime(); }

 private:
  static pipeline::MapOptions map_options(int workers, bool ordered, std::int64_t capacity,
                                          const std::string& queue, const std::string& on_error,
                                          bool in_processes) {
    return {.workers = workers,
            .ordered = ordered,
            .on_error = on_error_named(on_error),
            .capacity = capacity,
            .queue = queue_named(queue),
            .in_processes = in_processes,
            .hooks = interpreter_lock};
  }
  void replace(Chain&& chain) { chain_ = std::make_unique<Chain>(std::move(chain)); }

  template <class Call>
  QueueStatus guarded(Call&& call) {
    try {
      return call();
    } catch (const OperatorError& error) {
      raise(error);
    }
    return QueueStatus::closed;
  }

  /// Raises the body's own exception under the operator's name and the item's number.
  static void raise(const OperatorError& error) {
    py::object cause = py::none();
    try {
      std::rethrow_exception(error.cause());
    } catch (const BodyFailure& python) {
      cause = py::reinterpret_borrow<py::object>(python.value());
    } catch (const std::exception&) {
      // One of C++: its text says it all.
    }
    calling_python([&] {
      try {
        py::module_::import("headrace.pipeline._errors")
            .attr("raise_operator_error")(error.operator_name(), error.item(), cause, error.what());
      } catch (py::error_already_set& raised) {
        raised.restore();
      }
    });
  }

  /// Notes which thread is inside `next`.
  class Holder {
   public:
    explicit Holder(std::atomic<std::thread::id>& of) noexcept : of_(of) {
      of_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    }
    ~Holder() { of_.store({}, std::memory_order_relaxed); }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

   private:
    std::atomic<std::thread::id>& of_;
  };
  bool is_mine() const noexcept {
    return holder_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

  /// So often a wait looks for Ctrl-C.
  static constexpr auto kSlice = std::chrono::milliseconds(50);

  std::unique_ptr<Chain> chain_;
  std::timed_mutex turn_;
  std::atomic<std::thread::id> holder_{};
};

/// `iter(pipeline)`: one pass. Keeps the pipeline; ends the pass when it is dropped early.
class PassIterator {
 public:
  /// `hand_over`: called with each item in the thread that takes it, and gives what it gets; None: the item.
  PassIterator(std::shared_ptr<NativePipeline> of, py::object hand_over)
      : of_(std::move(of)), hand_over_(std::move(hand_over)) {}
  ~PassIterator() { close(); }
  PassIterator(const PassIterator&) = delete;
  PassIterator& operator=(const PassIterator&) = delete;

  py::object next() {
    const std::shared_ptr<NativePipeline> of = of_;  // `close` may come from another thread meanwhile
    if (of == nullptr) throw py::stop_iteration();
    PyObject* item = of->next(pass_);
    if (item != nullptr) {
      auto owned = py::reinterpret_steal<py::object>(item);
      return hand_over_.is_none() ? owned : calling_python([&] { return hand_over_(owned); });
    }
    of_ = nullptr;
    if (PyErr_Occurred() != nullptr) throw_python_error();
    throw py::stop_iteration();
  }
  void close() {
    if (const auto of = std::exchange(of_, nullptr)) of->finish();
  }
  void end_recording() {
    if (of_ != nullptr) of_->runtime().end_recording();
  }
  /// It has more to give, as far as is known.
  bool active() const noexcept { return of_ != nullptr && !of_->drained(); }

 private:
  std::shared_ptr<NativePipeline> of_;
  py::object hand_over_;
  std::uint64_t pass_ = 0;
};

std::shared_ptr<profile::OperatorHandle> current_operator() {
  const pipeline::RecordedLoop* loop = pipeline::RecordedLoop::here();
  return loop == nullptr ? nullptr : loop->op();
}

bool pass_is_over() {
  const pipeline::RecordedLoop* loop = pipeline::RecordedLoop::here();
  return loop != nullptr && loop->stopped();
}

}  // namespace

void add_pipeline(PyObject* object) {
  py::module_ module = py::reinterpret_borrow<py::module_>(object);
  add_native_body(object);
  py::class_<NativePipeline, std::shared_ptr<NativePipeline>>(
      module, "NativePipeline", "Operators, threads and queues of a `headrace.Pipeline`.")
      .def(py::init<const std::string&, const py::object&, int, std::int64_t, const std::string&,
                    const std::string&>(),
           py::arg("name"), py::arg("begin"), py::arg("workers") = 1, py::arg("capacity") = 0,
           py::arg("queue") = "auto", py::arg("kind") = "generator",
           "__init__(name: str, begin: Callable[[int, int, int], Iterator[Any]], workers: int=1, capacity: "
           "int=0, queue: str='auto', kind: str='generator') -> None\n``begin(worker, workers, pass)`` "
           "returns the iterator of one worker's items.")
      .def("map", &NativePipeline::map, py::arg("name"), py::arg("body"), py::arg("workers") = 1,
           py::arg("ordered") = true, py::arg("capacity") = 0, py::arg("queue") = "auto",
           py::arg("on_error") = "stop", py::arg("in_processes") = false, py::arg("kind") = "map",
           "map(name: str, body: Callable[[Any], Any], workers: int=1, ordered: bool=True, capacity: int=0, "
           "queue: str='auto', on_error: str='stop', in_processes: bool=False, kind: str='map') -> None")
      .def("map_native", &NativePipeline::map_native, py::arg("name"), py::arg("body"),
           py::arg("workers") = 1, py::arg("ordered") = true, py::arg("capacity") = 0,
           py::arg("queue") = "auto", py::arg("on_error") = "stop")
      .def("filter", &NativePipeline::filter, py::arg("name"), py::arg("body"), py::arg("capacity") = 0,
           py::arg("on_error") = "stop",
           "filter(name: str, body: Callable[[Any], Any], capacity: int=0, on_error: str='stop') -> None")
      .def("shuffle", &NativePipeline::shuffle, py::arg("buffer"), py::arg("seed"),
           py::arg("every_pass_alike") = false)
      .def("batch", &NativePipeline::batch, py::arg("size"), py::arg("drop_last") = false,
           py::arg("collate") = py::none(), py::arg("name") = "batch", py::arg("capacity") = 0,
           py::arg("on_error") = "stop",
           "batch(size: int, drop_last: bool=False, collate: Callable[[list[Any]], Any] | None=None, name: "
           "str='batch', capacity: int=0, on_error: str='stop') -> None")
      .def("prefetch", &NativePipeline::prefetch, py::arg("capacity"))
      .def(
          "record_in",
          [](NativePipeline& self, const std::shared_ptr<profile::LoaderHandle>& loader) {
            self.runtime().record_in(loader);
          },
          py::arg("loader"))
      .def_property_readonly("names", [](NativePipeline& self) { return self.runtime().names(); })
      .def_property_readonly("passes", [](NativePipeline& self) { return self.runtime().passes(); })
      .def(
          "set_workers",
          [](NativePipeline& self, const std::string& op, int workers) {
            pipeline::Runtime& runtime = self.runtime();
            const LockReleased released;
            runtime.set_workers(op, workers);
          },
          py::arg("op"), py::arg("workers"))
      .def(
          "set_capacity",
          [](NativePipeline& self, const std::string& op, std::int64_t capacity) {
            self.runtime().set_capacity(op, capacity);
          },
          py::arg("op"), py::arg("capacity"))
      .def(
          "workers", [](NativePipeline& self, const std::string& op) { return self.runtime().workers(op); },
          py::arg("op"))
      .def(
          "capacity", [](NativePipeline& self, const std::string& op) { return self.runtime().capacity(op); },
          py::arg("op"))
      .def("stop", &NativePipeline::stop)
      .def("finish", &NativePipeline::finish);
  module.def("current_operator", &current_operator,
             "-> OperatorHandle | None\nIn a body: the operator whose worker calls it.");
  module.def("pass_is_over", &pass_is_over,
             "In a body: True if its pass was stopped, so waiting is pointless.");
  py::class_<PassIterator>(module, "PassIterator",
                           "One pass over a NativePipeline; dropped early, it ends the pass.")
      .def(py::init<std::shared_ptr<NativePipeline>, py::object>(), py::arg("of"),
           py::arg("hand_over") = py::none(),
           "__init__(of: NativePipeline, hand_over: Callable[[Any], Any] | None=None) -> None\nhand_over: "
           "called with each item in the thread that takes it, and returns what the loop gets.")
      .def(
          "__iter__", [](py::object self) { return self; }, "-> PassIterator")
      .def("__next__", &PassIterator::next)
      .def("close", &PassIterator::close)
      .def("end_recording", &PassIterator::end_recording,
           "The rest of the pass is not part of the recorded loop.")
      .def_property_readonly("active", &PassIterator::active);
}

}  // namespace headrace::python
