// The tables of device traces and of memory snapshots, declared once each: what makes a table, its options
// and its columns (rows.h). Python's methods with their docstrings, `Trace.table`, `headrace trace --table`
// and the pages of columns are made from these declarations.
//
//     declared<Traces>("kernels", "Calls and times by kernel name, the longest first.", &kernels,
//                      {sole<KernelsColumns>()}, Option{"memory", &KernelsOptions::memory})
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/rows.h"
#include "headrace/analysis/table.h"

namespace headrace::memory {
struct Snapshot;
}

namespace headrace::analysis::device {

using Traces = std::span<const trace::Trace>;
using Snapshot = const memory::Snapshot&;

/// The types that an option can have. Each is shown to Python as the type that it is converted from.
using OptionValue =
    std::variant<bool, std::int64_t, std::size_t, double, std::optional<double>, std::optional<std::string>,
                 std::vector<std::string>, std::vector<std::int64_t>>;

struct DeclaredOption {
  std::string_view name;
  OptionValue usual;
  bool by_place;  ///< may be given without its name
};

struct DeclaredTable {
  std::string_view part;  ///< of the analysis' answer; empty: the answer is the table
  std::vector<ColumnShape> columns;
  /// For `Trace.table` and `--table`. Empty: it cannot be had by name alone.
  std::string name;
};

template <class Source>
struct DeclaredAnalysis {
  std::string_view name;
  std::string_view says;
  std::vector<DeclaredOption> options;
  std::vector<DeclaredTable> tables;
  /// The tables in their order; `given`: a value for each of `options`. Empty: Python has a method of its
  /// own.
  std::function<std::vector<Table>(Source, std::span<const OptionValue> given)> make;
};

/// In the order of docs/device_columns.md.
std::vector<DeclaredAnalysis<Traces>> declared_analyses();
std::vector<DeclaredAnalysis<Snapshot>> declared_memory_analyses();

// --- how an analysis is declared ---

template <class Options, class Value>
struct Option {
  std::string_view name;
  Value Options::* member;
  bool by_place = false;
};
template <class Options, class Value>
Option(const char*, Value Options::*) -> Option<Options, Value>;
template <class Options, class Value>
Option(const char*, Value Options::*, bool) -> Option<Options, Value>;

template <class Answer>
struct Part {
  DeclaredTable table;
  std::function<Table&(Answer&)> of;
};

/// An answer that is one table.
template <class Columns>
Part<Table> sole() {
  return {{"", shape_of<Columns>(), {}}, [](Table& table) -> Table& { return table; }};
}

/// A table of several. `name` as in `DeclaredTable`; without one, "analysis_part".
template <class Columns, class Answer>
Part<Answer> part(std::string_view part, Table Answer::* member, std::string name = {}) {
  return {{part, shape_of<Columns>(), std::move(name)}, std::mem_fn(member)};
}

/// `make` takes the source and a struct of options, whose own values are the usual ones. If it has a `scope`,
/// the analysis has the option `steps`.
template <class Source, class Answer, class Options, class... Values>
DeclaredAnalysis<Source> declared(std::string_view name, std::string_view says,
                                  Answer (*make)(Source, const Options&),
                                  std::vector<Part<std::type_identity_t<Answer>>> parts,
                                  Option<Options, Values>... options) {
  constexpr bool kScoped = requires(Options asked) { asked.scope.steps; };
  [[maybe_unused]] const Options usual{};
  DeclaredAnalysis<Source> found{
      name, says, {{options.name, usual.*options.member, options.by_place}...}, {}, {}};
  if (kScoped) found.options.push_back({"steps", std::vector<std::int64_t>{}, false});
  for (const Part<Answer>& each : parts) {
    DeclaredTable& table = found.tables.emplace_back(each.table);
    if (table.name.empty())
      table.name = std::string(name) + (table.part.empty() ? "" : "_") + std::string(table.part);
  }
  found.make = [make, parts = std::move(parts), options...](Source source,
                                                            std::span<const OptionValue> given) {
    Options asked{};
    std::size_t place = 0;
    ((asked.*options.member = std::get<Values>(given[place++])), ...);
    if constexpr (kScoped) asked.scope.steps = std::get<std::vector<std::int64_t>>(given[place]);
    Answer answer = make(source, asked);
    std::vector<Table> tables;
    for (const Part<Answer>& each : parts) tables.push_back(std::move(each.of(answer)));
    return tables;
  };
  return found;
}

}  // namespace headrace::analysis::device
