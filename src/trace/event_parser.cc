#include "trace/event_parser.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "trace/byte_window.h"
#include "trace/fixed_point.h"

#if defined(__SSE2__)
#include <emmintrin.h>

#include <bit>
#endif

namespace headrace::trace {
namespace {

namespace ondemand = simdjson::ondemand;

static_assert(ByteWindow::kSlack > simdjson::SIMDJSON_PADDING);

/// Numbers in the argument table that are no columns: what has a place of its own in each event.
enum Special : int { kStream = 1000000, kCorrelation, kExternalId };

/// A key up to its closing quote, which surely comes: the parser has seen it. Never reads further than the
/// padding. Empty if a backslash stands before the quote: the key has to be unescaped.
inline std::string_view plain_key_of(const char* key) noexcept {
  std::size_t length = 0;
#if defined(__SSE2__)
  for (;; length += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(key + length));
    const __m128i quotes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    const __m128i escapes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
    const auto found = static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(quotes, escapes)));
    if (found == 0) continue;
    length += static_cast<std::size_t>(std::countr_zero(found));
    return key[length] == '"' ? std::string_view(key, length) : std::string_view();
  }
#else
  while (key[length] != '"' && key[length] != '\\') ++length;
  return key[length] == '"' ? std::string_view(key, length) : std::string_view();
#endif
}

/// A scalar as it stands, without the blanks behind it.
std::string_view token_of(ondemand::value& value) noexcept {
  std::string_view token = value.raw_json_token();
  while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ') token.remove_suffix(1);
  return token;
}

bool is_text(std::string_view token) noexcept { return token.size() >= 2 && token.front() == '"'; }

/// Numbers may be quoted (Ascend does so with its time stamps).
std::string_view unquoted(std::string_view token) noexcept {
  return is_text(token) ? token.substr(1, token.size() - 2) : token;
}

bool is_separator(char c) noexcept { return c == ',' || c == ':' || c == '}' || c == ']'; }

bool has_backslash(std::string_view text) noexcept {
  return std::memchr(text.data(), '\\', text.size()) != nullptr;
}

}  // namespace

EventParser::EventParser(Columns& columns, ReadNotes& notes, const std::vector<Argument>& arguments,
                         std::size_t window_bytes)
    : columns_(columns), notes_(notes), lanes_(columns) {
  for (const Argument& argument : arguments) {
    table_.add(argument.name, static_cast<int>(columns_.arguments.size()));
    columns_.arguments.push_back({argument, {}, {}, {}, {}});
  }
  table_.add("stream", kStream);
  table_.add("correlation", kCorrelation);
  table_.add("External id", kExternalId);
  table_.add("external id", kExternalId);  // Kineto before 2022, on kernels
  // Ascend's words for the same.
  table_.add("connection_id", kCorrelation);
  table_.add("Physic Stream Id", kStream);
  table_.add("stream id", kStream);
  if (const int bytes = table_.find("bytes"); bytes != ArgumentTable::kUnknown)
    table_.add("data size(Byte)", bytes);
  // At once, or it would be allocated anew for each window that is a little longer than the one before.
  if (parser_.allocate(window_bytes) != simdjson::SUCCESS) throw std::bad_alloc();
}

EventParser::Outcome EventParser::parse(char* text, std::size_t length, std::uint64_t offset) {
  const char before = std::exchange(text[-1], '[');
  const char behind = std::exchange(text[length], ']');
  Outcome outcome;
  const auto stop = [&](bool done) { outcome = {false, outcome.stopped_at, done, false}; };

  ondemand::document document;
  ondemand::array elements;
  const simdjson::padded_string_view window(text - 1, length + 2, length + 2 + simdjson::SIMDJSON_PADDING);
  if (parser_.iterate(window).get(document) || document.get_array().get(elements)) {
    stop(false);
  } else {
    bool element_done = false;
    for (simdjson::simdjson_result<ondemand::value> element : elements) {
      ondemand::value value;
      if (std::move(element).get(value)) {
        stop(element_done);
        break;
      }
      const std::string_view token = value.raw_json_token();
      outcome.stopped_at = static_cast<std::size_t>(token.data() - text);
      event_offset_ = offset + outcome.stopped_at;
      element_done = false;
      if (token.empty() || is_separator(token.front())) {  // two commas: the parser has lost its place
        stop(false);
        break;
      }
      if (token.front() != '{') {
        skip(ReadProblem::not_an_object, event_offset_);
        element_done = true;
        continue;
      }
      ondemand::object object;
      if (value.get_object().get(object) || !read_event(object)) {
        stop(false);
        break;
      }
      append();
      element_done = true;
    }
    const char* behind_array = nullptr;
    outcome.up_to_end = outcome.whole && document.current_location().get(behind_array) != simdjson::SUCCESS;
  }
  text[length] = behind;
  text[-1] = before;
  return outcome;
}

