#include "memory/record_builder.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace headrace::memory {

/// The keys that are read; the records have few in common.
enum class RecordBuilder::Key : std::uint8_t {
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
  allocator_settings,
  alloc_conf,
  expandable_segments,
  count,
};

/// The values of a dict's known keys.
struct RecordBuilder::Draft {
  std::array<Value, static_cast<std::size_t>(Key::count)> values{};
  std::uint32_t given = 0;

  static constexpr std::uint32_t bit(Key key) noexcept { return 1U << static_cast<unsigned>(key); }
  bool has(Key key) const noexcept { return (given & bit(key)) != 0; }
  void set(Key key, Value value) noexcept {
    values[static_cast<std::size_t>(key)] = value;
    given |= bit(key);
  }
  const Value& value(Key key) const noexcept { return values[static_cast<std::size_t>(key)]; }
  bool is(Key key, ValueKind kind) const noexcept { return has(key) && value(key).kind == kind; }
  std::int64_t integer(Key key, std::int64_t absent = 0) const noexcept {
    return is(key, ValueKind::integer) ? value(key).payload : absent;
  }
  trace::Names::Id text(Key key) const noexcept {
    return is(key, ValueKind::text) ? static_cast<trace::Names::Id>(value(key).payload) : 0;
  }
};

