#include "headrace/timeline/trace_copier.h"

#include <fmt/core.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <span>

#include "headrace/timeline/json_text.h"
#include "headrace/trace/byte_source.h"
#include "headrace/trace/event_boundaries.h"
#include "trace/byte_window.h"
#include "trace/fixed_point.h"
#include "trace/json_walk.h"

namespace headrace::timeline {
namespace {

using trace::ByteWindow;
using trace::EventBoundaries;
using trace::JsonWalk;

constexpr std::size_t kWindow = std::size_t{1} << 20;
constexpr std::size_t kLongestEvent = std::size_t{64} << 20;
constexpr std::string_view kBlanks = " \t\r\n";

/// The bytes of a source, counted.
class CountedBytes : public trace::ByteSource {
 public:
  CountedBytes(trace::ByteSource& bytes, const TraceCopier::Progress& progress)
      : bytes_(bytes), progress_(progress) {}

  std::size_t read(std::span<char> into) override {
    const std::size_t got = bytes_.read(into);
    count_ += got;
    if (progress_) progress_(count_);
    return got;
  }

 private:
  trace::ByteSource& bytes_;
  const TraceCopier::Progress& progress_;
  std::uint64_t count_ = 0;
};

enum class Document { none, object, bare_array };

/// Moves to the events array, behind its `[`; none: there is no such thing.
Document find_events(JsonWalk& walk) {
  walk.begin();
  const int first = walk.peek();
  if (first == '[') {
    walk.take(1);
    return Document::bare_array;
  }
  if (first != '{') return Document::none;
  walk.take(1);
  for (std::string key;;) {
    int next = walk.peek();
    if (next == ',') {
      walk.take(1);
      continue;
    }
    if (next != '"' || !walk.take_value(&key) || walk.peek() != ':') return Document::none;
    walk.take(1);
    next = walk.peek();
    if (key == "\"traceEvents\"" && next == '[') {
      walk.take(1);
      return Document::object;
    }
    if (next < 0 || !walk.take_value()) return Document::none;
  }
}

/// Goes over the events of an array in pieces that hold whole ones. `each(text)`: such a piece, separators
/// included. True when the array was closed (its `]` is left in the window).
template <class Each>
bool each_piece(ByteWindow& window, Each&& each) {
  for (;;) {
    window.fill();
    const std::string_view text = window.text();
    const std::size_t first = std::min(text.find_first_not_of(" \t\r\n,"), text.size());
    EventBoundaries boundaries;
    const EventBoundaries::Found found = boundaries.scan(text.substr(first));
    const bool closes = found.array_end != EventBoundaries::npos;
    if (closes || found.after_last != EventBoundaries::npos) {
      const std::size_t length = first + (closes ? found.array_end : found.after_last);
      each(text.substr(0, length));
      window.drop(length);
      if (closes) return true;
      continue;
    }
    if (window.ended() || window.capacity() >= kLongestEvent) return false;
    window.grow(kLongestEvent);
  }
}

std::string_view stripped(std::string_view text) {
  constexpr std::string_view kSeparators = " \t\r\n,";
  const std::size_t first = text.find_first_not_of(kSeparators);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSeparators) + 1 - first);
}

std::string changed_ts(std::string_view value, std::int64_t add_ns) {
  const bool quoted = value.size() >= 2 && value.front() == '"';
  std::int64_t ns = 0;
  if (trace::to_nanoseconds(quoted ? value.substr(1, value.size() - 2) : value, ns) !=
      trace::NumberError::none)
    return std::string(value);
  std::int64_t sum = 0;
  if (__builtin_add_overflow(ns, add_ns, &sum) || sum == std::numeric_limits<std::int64_t>::min())
    return std::string(value);
  const std::int64_t size = std::abs(sum);
  return fmt::format("{}{}.{:03}", sum < 0 ? "-" : "", size / 1000, size % 1000);
}

std::string with_suffix(std::string_view value, const std::string& suffix) {
  if (value.size() >= 2 && value.front() == '"') value = value.substr(1, value.size() - 2);
  return "\"" + std::string(value) + suffix + "\"";
}

}  // namespace

std::string changed_pid(std::string_view process, std::int64_t pid, const EventChanges& changes) {
  if (pid >= 0) return std::to_string(pid + changes.add_to_pid);
  const std::string text = json_text(process);
  return changes.suffix.empty() ? text : with_suffix(text, changes.suffix);
}

