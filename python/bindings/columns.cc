// `_core.Columns`: NumPy views, Python lists and Arrow streams of a ColumnSet. Crossing only.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "arrow_stream.h"
#include "column_set.h"
#include "crossing.h"
#include "headrace/profile/errors.h"
#include "recorded_text.h"

namespace py = pybind11;

namespace headrace::python {
namespace {

using SharedColumns = std::shared_ptr<ColumnSet>;

const ColumnView& column_named(const ColumnSet& set, const std::string& name) {
  std::string names;
  for (const ColumnView& column : set.columns) {
    if (column.name == name) return column;
    names += (names.empty() ? "" : ", ") + column.name;
  }
  throw UsageError("no column '" + name + "'; there are: " + names);
}

using Values = std::variant<analysis::Integers, analysis::Numbers, std::vector<std::string>>;

ColumnSet columns_from(std::vector<std::pair<std::string, Values>> columns, std::vector<std::string> notes) {
  auto table = std::make_shared<analysis::Table>();
  table->notes = std::move(notes);
  for (auto& [name, values] : columns) {
    if (const auto* texts = std::get_if<std::vector<std::string>>(&values)) {
      analysis::Texts stored;
      for (const std::string& text : *texts) stored.push_back(text);
      table->add(std::move(name), std::move(stored));
    } else if (auto* integers = std::get_if<analysis::Integers>(&values)) {
      table->add(std::move(name), std::move(*integers));
    } else {
      table->add(std::move(name), std::move(std::get<analysis::Numbers>(values)));
    }
  }
  return columns_of(std::move(table));
}

/// A row as the stream's Python object; each text of a dictionary is made once.
class Rows {
 public:
  explicit Rows(const ColumnView& column) : column_(column) {
    if (column.dictionary != nullptr) made_.resize(column.dictionary->rows);
  }
  py::object operator[](std::size_t row) {
    switch (column_.format.front()) {
      case 'l':
        return py::int_(static_cast<const std::int64_t*>(column_.data)[row]);
      case 'g':
        return py::float_(static_cast<const double*>(column_.data)[row]);
      case 'i':
        return py::int_(static_cast<const std::int32_t*>(column_.data)[row]);
      case 'S':
        return py::int_(static_cast<const std::uint16_t*>(column_.data)[row]);
      case 'C':
        return py::int_(static_cast<const std::uint8_t*>(column_.data)[row]);
      case 'I': {
        const std::uint32_t value = static_cast<const std::uint32_t*>(column_.data)[row];
        if (column_.dictionary == nullptr) return py::int_(value);
        py::object& text = made_[value];
        if (!text) text = decoded(column_.dictionary->text(value));
        return text;
      }
      default:
        return decoded(column_.text(row));
    }
  }

 private:
  const ColumnView& column_;
  std::vector<py::object> made_;
};

py::list list_of(const ColumnView& column) {
  py::list values(static_cast<py::ssize_t>(column.rows));
  Rows rows(column);
  for (std::size_t row = 0; row < column.rows; ++row)
    PyList_SET_ITEM(values.ptr(), static_cast<Py_ssize_t>(row), rows[row].release().ptr());
  return values;
}

/// A read-only view of numbers (of a dictionary column: its codes) that keeps `owner` alive.
py::object view_of(const ColumnView& column, const py::object& owner) {
  const char* type = column.format == "l"   ? "i8"
                     : column.format == "g" ? "f8"
                     : column.format == "I" ? "u4"
                     : column.format == "i" ? "i4"
                     : column.format == "S" ? "u2"
                                            : "u1";
  static constexpr std::int64_t kNothing = 0;
  py::array view(py::dtype(type), {static_cast<py::ssize_t>(column.rows)},
                 {static_cast<py::ssize_t>(column.item_bytes())},
                 column.data != nullptr ? column.data : &kNothing, owner);
  view.attr("flags").attr("writeable") = false;
  return view;
}

py::capsule arrow_capsule(const SharedColumns& columns) {
  return py::capsule(make_arrow_stream(columns), "arrow_array_stream", [](PyObject* capsule) {
    void* stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    delete_arrow_stream(static_cast<ArrowArrayStream*>(stream));
  });
}

}  // namespace

void add_columns(PyObject* into) {
  auto module = py::reinterpret_borrow<py::module_>(into);
  py::class_<ColumnSet, SharedColumns>(module, "Columns",
                                       "Named columns of one length in C++ memory. Read-only.")
      .def_property_readonly(
          "names",
          [](const ColumnSet& self) {
            py::list names;
            for (const ColumnView& column : self.columns) names.append(column.name);
            return names;
          },
          "-> list[str]")
      .def_property_readonly("rows", &ColumnSet::rows)
      .def_property_readonly("notes", [](const ColumnSet& self) { return self.notes; })
      .def_static("of", &columns_from, py::arg("columns"), py::arg("notes"))
      .def(
          "is_text",
          [](const ColumnSet& self, const std::string& name) { return column_named(self, name).is_text(); },
          py::arg("name"))
      .def(
          "values",
          [](const ColumnSet& self, const std::string& name) { return list_of(column_named(self, name)); },
          py::arg("name"),
          "As Python objects. Raises UsageError if there is no such column, like the other methods.")
      .def(
          "view",
          [](const py::object& self, const std::string& name) {
            const ColumnView& column = column_named(*self.cast<SharedColumns>(), name);
            if (column.format == "U")
              throw UsageError("column '" + name + "' holds texts: no view of numbers");
            return view_of(column, self);
          },
          py::arg("name"), "A NumPy view of the numbers; of texts that are stored once: their numbers.")
      .def(
          "texts",
          [](const ColumnSet& self, const std::string& name) {
            const ColumnView& column = column_named(self, name);
            if (column.dictionary == nullptr) throw UsageError("column '" + name + "' has no dictionary");
            return list_of(*column.dictionary);
          },
          py::arg("name"), "-> list[str]\nThe texts that a column's numbers refer to.")
      .def(
          "describe",
          [](const ColumnSet& self) {
            py::list columns;
            for (const ColumnView& column : self.columns)
              columns.append(py::make_tuple(column.name, analysis::unit_of_column(column.name), column.says));
            return columns;
          },
          "-> list[tuple[str, str, str]]\nName, unit and how to read it, of each column; empty texts where "
          "the name says it.")
      .def(
          "__arrow_c_stream__",
          [](const SharedColumns& self, const py::object&) { return arrow_capsule(self); },
          py::arg("requested_schema") = py::none(), "-> object");
}

}  // namespace headrace::python