namespace {

constexpr std::array<std::pair<std::string_view, std::uint8_t>, 28> kKeys = {{
    {"action", 1},
    {"addr", 2},
    {"size", 3},
    {"stream", 4},
    {"time_us", 5},
    {"frames", 6},
    {"device_free", 7},
    {"filename", 8},
    {"line", 9},
    {"name", 10},
    {"device", 11},
    {"address", 12},
    {"total_size", 13},
    {"allocated_size", 14},
    {"active_size", 15},
    {"requested_size", 16},
    {"segment_pool_id", 17},
    {"is_expandable", 18},
    {"blocks", 19},
    {"state", 20},
    {"stage", 21},
    {"segments", 22},
    {"device_traces", 23},
    {"external_annotations", 24},
    {"allocator_settings", 25},
    {"PYTORCH_CUDA_ALLOC_CONF", 26},
    {"PYTORCH_ALLOC_CONF", 26},
    {"expandable_segments", 27},
}};

constexpr std::array<std::string_view, kActions> kActionNames = {
    "alloc",        "free_requested", "free_completed", "segment_alloc",
    "segment_free", "segment_map",    "segment_unmap",  "oom",
    "snapshot",     "other"};

/// Microseconds of Unix time that are nanoseconds in 64 bits, too.
constexpr std::int64_t kMaxTimeUs = std::int64_t{1} << 53;
/// Dicts, and lists; of events alone, files are smaller by far.
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
  for (auto next = static_cast<trace::Names::Id>(keys_.size()); next <= id; ++next) {
    const auto known = std::find_if(kKeys.begin(), kKeys.end(),
                                    [&](const auto& key) { return key.first == snapshot_.texts[next]; });
    keys_.push_back(known == kKeys.end() ? 0 : known->second);
  }
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

RecordBuilder::Key RecordBuilder::key_of(const Value& key) const noexcept {
  return key.kind == ValueKind::text ? static_cast<Key>(keys_[static_cast<std::size_t>(key.payload)])
                                     : Key::unknown;
}

std::uint32_t RecordBuilder::list_number(const Draft& draft, Key key) const noexcept {
  return draft.is(key, ValueKind::list) ? static_cast<std::uint32_t>(draft.value(key).payload) : kNone;
}

const char* RecordBuilder::set_items(Value dict, std::span<const Value> pairs) {
  if (dict.kind != ValueKind::dict) return "a dict to put items into";
  if (pairs.size() % 2 != 0) return "a value for each key";
  if (pairs.empty()) return nullptr;
  Dict& into = dicts_[static_cast<std::size_t>(dict.payload)];
  if (into.record == Record::other) return nullptr;
  if (into.record != Record::unfilled) return "a record that is written in one piece";
  Draft draft;
  for (std::size_t i = 0; i < pairs.size(); i += 2) draft.set(key_of(pairs[i]), pairs[i + 1]);
  return add_record(draft, into);
}

const char* RecordBuilder::add_record(const Draft& draft, Dict& into) {
  const auto become = [&](Record record, std::size_t rows) {
    into = {record, static_cast<std::uint32_t>(rows)};
  };
  if (draft.has(Key::action)) {
    become(Record::event, snapshot_.events.count());
    return add_event(draft);
  }
  if (draft.has(Key::filename) && draft.has(Key::line)) {
    become(Record::frame, snapshot_.frames.size());
    return add_frame(draft);
  }
  if (draft.has(Key::total_size) && draft.has(Key::blocks)) {
    become(Record::segment, snapshot_.segments.size());
    return add_segment(draft);
  }
  if (draft.has(Key::state) && draft.has(Key::size)) {
    become(Record::block, snapshot_.blocks.size());
    return add_block(draft);
  }
  if (draft.has(Key::stage) && draft.has(Key::name)) {
    become(Record::annotation, snapshot_.annotations.size());
    return add_annotation(draft);
  }
  if (draft.has(Key::segments) || draft.has(Key::device_traces)) {
    become(Record::root, 0);
    root_segments_ = list_number(draft, Key::segments);
    root_traces_ = list_number(draft, Key::device_traces);
    root_annotations_ = list_number(draft, Key::external_annotations);
    return nullptr;
  }
  if (draft.has(Key::alloc_conf) || draft.has(Key::expandable_segments)) {
    become(Record::settings, 0);
    snapshot_.allocator_conf = snapshot_.texts[draft.text(Key::alloc_conf)];
    snapshot_.expandable_segments = draft.integer(Key::expandable_segments) != 0;
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

const char* RecordBuilder::add_event(const Draft& draft) {
  Events& events = snapshot_.events;
  const Action action = action_of(snapshot_.texts[draft.text(Key::action)]);
  const std::int64_t size = draft.integer(Key::size);
  if (!add_bytes(size)) return "sizes that a device can have";
  events.action.push_back(action);
  events.address.push_back(action == Action::oom
                               ? std::clamp<std::int64_t>(draft.integer(Key::device_free, -1), -1, kMaxFree)
                               : draft.integer(Key::addr));
  events.size.push_back(size);
  events.time_us.push_back(std::clamp(draft.integer(Key::time_us), -kMaxTimeUs, kMaxTimeUs));
  events.stream.push_back(draft.integer(Key::stream));
  events.stack.push_back(list_number(draft, Key::frames));
  return nullptr;
}

const char* RecordBuilder::add_frame(const Draft& draft) {
  snapshot_.frames.push_back({draft.text(Key::filename), draft.text(Key::name),
                              std::clamp<std::int64_t>(draft.integer(Key::line), 0, kMaxLine)});
  return nullptr;
}

const char* RecordBuilder::add_block(const Draft& draft) {
  Block block;
  block.address = draft.integer(Key::address, -1);
  block.bytes = draft.integer(Key::size);
  block.active = snapshot_.texts[draft.text(Key::state)].starts_with("active");
  // Versions that do not write what was asked for: the block's own size.
  block.requested_bytes = draft.integer(Key::requested_size, block.active ? block.bytes : 0);
  block.stack = list_number(draft, Key::frames);
  if (!add_bytes(block.bytes) || !add_bytes(block.requested_bytes)) return "sizes that a device can have";
  snapshot_.blocks.push_back(block);
  return nullptr;
}

const char* RecordBuilder::add_annotation(const Draft& draft) {
  snapshot_.annotations.push_back({draft.text(Key::name), draft.integer(Key::device),
                                   std::clamp(draft.integer(Key::time_us), -kMaxTimeUs, kMaxTimeUs),
                                   snapshot_.texts[draft.text(Key::stage)] == "START"});
  return nullptr;
}

const char* RecordBuilder::add_segment(const Draft& draft) {
  Segment segment;
  if (const char* wrong =
          take_rows(list_number(draft, Key::blocks), Record::block, segment.first_block, segment.blocks))
    return wrong;
  std::int64_t address = draft.integer(Key::address);
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
  segment.device = draft.integer(Key::device);
  if (segment.device < 0 || segment.device >= kMaxDevices) return "a device's number from 0 to 255";
  segment.total_bytes = draft.integer(Key::total_size);
  segment.active_bytes = draft.integer(Key::active_size, active);
  segment.allocated_bytes = draft.integer(Key::allocated_size, segment.active_bytes);
  segment.requested_bytes = draft.integer(Key::requested_size, requested);
  segment.expandable = draft.integer(Key::is_expandable) != 0;
  segment.in_private_pool =
      draft.is(Key::segment_pool_id, ValueKind::tuple) && draft.value(Key::segment_pool_id).payload != 0;
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