bool EventParser::parse_all(char* text, std::size_t length, std::uint64_t offset) {
  const auto rows = static_cast<Row>(columns_.size());
  const auto lanes = static_cast<std::uint32_t>(columns_.lanes.size());
  const auto problems = notes_.problems;
  const std::uint32_t position = position_;
  if (parse(text, length, offset).up_to_end) return true;
  forget_from(rows, lanes);
  notes_.problems = problems;
  position_ = position;
  return false;
}

/// Names stay: whoever reads the same events again finds them.
void EventParser::forget_from(Row row, std::uint32_t lane) {
  const auto shorten = [](std::size_t size, auto&... columns) { (columns.resize(size), ...); };
  Columns& c = columns_;
  lanes_.forget_from(lane);
  shorten(row, c.name, c.category, c.phase, c.start_ns, c.duration_ns, c.lane, c.stream, c.correlation,
          c.external_id, c.position);
  const auto shorten_argument = [&](ArgumentColumn& column) {
    const auto size = static_cast<std::size_t>(std::lower_bound(column.rows.begin(), column.rows.end(), row) -
                                               column.rows.begin());
    shorten(size, column.rows);
    shorten(std::min(size, column.integers.size()), column.integers);
    shorten(std::min(size, column.numbers.size()), column.numbers);
    shorten(std::min(size, column.texts.size()), column.texts);
  };
  shorten_argument(c.flow_id);
  for (ArgumentColumn& column : c.arguments) shorten_argument(column);
}

void EventParser::skip(ReadProblem problem, std::uint64_t offset) {
  notes_.count(problem, offset);
  ++position_;
}

bool EventParser::read_event(ondemand::object& object) {
  event_ = {};
  pending_.clear();
  problems_.clear();
  // The field stays where the iterator made it: copies of its few words, stored apart and loaded together,
  // cost a quarter of all reading.
  for (auto found : object) {
    if (found.error()) return false;
    ondemand::field&& field = std::move(found).value_unsafe();
    std::string_view key = plain_key_of(field.first.raw());
    event_.is_empty = false;
    if (key.empty() && field.unescaped_key().get(key)) continue;
    if (key == "args") {
      if (!read_arguments(field.second)) return false;
    } else {
      read_field(key, field.second);
    }
  }
  return true;
}

void EventParser::read_field(std::string_view key, ondemand::value& value) {
  switch (key.size()) {
    case 2:
      if (key == "ts") {
        event_.has_start = time_of(value, event_.start_ns);
      } else if (key == "ph") {
        const std::string_view phase = content_of(value);
        event_.phase = phase.size() == 1 ? phase.front() : '\0';
      } else if (key == "id") {
        event_.has_flow_id = integer_of(value, event_.flow_id);
      }
      break;
    case 3:
      if (key == "dur") {
        event_.has_duration = time_of(value, event_.duration_ns);
      } else if (key == "cat") {
        event_.category = columns_.names.intern(content_of(value));
      } else if (key == "pid") {
        event_.process = track_of(value);
      } else if (key == "tid") {
        event_.thread = track_of(value);
      }
      break;
    case 4:
      if (key == "name") event_.name = columns_.names.intern(content_of(value));
      break;
    default:
      break;
  }
}

/// False when the text is not JSON; anything but an object says nothing and is passed over.
bool EventParser::read_arguments(ondemand::value& value) {
  if (!value.raw_json_token().starts_with('{')) return true;
  ondemand::object arguments;
  if (value.get_object().get(arguments)) return false;
  for (auto found : arguments) {
    if (found.error()) return false;
    ondemand::field&& field = std::move(found).value_unsafe();
    std::string_view key = plain_key_of(field.first.raw());
    if (key.empty() && field.unescaped_key().get(key)) continue;
    read_argument(key, field.second);
  }
  return true;
}

void EventParser::read_argument(std::string_view key, ondemand::value& value) {
  const int number = table_.find(key);
  // Lane name of a metadata event. Some writers put `args` first, so its phase may not be known yet.
  if ((event_.phase == 'M' || event_.phase == '\0') && (key == "name" || key == "labels")) {
    event_.label = columns_.names.intern(content_of(value));
    if (number == ArgumentTable::kUnknown) return;
  }
  switch (number) {
    case ArgumentTable::kUnknown:
      break;
    case kStream:
      if (!integer_of(value, event_.stream)) event_.stream = kAbsent;
      break;
    case kCorrelation:
      if (!integer_of(value, event_.correlation)) event_.correlation = kAbsent;
      break;
    case kExternalId:
      if (!integer_of(value, event_.external_id)) event_.external_id = kAbsent;
      break;
    default:
      read_column(static_cast<std::size_t>(number), value);
      break;
  }
}

void EventParser::read_column(std::size_t column, ondemand::value& value) {
  Pending pending{column, 0, 0, 0};
  switch (columns_.arguments[column].argument.kind) {
    case ArgumentKind::integer:
      if (!integer_of(value, pending.integer)) return;
      break;
    case ArgumentKind::number:
      if (!number_of(value, pending.number)) return;
      break;
    case ArgumentKind::text:
      pending.text = columns_.names.intern(json_of(value));
      break;
  }
  pending_.push_back(pending);
}

