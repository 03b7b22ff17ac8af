#include "headrace/trace/columns.h"

#include <algorithm>
#include <limits>
#include <new>

#include "profile/pages.h"

namespace headrace::trace {
namespace {

template <class... Arrays>
std::size_t bytes_of(const Arrays&... arrays) {
  return (... + arrays.bytes());
}

std::size_t bytes_of_column(const ArgumentColumn& column) {
  return bytes_of(column.rows, column.integers, column.numbers, column.texts);
}

}  // namespace

GrowingMemory::~GrowingMemory() { profile::free_block(data_, bytes_); }

void GrowingMemory::grow(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 4) throw std::bad_alloc();
  const std::size_t wanted = profile::block_bytes(std::max({bytes, 2 * bytes_, std::size_t{64}}));
  void* const data = profile::grow_block(data_, bytes_, wanted);
  if (data == nullptr) throw std::bad_alloc();
  data_ = data;
  bytes_ = wanted;
}

std::optional<std::size_t> ArgumentColumn::find(Row row) const noexcept {
  const auto at = std::lower_bound(rows.begin(), rows.end(), row);
  if (at == rows.end() || *at != row) return std::nullopt;
  return static_cast<std::size_t>(at - rows.begin());
}

std::optional<std::int64_t> integer_at(const ArgumentColumn* column, Row row) noexcept {
  const auto at = column == nullptr ? std::nullopt : column->find(row);
  return at && *at < column->integers.size() ? std::optional<std::int64_t>(column->integers[*at])
                                             : std::nullopt;
}

std::string_view text_at(const Columns& columns, const ArgumentColumn* column, Row row) noexcept {
  const auto at = column == nullptr ? std::nullopt : column->find(row);
  return at && *at < column->texts.size() ? columns.names[column->texts[*at]] : std::string_view();
}

const ArgumentColumn* Columns::argument(std::string_view name) const noexcept {
  for (const ArgumentColumn& column : arguments) {
    if (column.argument.name == name) return &column;
  }
  return nullptr;
}

std::size_t Columns::bytes() const noexcept {
  std::size_t bytes = names.bytes() + bytes_of_column(flow_id);
  bytes += bytes_of(name, category, phase, start_ns, duration_ns, lane, stream, correlation, external_id,
                    position);
  bytes += lanes.capacity() * sizeof(Lane);
  for (const ArgumentColumn& column : arguments) bytes += bytes_of_column(column);
  return bytes;
}

}  // namespace headrace::trace
