// headrace._core: what Python sees of the C++ library. Crossing only, no logic.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>

#include "crossing.h"
#include "forks.h"
#include "headrace/analysis/cluster/run_ranks.h"
#include "headrace/analysis/verdict/verdict.h"
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
#include "verdict_tuple.h"

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

py::str str_of_path(const std::string& path) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

/// Text for people, which may name such a path.
py::str str_of_text(const std::string& text) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

py::list list_of_texts(const std::vector<std::string>& texts) {
  py::list list;
  for (const std::string& text : texts) list.append(str_of_text(text));
  return list;
}

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

std::shared_ptr<profile::SegmentImage> image_of(const Path& segment) {
  auto image = std::make_shared<profile::SegmentImage>();
  image->read_file(segment.string());
  return image;
}

py::list loaders_of_image(const profile::SegmentImage& image) {
  py::list loaders;
  for (const profile::LoaderSummary& loader : profile::list_loaders(image)) {
    py::dict entry;
    entry["index"] = loader.index;
    entry["name"] = decoded(loader.name);
    entry["steps"] = loader.steps;
    entry["wait_s"] = loader.wait_s;
    loaders.append(entry);
  }
  return loaders;
}

/// The `verdict_tuple` of the loader that waited longest; None if the segment has no loader.
py::object verdict_of_segment(const Path& path) {
  using Judged = std::pair<profile::Profile, analysis::Verdict>;
  const auto found = without_lock([&]() -> std::optional<Judged> {
    const auto image = image_of(path);
    const std::vector<profile::LoaderSummary> loaders = profile::list_loaders(*image);
    if (loaders.empty()) return std::nullopt;
    profile::Profile profile = profile::read_profile(*image, loaders.front().index);
    analysis::Verdict verdict = analysis::verdict_on(profile);
    return Judged(std::move(profile), std::move(verdict));
  });
  if (!found) return py::none();
  return verdict_tuple(found->second, found->first);
}

