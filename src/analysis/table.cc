#include "headrace/analysis/table.h"

#include <array>
#include <utility>

#include "headrace/profile/errors.h"

namespace headrace::analysis {
namespace {

template <class Values>
const Values& values_of(const Column& column, const char* type) {
  const auto* values = std::get_if<Values>(&column.values);
  if (values == nullptr) throw UsageError("column '" + column.name + "' does not hold " + type);
  return *values;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kUnits = {{{"_ns", "ns"},
                                                                                   {"_s", "s"},
                                                                                   {"_pct", "%"},
                                                                                   {"_share", "0 to 1"},
                                                                                   {"_ratio", "0 to 1"},
                                                                                   {"_gbps", "GB/s"},
                                                                                   {"_mb", "MB"},
                                                                                   {"_kb", "KB"},
                                                                                   {"_mhz", "MHz"},
                                                                                   {"bytes", "bytes"}}};

}  // namespace

std::string_view unit_of_column(std::string_view name) noexcept {
  for (const auto& [ending, unit] : kUnits) {
    if (name.ends_with(ending)) return unit;
  }
  return {};
}

void Texts::push_back(std::string_view text) {
  bytes_ += text;
  offsets_.push_back(static_cast<std::int64_t>(bytes_.size()));
}

std::size_t Column::size() const noexcept {
  return std::visit([](const auto& held) { return held.size(); }, values);
}

Table& Table::add(std::string name, std::variant<Integers, Numbers, Texts> values, std::string_view says) {
  Column column{std::move(name), std::move(values), says};
  for (const Column& other : columns_) {
    if (other.name == column.name)
      throw UsageError("two columns of a table are called '" + column.name + "'");
  }
  if (!columns_.empty() && column.size() != rows()) {
    throw UsageError("column '" + column.name + "' has " + std::to_string(column.size()) +
                     " rows, the table " + std::to_string(rows()));
  }
  columns_.push_back(std::move(column));
  return *this;
}

const Column& Table::column(std::string_view name) const {
  std::string names;
  for (const Column& column : columns_) {
    if (column.name == name) return column;
    names += (names.empty() ? "" : ", ") + column.name;
  }
  throw UsageError("no column '" + std::string(name) + "'; there are: " + names);
}

const Integers& Table::integers(std::string_view name) const {
  return values_of<Integers>(column(name), "integers");
}
const Numbers& Table::numbers(std::string_view name) const {
  return values_of<Numbers>(column(name), "numbers");
}
const Texts& Table::texts(std::string_view name) const { return values_of<Texts>(column(name), "texts"); }

}  // namespace headrace::analysis
