#include "memory/record_builder.h"

#include <algorithm>
#include <array>
#include <string>

namespace headrace::memory {
namespace {

constexpr std::array<std::string_view, kActions> kActionNames = {
    "alloc",        "free_requested", "free_completed", "segment_alloc",
    "segment_free", "segment_map",    "segment_unmap",  "oom",
    "snapshot",     "other"};

/// Microseconds of Unix time that are nanoseconds in 64 bits, too.
constexpr std::int64_t kMaxTimeUs = std::int64_t{1} << 53;
/// Dicts, and lists, in one file. With as many events it would have gigabytes.
constexpr std::size_t kMaxRecords = std::size_t{1} << 26;
constexpr std::size_t kMaxListed = std::size_t{1} << 28;
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 28;
constexpr std::int64_t kMaxFree = std::int64_t{1} << 60;
/// PyTorch itself is built for fewer in one process. What is computed for each device stays bounded.
constexpr std::int64_t kMaxDevices = 256;
constexpr std::int64_t kMaxLine = 1'000'000'000;

Action action_of(std::string_view name) noexcept {
  const auto found = std::find(kActionNames.begin(), kActionNames.end() - 1, name);
  return static_cast<Action>(found - kActionNames.begin());
}

/// Dicts elsewhere in the file may look like these records.
template <class Rows>
void keep_rows(Rows& rows, std::uint32_t first, std::uint32_t count) {
  rows.erase(rows.begin() + first + count, rows.end());
  rows.erase(rows.begin(), rows.begin() + first);
}

}  // namespace

std::string_view to_string(Action action) noexcept { return kActionNames[static_cast<std::size_t>(action)]; }

Value RecordBuilder::text(std::string_view text) {
  const trace::Names::Id id = snapshot_.texts.intern(text);
  for (auto next = static_cast<trace::Names::Id>(keys_.size()); next <= id; ++next)
    keys_.push_back(key_named(snapshot_.texts[next]));
  return {id, ValueKind::text};
}

Value RecordBuilder::new_dict() {
  dicts_.push_back({});
  return {static_cast<std::int64_t>(dicts_.size() - 1), ValueKind::dict};
}

Value RecordBuilder::new_list() {
  lists_.push_back({});
  return {static_cast<std::int64_t>(lists_.size() - 1), ValueKind::list};
}

const char* RecordBuilder::what_is_too_much() const noexcept {
  if (dicts_.size() > kMaxRecords || lists_.size() > kMaxRecords) return "fewer dicts and lists";
  if (snapshot_.stack_frames.size() + inner_lists_.size() > kMaxListed) return "shorter stacks";
  return snapshot_.texts.texts().size() > kMaxTextBytes ? "texts of at most 256 MiB in all" : nullptr;
}

Value RecordBuilder::tuple(std::span<const Value> items) noexcept {
  const bool any = std::any_of(items.begin(), items.end(), [](const Value& item) {
    return item.kind == ValueKind::integer && item.payload != 0;
  });
  return {any ? 1 : 0, ValueKind::tuple};
}

RecordKey RecordBuilder::key_of(const Value& key) const noexcept {
  return key.kind == ValueKind::text ? static_cast<RecordKey>(keys_[static_cast<std::size_t>(key.payload)])
                                     : RecordKey::unknown;
}

std::uint32_t RecordBuilder::list_number(const RecordDraft& draft, RecordKey key) const noexcept {
  return draft.is(key, ValueKind::list) ? static_cast<std::uint32_t>(draft.value(key).payload) : kNone;
}

const char* RecordBuilder::set_items(Value dict, std::span<const Value> pairs) {
  if (dict.kind != ValueKind::dict) return "a dict to put items into";
  if (pairs.size() % 2 != 0) return "a value for each key";
  if (pairs.empty()) return nullptr;
  Dict& into = dicts_[static_cast<std::size_t>(dict.payload)];
  if (into.record == Record::other) return nullptr;
  if (into.record != Record::unfilled) return "a record that is written in one piece";
  RecordDraft draft;
  for (std::size_t i = 0; i < pairs.size(); i += 2) draft.set(key_of(pairs[i]), pairs[i + 1]);
  return add_record(draft, into);
}

const char* RecordBuilder::add_record(const RecordDraft& draft, Dict& into) {
  const auto become = [&](Record record, std::size_t rows) {
    into = {record, static_cast<std::uint32_t>(rows)};
  };
  if (draft.has(RecordKey::action)) {
    become(Record::event, snapshot_.events.count());
    return add_event(draft);
  }
  if (draft.has(RecordKey::filename) && draft.has(RecordKey::line)) {
    become(Record::frame, snapshot_.frames.size());
    return add_frame(draft);
  }
  if (draft.has(RecordKey::total_size) && draft.has(RecordKey::blocks)) {
    become(Record::segment, snapshot_.segments.size());
    return add_segment(draft);
  }
  if (draft.has(RecordKey::state) && draft.has(RecordKey::size)) {
    become(Record::block, snapshot_.blocks.size());
    return add_block(draft);
  }
  if (draft.has(RecordKey::stage) && draft.has(RecordKey::name)) {
    become(Record::annotation, snapshot_.annotations.size());
    return add_annotation(draft);
  }
  if (draft.has(RecordKey::segments) || draft.has(RecordKey::device_traces)) {
    become(Record::root, 0);
    root_segments_ = list_number(draft, RecordKey::segments);
    root_traces_ = list_number(draft, RecordKey::device_traces);
    root_annotations_ = list_number(draft, RecordKey::external_annotations);
    return nullptr;
  }
  if (draft.has(RecordKey::alloc_conf) || draft.has(RecordKey::expandable_segments)) {
    become(Record::settings, 0);
    snapshot_.allocator_conf = snapshot_.texts[draft.text(RecordKey::alloc_conf)];
    snapshot_.expandable_segments = draft.integer(RecordKey::expandable_segments) != 0;
    return nullptr;
  }
  become(Record::other, 0);
  return nullptr;
}

bool RecordBuilder::add_bytes(std::int64_t bytes) noexcept {
  if (bytes < 0 || bytes > bytes_left_) return false;
  bytes_left_ -= bytes;
  return true;
}

const char* RecordBuilder::add_event(const RecordDraft& draft) {
  Events& events = snapshot_.events;
  const Action action = action_of(snapshot_.texts[draft.text(RecordKey::action)]);
  const std::int64_t size = draft.integer(RecordKey::size);
  if (!add_bytes(size)) return "sizes that a device can have";
  events.action.push_back(action);
  events.address.push_back(
      action == Action::oom
          ? std::clamp<std::int64_t>(draft.integer(RecordKey::device_free, -1), -1, kMaxFree)
          : draft.integer(RecordKey::addr));
  events.size.push_back(size);
  events.time_us.push_back(std::clamp(draft.integer(RecordKey::time_us), -kMaxTimeUs, kMaxTimeUs));
  events.stream.push_back(draft.integer(RecordKey::stream));
  events.stack.push_back(list_number(draft, RecordKey::frames));
  return nullptr;
}

const char* RecordBuilder::add_frame(const RecordDraft& draft) {
  snapshot_.frames.push_back({draft.text(RecordKey::filename), draft.text(RecordKey::name),
                              std::clamp<std::int64_t>(draft.integer(RecordKey::line), 0, kMaxLine)});
  return nullptr;
}

const char* RecordBuilder::add_block(const RecordDraft& draft) {
  Block block;
  block.address = draft.integer(RecordKey::address, -1);
  block.bytes = draft.integer(RecordKey::size);
  block.active = snapshot_.texts[draft.text(RecordKey::state)].starts_with("active");
  // Versions that do not write what was asked for: the block's own size.
  block.requested_bytes = draft.integer(RecordKey::requested_size, block.active ? block.bytes : 0);
  block.stack = list_number(draft, RecordKey::frames);
  if (!add_bytes(block.bytes) || !add_bytes(block.requested_bytes)) return "sizes that a device can have";
  snapshot_.blocks.push_back(block);
  return nullptr;
}

const char* RecordBuilder::add_annotation(const RecordDraft& draft) {
  snapshot_.annotations.push_back({draft.text(RecordKey::name), draft.integer(RecordKey::device),
                                   std::clamp(draft.integer(RecordKey::time_us), -kMaxTimeUs, kMaxTimeUs),
                                   snapshot_.texts[draft.text(RecordKey::stage)] == "START"});
  return nullptr;
}

const char* RecordBuilder::add_segment(const RecordDraft& draft) {
  Segment segment;
  if (const char* wrong = take_rows(list_number(draft, RecordKey::blocks), Record::block, segment.first_block,
                                    segment.blocks))
    return wrong;
  std::int64_t address = draft.integer(RecordKey::address);
  std::int64_t active = 0;
  std::int64_t requested = 0;
  for (std::uint32_t i = 0; i < segment.blocks; ++i) {
    Block& block = snapshot_.blocks[segment.first_block + i];
    if (block.address < 0) block.address = address;  // older versions: one block behind the other
    address = static_cast<std::int64_t>(static_cast<std::uint64_t>(address) +
                                        static_cast<std::uint64_t>(block.bytes));
    if (!block.active) continue;
    active += block.bytes;
    requested += block.requested_bytes;
  }
  segment.device = draft.integer(RecordKey::device);
  if (segment.device < 0 || segment.device >= kMaxDevices) return "a device's number from 0 to 255";
  segment.total_bytes = draft.integer(RecordKey::total_size);
  segment.active_bytes = draft.integer(RecordKey::active_size, active);
  segment.allocated_bytes = draft.integer(RecordKey::allocated_size, segment.active_bytes);
  segment.requested_bytes = draft.integer(RecordKey::requested_size, requested);
  segment.expandable = draft.integer(RecordKey::is_expandable) != 0;
  segment.in_private_pool = draft.is(RecordKey::segment_pool_id, ValueKind::tuple) &&
                            draft.value(RecordKey::segment_pool_id).payload != 0;
  if (!add_bytes(segment.total_bytes) || !add_bytes(segment.active_bytes) ||
      !add_bytes(segment.allocated_bytes) || !add_bytes(segment.requested_bytes))
    return "sizes that a device can have";
  snapshot_.segments.push_back(segment);
  return nullptr;
}

const char* RecordBuilder::append(Value list, std::span<const Value> items) {
  if (list.kind != ValueKind::list) return "a list to put items into";
  List& into = lists_[static_cast<std::size_t>(list.payload)];
  for (const Value& item : items) {
    Record record = Record::other;
    auto number = static_cast<std::uint32_t>(item.payload);
    if (item.kind == ValueKind::list) record = Record::list;
    if (item.kind == ValueKind::dict) {
      const Dict& dict = dicts_[number];
      record = dict.record;
      number = dict.row;
    }
    if (record == Record::unfilled) record = Record::other;
    if (into.of != Record::unfilled && into.of != record) into.of = Record::other;
    if (into.of == Record::other) return nullptr;
    if (record == Record::frame || record == Record::list) {
      trace::Values<std::uint32_t>& shared = record == Record::frame ? snapshot_.stack_frames : inner_lists_;
      shared.push_back(number);
      number = static_cast<std::uint32_t>(shared.size() - 1);
    }
    if (into.of == Record::unfilled) into = {number, number, record, false};
    if (into.last != number) return "the items of a list in their order";
    into.last = number + 1;
  }
  return what_is_too_much();
}

const char* RecordBuilder::take_rows(std::uint32_t list, Record of, std::uint32_t& first,
                                     std::uint32_t& count) {
  first = count = 0;
  if (list == kNone || lists_[list].of == Record::unfilled) return nullptr;
  List& taken = lists_[list];
  if (taken.of != of || taken.used)
    return taken.used ? "lists of segments, blocks and events, each in one place"
                      : "lists of segments, blocks and events, with nothing else in them";
  taken.used = true;
  first = taken.first;
  count = taken.last - taken.first;
  return nullptr;
}

const char* RecordBuilder::take_traces(std::uint32_t list) {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  if (const char* wrong = take_rows(list, Record::list, first, count)) return wrong;
  if (count > kMaxDevices) return "traces of at most 256 devices";
  for (std::uint32_t i = 0; i < count; ++i) {
    DeviceEvents& device = snapshot_.devices.emplace_back();
    if (const char* wrong = take_rows(inner_lists_[first + i], Record::event, device.first, device.count))
      return wrong;
  }
  return nullptr;
}

const char* RecordBuilder::finish(Value root) {
  if (root.kind == ValueKind::list) {  // what torch.cuda.memory_snapshot() returns: segments alone
    root_segments_ = static_cast<std::uint32_t>(root.payload);
    if (lists_[root_segments_].of != Record::segment) return "a memory snapshot, which is a dict of segments";
  } else if (root.kind != ValueKind::dict ||
             dicts_[static_cast<std::size_t>(root.payload)].record != Record::root) {
    return "a memory snapshot, which is a dict with \"segments\" and \"device_traces\"";
  }
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  if (const char* wrong = take_rows(root_segments_, Record::segment, first, count)) return wrong;
  keep_rows(snapshot_.segments, first, count);
  if (const char* wrong = take_rows(root_annotations_, Record::annotation, first, count)) return wrong;
  keep_rows(snapshot_.annotations, first, count);
  if (const char* wrong = take_traces(root_traces_)) return wrong;
  for (std::size_t i = 0; i < lists_.size(); ++i) {
    const List& list = lists_[i];
    const bool is_stack = list.of == Record::frame;
    snapshot_.stacks.push_back({is_stack ? list.first : 0, is_stack ? list.last - list.first : 0});
  }
  return nullptr;
}

}  // namespace headrace::memory