void add_recording(py::module_& module) {
  py::class_<profile::Session, SharedSession>(module, "Session")
      .def_static(
          "open",
          [](const Path& run, int rank, bool unnamed) {
            return profile::CurrentSession::for_run(run.string(), rank, unnamed);
          },
          py::arg("run"), py::arg("rank"), py::arg("unnamed") = false)
      .def_static("attach",
                  [](const Path& path) {
                    SharedSession session = profile::Session::attach(path.string());
                    profile::CurrentSession::set(session);
                    return session;
                  })
      .def("push", [](const SharedSession& session) { profile::CurrentSession::push(session); })
      .def("pop", [](const SharedSession& session) { profile::CurrentSession::pop(*session); })
      .def("close", on_shared(&profile::Session::close), py::call_guard<LockReleased>())
      .def("copy_out", on_shared(&profile::Session::copy_out), py::call_guard<LockReleased>())
      .def("take_messages",
           [](const SharedSession& session) { return list_of_texts(session->take_messages()); })
      .def_property_readonly("run", [](const SharedSession& session) { return str_of_path(session->run()); })
      .def_property_readonly("rank", &profile::Session::rank)
      .def_property_readonly("owner", &profile::Session::owner)
      .def_property_readonly("live_path",
                             [](const SharedSession& session) { return str_of_path(session->live_path()); });

  module.def("current_session", [] { return profile::CurrentSession::peek(); });
  module.def("leave_session", [](const SharedSession& session) {
    if (profile::CurrentSession::peek() == session) profile::CurrentSession::set(nullptr);
  });
  module.def("disable", &profile::CurrentSession::disable);
  module.def("close_all", [] { return list_of_texts(without_lock(&profile::CurrentSession::close_all)); });

  py::class_<profile::OperatorHandle, std::shared_ptr<profile::OperatorHandle>>(module, "OperatorHandle")
      .def(
          py::init<std::string, std::string, std::uint64_t, std::uint32_t, std::string, int, std::uint32_t>(),
          py::arg("name"), py::arg("kind"), py::arg("key") = 0, py::arg("flags") = 0,
          py::arg("parameter") = "", py::arg("loader") = -1, py::arg("stage") = 0)
      .def("begin", [](profile::OperatorHandle& self) { return self.begin(); })
      .def("end", &profile::OperatorHandle::end)
      .def("sampled_functions",
           [](profile::OperatorHandle& self, const std::string& lines) { self.sampled_functions(lines); })
      .def("declare",
           [](profile::OperatorHandle& self, const py::iterable& inputs, const py::iterable& outputs) {
             self.declare(queue_handles(inputs), queue_handles(outputs));
           })
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
  py::class_<OverlappingCalls>(module, "OverlappingCalls")
      .def(py::init<std::shared_ptr<profile::OperatorHandle>>(), py::arg("operator"))
      .def_static("now_ns", &metrics::Clock::now_ns)
      .def("done", &OverlappingCalls::done, py::arg("began_ns"), py::arg("failed"));

  using profile::QueueHandle;
  py::class_<QueueHandle, std::shared_ptr<QueueHandle>>(module, "QueueHandle")
      .def(py::init([](std::string name, std::int64_t capacity, int loader, int from, int to) {
             return std::make_shared<QueueHandle>(std::move(name), capacity, loader,
                                                  profile::StageEdge{from, to});
           }),
           py::arg("name"), py::arg("capacity"), py::arg("loader"), py::arg("from_stage"),
           py::arg("to_stage"))
      .def_static(
          "of_threads",
          [](std::string name, std::int64_t capacity) {
            return std::make_shared<QueueHandle>(std::move(name), capacity);
          },
          py::arg("name"), py::arg("capacity"))
      .def(
          "put",
          [](QueueHandle& self, std::int64_t level, std::int64_t waited_ns, bool counts) {
            self.put(level, waited_ns, counts, nullptr);
          },
          py::arg("level"), py::arg("waited_ns") = 0, py::arg("counts") = true)
      .def(
          "get",
          [](QueueHandle& self, std::int64_t level, std::int64_t waited_ns, bool counts) {
            self.get(level, waited_ns, counts, nullptr);
          },
          py::arg("level"), py::arg("waited_ns") = 0, py::arg("counts") = true)
      .def("begin", &QueueHandle::begin)
      .def("sampled", &QueueHandle::sampled, py::arg("level"), py::arg("at_ns"))
      .def_property_readonly("name", &QueueHandle::name)
      .def_property_readonly("capacity", &QueueHandle::capacity);

  module.attr("LONGEST_MODEL") = profile::LoaderRecord::kModelBytes - 1;
  py::class_<profile::LoaderHandle, std::shared_ptr<profile::LoaderHandle>>(module, "LoaderHandle")
      .def(py::init<SharedSession, const std::string&, std::shared_ptr<profile::OperatorHandle>,
                    std::uint64_t>(),
           py::arg("session"), py::arg("name"), py::arg("source").none(true), py::arg("identity") = 0)
      .def_property_readonly("name", &profile::LoaderHandle::name)
      .def_property_readonly("session", &profile::LoaderHandle::session)
      .def_property_readonly("id", &profile::LoaderHandle::id)
      .def("describe", &profile::LoaderHandle::describe, py::arg("model"), py::arg("workers"))
      .def("put_in_front", &profile::LoaderHandle::put_in_front, py::arg("stages"))
      .def("miss", &profile::LoaderHandle::miss, py::arg("gap"))
      .def_property_readonly("steps",
                             [](const profile::LoaderHandle& self) -> std::uint64_t {
                               const profile::LoaderRecord* record = self.session()->loader_record(self.id());
                               return record == nullptr ? 0 : record->sink.steps.load();
                             })
      .def(
          "note",
          [](profile::LoaderHandle& self, const std::string& key, const std::string& value) {
            self.note(key, value);
          },
          py::arg("key"), py::arg("value"))
      .def(
          "set_ceiling",
          [](const profile::LoaderHandle& self, double step_s) {
            profile::LoaderRecord* record = self.session()->loader_record(self.id());
            if (record != nullptr && step_s > 0 && step_s < 1e9)
              record->ceiling_ns.store(static_cast<std::uint64_t>(step_s * 1e9));
          },
          py::arg("step_s"))
      .def(
          "add_operator",
          [](const profile::LoaderHandle& self, const std::shared_ptr<profile::OperatorHandle>& op) {
            op->id_in(*self.session());
          },
          py::arg("operator"))
      .def("profile_json", &profile_of_handle, py::arg("epoch") = 0, py::call_guard<LockReleased>());
}

