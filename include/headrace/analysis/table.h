// Result of an analysis of device traces: named columns of one length.
//
//     Table table;
//     table.add("name", std::move(names)).add("count", std::move(counts));
//     std::cout << table.rows() << table.numbers("mean_s")[0];
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace headrace::analysis {

/// Texts behind each other in one block, with an array of offsets: how Arrow lays them out (large_utf8), so
/// that they are handed on without a copy.
class Texts {
 public:
  void reserve(std::size_t count) { offsets_.reserve(count + 1); }
  void push_back(std::string_view text);
  std::string_view operator[](std::size_t row) const noexcept {
    const auto begin = static_cast<std::size_t>(offsets_[row]);
    return {bytes_.data() + begin, static_cast<std::size_t>(offsets_[row + 1]) - begin};
  }
  std::size_t size() const noexcept { return offsets_.size() - 1; }

  /// `size() + 1` offsets into `bytes()`.
  const std::vector<std::int64_t>& offsets() const noexcept { return offsets_; }
  const std::string& bytes() const noexcept { return bytes_; }

 private:
  std::string bytes_;
  std::vector<std::int64_t> offsets_{0};
};

using Integers = std::vector<std::int64_t>;
/// NaN if there is no figure: never 0 in its place.
using Numbers = std::vector<double>;

/// The unit that a column's name ends in: "s" of `_s`, "ns", "%" of `_pct`, "GB/s" of `_gbps`, "MB", "bytes",
/// "0 to 1" of `_share`. Counts and identities have none.
std::string_view unit_of_column(std::string_view name) noexcept;

struct Column {
  std::string name;
  std::variant<Integers, Numbers, Texts> values;
  /// How to read it; empty if the name says it. Static memory.
  std::string_view says;

  std::size_t size() const noexcept;
};

/// Plain data; thread-safe as long as it is not changed.
class Table {
 public:
  /// Appends a column. UsageError if the name is there already or the length is another than the rows'.
  Table& add(std::string name, std::variant<Integers, Numbers, Texts> values, std::string_view says = {});

  std::size_t rows() const noexcept { return columns_.empty() ? 0 : columns_.front().size(); }
  const std::vector<Column>& columns() const noexcept { return columns_; }

  /// UsageError if no column has the name; it says which ones there are.
  const Column& column(std::string_view name) const;
  /// A column of one type; UsageError if it is of another.
  const Integers& integers(std::string_view name) const;
  const Numbers& numbers(std::string_view name) const;
  const Texts& texts(std::string_view name) const;

  /// Remarks for its reader, a sentence each: "rank 1 has no communication".
  std::vector<std::string> notes;

 private:
  std::vector<Column> columns_;
};

}  // namespace headrace::analysis
