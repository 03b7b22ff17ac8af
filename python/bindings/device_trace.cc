// Reading device traces, and their events. Crossing only.
#include "device_trace.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "column_set.h"
#include "crossing.h"
#include "headrace/analysis/traced_input.h"
#include "headrace/profile/errors.h"
#include "headrace/profile/history.h"
#include "headrace/profile/profile_json.h"
#include "headrace/timeline/device_profile.h"
#include "headrace/timeline/trace_with_counters.h"
#include "recorded_text.h"

namespace py = pybind11;
using namespace py::literals;

namespace headrace::python {
namespace {

using Arguments = std::vector<std::pair<std::string, std::string>>;

std::vector<trace::Argument> arguments_of(const Arguments& more) {
  std::vector<trace::Argument> arguments = trace::analysed_arguments();
  for (const auto& [name, kind] : more) {
    const auto same = [&name = name](const trace::Argument& other) { return other.name == name; };
    if (std::any_of(arguments.begin(), arguments.end(), same)) continue;
    if (kind == "integer") {
      arguments.push_back({name, trace::ArgumentKind::integer});
    } else if (kind == "number") {
      arguments.push_back({name, trace::ArgumentKind::number});
    } else if (kind == "text") {
      arguments.push_back({name, trace::ArgumentKind::text});
    } else {
      throw UsageError("argument '" + name + "' is to be 'integer', 'number' or 'text', not '" + kind + "'");
    }
  }
  return arguments;
}

TraceSet all_of(std::vector<trace::Trace> traces) {
  const std::size_t count = traces.size();
  return {std::make_shared<const std::vector<trace::Trace>>(std::move(traces)), 0, count};
}

/// Reads files in parallel; another thread may look how far it is.
class TraceLoader {
 public:
  TraceLoader(std::vector<std::string> paths, const Arguments& more, std::vector<std::int64_t> ranks)
      : paths_(std::move(paths)), ranks_(std::move(ranks)) {
    options_.arguments = arguments_of(more);
    options_.bytes_read = &bytes_read_;
    for (const std::string& path : paths_) {
      std::error_code unknown;
      const auto bytes = std::filesystem::file_size(path, unknown);
      if (!unknown) bytes_total_ += bytes;
    }
  }
  TraceSet load() { return all_of(trace::load_traces(paths_, options_, ranks_)); }
  std::uint64_t bytes_read() const noexcept { return bytes_read_.load(std::memory_order_relaxed); }
  std::uint64_t bytes_total() const noexcept { return bytes_total_; }

 private:
  std::vector<std::string> paths_;
  std::vector<std::int64_t> ranks_;
  trace::ReadOptions options_;
  std::atomic<std::uint64_t> bytes_read_{0};
  std::uint64_t bytes_total_ = 0;
};

/// Anything with a `read(n)` that gives bytes. Used with the interpreter lock let go; takes it for each read.
class PythonBytes final : public trace::ByteSource {
 public:
  explicit PythonBytes(const py::handle& file) : read_(file.attr("read")) {}
  ~PythonBytes() override {
    const LockTaken held;
    calling_python([this] { read_ = {}; });
  }
  PythonBytes(const PythonBytes&) = delete;
  PythonBytes& operator=(const PythonBytes&) = delete;

  std::size_t read(std::span<char> into) override {
    const LockTaken held;
    const py::bytes bytes = calling_python([&] { return py::bytes(read_(into.size())); });
    const auto view = static_cast<std::string_view>(bytes);
    if (view.size() > into.size()) throw UsageError("read(n) of a trace's file gave more than n bytes");
    std::copy(view.begin(), view.end(), into.begin());
    return view.size();
  }

