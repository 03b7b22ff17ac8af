#include "headrace/timeline/event_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace headrace::timeline {
namespace {

constexpr std::size_t kTimeRoom = 32;
constexpr std::size_t kTextRoom = 1024;

/// Length of the UTF-8 character at `text[at]`, 0 where there is none.
std::size_t character_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xC2 ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80U) return 0;
  }
  if (length == 3 && ((first == 0xE0 && byte(at + 1) < 0xA0) || (first == 0xED && byte(at + 1) >= 0xA0)))
    return 0;
  if (length == 4 && ((first == 0xF0 && byte(at + 1) < 0x90) || (first == 0xF4 && byte(at + 1) >= 0x90)))
    return 0;
  return length;
}

char* put_text(char* at, std::string_view text) noexcept {
  std::memcpy(at, text.data(), text.size());
  return at + text.size();
}

}  // namespace

std::string json_text(std::string_view text) {
  std::string json = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text, at);
    const char c = text[at];
    if (length == 0) {
      json += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      json += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      json += "\\u00";
      json += {kDigits[static_cast<unsigned char>(c) >> 4], kDigits[c & 0xF]};
    } else {
      json += text.substr(at, length);
    }
    at += std::max<std::size_t>(1, length);
  }
  return json += '"';
}

char* EventWriter::put_time(char* at, std::int64_t ns) const noexcept {
  // Microseconds with three decimals; the sign is that of the whole.
  std::int64_t relative = ns - base_ns_;
  if (relative < 0) {
    *at++ = '-';
    relative = -relative;
  }
  at = std::to_chars(at, at + kTimeRoom, relative / 1000).ptr;
  const auto decimals = static_cast<int>(relative % 1000);
  *at++ = '.';
  *at++ = static_cast<char>('0' + decimals / 100);
  *at++ = static_cast<char>('0' + decimals / 10 % 10);
  *at++ = static_cast<char>('0' + decimals % 10);
  return at;
}

EventWriter::Prepared EventWriter::slice_name(const Row& row, std::string_view name) const {
  return {",\n{\"ph\":\"X\",\"cat\":\"headrace\",\"name\":" + json_text(name) +
          ",\"pid\":" + std::to_string(row.pid) + ",\"tid\":" + std::to_string(row.tid) + ",\"ts\":"};
}

EventWriter::Prepared EventWriter::counter_name(std::int64_t pid, std::string_view name) const {
  return {",\n{\"ph\":\"C\",\"cat\":\"headrace\",\"name\":" + json_text(name) +
          ",\"pid\":" + std::to_string(pid) + ",\"tid\":0,\"ts\":"};
}

void EventWriter::slice(const Prepared& name, std::int64_t begin_ns, std::int64_t end_ns,
                        std::string_view args) {
  const std::string_view head = std::string_view(name.head).substr(first_ ? 2 : 0);
  first_ = false;
  const std::size_t most = head.size() + args.size() + 2 * kTimeRoom + 32;
  std::string own;
  const bool fits = most <= 4096;
  if (!fits) own.resize(most);
  char* const begin = fits ? out_.room(most) : own.data();
  char* at = put_time(put_text(begin, head), begin_ns);
  at = put_time(put_text(at, ",\"dur\":"), base_ns_ + std::max<std::int64_t>(0, end_ns - begin_ns));
  if (!args.empty()) {
    at = put_text(put_text(at, ",\"args\":{"), args);
    *at++ = '}';
  }
  *at++ = '}';
  if (fits) {
    out_.wrote(static_cast<std::size_t>(at - begin));
  } else {
    out_.write({begin, static_cast<std::size_t>(at - begin)});
  }
  ++slices_;
}

void EventWriter::counter(const Prepared& name, std::int64_t at_ns, double value) {
  out_.write(std::string_view(name.head).substr(first_ ? 2 : 0));
  first_ = false;
  char* const begin = out_.room(2 * kTimeRoom + 64);
  char* at = put_text(put_time(begin, at_ns), ",\"args\":{\"items\":");
  const double rounded = std::isfinite(value) ? std::round(value * 100) / 100 : 0;
  if (rounded == std::floor(rounded)) {
    at = std::to_chars(at, at + kTimeRoom, static_cast<std::int64_t>(rounded)).ptr;
  } else {
    at = std::to_chars(at, at + kTimeRoom, rounded, std::chars_format::fixed, 2).ptr;
  }
  at = put_text(at, "}}");
  out_.wrote(static_cast<std::size_t>(at - begin));
  ++counters_;
}

void EventWriter::flow(char phase, std::string_view pid_json, std::string_view tid_json, std::uint64_t id,
                       std::int64_t at_ns) {
  separate();
  std::string event = "{\"ph\":\"";
  event += phase;
  event +=
      "\",\"cat\":\"headrace\",\"name\":\"batch\",\"id\":\"headrace-" + std::to_string(id) + "\",\"pid\":";
  event += pid_json;
  event += ",\"tid\":";
  event += tid_json;
  event += phase == 'f' ? ",\"bp\":\"e\",\"ts\":" : ",\"ts\":";
  char time[kTimeRoom];
  event.append(time, put_time(time, at_ns));
  event += '}';
  out_.write(event);
  ++flows_;
}

void EventWriter::flow(char phase, const Row& row, std::uint64_t id, std::int64_t at_ns) {
  flow(phase, std::to_string(row.pid), std::to_string(row.tid), id, at_ns);
}

void EventWriter::metadata(std::string_view name, std::string_view pid, std::string_view tid,
                           std::string_view args) {
  separate();
  std::string event = "{\"ph\":\"M\",\"cat\":\"headrace\",\"name\":\"";
  event += name;
  event += "\",\"pid\":";
  event += pid;
  event += ",\"tid\":";
  event += tid;
  event += ",\"ts\":0,\"args\":{";
  event += args;
  event += "}}";
  out_.write(event);
}

void EventWriter::process_name(std::int64_t pid, std::string_view name, std::string_view labels,
                               std::int64_t sort_index) {
  const std::string number = std::to_string(pid);
  metadata("process_name", number, "0", "\"name\":" + json_text(name));
  if (!labels.empty()) metadata("process_labels", number, "0", "\"labels\":" + json_text(labels));
  metadata("process_sort_index", number, "0", "\"sort_index\":" + std::to_string(sort_index));
}

void EventWriter::rename_process(std::string_view pid_json, std::string_view name) {
  metadata("process_name", pid_json, "0", "\"name\":" + json_text(name));
}

void EventWriter::thread_name(const Row& row, std::string_view name, std::int64_t sort_index) {
  const std::string pid = std::to_string(row.pid);
  const std::string tid = std::to_string(row.tid);
  metadata("thread_name", pid, tid, "\"name\":" + json_text(name));
  metadata("thread_sort_index", pid, tid, "\"sort_index\":" + std::to_string(sort_index));
}

}  // namespace headrace::timeline
