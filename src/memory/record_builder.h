// The values of a pickle while it is read, and the records of a snapshot that its dicts are.
//
// Dicts are told apart by their keys, so no tree of them is kept: when its items come, a dict becomes a row
// of the snapshot (an event, a frame, ...), and from then on it is the number of that row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/memory/snapshot.h"
#include "memory/record_draft.h"

namespace headrace::memory {

/// Each function that can fail gives null, or what is wrong: text behind "expected".
class RecordBuilder {
 public:
  explicit RecordBuilder(Snapshot& snapshot) : snapshot_(snapshot) {}

  Value text(std::string_view text);
  std::string text_of(Value text) const {
    return std::string(snapshot_.texts[static_cast<trace::Names::Id>(text.payload)]);
  }
  Value new_dict();
  Value new_list();
  static Value tuple(std::span<const Value> items) noexcept;

  /// `pairs`: key, value, key, value ...
  const char* set_items(Value dict, std::span<const Value> pairs);
  const char* append(Value list, std::span<const Value> items);

  /// A small compressed file may hold any number of values: what there is too much of to go on, or null.
  const char* what_is_too_much() const noexcept;

  /// `root`: what the pickle is. Completes the snapshot.
  const char* finish(Value root);

 private:
  /// Content of a dict or list. A snapshot needs no dict of another kind.
  enum class Record : std::uint8_t {
    unfilled,
    other,
    event,
    frame,
    segment,
    block,
    annotation,
    root,
    settings,
    list,
  };
  struct Dict {
    Record record = Record::unfilled;
    std::uint32_t row = 0;
  };
  /// Rows `first` to `last` (not included) of its kind. Of frames and of lists: places in `stack_frames` and
  /// `inner_lists_`, which hold the numbers, because both may be shared.
  struct List {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    Record of = Record::unfilled;
    bool used = false;
  };

  RecordKey key_of(const Value& key) const noexcept;
  std::uint32_t list_number(const RecordDraft& draft, RecordKey key) const noexcept;
  const char* add_record(const RecordDraft& draft, Dict& into);
  const char* add_event(const RecordDraft& draft);
  const char* add_frame(const RecordDraft& draft);
  const char* add_segment(const RecordDraft& draft);
  const char* add_block(const RecordDraft& draft);
  const char* add_annotation(const RecordDraft& draft);
  /// The rows of a list that only one record may have: shared ones could be gone through any number of times.
  const char* take_rows(std::uint32_t list, Record of, std::uint32_t& first, std::uint32_t& count);
  const char* take_traces(std::uint32_t list);
  bool add_bytes(std::int64_t bytes) noexcept;

  Snapshot& snapshot_;
  trace::Values<Dict> dicts_;
  trace::Values<List> lists_;
  trace::Values<std::uint32_t> inner_lists_;
  trace::Values<RecordKey> keys_;  ///< by number of a text
  std::int64_t bytes_left_ = std::int64_t{1} << 61;
  std::uint32_t root_segments_ = kNone;
  std::uint32_t root_traces_ = kNone;
  std::uint32_t root_annotations_ = kNone;
};

}  // namespace headrace::memory