void add_reading(py::module_& module) {
  module.def("default_run_folder", [] { return str_of_path(profile::default_run_folder()); });
  module.def("default_run_is_unnamed", &profile::default_run_is_unnamed);
  module.def("make_run_folder",
             [](const Path& run) { return str_of_text(profile::make_run_folder(run.string())); });
  module.def("remove_run_folder", [](const Path& run) { profile::remove_run_folder(run.string()); });
  module.def("collect_orphans", [](const Path& run) { profile::collect_orphans(run.string()); });
  module.def("missing_recordings",
             [](const Path& run) { return list_of_texts(profile::missing_recordings(run.string())); });
  module.def("default_rank", &profile::default_rank);
  module.def("before_fork", &before_fork);
  module.def("after_fork_in_parent", &after_fork_in_parent);
  // For gc.callbacks: phase is "start" or "stop".
  module.def("note_collection", [](const std::string& phase, const py::handle&) {
    phase == "start" ? profile::collection_began() : profile::collection_ended();
  });
  module.def("find_segments", [](const Path& run) {
    py::list found;
    for (const profile::RunSegment& segment : profile::find_segments(run.string())) {
      py::dict entry;
      entry["path"] = str_of_path(segment.path);
      entry["rank"] = segment.rank;
      entry["running"] = segment.running;
      found.append(entry);
    }
    return found;
  });
  module.def("segment_loaders", [](const Path& path) {
    const auto image = without_lock([&] { return image_of(path); });
    return loaders_of_image(*image);
  });
  module.def("segment_verdict", verdict_of_segment);
  module.def(
      "segment_profile_json",
      [](const Path& path, std::uint32_t loader) {
        return profile::profile_to_json(profile::read_profile(*image_of(path), loader));
      },
      py::call_guard<LockReleased>());
  py::class_<profile::SegmentImage, std::shared_ptr<profile::SegmentImage>>(module, "SegmentImage")
      .def(py::init(&image_of), py::arg("path"), py::call_guard<LockReleased>())
      .def("loaders", [](const profile::SegmentImage& image) { return loaders_of_image(image); })
      .def(
          "profile_json",
          [](const profile::SegmentImage& image, std::uint32_t loader, const profile::SegmentImage* since) {
            return profile::profile_to_json(profile::read_profile(image, loader, since));
          },
          py::arg("loader"), py::arg("since").none(true) = nullptr, py::call_guard<LockReleased>());
  module.def(
      "with_findings",
      [](const std::string& profile_text, const std::string& findings) {
        profile::Profile profile = profile::profile_from_json(profile_text);
        profile.findings = profile::profile_from_json("{\"findings\":" + findings + "}").findings;
        return profile::profile_to_json(profile);
      },
      py::arg("profile_text"), py::arg("findings"), py::call_guard<LockReleased>());
  module.def("profile_schema", [] { return profile::profile_schema(); });
  module.def(
      "add_ranks",
      [](const std::string& profile_text, const std::vector<std::tuple<Path, std::uint32_t, int>>& others) {
        profile::Profile profile = profile::profile_from_json(profile_text);
        std::vector<analysis::cluster::RankSource> sources;
        for (const auto& [path, loader, rank] : others) sources.push_back({path.string(), loader, rank});
        analysis::cluster::add_ranks(profile, sources);
        return profile::profile_to_json(profile);
      },
      py::call_guard<LockReleased>());
}

/// The errors of the C++ tree become those of headrace.errors, with their fields.
void add_errors() {
  py::register_exception_translator([](std::exception_ptr pending) {
    const auto raise = [](const char* name, const py::tuple& args) {
      const py::object type = py::module_::import("headrace.errors").attr(name);
      PyErr_SetObject(type.ptr(), type(*args).ptr());
    };
    try {
      if (pending) std::rethrow_exception(pending);
    } catch (const FormatError& error) {
      raise("FormatError",
            py::make_tuple(str_of_path(error.path()), error.offset(), str_of_text(error.expected())));
    } catch (const SegmentError& error) {
      raise("SegmentError", py::make_tuple(str_of_text(error.what())));
    } catch (const UsageError& error) {
      raise("UsageError", py::make_tuple(str_of_text(error.what())));
    } catch (const DeviceError& error) {
      raise("DeviceError", py::make_tuple(str_of_text(error.what())));
    } catch (const Error& error) {
      raise("Error", py::make_tuple(str_of_text(error.what())));
    }
  });
}

}  // namespace
}  // namespace headrace::python

PYBIND11_MODULE(_core, module) {
  using namespace headrace;
  module.attr("__version__") = HEADRACE_VERSION;
  python::add_errors();
  python::add_recording(module);
  python::add_reading(module);
  python::add_loader_bindings(module.ptr());
  python::add_transport(module.ptr());
  python::add_parsed_report(module.ptr());
  python::add_loader_files(module.ptr());
  python::add_annotation(module.ptr());
  python::add_steps(module.ptr());
  python::add_columns(module.ptr());
  python::add_device_trace(module.ptr());
  python::add_device_tables(module.ptr());
  python::add_ascend(module.ptr());
  python::add_job(module.ptr());
  python::add_cluster(module.ptr());
  python::add_memory_snapshot(module.ptr());
  python::add_watched_batches(module.ptr());
  python::add_tuning(module.ptr());
  python::add_critical_path(module.ptr());
  python::add_timeline(module.ptr());
  python::add_pipeline(module.ptr());
  python::add_process_channel(module.ptr());
  if (!python::add_timed_callable(module.ptr()) || !python::add_timed_iterator(module.ptr()) ||
      !python::add_operator_iterator(module.ptr()) || !python::add_queue(module.ptr()) ||
      !python::add_hooked_call(module.ptr()) || !python::add_thread_queue_hooks(module.ptr()) ||
      !python::add_timed_dataset(module.ptr()) || !python::add_timed_fetch(module.ptr()) ||
      !python::add_queue_call(module.ptr()) || !python::add_timed_next(module.ptr())) {
    throw py::error_already_set();
  }
  python::install_device_clock();
  profile::Sampler::instance().set_lock_probe(&python::wait_for_interpreter_lock);
  profile::Sampler::instance().set_lock_finder(&python::find_interpreter_lock);
  profile::Sampler::instance().set_lock_holder(&python::holder_of_interpreter_lock);
}
