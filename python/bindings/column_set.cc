#include "column_set.h"

#include <type_traits>
#include <utility>
#include <variant>

namespace headrace::python {
namespace {

template <class T>
constexpr const char* format_of() {
  if constexpr (std::is_same_v<T, double>) {
    return "g";
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return "l";
  } else if constexpr (std::is_same_v<T, std::int32_t>) {
    return "i";
  } else if constexpr (std::is_same_v<T, std::uint32_t>) {
    return "I";
  } else if constexpr (std::is_same_v<T, std::uint16_t>) {
    return "S";
  } else {
    static_assert(std::is_same_v<T, char>);
    return "C";
  }
}

template <class Array>
ColumnView view_of(std::string name, const Array& values) {
  return {format_of<typename Array::value_type>(),
          std::move(name),
          values.size(),
          values.data(),
          nullptr,
          nullptr};
}

template <class Narrow, class Wide>
ColumnView view_of(std::string name, const trace::Compact<Narrow, Wide>& values) {
  return values.is_wide() ? view_of(std::move(name), values.wide())
                          : view_of(std::move(name), values.narrow());
}

ColumnView view_of(std::string name, const analysis::Texts& texts) {
  return {"U", std::move(name), texts.size(), texts.bytes().data(), texts.offsets().data(), nullptr};
}

std::shared_ptr<const ColumnView> dictionary_of(const trace::Names& names) {
  static_assert(sizeof(std::uint64_t) == sizeof(std::int64_t));
  // Arrow's offsets are signed; no block of texts is long enough for that to matter.
  const auto* offsets = reinterpret_cast<const std::int64_t*>(names.offsets().data());
  return std::make_shared<const ColumnView>(
      ColumnView{"U", "", names.size(), names.texts().data(), offsets, nullptr});
}

}  // namespace

std::size_t ColumnView::item_bytes() const noexcept {
  switch (format.front()) {
    case 'l':
    case 'g':
      return 8;
    case 'I':
    case 'i':
      return 4;
    case 'S':
      return 2;
    default:
      return 1;
  }
}

std::string_view ColumnView::text(std::size_t row) const noexcept {
  if (dictionary != nullptr) return dictionary->text(static_cast<const std::uint32_t*>(data)[row]);
  const auto begin = static_cast<std::size_t>(offsets[row]);
  return {static_cast<const char*>(data) + begin, static_cast<std::size_t>(offsets[row + 1]) - begin};
}

ColumnSet columns_of(std::shared_ptr<const analysis::Table> table) {
  ColumnSet set;
  for (const analysis::Column& column : table->columns()) {
    set.columns.push_back(
        std::visit([&](const auto& values) { return view_of(column.name, values); }, column.values));
    set.columns.back().says = column.says;
  }
  set.notes = table->notes;
  set.owner = std::move(table);
  return set;
}

std::shared_ptr<ColumnSet> shared(analysis::Table&& table) {
  return std::make_shared<ColumnSet>(columns_of(std::make_shared<const analysis::Table>(std::move(table))));
}

ColumnSet columns_of(const trace::Columns& columns, std::shared_ptr<const void> owner) {
  ColumnSet set;
  const auto texts = dictionary_of(columns.names);
  const auto named = [&](const char* name, const trace::Values<trace::Names::Id>& ids) {
    ColumnView view = view_of(name, ids);
    view.dictionary = texts;
    set.columns.push_back(std::move(view));
  };
  named("name", columns.name);
  named("category", columns.category);
  set.columns.push_back(view_of("phase", columns.phase));
  set.columns.push_back(view_of("start_ns", columns.start_ns));
  set.columns.push_back(view_of("duration_ns", columns.duration_ns));
  set.columns.push_back(view_of("lane", columns.lane));
  set.columns.push_back(view_of("stream", columns.stream));
  set.columns.push_back(view_of("correlation", columns.correlation));
  set.columns.push_back(view_of("external_id", columns.external_id));
  set.columns.push_back(view_of("position", columns.position));
  set.owner = std::move(owner);
  return set;
}

ColumnSet columns_of(const trace::Columns& columns, const trace::ArgumentColumn& argument,
                     std::shared_ptr<const void> owner) {
  ColumnSet set;
  set.columns.push_back(view_of("row", argument.rows));
  switch (argument.argument.kind) {
    case trace::ArgumentKind::integer:
      set.columns.push_back(view_of("value", argument.integers));
      break;
    case trace::ArgumentKind::number:
      set.columns.push_back(view_of("value", argument.numbers));
      break;
    case trace::ArgumentKind::text:
      set.columns.push_back(view_of("value", argument.texts));
      set.columns.back().dictionary = dictionary_of(columns.names);
      break;
  }
  set.owner = std::move(owner);
  return set;
}

}  // namespace headrace::python