void change_event(std::string_view event, const EventChanges& changes, std::string& changed) {
  std::size_t copied = 0;
  std::size_t at = event.find('{');
  if (at == std::string_view::npos) at = event.size();
  ++at;
  while (at < event.size()) {
    at = event.find('"', at);
    if (at == std::string_view::npos) break;
    const std::size_t key_end = trace::value_end(event, at);
    const std::string_view key = event.substr(at, key_end - at);
    std::size_t value = event.find_first_not_of(" \t\r\n:", key_end);
    if (value == std::string_view::npos) break;
    const std::size_t value_end = trace::value_end(event, value);
    const std::string_view text = event.substr(value, value_end - value);
    std::string made;
    if (key == "\"pid\"") {
      std::int64_t number = 0;
      const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
      const bool numeric = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && number >= 0;
      made = numeric ? std::to_string(number + changes.add_to_pid) : with_suffix(text, changes.suffix);
    } else if (key == "\"ts\"" && changes.add_to_ts_ns != 0) {
      made = changed_ts(text, changes.add_to_ts_ns);
    } else if (key == "\"id\"" && !text.empty() && text.front() != '{' && !changes.suffix.empty()) {
      made = with_suffix(text, changes.suffix);
    }
    if (!made.empty()) {
      changed += event.substr(copied, value - copied);
      changed += made;
      copied = value_end;
    }
    at = value_end;
  }
  changed += event.substr(copied);
}

bool TraceCopier::copy_document(const std::function<void(bool any)>& more) {
  CountedBytes counted(bytes_, progress_);
  trace::GzipStream inflated(counted, name_);
  ByteWindow window(inflated, kWindow);
  JsonWalk walk(window, [&](std::string_view taken) { out_.write(taken); });
  const Document document = find_events(walk);
  if (document == Document::none) return false;
  char last = ',';
  const bool closed = each_piece(window, [&](std::string_view piece) {
    const std::size_t at = piece.find_last_not_of(kBlanks);
    if (at != std::string_view::npos) last = piece[at];
    out_.write(piece);
  });
  if (!closed || !inflated.damage().empty()) return false;
  // Some writers leave a comma behind their last event: ours goes on from there.
  more(last != ',');
  walk.take(1);
  if (document == Document::bare_array) return true;
  for (;;) {
    const int next = walk.peek();
    if (next < 0) return false;
    if (next == '}') {
      walk.take(1);
      return inflated.damage().empty();
    }
    if (next == ',' || next == ':') {
      walk.take(1);
    } else if (next == ']' || !walk.take_value()) {
      return false;
    }
  }
}

std::uint64_t TraceCopier::copy_events(const EventChanges& changes, bool careful, bool& wrote_any) {
  CountedBytes counted(bytes_, progress_);
  trace::GzipStream inflated(counted, name_);
  ByteWindow window(inflated, kWindow);
  JsonWalk walk(window);
  std::uint64_t left_out = 0;
  if (find_events(walk) == Document::none) return left_out;
  std::string changed;
  simdjson::dom::parser parser;
  const auto put = [&](std::string_view event) {
    if (careful) {
      simdjson::dom::element element;
      if (parser.parse(event.data(), event.size()).get(element) != simdjson::SUCCESS ||
          !element.is_object()) {
        ++left_out;
        return;
      }
    }
    if (wrote_any) out_.write(",\n");
    wrote_any = true;
    if (!changes.any()) return out_.write(event);
    changed.clear();
    change_event(event, changes, changed);
    out_.write(changed);
  };
  if (!careful) {
    each_piece(window, [&](std::string_view piece) {
      if (!changes.any()) return put(stripped(piece));
      EventBoundaries boundaries;
      for (;;) {
        piece = piece.substr(std::min(piece.find_first_not_of(" \t\r\n,"), piece.size()));
        const EventBoundaries::Found found = boundaries.scan(piece, 1);
        if (found.after_last == EventBoundaries::npos) return;
        put(piece.substr(0, found.after_last));
        piece.remove_prefix(found.after_last);
        boundaries.reset();
      }
    });
    return left_out;
  }
  for (;;) {
    window.fill();
    const std::string_view text = window.text();
    std::size_t from = 0;
    trace::EventSpan span;
    for (;; from = span.end) {
      span = trace::find_event(text, from);
      if (span.kind == trace::EventSpan::Kind::array_end) return left_out;
      if (span.kind == trace::EventSpan::Kind::incomplete) break;
      const std::string_view event = stripped(text.substr(span.begin, span.end - span.begin));
      if (!event.empty()) put(event);
    }
    window.drop(span.begin);
    if (span.begin > 0 && !window.ended()) continue;
    if (window.ended() && span.begin == 0) return left_out;
    if (!window.ended() && window.capacity() >= kLongestEvent) return left_out;
    if (!window.ended()) window.grow(kLongestEvent);
  }
}

}  // namespace headrace::timeline
