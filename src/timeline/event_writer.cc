#include "headrace/timeline/event_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "headrace/profile/json_fields.h"
#include "headrace/timeline/json_text.h"
#include "timeline/line_text.h"

namespace headrace::timeline {

EventWriter::Prepared EventWriter::slice_name(const Row& row, std::string_view name) const {
  return {",\n{\"ph\":\"X\",\"cat\":\"headrace\",\"name\":" + json_text(name) +
          ",\"pid\":" + std::to_string(row.pid) + ",\"tid\":" + std::to_string(row.tid) + ",\"ts\":"};
}

EventWriter::Prepared EventWriter::counter_name(std::int64_t pid, std::string_view name) const {
  return {",\n{\"ph\":\"C\",\"cat\":\"headrace\",\"name\":" + json_text(name) +
          ",\"pid\":" + std::to_string(pid) + ",\"tid\":0,\"ts\":"};
}

template <class Write>
void EventWriter::line(const Prepared& name, std::size_t most, Write&& write) {
  std::string_view head = name.head;
  // No comma before the first event.
  if (std::exchange(first_, false)) head.remove_prefix(2);
  if (head.size() + most > GzipWriter::kMaxRoom) {
    out_.write(head);
    head = {};
  }
  if (most > GzipWriter::kMaxRoom) {
    std::string text(most, '\0');
    return out_.write({text.data(), static_cast<std::size_t>(write(text.data()) - text.data())});
  }
  char* const begin = out_.room(head.size() + most);
  out_.wrote(static_cast<std::size_t>(write(put_text(begin, head)) - begin));
}

void EventWriter::slice(const Prepared& name, std::int64_t begin_ns, std::int64_t end_ns,
                        std::string_view args) {
  ++slices_;
  line(name, 2 * kTimeRoom + 32 + args.size(), [&](char* at) {
    at = put_text(put_microseconds(at, begin_ns - base_ns_), ",\"dur\":");
    at = put_microseconds(at, std::max<std::int64_t>(0, end_ns - begin_ns));
    return args.empty() ? put_text(at, "}") : put_text(put_text(put_text(at, ",\"args\":{"), args), "}}");
  });
}

void EventWriter::counter(const Prepared& name, std::int64_t at_ns, double value) {
  ++counters_;
  const double rounded = std::isfinite(value) ? std::round(value * 100) / 100 : 0;
  line(name, 512, [&](char* at) {
    at = put_text(put_microseconds(at, at_ns - base_ns_), ",\"args\":{\"items\":");
    const int decimals = rounded == std::floor(rounded) ? 0 : 2;
    at = std::to_chars(at, at + 400, rounded, std::chars_format::fixed, decimals).ptr;
    return put_text(at, "}}");
  });
}

void EventWriter::flow(char phase, std::string_view pid_json, std::string_view tid_json, std::uint64_t id,
                       std::int64_t at_ns) {
  ++flows_;
  std::string event(separator());
  event += "{\"ph\":\"";
  event += phase;
  event += "\",\"cat\":\"headrace\",\"name\":\"batch\",\"id\":\"headrace-" + std::to_string(id);
  event += "\",\"pid\":";
  event += pid_json;
  event += ",\"tid\":";
  event += tid_json;
  event += phase == 'f' ? ",\"bp\":\"e\",\"ts\":" : ",\"ts\":";
  char time[kTimeRoom];
  event.append(time, put_microseconds(time, at_ns - base_ns_));
  event += '}';
  out_.write(event);
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

std::string json_text(std::string_view text) { return profile::dump_json(text, -1); }

}  // namespace headrace::timeline
