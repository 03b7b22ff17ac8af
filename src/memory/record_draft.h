// A dict of a pickle, by the keys that records of a snapshot have.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "headrace/trace/names.h"

namespace headrace::memory {

enum class ValueKind : std::uint8_t {
  none,
  integer,  ///< booleans too
  text,     ///< payload: number of the text
  dict,     ///< payload: number of the dict; likewise of a list
  list,
  tuple,  ///< payload: 1 if one of its integers is not 0
  other,
};

/// A value of a pickle while it is read.
struct Value {
  std::int64_t payload = 0;
  ValueKind kind = ValueKind::none;
};

/// The keys that are read; the records have few in common.
enum class RecordKey : std::uint8_t {
  unknown,
  action,
  addr,
  size,
  stream,
  time_us,
  frames,
  device_free,
  filename,
  line,
  name,
  device,
  address,
  total_size,
  allocated_size,
  active_size,
  requested_size,
  segment_pool_id,
  is_expandable,
  blocks,
  state,
  stage,
  segments,
  device_traces,
  external_annotations,
  alloc_conf,
  expandable_segments,
  count,
};

/// `unknown` for a text that is no key.
RecordKey key_named(std::string_view text) noexcept;

/// The values of a dict's known keys.
class RecordDraft {
 public:
  void set(RecordKey key, Value value) noexcept {
    values_[static_cast<std::size_t>(key)] = value;
    given_ |= bit(key);
  }

  bool has(RecordKey key) const noexcept { return (given_ & bit(key)) != 0; }
  bool is(RecordKey key, ValueKind kind) const noexcept { return has(key) && value(key).kind == kind; }
  const Value& value(RecordKey key) const noexcept { return values_[static_cast<std::size_t>(key)]; }
  /// A value of another kind counts as absent.
  std::int64_t integer(RecordKey key, std::int64_t absent = 0) const noexcept {
    return is(key, ValueKind::integer) ? value(key).payload : absent;
  }
  /// The number of the text, 0 (the empty one) if it is absent.
  trace::Names::Id text(RecordKey key) const noexcept {
    return is(key, ValueKind::text) ? static_cast<trace::Names::Id>(value(key).payload) : 0;
  }

 private:
  static_assert(static_cast<unsigned>(RecordKey::count) <= 32);
  static constexpr std::uint32_t bit(RecordKey key) noexcept { return 1U << static_cast<unsigned>(key); }

  std::array<Value, static_cast<std::size_t>(RecordKey::count)> values_{};
  std::uint32_t given_ = 0;
};

}  // namespace headrace::memory
