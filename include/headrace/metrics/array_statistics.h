// Statistics of an array: one pass over memory, about as fast as a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace headrace::metrics {

/// Types of elements.
enum class Element : std::uint8_t { f16, bf16, f32, f64, i8, u8, i16, i32, i64, boolean };

/// "float32" and the like; empty for a type that is not looked at.
std::optional<Element> element_of(std::string_view name);
std::size_t bytes_of(Element type);

/// Moments of finite numbers; others are counted. Sums are accumulated in blocks, in double.
struct Moments {
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  double sum = 0;
  double squares = 0;
  std::uint64_t finite = 0;
  std::uint64_t nonfinite = 0;

  void add(const Moments& other) noexcept;
  double mean() const noexcept { return finite > 0 ? sum / static_cast<double>(finite) : 0; }
  double deviation() const noexcept;
  /// The largest magnitude; 0 where nothing is finite.
  double peak() const noexcept;
};

/// Rows are the samples of a batch, parts the channels of a sample.
struct ArrayStatistics {
  Moments all;
  std::vector<Moments> parts;  ///< over all rows
  std::vector<double> peaks;   ///< of each row
  std::vector<std::uint32_t> nonfinite_rows;
  std::vector<std::uint32_t> constant_rows;  ///< all elements finite and equal
};

/// data: `rows` x `parts` x `part_size` elements, contiguous, in the order of C.
ArrayStatistics array_statistics(const void* data, Element type, std::size_t rows, std::size_t parts,
                                 std::size_t part_size);

/// A number for each row: equal rows have equal ones. Of the first 4 kB and the size; `salt` makes numbers of
/// different runs incomparable.
std::vector<std::uint64_t> row_hashes(const void* data, std::size_t rows, std::size_t row_bytes,
                                      std::uint64_t salt);

}  // namespace headrace::metrics
