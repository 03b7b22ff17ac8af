// A table's columns, declared once: their names, types and how to read them.
//
//     using OverlapColumns = ColumnList<Integer<"rank">, Optional<Integer<"device">>, Number<"overlap_s">,
//                                       Number<"overlap_pct", "Of the communication.">>;
//     Rows<OverlapColumns> rows;
//     rows.show<"device">(options.per_device);
//     rows.add(trace.rank, device, seconds(both_ns), percent(both_ns, communication_ns));
//     Table table = rows.take();
//
// A list may contain other lists, and a row may contain tuples and arrays of the values of several columns.
// A declared table is a line of `declared_tables` (device/declared_tables.h), which Python and the
// documentation read.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/analysis/table.h"

namespace headrace::analysis {

/// A text as a template argument.
template <std::size_t kSize>
struct Literal {
  consteval Literal(const char (&from)[kSize]) { std::copy_n(from, kSize, text); }  // NOLINT(*-explicit-*)
  constexpr std::string_view view() const noexcept { return {text, kSize - 1}; }

  char text[kSize]{};
};

/// A column: its name, which ends in its unit (table.h), and how to read it where that needs a sentence.
template <class ValuesOf, Literal kName, Literal kSays>
struct DeclaredColumn {
  using Columns = std::tuple<DeclaredColumn>;
  using Values = ValuesOf;
  static constexpr std::string_view name() noexcept { return kName.view(); }
  static constexpr std::string_view says() noexcept { return kSays.view(); }
  static constexpr bool optional() noexcept { return false; }
};
template <Literal kName, Literal kSays = "">
using Integer = DeclaredColumn<Integers, kName, kSays>;
template <Literal kName, Literal kSays = "">
using Number = DeclaredColumn<Numbers, kName, kSays>;
template <Literal kName, Literal kSays = "">
using Text = DeclaredColumn<Texts, kName, kSays>;

/// A column that a table has on request only (`Rows::show`).
template <class Column>
struct Optional : Column {
  using Columns = std::tuple<Optional>;
  static constexpr bool optional() noexcept { return true; }
};

/// Columns in their order; of a list among them, its columns.
template <class... Parts>
struct ColumnList {
  using Columns = decltype(std::tuple_cat(std::declval<typename Parts::Columns>()...));
  static constexpr std::size_t kCount = std::tuple_size_v<Columns>;

  /// Position of a column; `kCount` if there is none of the name.
  static constexpr std::size_t place_of(std::string_view name) noexcept {
    const auto all = names();
    return static_cast<std::size_t>(std::find(all.begin(), all.end(), name) - all.begin());
  }
  static constexpr std::array<std::string_view, kCount> names() noexcept {
    return []<class... Each>(const std::tuple<Each...>*) {
      return std::array<std::string_view, kCount>{Each::name()...};
    }(static_cast<const Columns*>(nullptr));
  }
};

/// Shape of a column, for readers of tables.
struct ColumnShape {
  std::string_view name;
  const char* type;  ///< "integer", "number", "text"
  std::string_view unit;
  std::string_view says;
  bool optional;
};

template <class List>
std::vector<ColumnShape> shape_of() {
  return []<class... Each>(const std::tuple<Each...>*) {
    const auto type = []<class Values>(const Values*) {
      if (std::same_as<Values, Texts>) return "text";
      return std::same_as<Values, Integers> ? "integer" : "number";
    };
    return std::vector<ColumnShape>{{Each::name(), type(static_cast<const typename Each::Values*>(nullptr)),
                                     unit_of_column(Each::name()), Each::says(), Each::optional()}...};
  }(static_cast<const typename List::Columns*>(nullptr));
}

/// The values of a row: those of tuples and arrays one by one.
template <class Value>
auto flat(const Value& value) {
  if constexpr (requires { std::tuple_size<Value>::value; }) {
    return std::apply([](const auto&... each) { return std::tuple_cat(flat(each)...); }, value);
  } else {
    return std::tuple<const Value&>(value);
  }
}

/// A table while it grows: one vector a column, so a row costs what its values cost.
template <class List>
class Rows {
 public:
  /// The values of the columns in their order. A value of another type than its column's does not compile:
  /// integers of any width and `bool`, `double`, or what a std::string_view can be made of.
  template <class... Values>
  void add(const Values&... values) {
    const auto row = std::tuple_cat(flat(values)...);
    static_assert(std::tuple_size_v<decltype(row)> == List::kCount, "a row has a value for each column");
    for_each_column([&](auto place) { append(std::get<place>(columns_), std::get<place>(row)); });
  }

  std::size_t size() const noexcept { return std::get<0>(columns_).size(); }
  /// Columns that are made this long ahead are not copied while they grow.
  void reserve(std::size_t rows) {
    for_each_column([&](auto place) { std::get<place>(columns_).reserve(rows); });
  }

  /// The values so far.
  template <Literal kName>
  const auto& column() const noexcept {
    return std::get<List::place_of(kName.view())>(columns_);
  }

  /// Whether the table gets an optional column; without this call, it does.
  template <Literal kName>
  void show(bool shown) noexcept {
    constexpr std::size_t kPlace = List::place_of(kName.view());
    static_assert(std::tuple_element_t<kPlace, typename List::Columns>::optional());
    shown_[kPlace] = shown;
  }

  void note(std::string text) { notes.push_back(std::move(text)); }
  /// "rank 3 has no work on a device": `text` begins with what follows the number.
  void note(std::int64_t rank, std::string_view text) {
    notes.push_back("rank " + std::to_string(rank) + std::string(text));
  }
  void take_notes(const std::vector<std::string>& more) {
    notes.insert(notes.end(), more.begin(), more.end());
  }

  /// The table with the notes; leaves this empty.
  Table take() {
    Table table;
    table.notes = std::move(notes);
    for_each_column([&](auto place) {
      using Column = std::tuple_element_t<place, typename List::Columns>;
      if (shown_[place])
        table.add(std::string(Column::name()), std::move(std::get<place>(columns_)), Column::says());
    });
    return table;
  }

  std::vector<std::string> notes;

 private:
  template <class Use>
  static void for_each_column(Use&& use) {
    [&]<std::size_t... kPlaces>(std::index_sequence<kPlaces...>) {
      (use(std::integral_constant<std::size_t, kPlaces>()), ...);
    }(std::make_index_sequence<List::kCount>());
  }
  template <class... Each>
  static std::tuple<typename Each::Values...> values_of(const std::tuple<Each...>*);
  static constexpr std::array<bool, List::kCount> all_shown() {
    std::array<bool, List::kCount> shown{};
    shown.fill(true);
    return shown;
  }

  static void append(Integers& column, std::integral auto value) {
    column.push_back(static_cast<std::int64_t>(value));
  }
  static void append(Numbers& column, std::same_as<double> auto value) { column.push_back(value); }
  static void append(Texts& column, std::string_view value) { column.push_back(value); }

  decltype(values_of(static_cast<const typename List::Columns*>(nullptr))) columns_;
  std::array<bool, List::kCount> shown_ = all_shown();
};

}  // namespace headrace::analysis
