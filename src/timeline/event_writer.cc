#include "headrace/timeline/event_writer.h"

#include <algorithm>
#include <array>
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

/// "00" to "99".
constexpr auto kPairs = [] {
  std::array<char, 200> pairs{};
  for (std::size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

/// ".000" to ".999".
constexpr auto kDecimals = [] {
  std::array<char, 4000> decimals{};
  for (std::size_t i = 0; i < 1000; ++i) {
    decimals[4 * i] = '.';
    decimals[4 * i + 1] = static_cast<char>('0' + i / 100);
    decimals[4 * i + 2] = static_cast<char>('0' + i / 10 % 10);
    decimals[4 * i + 3] = static_cast<char>('0' + i % 10);
  }
  return decimals;
}();

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
  // Microseconds with three decimals; the sign is that of the whole. Digits are made from the end.
  auto left = static_cast<std::uint64_t>(ns - base_ns_);
  if (ns < base_ns_) {
    *at++ = '-';
    left = 0 - left;
  }
  const std::uint64_t thousandths = left % 1000;
  left /= 1000;
  char digits[kTimeRoom];
  char* first = digits + sizeof(digits) - 4;
  std::memcpy(first, kDecimals.data() + 4 * thousandths, 4);
  while (left >= 10000) {
    const auto four = static_cast<std::uint32_t>(left % 10000);
    left /= 10000;
    std::memcpy(first - 4, kPairs.data() + 2 * (four / 100), 2);
    std::memcpy(first - 2, kPairs.data() + 2 * (four % 100), 2);
    first -= 4;
  }
  while (left >= 100) {
    std::memcpy(first -= 2, kPairs.data() + 2 * (left % 100), 2);
    left /= 100;
  }
  if (left >= 10) {
    std::memcpy(first -= 2, kPairs.data() + 2 * left, 2);
  } else {
    *--first = static_cast<char>('0' + left);
  }
  return put_text(at, {first, static_cast<std::size_t>(digits + sizeof(digits) - first)});
}

EventWriter::Prepared EventWriter::slice_name(const Row& row, std::string_view name) const {
  return {",\n{\"ph\":\"X\",\"cat\":\"headrace\",\"name\":" + json_text(name) +
          ",\"pid\":" + std::to_string(row.pid) + ",\"tid\":" + std::to_string(row.tid) + ",\"ts\":"};
}

EventWriter::Prepared EventWriter::counter_name(std::int64_t pid, std::string_view name) const {
  return {",\n{\"ph\":\"C\",\"cat\":\"headrace\",\"name\":" + json_text(name) +
          ",\"pid\":" + std::to_string(pid) + ",\"tid\":0,\"ts\":"};
}

void EventWriter::slice(Prepared& name, std::int64_t begin_ns, std::int64_t end_ns, std::string_view args) {
  const std::string_view head = std::string_view(name.head).substr(std::exchange(first_, false) ? 2 : 0);
  ++slices_;
  if (head.size() + args.size() + 2 * kTimeRoom + 32 > GzipWriter::kMostLine) {
    std::string line(head);
    char time[kTimeRoom];
    line.append(time, put_time(time, begin_ns));
    line += ",\"dur\":";
    line.append(time, put_time(time, base_ns_ + std::max<std::int64_t>(0, end_ns - begin_ns)));
    line += ",\"args\":{" + std::string(args) + "}}";
    return out_.write_line(line);
  }
  char* const begin = out_.line_room(GzipWriter::kMostLine);
  char* const duration = put_time(put_text(begin, head), begin_ns);
  out_.wrote_line(static_cast<std::size_t>(duration - begin), name.begin);
  char* at =
      put_time(put_text(duration, ",\"dur\":"), base_ns_ + std::max<std::int64_t>(0, end_ns - begin_ns));
  if (args.empty()) {
    *at++ = '}';
    return out_.wrote_line(static_cast<std::size_t>(at - duration), name.duration);
  }
  out_.wrote_line(static_cast<std::size_t>(at - duration), name.duration);
  char* const rest = at;
  at = put_text(put_text(put_text(at, ",\"args\":{"), args), "}}");
  out_.wrote_line(static_cast<std::size_t>(at - rest), name.args);
}

void EventWriter::counter(Prepared& name, std::int64_t at_ns, double value) {
  const std::string_view head = std::string_view(name.head).substr(std::exchange(first_, false) ? 2 : 0);
  ++counters_;
  char* begin;
  char* at;
  if (head.size() + 2 * kTimeRoom + 64 > GzipWriter::kMostLine) {
    out_.write_line(head);
    begin = at = out_.line_room(GzipWriter::kMostLine);
  } else {
    begin = out_.line_room(GzipWriter::kMostLine);
    at = put_text(begin, head);
  }
  char* const rest = put_time(at, at_ns);
  out_.wrote_line(static_cast<std::size_t>(rest - begin), name.begin);
  at = put_text(rest, ",\"args\":{\"items\":");
  const double rounded = std::isfinite(value) ? std::round(value * 100) / 100 : 0;
  if (rounded == std::floor(rounded)) {
    at = std::to_chars(at, at + kTimeRoom, static_cast<std::int64_t>(rounded)).ptr;
  } else {
    at = std::to_chars(at, at + kTimeRoom, rounded, std::chars_format::fixed, 2).ptr;
  }
  at = put_text(at, "}}");
  out_.wrote_line(static_cast<std::size_t>(at - rest), name.args);
}

void EventWriter::flow(char phase, std::string_view pid_json, std::string_view tid_json, std::uint64_t id,
                       std::int64_t at_ns) {
  FlowPlaces& last = last_flows_[phase == 's' ? 0 : phase == 't' ? 1 : 2];
  ++flows_;
  const auto put = [this](const std::string& part, GzipWriter::Place& like) {
    if (part.size() > GzipWriter::kMostLine) return out_.write_line(part);
    put_text(out_.line_room(part.size()), part);
    out_.wrote_line(part.size(), like);
  };
  std::string part(separator());
  part += "{\"ph\":\"";
  part += phase;
  part += "\",\"cat\":\"headrace\",\"name\":\"batch\",\"id\":\"headrace-" + std::to_string(id);
  put(part, last.id);
  part = "\",\"pid\":";
  part += pid_json;
  part += ",\"tid\":";
  part += tid_json;
  put(part, last.row);
  part = phase == 'f' ? ",\"bp\":\"e\",\"ts\":" : ",\"ts\":";
  char time[kTimeRoom];
  part.append(time, put_time(time, at_ns));
  part += '}';
  put(part, last.time);
}

void EventWriter::flow(char phase, const Row& row, std::uint64_t id, std::int64_t at_ns) {
  flow(phase, std::to_string(row.pid), std::to_string(row.tid), id, at_ns);
}

void EventWriter::metadata(std::string_view name, std::string_view pid, std::string_view tid,
                           std::string_view args) {
  std::string event(separator());
  event += "{\"ph\":\"M\",\"cat\":\"headrace\",\"name\":\"";
  event += name;
  event += "\",\"pid\":";
  event += pid;
  event += ",\"tid\":";
  event += tid;
  event += ",\"ts\":0,\"args\":{";
  event += args;
  event += "}}";
  out_.write_line(event);
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
