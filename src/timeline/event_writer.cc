#include "headrace/timeline/event_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "headrace/timeline/json_text.h"
#include "timeline/coded_text.h"

namespace headrace::timeline {
namespace {

constexpr std::size_t kTimeRoom = 32;

}  // namespace

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

namespace {

constexpr std::uint32_t kSecond = 1'000'000'000;
constexpr std::string_view kDuration = ",\"dur\":";

}  // namespace

/// Of most slices nothing is new but the digits within a second and the duration: no text is compared for
/// them.
bool EventWriter::slice_like_last(Prepared& name, std::int64_t begin_ns, std::int64_t end_ns) {
  const auto begin = static_cast<std::uint64_t>(begin_ns - base_ns_);
  const auto lasts = static_cast<std::uint64_t>(std::max<std::int64_t>(0, end_ns - begin_ns));
  LineDeflater* const coder = out_.coder();
  if (coder == nullptr || begin / kSecond != name.last.seconds || lasts >= kSecond) return false;
  char* const line = out_.line_room(GzipWriter::kMostLine);
  const std::size_t back = out_.distance_to(name.begin);
  if (back == 0) return false;
  const Code distance = kLineCodes.distance_of(back);
  // What is put between two flushes, beside the seven bits that one may leave.
  static_assert(7 + 6 * kLongestDigit <= 64 && 7 + 4 * kLongestDigit + kLongestCode <= 64);

  CodedText out{line, coder->bits()};
  for (std::size_t done = 0; done < name.last.bytes; done += 16)
    std::memcpy(line + done, name.last.text.data() + done, 16);
  out.at += name.last.bytes;
  out.match(name.last.bytes, distance);
  const auto within = static_cast<std::uint32_t>(begin % kSecond);
  const std::uint32_t microseconds = within / 1000;
  out.pair(microseconds / 10000);
  out.pair(microseconds / 100 % 100);
  out.pair(microseconds % 100);
  out.bits.flush();
  out.decimals(within % 1000);
  out.bits.flush();

  out.at = put_text(out.at, kDuration);
  out.match(kDuration.size(), distance);
  const auto duration = static_cast<std::uint32_t>(lasts);
  const std::uint32_t whole = duration / 1000;
  if (whole >= 10000) {
    out.leading(whole / 10000);
    out.pair(whole / 100 % 100);
    out.pair(whole % 100);
  } else if (whole >= 100) {
    out.leading(whole / 100);
    out.pair(whole % 100);
  } else {
    out.leading(whole);
  }
  out.bits.flush();
  out.decimals(duration % 1000);
  *out.at++ = '}';
  out.put(kLineCodes.literals['}']);
  out.bits.flush();
  coder->bits() = out.bits;
  out_.wrote_coded(static_cast<std::size_t>(out.at - line), name.begin);
  return true;
}

/// `line`: of a slice that was put otherwise, up to its beginning's last digit; whole where a comma leads it.
void EventWriter::remember(Prepared& name, bool is_whole, std::string_view line,
                           std::int64_t begin_ns) const noexcept {
  name.last.seconds = Prepared::Beginning::kNone;
  constexpr std::size_t kWithin = 10;  // 345678.901
  if (!is_whole || begin_ns - base_ns_ < kSecond) return;
  name.last.bytes = line.size() - kWithin;
  if (name.last.bytes > name.last.text.size() - 16) return;
  std::memcpy(name.last.text.data(), line.data(), name.last.bytes);
  name.last.seconds = static_cast<std::uint64_t>(begin_ns - base_ns_) / kSecond;
}

void EventWriter::slice(Prepared& name, std::int64_t begin_ns, std::int64_t end_ns, std::string_view args) {
  ++slices_;
  if (args.empty() && slice_like_last(name, begin_ns, end_ns)) return;
  const std::string_view head = std::string_view(name.head).substr(std::exchange(first_, false) ? 2 : 0);
  if (head.size() + args.size() + 2 * kTimeRoom + 32 > GzipWriter::kMostLine) {
    std::string line(head);
    char time[kTimeRoom];
    line.append(time, put_time(time, begin_ns));
    line += kDuration;
    line.append(time, put_time(time, base_ns_ + std::max<std::int64_t>(0, end_ns - begin_ns)));
    line += args.empty() ? "}" : ",\"args\":{" + std::string(args) + "}}";
    return out_.write_line(line);
  }
  char* const begin = out_.line_room(GzipWriter::kMostLine);
  char* const duration = put_time(put_text(begin, head), begin_ns);
  char* at = put_time(put_text(duration, kDuration), base_ns_ + std::max<std::int64_t>(0, end_ns - begin_ns));
  remember(name, head.size() == name.head.size(), {begin, static_cast<std::size_t>(duration - begin)},
           begin_ns);
  out_.wrote_line(static_cast<std::size_t>(duration - begin), name.begin);
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