void EventParser::append() {
  const std::uint32_t lane = lanes_.index_of(event_.process, event_.thread);
  if (event_.phase == 'M') {
    lanes_.label(lane, columns_.names[event_.name], columns_.names[event_.label]);
  } else if (event_.is_empty) {
    // The end of TensorFlow's lists.
  } else if (event_.phase == '\0') {
    count(ReadProblem::no_phase);
  } else if (event_.time_is_wrong) {
    count(ReadProblem::time_out_of_range);
  } else if (!event_.has_start) {
    count(ReadProblem::no_time_stamp);
  } else if (event_.phase == 'X' && !event_.has_duration) {
    count(ReadProblem::no_duration);
  } else if (event_.duration_ns < 0) {
    count(ReadProblem::negative_duration);
  } else if (std::abs(event_.start_ns) > kFurthestNs || event_.duration_ns > kLongestNs) {
    count(ReadProblem::time_out_of_range);
  } else {
    columns_.lane.push_back(lane);
    append_row();
  }
  for (const ReadProblem problem : problems_) notes_.count(problem, event_offset_);
  ++position_;
}

void EventParser::append_row() {
  const auto row = static_cast<Row>(columns_.size());
  columns_.name.push_back(event_.name);
  columns_.category.push_back(event_.category);
  columns_.phase.push_back(event_.phase);
  columns_.start_ns.push_back(event_.start_ns);
  columns_.duration_ns.push_back(event_.duration_ns);
  columns_.stream.push_back(event_.stream);
  columns_.correlation.push_back(event_.correlation);
  columns_.external_id.push_back(event_.external_id);
  columns_.position.push_back(position_);
  if (event_.has_flow_id) {
    columns_.flow_id.rows.push_back(row);
    columns_.flow_id.integers.push_back(event_.flow_id);
  }
  for (const Pending& pending : pending_) {
    ArgumentColumn& column = columns_.arguments[pending.column];
    // A key that stands twice: the last value holds, as everywhere in JSON.
    const bool again = !column.rows.empty() && column.rows.back() == row;
    if (!again) column.rows.push_back(row);
    switch (column.argument.kind) {
      case ArgumentKind::integer:
        if (again) column.integers.pop_back();
        column.integers.push_back(pending.integer);
        break;
      case ArgumentKind::number:
        if (again) column.numbers.pop_back();
        column.numbers.push_back(pending.number);
        break;
      case ArgumentKind::text:
        if (again) column.texts.pop_back();
        column.texts.push_back(pending.text);
        break;
    }
  }
}

/// A string's content, unescaped; other scalars as they stand. Valid until the window is parsed again.
std::string_view EventParser::content_of(ondemand::value& value) {
  const std::string_view token = token_of(value);
  if (!is_text(token)) return token;
  const std::string_view raw = unquoted(token);
  if (!has_backslash(raw)) return raw;
  std::string_view text;
  if (value.get_string().get(text) == simdjson::SUCCESS) return text;
  count(ReadProblem::bad_escape);
  return raw;
}

/// The same, and arrays and objects as they stand.
std::string_view EventParser::json_of(ondemand::value& value) {
  const std::string_view token = value.raw_json_token();
  std::string_view json;
  if (token.starts_with('[')) {
    ondemand::array array;
    if (value.get_array().get(array) || array.raw_json().get(json)) return {};
    return json;
  }
  if (token.starts_with('{')) {
    ondemand::object object;
    if (value.get_object().get(object) || object.raw_json().get(json)) return {};
    return json;
  }
  return content_of(value);
}

TrackId EventParser::track_of(ondemand::value& value) {
  const std::string_view token = token_of(value);
  std::int64_t number = 0;
  if (!is_text(token) && to_integer(token, number) == NumberError::none) return {number, false};
  return {columns_.names.intern(content_of(value)), true};
}

bool EventParser::time_of(ondemand::value& value, std::int64_t& ns) {
  switch (to_nanoseconds(unquoted(token_of(value)), ns)) {
    case NumberError::none:
      return true;
    case NumberError::out_of_range:
      event_.time_is_wrong = true;
      return false;
    case NumberError::not_a_number:
      break;
  }
  return false;
}

/// A quoted text that is not a number is a text, which is nothing to complain about; `null` neither.
bool EventParser::integer_of(ondemand::value& value, std::int64_t& integer) {
  const std::string_view token = token_of(value);
  const NumberError error = to_integer(unquoted(token), integer);
  if (error == NumberError::none) return true;
  if (is_text(token) || token == "null") return false;
  count(error == NumberError::out_of_range ? ReadProblem::number_out_of_range : ReadProblem::not_a_number);
  return false;
}

bool EventParser::number_of(ondemand::value& value, double& number) {
  const std::string_view token = token_of(value);
  const NumberError error = to_number(unquoted(token), number);
  if (error == NumberError::none) return true;
  if (is_text(token) || token == "null") return false;
  count(error == NumberError::out_of_range ? ReadProblem::number_out_of_range : ReadProblem::not_a_number);
  return false;
}

}  // namespace headrace::trace
