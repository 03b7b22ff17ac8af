#include "trace/document.h"

#include "headrace/profile/errors.h"

namespace headrace::trace {
namespace {

constexpr const char* kExpected = "an object with \"traceEvents\", or an array of events";
/// The first byte of every pickle that is written today.
constexpr int kPickle = 0x80;

}  // namespace

void Document::read() {
  walk_.begin();
  const int first = walk_.peek();
  if (first == '[') {
    window_.drop(1);
    if (events_.read()) look_behind();
    return;
  }
  if (first == JsonWalk::kEnd)
    throw FormatError(name_, window_.offset(), "a trace, but there is nothing in it");
  if (first == kPickle)
    throw FormatError(name_, "a pickle, no trace; hr.MemorySnapshot.load reads memory snapshots of PyTorch");
  if (first != '{') throw FormatError(name_, window_.offset(), kExpected);
  window_.drop(1);
  read_object();
  if (!found_events_) throw FormatError(name_, window_.offset(), kExpected);
  if (!notes_.cut) look_behind();
}

void Document::look_behind() {
  if (walk_.peek() == JsonWalk::kEnd || window_.text().front() == '\0') return;
  notes_.remarks.push_back("something else stands behind the trace, from byte " +
                           std::to_string(window_.offset()) + " on: it is not read");
}

void Document::read_object() {
  std::string key;
  std::string value;
  for (;;) {
    int next = walk_.peek();
    if (next == JsonWalk::kEnd) return cut_off("inside the top-level object");
    if (next == '}') return window_.drop(1);
    if (next != '"') {  // a comma; anything else is passed over too, a later key may be in order
      window_.drop(1);
      continue;
    }
    if (!walk_.take_value(&key)) return cut_off("inside a key");
    next = walk_.peek();
    if (next == JsonWalk::kEnd) return cut_off("behind a key");
    if (next != ':') continue;
    window_.drop(1);
    next = walk_.peek();
    if (key == "\"traceEvents\"" && next == '[') {
      found_events_ = true;
      window_.drop(1);
      if (!events_.read()) return;
      continue;
    }
    if (next == ',' || next == '}' || next == ']') continue;  // a value is missing
    if (next == JsonWalk::kEnd || !walk_.take_value(&value)) return cut_off("inside the value of " + key);
    if (!value.empty() && key.size() >= 2) metadata.emplace_back(key.substr(1, key.size() - 2), value);
  }
}

void Document::cut_off(std::string_view where) {
  notes_.cut = true;
  notes_.cut_where = where;
  notes_.cut_offset = window_.offset();
}

}  // namespace headrace::trace
