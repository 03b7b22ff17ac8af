// Recording for Python: sessions and handles here, the rest in the files beside this one.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>

#include "crossing.h"
#include "headrace/profile/current.h"
#include "headrace/profile/errors.h"
#include "headrace/profile/orphans.h"
#include "headrace/profile/overlapping_calls.h"
#include "headrace/profile/profile_json.h"
#include "headrace/profile/run_folder.h"
#include "headrace/profile/sampler.h"
#include "headrace/profile/snapshot.h"
#include "headrace/profile/unnamed_runs.h"
#include "headrace/profile/worker_pauses.h"
#include "interpreter_lock.h"
#include "recorded_text.h"
#include "recording/forks.h"
#include "recording/lock_search.h"
#include "recording/object_calls.h"

namespace py = pybind11;

namespace headrace::python {

template <class T>
std::shared_ptr<T> handle_of(PyObject* object, const char* wanted) {
  try {
    return py::cast<std::shared_ptr<T>>(py::handle(object));
  } catch (const py::cast_error&) {
    PyErr_Format(PyExc_TypeError, "needs a %s, not %.200s", wanted, Py_TYPE(object)->tp_name);
    return nullptr;
  }
}

std::shared_ptr<profile::OperatorHandle> operator_handle_of(PyObject* object) {
  return handle_of<profile::OperatorHandle>(object, "headrace._core.OperatorHandle");
}
std::shared_ptr<profile::LoaderHandle> loader_handle_of(PyObject* object) {
  return handle_of<profile::LoaderHandle>(object, "headrace._core.LoaderHandle");
}
std::shared_ptr<profile::QueueHandle> thread_queue_handle_of(PyObject* object) {
  return handle_of<profile::QueueHandle>(object, "QueueHandle");
}

namespace {

/// A path from Python: str, bytes or PathLike, also one that is no UTF-8.
using Path = std::filesystem::path;

/// A session that can be told apart from others and closed; what Python's Session object holds.
using SharedSession = std::shared_ptr<profile::Session>;

std::vector<std::shared_ptr<profile::QueueHandle>> queue_handles(const py::iterable& queues) {
  std::vector<std::shared_ptr<profile::QueueHandle>> handles;
  for (const py::handle queue : queues) {
    auto handle = queue_handle_of(queue.ptr());
    if (handle == nullptr) throw UsageError("input= and output= take headrace.Queue objects");
    handles.push_back(std::move(handle));
  }
  return handles;
}

/// JSON of one loader's profile; `epoch` counts from 1, negative ones from the end; 0: everything.
/// A counter of a loader's sink as it is now; 0 where the run has no record of it.
template <auto kCounter>
auto sink_counter(const profile::LoaderHandle& handle) {
  const profile::LoaderRecord* record = handle.session()->loader_record(handle.id());
  return record == nullptr ? decltype((record->sink.*kCounter).load()){} : (record->sink.*kCounter).load();
}

std::string profile_of_handle(const std::shared_ptr<const profile::LoaderHandle>& handle, int epoch) {
  const profile::LoaderHandle& loader = *handle;
  profile::SegmentImage now;
  now.read_memory(loader.session()->segment().data(), loader.session()->segment().size());
  if (loader.id() < 0)
    throw Error("this loader was not recorded: the run already holds as many loaders as it can");
  const auto index = static_cast<std::uint32_t>(loader.id());
  if (epoch == 0) {
    loader.session()->note_report(loader.id());
    return profile::profile_to_json(profile::read_profile(now, index));
  }
  const auto starts = loader.epoch_starts();
  const auto total = static_cast<int>(now.loaders()[index].sink.epochs.load());
  const int wanted = epoch > 0 ? epoch : total + 1 + epoch;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (static_cast<int>(starts[i].epoch) != wanted) continue;
    const profile::SegmentImage& end = i + 1 < starts.size() ? *starts[i + 1].image : now;
    return profile::profile_to_json(profile::read_profile(end, index, starts[i].image.get()));
  }
  throw UsageError("epoch " + std::to_string(epoch) + " is not kept: " + std::to_string(total) +
                   " epochs were run, the last " + std::to_string(starts.size()) + " can be reported alone");
}

void add_sessions(py::module_& module) {
  py::class_<profile::Session, SharedSession>(
      module, "Session", "A segment that this process writes to: its own, or another process's.")
      .def_static(
          "open",
          [](const Path& run, int rank, bool unnamed) {
            return profile::CurrentSession::for_run(run.string(), rank, unnamed);
          },
          py::arg("run"), py::arg("rank"), py::arg("unnamed") = false,
          "The session of a run folder; empty ``run``: the current one, or a new one in the default folder.")
      .def_static(
          "attach",
          [](const Path& path) {
            SharedSession session = profile::Session::attach(path.string());
            profile::CurrentSession::set(session);
            return session;
          },
          py::arg("path"), "Another process's session, made current. Raises SegmentError if it is gone.")
      .def("push", [](const SharedSession& session) { profile::CurrentSession::push(session); })
      .def("pop", [](const SharedSession& session) { profile::CurrentSession::pop(*session); })
      .def("close", on_shared(&profile::Session::close), py::call_guard<LockReleased>(),
           "Write the last copy to the run folder. What is recorded afterwards is lost.")
      .def(
          "take_messages",
          [](const SharedSession& session) { return list_of_texts(session->take_messages()); },
          "-> list[str]\nErrors with files, and the path of an unnamed run: each line once.")
      .def_property_readonly("run", [](const SharedSession& session) { return str_of_path(session->run()); })
      .def_property_readonly("rank", &profile::Session::rank)
      .def_property_readonly("owner", &profile::Session::owner, "True in the process that opened it.")
      .def_property_readonly(
          "live_path", [](const SharedSession& session) { return str_of_path(session->live_path()); },
          "Where other processes attach; empty for anonymous memory.");

  module.def("current_session", [] { return profile::CurrentSession::peek(); }, "-> Session | None");
  module.def(
      "leave_session",
      [](const SharedSession& session) {
        if (profile::CurrentSession::peek() == session) profile::CurrentSession::set(nullptr);
      },
      py::arg("session"));
  module.def("disable", &profile::CurrentSession::disable);
  module.def(
      "close_all", [] { return list_of_texts(without_lock(&profile::CurrentSession::close_all)); },
      "-> list[str]\nCloses every session. Returns their messages.");

  py::class_<profile::OperatorHandle, std::shared_ptr<profile::OperatorHandle>>(
      module, "OperatorHandle", "One operator, in whatever session is current when it runs.")
      .def(
          py::init<std::string, std::string, std::uint64_t, std::uint32_t, std::string, int, std::uint32_t>(),
          py::arg("name"), py::arg("kind"), py::arg("key") = 0, py::arg("flags") = 0,
          py::arg("parameter") = "", py::arg("loader") = -1, py::arg("stage") = 0,
          "``parameter``: the parameter that sets its workers; ``x<=8``: that is x, and at most 8 can be "
          "busy. ``loader``, ``stage``: the loader whose own graph it belongs to, and its index there.")
      .def(
          "begin", [](profile::OperatorHandle& self) { return self.begin(); },
          "False if nothing is recorded; ``end`` is then not called.")
      .def("end", &profile::OperatorHandle::end, py::arg("failed"))
      .def("sampled_functions", &profile::OperatorHandle::sampled_functions, py::arg("lines"),
           "Functions that take its time: \"name<tab>share<newline>\" each. On a thread that records.")
      .def(
          "declare",
          [](profile::OperatorHandle& self, const py::iterable& inputs, const py::iterable& outputs) {
            self.declare(queue_handles(inputs), queue_handles(outputs));
          },
          "declare(inputs: Iterable[Queue[Any]], outputs: Iterable[Queue[Any]]) -> None")
      .def_property_readonly("name", &profile::OperatorHandle::name)
      .def_property_readonly("kind", &profile::OperatorHandle::kind)
      .def_property_readonly("key", &profile::OperatorHandle::key)
      .def_property_readonly("loader", &profile::OperatorHandle::loader)
      .def_property_readonly("stage", &profile::OperatorHandle::stage);
  module.attr("WRAPPED_OBJECT") = static_cast<std::uint32_t>(profile::kIsWrappedObject);
  module.attr("RUNS_OWN_WORKERS") = static_cast<std::uint32_t>(profile::kRunsOwnWorkers);
  module.attr("OF_THE_LOOP") = static_cast<std::uint32_t>(profile::kOfTheLoop);
  module.attr("SERIAL") = static_cast<std::uint32_t>(profile::kMarkedSerial);

  using profile::OverlappingCalls;
  py::class_<OverlappingCalls>(
      module, "OverlappingCalls",
      "Calls of one operator that overlap on one thread: the coroutines of an event loop.")
      .def(py::init<std::shared_ptr<profile::OperatorHandle>>(), py::arg("operator"))
      .def("done", &OverlappingCalls::done, py::arg("began_ns"), py::arg("failed"),
           "A call that began at ``began_ns`` has ended; what it awaited counts as its time.");

  using profile::QueueHandle;
  py::class_<QueueHandle, std::shared_ptr<QueueHandle>>(
      module, "QueueHandle",
      "A queue between two stages of a loader's model, as indices; ``to_stage`` -1: the training loop.\nThe "
      "queue reports its level after each put and get, one at a time.")
      .def(py::init([](std::string name, std::int64_t capacity, int loader, int from, int to) {
             return std::make_shared<QueueHandle>(std::move(name), capacity, loader,
                                                  profile::StageEdge{from, to});
           }),
           py::arg("name"), py::arg("capacity"), py::arg("loader"), py::arg("from_stage"),
           py::arg("to_stage"))
      .def_static(
          "of_threads",
          [](std::string name, std::int64_t capacity, bool is_fifo) {
            return std::make_shared<QueueHandle>(std::move(name), capacity, -1, is_fifo);
          },
          py::arg("name"), py::arg("capacity"), py::arg("is_fifo") = true,
          "A queue of the user's own, between the threads that put and take; ``capacity`` 0: no "
          "limit.\nis_fifo: first in, first out, so the age of each item is known.")
      .def(
          "put",
          [](QueueHandle& self, std::int64_t level, std::int64_t waited_ns, bool counts) {
            self.put(level, waited_ns, counts, nullptr);
          },
          py::arg("level"), py::arg("waited_ns") = 0, py::arg("counts") = true,
          "``waited_ns``: how long it waited for room. ``counts``: False for a mark that is not an item.")
      .def(
          "get",
          [](QueueHandle& self, std::int64_t level, std::int64_t waited_ns, bool counts,
             std::int64_t age_ns) { self.get(level, waited_ns, counts, nullptr, age_ns); },
          py::arg("level"), py::arg("waited_ns") = 0, py::arg("counts") = true, py::arg("age_ns") = -1,
          "``age_ns``: since the item was put; below 0: as its put was seen.")
      .def("begin", &QueueHandle::begin,
           "The queue exists, and is empty, from now on; without this call, from the first put or get.")
      .def(
          "sampled_functions",
          [](QueueHandle& self, const std::string& loop_name, bool puts, const std::string& lines) {
            self.sampled_functions(loop_name.c_str(), puts, lines);
          },
          py::arg("loop_name"), py::arg("puts"), py::arg("lines"),
          "As `OperatorHandle.sampled_functions`, of a thread whose first call of this queue was a put.")
      .def("sampled", &QueueHandle::sampled, py::arg("level"), py::arg("at_ns"),
           "It held ``level`` items at ``at_ns`` (the monotonic clock), until the next call says otherwise.")
      .def_property_readonly("name", &QueueHandle::name)
      .def_property_readonly("capacity", &QueueHandle::capacity);

  module.attr("LONGEST_MODEL") = profile::LoaderRecord::kModelBytes - 1;
  py::class_<profile::LoaderHandle, std::shared_ptr<profile::LoaderHandle>>(
      module, "LoaderHandle", "One wrapped loader's record in a session.")
      .def(py::init<SharedSession, const std::string&, std::shared_ptr<profile::OperatorHandle>,
                    std::uint64_t>(),
           py::arg("session"), py::arg("name"), py::arg("source").none(true), py::arg("identity") = 0,
           "__init__(session: Session, name: str, source: OperatorHandle | None, identity: int=0) -> None")
      .def_property_readonly("name", &profile::LoaderHandle::name)
      .def_property_readonly("session", &profile::LoaderHandle::session)
      .def_property_readonly("id", &profile::LoaderHandle::id,
                             "Its number in the run; below 0 if the run has no room for it.")
      .def("describe", &profile::LoaderHandle::describe, py::arg("model"), py::arg("workers"),
           "Its `LoaderModel` as JSON, and how many workers it has; from now on it has its own graph.")
      .def("put_in_front", &profile::LoaderHandle::put_in_front, py::arg("stages"),
           "Moves its operators so far this many stages on: others that feed it come first in its model.")
      .def("miss", &profile::LoaderHandle::miss, py::arg("gap"),
           "Something of it cannot be recorded: one of the NO_..._DETAIL.")
      .def_property_readonly("steps", &sink_counter<&metrics::SinkCell::steps>,
                             "Batches that its loops have taken so far.")
      .def_property_readonly(
          "in_next",
          [](const profile::LoaderHandle& self) {
            const auto [thread, first] = self.in_next();
            return py::make_tuple(thread, first);
          },
          "The thread of this process that is in its GetNext (0: none); whether it is its loop's first one.")
      .def_property_readonly(
          "computes", &sink_counter<&metrics::SinkCell::computes>,
          "Steps whose compute is complete: not that of a loop that was left in the middle of one.")
      .def_property_readonly("active", &sink_counter<&metrics::SinkCell::active>, "Its loops that run now.")
      .def("note", &profile::LoaderHandle::note, py::arg("key"), py::arg("value"),
           "A fact about it that verdicts use; the first one of a key stays.")
      .def(
          "set_ceiling",
          [](const profile::LoaderHandle& self, double step_s) {
            profile::LoaderRecord* record = self.session()->loader_record(self.id());
            if (record != nullptr && step_s > 0 && step_s < 1e9)
              record->ceiling_ns.store(static_cast<std::uint64_t>(step_s * 1e9));
          },
          py::arg("step_s"), "Seconds of a step over cached batches, measured.")
      .def(
          "add_operator",
          [](const profile::LoaderHandle& self, const std::shared_ptr<profile::OperatorHandle>& op) {
            op->id_in(*self.session());
          },
          py::arg("operator"), "Shows the operator in this loader's graph, also when it is never called.")
      .def("profile_json", &profile_of_handle, py::arg("epoch") = 0, py::call_guard<LockReleased>(),
           "A `Profile` in JSON; epochs count from 1, negative ones from the end, 0 is everything.");
}

/// Collections of this process that are over, and when the one that goes on began (0: none). With the
/// interpreter lock.
std::int64_t collections_ns = 0;
std::int64_t collection_began_ns = 0;

std::int64_t all_collections_ns() {
  return collections_ns + (collection_began_ns == 0 ? 0 : metrics::Clock::now_ns() - collection_began_ns);
}

void add_runs(py::module_& module) {
  module.def("default_run_folder", [] { return str_of_path(profile::default_run_folder()); });
  module.def("default_run_is_unnamed", &profile::default_run_is_unnamed,
             "The default folder has nothing but date, time and pid for a name.");
  module.def(
      "make_run_folder", [](const Path& run) { return str_of_text(profile::make_run_folder(run.string())); },
      py::arg("run"), "Creates it, private, with its parents. Returns \"\" or the reason why not.");
  module.def(
      "remove_run_folder", [](const Path& run) { profile::remove_run_folder(run.string()); }, py::arg("run"),
      "Removes it if it contains only files that Headrace wrote.");
  module.def(
      "collect_orphans", [](const Path& run) { profile::collect_orphans(run.string()); }, py::arg("run"),
      "Moves the recordings of killed processes to their run folders.");
  module.def("before_fork", &before_fork,
             "Ends the threads of the recorder, so that CPython counts only the program's while it forks.");
  module.def("after_fork_in_parent", &after_fork_in_parent,
             "Starts them again. Calls come in pairs; of forks that overlap, the last one starts them.");
  // For gc.callbacks: phase is "start" or "stop".
  module.def(
      "note_collection",
      [](const std::string& phase, const py::handle&) {
        const bool begins = phase == "start";
        begins ? profile::collection_began() : profile::collection_ended();
        collections_ns = all_collections_ns();
        collection_began_ns = begins ? metrics::Clock::now_ns() : 0;
      },
      py::arg("phase"), py::arg("info"), "An entry for ``gc.callbacks``.");
  module.def(
      "collections_s", [] { return 1e-9 * static_cast<double>(all_collections_ns()); },
      "In the garbage collector, all threads, since the first wrapped loop.");
}

}  // namespace

void add_recording(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  add_sessions(module);
  add_runs(module);
  add_loader_bindings(into);
  add_transport(into);
  add_marks(into);
  add_watched_batches(into);
  add_frames(into);
  module.def(
      "calls_can_be_timed", [](py::handle object) { return ObjectCalls::possible(object.ptr()); },
      py::arg("called"),
      "Whether `TimedFetch` can time calls of this object: its class was defined in Python.");
  add_pipeline(into);
  add_process_channel(into);
  if (!add_timed_calls(into) || !add_queue(into) || !add_hooked_call(into) || !add_thread_queue_hooks(into) ||
      !add_timed_fetch(into) || !add_queue_call(into) || !add_timed_next(into)) {
    throw py::error_already_set();
  }
  install_device_clock();
  profile::Sampler::instance().set_lock_probe(&wait_for_interpreter_lock);
  profile::Sampler::instance().set_lock_finder(&find_interpreter_lock);
  profile::Sampler::instance().set_lock_holder(&holder_of_interpreter_lock);
}

}  // namespace headrace::python
