// Folders of other profilers, read as profiles.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>
#include <memory>

#include "column_set.h"
#include "crossing.h"
#include "headrace/analysis/second_opinions/folder_tables.h"
#include "headrace/analysis/second_opinions/profile_of_folder.h"
#include "headrace/profile/profile_json.h"

namespace py = pybind11;

namespace headrace::python {

void add_loader_files(PyObject* into) {
  using Path = std::filesystem::path;
  using Released = py::call_guard<LockReleased>;
  auto module = py::reinterpret_borrow<py::module_>(into);
  module.def(
      "profiler_ranks", [](const Path& folder) { return analysis::ranks_in_folder(folder.string()); },
      py::arg("folder"), Released());
  module.def(
      "profiler_profile_json",
      [](const Path& folder, int rank) {
        return profile::profile_to_json(analysis::profile_of_folder(folder.string(), rank));
      },
      py::arg("folder"), py::arg("rank"), Released());
  module.def(
      "profiler_tables",
      [](const Path& folder, int rank) { return analysis::folder_tables(folder.string(), rank); },
      py::arg("folder"), py::arg("rank"), Released());
  module.def(
      "profiler_table",
      [](const Path& folder, int rank, const std::string& name, const std::string& search,
         const std::string& group_by, const std::string& sort_by) {
        return std::make_shared<ColumnSet>(columns_of(std::make_shared<const analysis::Table>(
            analysis::folder_table(folder.string(), rank, name, {search, group_by, sort_by}))));
      },
      py::arg("folder"), py::arg("rank"), py::arg("name"), py::arg("search"), py::arg("group_by"),
      py::arg("sort_by"), Released());
  module.def(
      "profiler_timeline",
      [](const Path& folder, int rank) { return analysis::folder_timeline(folder.string(), rank); },
      py::arg("folder"), py::arg("rank"), Released());
}

}  // namespace headrace::python
