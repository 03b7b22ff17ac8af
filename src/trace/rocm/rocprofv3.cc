#include "trace/rocm/rocprofv3.h"

#include <simdjson.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "headrace/profile/errors.h"
#include "headrace/trace/gzip_stream.h"
#include "trace/byte_window.h"
#include "trace/json_walk.h"
#include "trace/process_trace.h"
#include "trace/rocm/names.h"

namespace headrace::trace::rocm {
namespace {

constexpr std::string_view kRoot = "rocprofiler-sdk-tool";

using Element = simdjson::dom::element;

std::optional<std::int64_t> integer_at(const Element& element, std::string_view pointer) {
  std::int64_t value = 0;
  if (element.at_pointer(pointer).get(value)) return std::nullopt;
  return value;
}

std::string_view text_at(const Element& element, std::string_view key) {
  std::string_view text;
  return element[key].get(text) ? std::string_view() : text;
}

/// One process of the file while it is read. What records name by number may stand behind them.
struct RocmProcess {
  RocmProcess(const std::string& path, const ReadOptions& options) : trace(path, 0, options) {}

  ProcessTrace trace;
  std::unordered_map<std::int64_t, std::int64_t> devices;  ///< of a GPU's handle
  std::unordered_map<std::int64_t, std::string> kernels;
  std::vector<std::vector<std::string>> operations;            ///< of each kind
  std::unordered_map<std::int64_t, std::string> markers;       ///< by correlation
  std::unordered_map<std::int64_t, std::int64_t> call_around;  ///< the call of HIP around one of HSA

  struct Unnamed {
    Row row = 0;
    std::int64_t kernel = kAbsent;
    std::int64_t kind = 0;
    std::int64_t operation = 0;
    std::int64_t marker = kAbsent;
    bool is_copy = false;
  };
  std::vector<Unnamed> unnamed;

  void name_rows() {
    for (const Unnamed& each : unnamed) trace.file.columns.name[each.row] = trace.intern(name_of(each));
    unnamed.clear();
  }

 private:
  std::string name_of(const Unnamed& each) const {
    if (each.kernel != kAbsent) {
      const auto name = kernels.find(each.kernel);
      return name == kernels.end() ? "kernel " + std::to_string(each.kernel) : name->second;
    }
    if (const auto marker = markers.find(each.marker); marker != markers.end()) return marker->second;
    const auto kind = static_cast<std::size_t>(each.kind);
    const auto operation = static_cast<std::size_t>(each.operation);
    if (kind >= operations.size() || operation >= operations[kind].size())
      return "operation " + std::to_string(each.operation) + " of kind " + std::to_string(each.kind);
    return each.is_copy ? copy_name(operations[kind][operation]) : operations[kind][operation];
  }
};

class Rocprofv3Reader {
 public:
  Rocprofv3Reader(Input& input, const ReadOptions& options)
      : path_(input.path()),
        options_(options),
        file_(input.open(options.bytes_read)),
        inflated_(*file_, path_),
        window_(inflated_, options.window_bytes) {}

  std::vector<TraceFile> run() {
    walk_.begin();
    members([&](std::string_view key) {
      if (key != kRoot) return skip();
      if (walk_.peek() == '{') return read_process();
      return elements([&] { return walk_.peek() == '{' ? read_process() : skip(); });
    });
    std::vector<ProcessTrace*> processes;
    for (RocmProcess& process : processes_) {
      process.name_rows();
      processes.push_back(&process.trace);
    }
    std::vector<TraceFile> traces = ranks_of(processes, std::move(remarks_), path_);
    for (TraceFile& file : traces) {
      file.notes.bytes = window_.offset();
      file.notes.damage = inflated_.damage();
      file.notes.cut = cut_;
      if (cut_) file.notes.cut_where = "inside " + std::string(kRoot);
      if (cut_) file.notes.cut_offset = window_.offset();
    }
    return traces;
  }

 private:
  // The walks below return false where the stream has ended inside what they walk over.

  bool skip() { return walk_.take_value() || cut_off(); }
  bool cut_off() {
    cut_ = true;
    return false;
  }

  /// Calls `member` with each key of the object that begins here; it takes the value.
  template <class Member>
  bool members(Member&& member) {
    if (walk_.peek() != '{') return skip();
    walk_.take(1);
    std::string key;
    for (;;) {
      const int next = walk_.peek();
      if (next == JsonWalk::kEnd) return cut_off();
      if (next != '"') {
        walk_.take(1);
        if (next == '}') return true;
        continue;
      }
      if (!walk_.take_value(&key)) return cut_off();
      if (walk_.peek() != ':') continue;
      walk_.take(1);
      walk_.peek();
      if (!member(key.size() < 2 ? std::string_view() : std::string_view(key).substr(1, key.size() - 2)))
        return false;
    }
  }