 private:
  py::object read_;
};

/// `sources`: pairs of a name and an open file. One after the other: Python's files are not made for threads.
TraceSet load_sources(const std::vector<std::pair<std::string, py::object>>& sources, const Arguments& more) {
  trace::ReadOptions options;
  options.arguments = arguments_of(more);
  std::vector<trace::Trace> traces;
  for (const auto& [name, file] : sources) {
    PythonBytes bytes(file);
    const LockReleased released;
    for (trace::TraceFile& read : trace::read_stream(bytes, name, options))
      traces.push_back(trace::resolve(std::move(read)));
  }
  trace::arrange_by_rank(traces);
  return all_of(std::move(traces));
}

const trace::Trace& trace_at(const TraceSet& set, std::size_t index) {
  if (index >= set.count) throw py::index_error("trace index out of range");
  return set.traces()[index];
}

py::dict facts(const TraceSet& set, std::size_t index) {
  const trace::Trace& trace = trace_at(set, index);
  py::dict facts(
      "path"_a = str_of_path(trace.file.path), "rank"_a = trace.rank,
      "says_rank"_a = trace.file.rank.has_value(), "base_time_ns"_a = trace.file.base_time_ns,
      "is_run_of_its_own"_a = trace.is_run_of_its_own, "events"_a = trace.columns().size(),
      "length_ns"_a = trace::length_ns(trace), "json_bytes"_a = trace.file.notes.bytes,
      "column_bytes"_a = trace.columns().bytes(), "cut"_a = trace.file.notes.cut,
      "skipped"_a = trace.file.notes.skipped(), "notes"_a = list_of_texts(trace.file.notes.sentences()),
      "steps"_a = trace.steps.all().size(), "without_launch"_a = trace.correlation.without_launch());
  py::dict metadata;
  for (const auto& [key, value] : trace.file.metadata) metadata[decoded(key)] = decoded(value);
  facts["metadata"] = metadata;
  return facts;
}

/// Resolved facts of every event, in columns that are made for this call.
ColumnSet resolved(const TraceSet& set, std::size_t index) {
  const trace::Trace& trace = trace_at(set, index);
  const auto rows = static_cast<trace::Row>(trace.columns().size());
  analysis::Integers kind(rows);
  analysis::Integers launch(rows);
  analysis::Integers parent(rows);
  analysis::Integers depth(rows);
  analysis::Integers step(rows);
  const auto row_or_none = [](trace::Row row) {
    return row == trace::kNoRow ? std::int64_t{-1} : std::int64_t{row};
  };
  const std::vector<std::uint32_t> depths = trace.calls.depths();
  for (trace::Row row = 0; row < rows; ++row) {
    kind[row] = static_cast<std::int64_t>(trace.kinds[row]);
    launch[row] = row_or_none(trace.correlation.launch_of(row));
    parent[row] = row_or_none(trace.calls.parent_of(row));
    depth[row] = depths[row];
    step[row] = trace.steps.step_of(row);
  }
  auto table = std::make_shared<analysis::Table>();
  table->add("kind", std::move(kind)).add("launch", std::move(launch)).add("parent", std::move(parent));
  table->add("depth", std::move(depth)).add("step", std::move(step));
  return columns_of(std::shared_ptr<const analysis::Table>(std::move(table)));
}

/// Rows and values of an argument's column.
ColumnSet argument(const TraceSet& set, std::size_t index, const std::string& name) {
  const trace::Trace& trace = trace_at(set, index);
  const trace::ArgumentColumn* column = trace.columns().argument(name);
  if (column == nullptr) {
    std::string names;
    for (const auto& other : trace.columns().arguments)
      names += (names.empty() ? "" : ", ") + other.argument.name;
    throw UsageError("argument '" + name + "' was not read: load the trace with arguments={\"" + name +
                     "\": \"text\"}; there are: " + names);
  }
  return columns_of(trace.columns(), *column, set.all);
}

py::list lanes(const TraceSet& set, std::size_t index) {
  py::list lanes;
  for (const trace::Lane& lane : trace_at(set, index).columns().lanes) {
    py::dict entry("process"_a = lane.process, "thread"_a = lane.thread, "pid"_a = lane.pid,
                   "tid"_a = lane.tid, "process_name"_a = lane.process_name,
                   "process_labels"_a = lane.process_labels, "thread_name"_a = lane.thread_name);
    lanes.append(entry);
  }
  return lanes;
}

/// The profile with what the device did, and whether there was anything to tell. `segment`: of the same run,
/// or empty; a run without a history has none.
std::pair<std::string, bool> with_device(const std::string& profile_text, const TraceSet set,
                                         const std::string& segment, const std::string& fp_point,
                                         const std::string& bp_point) {
  const LockReleased released;
  profile::Profile profile = profile::profile_from_json(profile_text);
  std::optional<profile::History> history;
  if (!segment.empty()) history = profile::read_history(segment);
  profile.device = timeline::device_profile(set.traces()[0], history ? &*history : nullptr, profile.loader,
                                            {fp_point, bp_point});
  return {profile::profile_to_json(profile), profile.device.has_value()};
}

/// The profile of the input that the first trace shows, as JSON.
std::optional<std::string> traced_input(const TraceSet set) {
  const LockReleased released;
  const std::optional<profile::Profile> input = analysis::traced_input(set.traces()[0]);
  return input ? std::optional(profile::profile_to_json(*input)) : std::nullopt;
}

/// `opened`: gives the trace's bytes as a file of Python's; none: they are at its path.
py::dict write_with_counters(const TraceSet set, std::string out, std::vector<std::int64_t> steps,
                             const py::object& opened) {
  timeline::CountersRequest request{trace_at(set, 0), std::move(out), {}, {}};
  request.scope.steps = std::move(steps);
  if (!opened.is_none()) {
    request.open = [&opened] {
      const LockTaken held;
      return calling_python([&] { return std::make_unique<PythonBytes>(opened()); });
    };
  }
  const timeline::CountersResult written =
      without_lock([&] { return timeline::write_with_counters(request); });
  py::dict result("path"_a = written.path, "counters"_a = written.counters, "bytes"_a = written.bytes,
                  "notes"_a = written.notes);
  return result;
}

}  // namespace

void add_device_trace(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  py::class_<TraceSet>(module, "TraceSet", "The device traces of one or several ranks. Read-only.")
      .def("__len__", [](const TraceSet& self) { return self.count; })
      .def(
          "one",
          [](const TraceSet& self, std::size_t index) {
            trace_at(self, index);
            return TraceSet{self.all, self.first + index, 1};
          },
          py::arg("index"))
      .def_property_readonly("ranks",
                             [](const TraceSet& self) {
                               std::vector<std::int64_t> ranks;
                               for (const trace::Trace& trace : self.traces()) ranks.push_back(trace.rank);
                               return ranks;
                             })
      .def("facts", &facts, py::arg("index"),
           "Result of reading a file: path, rank, sizes, notes, and the other keys of the file as JSON.")
      .def(
          "events",
          [](const TraceSet& self, std::size_t index) {
            return std::make_shared<ColumnSet>(columns_of(trace_at(self, index).columns(), self.all));
          },
          py::arg("index"))
      .def(
          "resolved",
          [](const TraceSet& self, std::size_t index) {
            return std::make_shared<ColumnSet>(resolved(self, index));
          },
          py::arg("index"))
      .def(
          "argument",
          [](const TraceSet& self, std::size_t index, const std::string& name) {
            return std::make_shared<ColumnSet>(argument(self, index, name));
          },
          py::arg("index"), py::arg("name"))
      .def("lanes", &lanes, py::arg("index"), "-> list[dict[str, Any]]");

  py::class_<TraceLoader, std::shared_ptr<TraceLoader>>(
      module, "TraceLoader", "Reads files in parallel; another thread may read the progress.")
      .def(py::init<std::vector<std::string>, const Arguments&, std::vector<std::int64_t>>(),
           py::arg("paths"), py::arg("arguments"), py::arg("ranks"))
      .def("load", on_shared(&TraceLoader::load), py::call_guard<LockReleased>(),
           "Raises FormatError for a file that is not a trace.")
      .def_property_readonly("bytes_read", &TraceLoader::bytes_read)
      .def_property_readonly("bytes_total", &TraceLoader::bytes_total);
  module.def("traced_input", &traced_input, py::arg("traces"),
             "The profile of the input that the first trace shows, as JSON.");
  module.def("with_device", &with_device, py::arg("profile_text"), py::arg("traces"), py::arg("segment"),
             py::arg("fp_point"), py::arg("bp_point"),
             "The profile with what the device did; ``segment``: of the run, for its GetNext waits, or "
             "empty.\n``fp_point``, ``bp_point``: names of the points of a step, or empty.");
  module.def("write_with_counters", &write_with_counters, py::arg("traces"), py::arg("out"), py::arg("steps"),
             py::arg("opened").none(true),
             "write_with_counters(traces: TraceSet, out: str, steps: list[int], opened: Callable[[], Any] | "
             "None) -> dict[str, Any]\nWrites the file of the first trace with counters after its "
             "events.\n``opened``: returns the file, with ``read(n)``, if the path cannot be opened.");
  module.def(
      "load_trace_sources", &load_sources, py::arg("sources"), py::arg("arguments"),
      "load_trace_sources(sources: list[tuple[str, Any]], arguments: list[tuple[str, str]]) -> "
      "TraceSet\nReads open files, one after the other: pairs of a name and an object with ``read(n)``.");
}

}  // namespace headrace::python
