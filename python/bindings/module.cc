// headrace._core: what Python sees of the C++ library. Crossing only, no logic.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>

#include "crossing.h"
#include "headrace/analysis/cluster/run_ranks.h"
#include "headrace/metrics/clock.h"
#include "headrace/profile/errors.h"
#include "headrace/profile/profile_json.h"
#include "headrace/profile/run_folder.h"
#include "headrace/profile/session.h"
#include "headrace/profile/snapshot.h"
#include "interpreter_lock.h"
#include "recorded_text.h"

namespace py = pybind11;
using namespace py::literals;

namespace headrace::python {

namespace {

/// A path from Python: str, bytes or PathLike, also one that is no UTF-8.
using Path = std::filesystem::path;

std::shared_ptr<profile::SegmentImage> image_of(const Path& segment) {
  auto image = std::make_shared<profile::SegmentImage>();
  image->read_file(segment.string());
  return image;
}

py::list loaders_of_image(const profile::SegmentImage& image) {
  py::list loaders;
  for (const profile::LoaderSummary& loader : profile::list_loaders(image)) {
    py::dict entry("index"_a = loader.index, "name"_a = decoded(loader.name), "steps"_a = loader.steps,
                   "wait_s"_a = loader.wait_s, "first_batches_s"_a = loader.first_batches_s,
                   "compute_s"_a = loader.compute_s, "epochs"_a = loader.epochs,
                   "superseded"_a = loader.superseded);
    loaders.append(entry);
  }
  return loaders;
}

void add_reading(py::module_& module) {
  module.def("default_rank", &profile::default_rank);
  module.def(
      "missing_recordings",
      [](const Path& run) { return list_of_texts(profile::missing_recordings(run.string())); },
      py::arg("run"), "-> list[str]\nA line for each unreadable recording, with the reason.");
  module.def(
      "find_segments",
      [](const Path& run) {
        py::list found;
        for (const profile::RunSegment& segment : profile::find_segments(run.string())) {
          py::dict entry("path"_a = str_of_path(segment.path), "rank"_a = segment.rank,
                         "running"_a = segment.running);
          found.append(entry);
        }
        return found;
      },
      py::arg("run"),
      "-> list[dict[str, Any]]\n``{\"path\", \"rank\", \"running\"}`` for each recording of a run folder.");
  module.def(
      "segment_loaders",
      [](const Path& path) {
        const auto image = without_lock([&] { return image_of(path); });
        return loaders_of_image(*image);
      },
      py::arg("path"),
      "-> list[dict[str, Any]]\n``{\"index\", \"name\", \"steps\", \"wait_s\", \"first_batches_s\", "
      "\"compute_s\", \"epochs\", \"superseded\"}`` of each loader, the one that waited longest first, those "
      "that go on under another name last.");
  module.def(
      "segment_profile_json",
      [](const Path& path, std::uint32_t loader) {
        return profile::profile_to_json(profile::read_profile(*image_of(path), loader));
      },
      py::call_guard<LockReleased>(), py::arg("path"), py::arg("loader"));
  py::class_<profile::SegmentImage, std::shared_ptr<profile::SegmentImage>>(
      module, "SegmentImage", "Contents of a segment at one moment.")
      .def(py::init(&image_of), py::arg("path"), py::call_guard<LockReleased>())
      .def(
          "loaders", [](const profile::SegmentImage& image) { return loaders_of_image(image); },
          "-> list[dict[str, Any]]")
      .def(
          "profile_json",
          [](const profile::SegmentImage& image, std::uint32_t loader, const profile::SegmentImage* since) {
            return profile::profile_to_json(profile::read_profile(image, loader, since));
          },
          py::arg("loader"), py::arg("since").none(true) = nullptr, py::call_guard<LockReleased>(),
          "profile_json(loader: int, since: SegmentImage | None=None) -> str\nA `Profile` as JSON: of the "
          "whole run, or of what came after ``since``, an earlier image of it.");
  module.def(
      "with_run_files",
      [](const std::string& profile_text, const std::string& beside) {
        profile::Profile profile = profile::profile_from_json(profile_text);
        profile::Profile read = profile::profile_from_json(beside);
        profile.findings = std::move(read.findings);
        profile.budget = std::move(read.budget);
        profile.tokens = std::move(read.tokens);
        profile.autopilot = std::move(read.autopilot);
        return profile::profile_to_json(profile);
      },
      py::arg("profile_text"), py::arg("beside"), py::call_guard<LockReleased>(),
      "The profile with the \"findings\" and the \"budget\" of a JSON object.");
  module.def(
      "profile_schema", [] { return profile::profile_schema(); },
      "The declared figures of a profile, as JSON.");
  module.def(
      "add_ranks",
      [](const std::string& profile_text, const std::vector<std::tuple<Path, std::uint32_t, int>>& others) {
        profile::Profile profile = profile::profile_from_json(profile_text);
        std::vector<analysis::cluster::RankSource> sources;
        for (const auto& [path, loader, rank] : others) sources.push_back({path.string(), loader, rank});
        analysis::cluster::add_ranks(profile, sources);
        return profile::profile_to_json(profile);
      },
      py::call_guard<LockReleased>(), py::arg("profile_text"), py::arg("others"));
  module.def(
      "beside_ranks",
      [](const std::string& profile_text, const std::vector<std::string>& others) {
        profile::Profile profile = profile::profile_from_json(profile_text);
        analysis::cluster::RunRanks ranks(profile);
        for (const std::string& other : others) ranks.add(profile::profile_from_json(other));
        std::move(ranks).write(profile);
        return profile::profile_to_json(profile);
      },
      py::arg("profile_text"), py::arg("others"), py::call_guard<LockReleased>(),
      "The profile with the figures of the same loader in other ranks, given as profiles.");
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
  module.def("now_ns", &metrics::Clock::now_ns);
  module.def("now_s", [] { return static_cast<double>(metrics::Clock::now_ns()) * 1e-9; });
  module.def("set_virtual_time", &metrics::Clock::set_virtual, py::arg("is_virtual"));
  module.def("advance_virtual_time", &metrics::Clock::advance, py::arg("ns"), py::arg("cpu_ns"));
  python::add_recording(module.ptr());
  python::add_reading(module);
  python::add_parsed_report(module.ptr());
  python::add_columns(module.ptr());
  python::add_device_trace(module.ptr());
  python::add_ascend(module.ptr());
  python::add_job(module.ptr());
  python::add_cluster(module.ptr());
  python::add_live(module.ptr());
  python::add_device_tables(module.ptr());
  python::add_timeline(module.ptr());
}
