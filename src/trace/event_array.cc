#include "trace/event_array.h"

#include <algorithm>
#include <string_view>

#include "headrace/trace/event_boundaries.h"
#include "trace/event_search.h"

namespace headrace::trace {

bool EventArray::read() {
  for (;;) {
    window_.fill();
    switch (read_window()) {
      case Progress::closed:
        return true;
      case Progress::some:
        break;
      case Progress::none:
        if (window_.ended()) return cut_off();
        if (!make_room()) return false;
        break;
    }
  }
}

EventArray::Progress EventArray::read_window() {
  const std::string_view text = window_.text();
  const std::size_t first = std::min(text.find_first_not_of(" \t\r\n,"), text.size());
  if (!window_.ended() && read_up_to_last_event(first)) return Progress::some;
  return read_up_to_last_bracket(first);
}

/// False when nothing was read: the text is out of order, or the array ends in this window.
bool EventArray::read_up_to_last_event(std::size_t first) {
  const std::size_t length = last_event_end(window_.text().substr(first));
  if (length == std::string_view::npos) return false;
  if (!parser_.parse_all(window_.data() + first, length, window_.offset() + first)) return false;
  window_.drop(first + length);
  return true;
}

EventArray::Progress EventArray::read_up_to_last_bracket(std::size_t first) {
  EventBoundaries boundaries;
  const EventBoundaries::Found found = boundaries.scan(window_.text().substr(first));
  const bool closes = found.array_end != EventBoundaries::npos;
  const std::size_t length = closes ? found.array_end : found.after_last;
  if (length == EventBoundaries::npos) return read_one_by_one(0);

  window_.drop(first);
  const EventParser::Outcome outcome = parser_.parse(window_.data(), length, window_.offset());
  if (!outcome.whole) {
    std::size_t from = outcome.stopped_at;
    if (outcome.element_done) from = find_event(window_.text().substr(0, length), from).end;
    return read_one_by_one(from);
  }
  window_.drop(length + (closes ? 1 : 0));
  return closes ? Progress::closed : Progress::some;
}

EventArray::Progress EventArray::read_one_by_one(std::size_t from) {
  const std::string_view text = window_.text();
  for (;;) {
    const EventSpan span = find_event(text, from);
    if (span.kind == EventSpan::Kind::array_end) {
      window_.drop(span.begin + 1);
      return Progress::closed;
    }
    if (span.kind == EventSpan::Kind::incomplete) {
      window_.drop(span.begin);
      return span.begin > 0 ? Progress::some : Progress::none;
    }
    read_damaged(span.begin, span.end);
    from = span.end;
  }
}

/// One element that may be anything.
void EventArray::read_damaged(std::size_t begin, std::size_t end) {
  char* const text = window_.data() + begin;
  const std::uint64_t offset = window_.offset() + begin;
  // The comma between a damaged event and the next belongs to neither.
  std::size_t length = end - begin;
  while (length > 1 && (text[length - 1] == ',' || static_cast<unsigned char>(text[length - 1]) <= ' '))
    --length;
  if (parser_.parse(text, length, offset).whole) return;
  if (repair_texts(text, length) && parser_.parse(text, length, offset).whole) {
    notes_.count(ReadProblem::repaired, offset);
    return;
  }
  parser_.skip(ReadProblem::unreadable, offset);
}

/// False when the stream has ended.
bool EventArray::make_room() {
  if (window_.capacity() < longest_event_) {
    window_.grow(longest_event_);
    return true;
  }
  return skip_long_event();
}

bool EventArray::skip_long_event() {
  parser_.skip(ReadProblem::too_long, window_.offset());
  EventBoundaries boundaries;
  for (;;) {
    const std::string_view text = window_.text();
    const EventBoundaries::Found found = boundaries.scan(text, 1);
    if (found.after_last != EventBoundaries::npos) {
      window_.drop(found.after_last);
      return true;
    }
    if (found.array_end != EventBoundaries::npos) {
      window_.drop(found.array_end);
      return true;
    }
    if (window_.ended()) return cut_off();
    window_.drop(text.size());
    window_.fill();
  }
}

bool EventArray::cut_off() {
  notes_.cut = true;
  notes_.cut_where = window_.text().empty() ? "between two events" : "inside an event";
  window_.drop(window_.text().size());
  notes_.cut_offset = window_.offset();
  return false;
}

}  // namespace headrace::trace