  /// Calls `element` at each element of the array that begins here; it takes it.
  template <class Each>
  bool elements(Each&& element) {
    if (walk_.peek() != '[') return skip();
    walk_.take(1);
    for (;;) {
      const int next = walk_.peek();
      if (next == JsonWalk::kEnd) return cut_off();
      if (next == ']' || next == ',' || next == '}' || next == ':') {
        walk_.take(1);
        if (next == ']') return true;
        continue;
      }
      if (!element()) return false;
    }
  }

  /// Parses the value that begins here and calls `use` with it; one that cannot be read is counted.
  template <class Use>
  bool parsed(RocmProcess& process, Use&& use) {
    const std::uint64_t offset = window_.offset();
    if (!walk_.take_value(&text_)) return cut_off();
    Element element;
    if (text_.empty()) {
      process.trace.file.notes.count(ReadProblem::too_long, offset);
    } else if (parser_.parse(text_).get(element)) {
      process.trace.file.notes.count(ReadProblem::unreadable, offset);
    } else {
      use(element);
    }
    return true;
  }

  template <class Use>
  bool parsed_elements(RocmProcess& process, Use&& use) {
    return elements([&] { return parsed(process, use); });
  }

  bool read_process() {
    RocmProcess& process = processes_.emplace_back(path_, options_);
    return members([&](std::string_view key) {
      if (key == "metadata")
        return parsed(process,
                      [&](const Element& it) { process.trace.pid = integer_at(it, "/pid").value_or(0); });
      if (key == "agents") return read_agents(process);
      if (key == "kernel_symbols") return read_kernel_names(process);
      if (key == "strings") return read_strings(process);
      if (key == "buffer_records") return read_records(process);
      if (key == "callback_records") return note_callbacks();
      return skip();
    });
  }

  bool read_agents(RocmProcess& process) {
    constexpr std::int64_t kGpu = 2;
    return parsed_elements(process, [&](const Element& it) {
      if (integer_at(it, "/type") != kGpu) return;
      const auto count = static_cast<std::int64_t>(process.devices.size());
      process.devices.emplace(integer_at(it, "/id/handle").value_or(kAbsent),
                              integer_at(it, "/logical_node_type_id").value_or(count));
    });
  }

  bool read_kernel_names(RocmProcess& process) {
    return parsed_elements(process, [&](const Element& it) {
      std::string_view name = text_at(it, "formatted_kernel_name");
      if (name.empty()) name = text_at(it, "kernel_name");
      process.kernels.emplace(integer_at(it, "/kernel_id").value_or(kAbsent), name);
    });
  }

  bool read_strings(RocmProcess& process) {
    return members([&](std::string_view key) {
      if (key == "buffer_records")
        return parsed_elements(process, [&](const Element& it) {
          std::vector<std::string>& names = process.operations.emplace_back();
          simdjson::dom::array operations;
          if (it["operations"].get(operations)) return;
          for (const Element operation : operations) {
            std::string_view name;
            names.emplace_back(operation.get(name) ? std::string_view() : name);
          }
        });
      if (key == "marker_api")
        return parsed_elements(process, [&](const Element& it) {
          process.markers.emplace(integer_at(it, "/key").value_or(kAbsent), text_at(it, "value"));
        });
      return skip();
    });
  }

  bool read_records(RocmProcess& process) {
    return members([&](std::string_view key) {
      if (key == "kernel_dispatch")
        return parsed_elements(process, [&](const Element& it) { add_dispatch(process, it); });
      if (key == "memory_copy")
        return parsed_elements(process, [&](const Element& it) { add_copy(process, it); });
      std::string kind(key);
      std::transform(kind.begin(), kind.end(), kind.begin(), [](unsigned char c) { return std::toupper(c); });
      if (const auto category = call_category(kind))
        return parsed_elements(process, [&](const Element& it) { add_call(process, it, *category); });
      return note_unread("the records of ", key);
    });
  }

  /// Counters, and what else was recorded when it was called, are no rows of a timeline.
  bool note_callbacks() {
    return members([&](std::string_view key) { return note_unread("the callback records of ", key); });
  }

  /// Passes over the records behind `key`, with a remark if there are any.
  bool note_unread(std::string_view which, std::string_view key) {
    const std::string what = plain_text(key);  // `key` does not outlast what is read behind it
    bool any = false;
    const bool whole = elements([&] {
      any = true;
      return skip();
    });
    if (any) remarks_.push_back(std::string(which) + what + " are not read");
    return whole;
  }

  static EventRow times_of(const Element& record) {
    EventRow event;
    event.start_ns = integer_at(record, "/start_timestamp").value_or(-1);
    event.end_ns = integer_at(record, "/end_timestamp").value_or(-1);
    return event;
  }
  static std::int64_t correlation_of(const Element& record) {
    return integer_at(record, "/correlation_id/internal").value_or(0);
  }

  bool add_work(RocmProcess& process, const Element& record, std::string_view category, std::int64_t agent,
                std::int64_t stream) {
    EventRow event = times_of(record);
    event.stream = integer_at(record, "/stream_id/handle").value_or(stream);
    const std::int64_t correlation = correlation_of(record);
    const auto around = process.call_around.find(correlation);
    if (correlation > 0)
      event.correlation = around == process.call_around.end() ? correlation : around->second;
    event.category = process.trace.intern(category);
    const auto device = process.devices.find(agent);
    const std::int64_t number = device == process.devices.end() ? 0 : device->second;
    event.lane = process.trace.device_lane(number, event.stream);
    return process.trace.add_work(event, number);
  }

  RocmProcess::Unnamed last_of(RocmProcess& process, const Element& record) {
    RocmProcess::Unnamed unnamed;
    unnamed.row = static_cast<Row>(process.trace.file.columns.size() - 1);
    unnamed.kind = integer_at(record, "/kind").value_or(-1);
    unnamed.operation = integer_at(record, "/operation").value_or(-1);
    return unnamed;
  }

  void add_dispatch(RocmProcess& process, const Element& record) {
    Element dispatch;
    if (record["dispatch_info"].get(dispatch)) dispatch = record;
    if (!add_work(process, record, "kernel", integer_at(dispatch, "/agent_id/handle").value_or(kAbsent),
                  integer_at(dispatch, "/queue_id/handle").value_or(kAbsent)))
      return;
    RocmProcess::Unnamed unnamed = last_of(process, record);
    unnamed.kernel = integer_at(dispatch, "/kernel_id").value_or(-1);
    process.unnamed.push_back(unnamed);
  }

  void add_copy(RocmProcess& process, const Element& record) {
    // Of the two ends, the one that is a GPU; between two of them, the one that receives.
    const std::int64_t to = integer_at(record, "/dst_agent_id/handle").value_or(kAbsent);
    const std::int64_t from = integer_at(record, "/src_agent_id/handle").value_or(kAbsent);
    if (!add_work(process, record, "gpu_memcpy", process.devices.contains(to) ? to : from, 0)) return;
    if (const auto bytes = integer_at(record, "/bytes")) process.trace.rows.integer("bytes", *bytes);
    RocmProcess::Unnamed unnamed = last_of(process, record);
    unnamed.is_copy = true;
    process.unnamed.push_back(unnamed);
  }

  void add_call(RocmProcess& process, const Element& record, std::string_view category) {
    EventRow event = times_of(record);
    event.category = process.trace.intern(category);
    const std::int64_t thread = integer_at(record, "/thread_id").value_or(0);
    event.lane = process.trace.thread_lane(thread, "thread " + std::to_string(thread));
    const std::int64_t correlation = correlation_of(record);
    const bool is_call = category != "user_annotation";
    const std::int64_t around = integer_at(record, "/correlation_id/ancestor").value_or(0);
    if (category == "cuda_driver" && around > 0 && around != correlation) {
      process.call_around.emplace(correlation, around);
    } else if (is_call && correlation > 0) {
      event.correlation = correlation;
    }
    process.trace.calls |= is_call;
    if (!process.trace.rows.add(event)) return;
    RocmProcess::Unnamed unnamed = last_of(process, record);
    if (!is_call) unnamed.marker = correlation;
    process.unnamed.push_back(unnamed);
  }

  std::string path_;
  const ReadOptions& options_;
  std::unique_ptr<ByteSource> file_;
  GzipStream inflated_;
  ByteWindow window_;
  JsonWalk walk_{window_};
  simdjson::dom::parser parser_;
  std::string text_;
  bool cut_ = false;
  std::list<RocmProcess> processes_;
  std::vector<std::string> remarks_;
};

}  // namespace

bool is_rocprofv3(const Input& input) {
  return input.beginning().find('"' + std::string(kRoot) + '"') != std::string_view::npos;
}

std::vector<TraceFile> read_rocprofv3(Input& input, const ReadOptions& options) {
  return Rocprofv3Reader(input, options).run();
}

}  // namespace headrace::trace::rocm
