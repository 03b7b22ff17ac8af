// rocpd: the SQLite databases that rocprofv3 writes.
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "headrace/profile/errors.h"
#include "trace/input.h"
#include "trace/process_trace.h"
#include "trace/rocm/names.h"

namespace headrace::trace::rocm {
namespace {

constexpr std::string_view kTablePrefix = "rocpd_";
constexpr std::array<std::string_view, 3> kWorkTables = {"rocpd_kernel_dispatch", "rocpd_memory_copy",
                                                         "rocpd_region"};

using Texts = std::unordered_map<std::int64_t, std::string>;

std::string_view text_of(const Texts& texts, std::optional<std::int64_t> id) {
  const auto at = texts.find(id.value_or(-1));
  return at == texts.end() ? std::string_view("?") : std::string_view(at->second);
}

/// The tables of one uuid.
class RocpdTables {
 public:
  RocpdTables(Database& database, std::string suffix, const ReadOptions& options)
      : database_(database), suffix_(std::move(suffix)), options_(options) {}

  void read(std::vector<std::string>& remarks) {
    read_facts();
    read_events();
    read_dispatches();
    read_copies();
    read_regions();
    for (const char* other : {"pmc_event", "memory_allocate", "sample"}) {
      TableRows rows(database_, table(other), {"id"});
      if (rows.next()) remarks.push_back("the rows of " + plain_text(table(other)) + " are not read");
    }
    for (const char* needed : {"event", "string"}) {
      if (!database_.has_table(table(needed)))
        remarks.push_back("table " + plain_text(table(needed)) +
                          " is missing: launches or names are not known");
    }
  }

  std::map<std::int64_t, ProcessTrace> processes;

 private:
  /// Facts of an event beside its times.
  struct Event {
    std::int64_t id = 0;
    std::int64_t stack = 0;
    std::int64_t kind = 0;      ///< a text's number
    std::int64_t message = -1;  ///< in messages_
  };

  std::string table(std::string_view what) const {
    return std::string(kTablePrefix).append(what).append(suffix_);
  }

  Texts texts(std::string_view what, std::string_view column, std::string_view otherwise = "") {
    Texts found;
    std::vector<std::string> columns{"id", std::string(column)};
    if (!otherwise.empty()) columns.emplace_back(otherwise);
    TableRows rows(database_, table(what), columns);
    while (rows.next()) {
      std::string_view text = rows.text(1);
      if (text.empty() && !otherwise.empty()) text = rows.text(2);
      if (const auto id = rows.integer(0)) found.emplace(*id, text);
    }
    return found;
  }

  void read_facts() {
    strings_ = texts("string", "string");
    kernels_ = texts("info_kernel_symbol", "display_name", "kernel_name");
    streams_ = texts("info_stream", "name");
    for (auto& [id, name] : streams_) {
      if (name.find_first_not_of("0123456789") == std::string::npos) name.insert(0, "stream ");
    }
    thread_names_ = texts("info_thread", "name");
    TableRows threads(database_, table("info_thread"), {"id", "tid"});
    while (threads.next()) thread_ids_[threads.integer(0).value_or(-1)] = threads.integer(1).value_or(0);
    TableRows pids(database_, table("info_process"), {"id", "pid"});
    while (pids.next()) pids_[pids.integer(0).value_or(-1)] = pids.integer(1).value_or(0);
    TableRows agents(database_, table("info_agent"), {"id", "type", "type_index"});
    while (agents.next()) {
      if (agents.text(1) == "GPU") devices_[agents.integer(0).value_or(-1)] = agents.integer(2).value_or(0);
    }
  }

  void read_events() {
    TableRows rows(database_, table("event"),
                   {"id", "stack_id", "parent_stack_id", "category_id", "extdata"});
    std::vector<std::pair<std::int64_t, std::int64_t>> nested;  // calls of HSA, and what each is in
    while (rows.next()) {
      Event event{rows.integer(0).value_or(-1), rows.integer(1).value_or(0), rows.integer(3).value_or(-1)};
      event.message = message_in(rows.text(4));
      const std::int64_t parent = rows.integer(2).value_or(0);
      if (parent > 0 && parent != event.stack && text_of(strings_, event.kind).starts_with("HSA_"))
        nested.emplace_back(event.stack, parent);
      events_.push_back(event);
    }
    find_calls_around(nested);
    const auto by_id = [](const Event& a, const Event& b) { return a.id < b.id; };
    if (!std::is_sorted(events_.begin(), events_.end(), by_id))
      std::sort(events_.begin(), events_.end(), by_id);
  }

  /// The text of a marker, which stands in JSON.
  std::int64_t message_in(std::string_view json) {
    constexpr std::string_view kNothing = "{}";
    std::string_view message;
    if (json.size() <= kNothing.size() || parser_.parse(json.data(), json.size())["message"].get(message))
      return -1;
    messages_.emplace_back(message);
    return std::ssize(messages_) - 1;
  }

  /// A copy is tied to the HSA call that began it, which is in a call of HIP: that one launched it.
  void find_calls_around(const std::vector<std::pair<std::int64_t, std::int64_t>>& nested) {
    if (nested.empty()) return;
    std::unordered_set<std::int64_t> of_hip;
    for (const Event& event : events_) {
      if (text_of(strings_, event.kind).starts_with("HIP_")) of_hip.insert(event.stack);
    }
    for (const auto& [inner, outer] : nested) {
      if (of_hip.contains(outer)) call_around_[inner] = outer;
    }
  }

  Event event_of(std::optional<std::int64_t> id) const {
    const auto at =
        std::lower_bound(events_.begin(), events_.end(), id.value_or(-1),
                         [](const Event& event, std::int64_t wanted) { return event.id < wanted; });
    return id && at != events_.end() && at->id == *id ? *at : Event{};
  }

  ProcessTrace& process_of(std::optional<std::int64_t> id) {
    const auto pid = pids_.find(id.value_or(0));
    return processes
        .try_emplace(id.value_or(0), database_.path(), pid == pids_.end() ? id.value_or(0) : pid->second,
                     options_)
        .first->second;
  }

  std::int64_t device_of(std::optional<std::int64_t> agent) const {
    const auto device = devices_.find(agent.value_or(-1));
    return device == devices_.end() ? 0 : device->second;
  }

  EventRow work_of(ProcessTrace& process, const TableRows& rows, std::int64_t device,
                   std::string_view category, std::string_view name) const {
    EventRow event;
    event.start_ns = rows.integer(1).value_or(-1);
    event.end_ns = rows.integer(2).value_or(-1);
    event.stream = rows.integer(3).value_or(kAbsent);
    const std::int64_t stack = event_of(rows.integer(4)).stack;
    const auto around = call_around_.find(stack);
    if (stack > 0) event.correlation = around == call_around_.end() ? stack : around->second;
    event.category = process.intern(category);
    event.name = process.intern(name);
    const auto stream = streams_.find(event.stream);
    event.lane = process.device_lane(device, event.stream,
                                     stream == streams_.end() ? std::string_view() : stream->second);
    return event;
  }

  void read_dispatches() {
    TableRows rows(database_, table("kernel_dispatch"),
                   {"pid", "start", "end", "stream_id", "event_id", "agent_id", "kernel_id"});
    while (rows.next()) {
      ProcessTrace& process = process_of(rows.integer(0));
      const std::int64_t device = device_of(rows.integer(5));
      process.add_work(work_of(process, rows, device, "kernel", text_of(kernels_, rows.integer(6))), device);
    }
  }

  void read_copies() {
    TableRows rows(
        database_, table("memory_copy"),
        {"pid", "start", "end", "stream_id", "event_id", "src_agent_id", "dst_agent_id", "name_id", "size"});
    while (rows.next()) {
      ProcessTrace& process = process_of(rows.integer(0));
      // The end that is a GPU; between two of them, the one that receives.
      const bool to_device = devices_.contains(rows.integer(6).value_or(-1));
      const std::int64_t device = device_of(rows.integer(to_device ? 6 : 5));
      const std::string name = copy_name(text_of(strings_, rows.integer(7)));
      if (!process.add_work(work_of(process, rows, device, "gpu_memcpy", name), device)) continue;
      if (const auto bytes = rows.integer(8)) process.rows.integer("bytes", *bytes);
    }
  }

  void read_regions() {
    TableRows rows(database_, table("region"), {"pid", "start", "end", "tid", "event_id", "name_id"});
    while (rows.next()) {
      ProcessTrace& process = process_of(rows.integer(0));
      const Event about = event_of(rows.integer(4));
      const std::string_view category =
          call_category(text_of(strings_, about.kind)).value_or("user_annotation");
      EventRow event;
      event.start_ns = rows.integer(1).value_or(-1);
      event.end_ns = rows.integer(2).value_or(-1);
      event.category = process.intern(category);
      const bool is_call = category != "user_annotation";
      process.calls |= is_call;
      if (is_call && about.stack > 0 && !call_around_.contains(about.stack)) event.correlation = about.stack;
      const bool has_message = !is_call && about.message >= 0;
      event.name = process.intern(has_message ? messages_[static_cast<std::size_t>(about.message)]
                                              : text_of(strings_, rows.integer(5)));
      event.lane = thread_lane(process, rows.integer(3).value_or(-1));
      process.rows.add(event);
    }
  }

  std::uint32_t thread_lane(ProcessTrace& process, std::int64_t id) {
    if (id != last_thread_ || thread_label_.empty()) {
      const auto number = thread_ids_.find(id);
      const auto name = thread_names_.find(id);
      last_thread_ = id;
      thread_id_ = number == thread_ids_.end() ? id : number->second;
      thread_label_ = "thread " + std::to_string(thread_id_);
      if (name != thread_names_.end() && !name->second.empty())
        thread_label_.append(" (").append(name->second).append(")");
    }
    return process.thread_lane(thread_id_, thread_label_);
  }

  Database& database_;
  std::string suffix_;
  const ReadOptions& options_;
  Texts strings_;
  Texts kernels_;
  Texts streams_;
  Texts thread_names_;
  std::unordered_map<std::int64_t, std::int64_t> thread_ids_;
  std::unordered_map<std::int64_t, std::int64_t> pids_;
  std::unordered_map<std::int64_t, std::int64_t> devices_;
  std::vector<Event> events_;  ///< by id
  std::unordered_map<std::int64_t, std::int64_t> call_around_;
  simdjson::dom::parser parser_;
  std::int64_t last_thread_ = -1;
  std::int64_t thread_id_ = 0;
  std::string thread_label_;
  std::vector<std::string> messages_;
};

/// Its tables are called rocpd_SOMETHING_UUID, one set for each process; older ones have no uuid.
bool is_rocpd(const Input& input) {
  return input.any_table([](std::string_view table) { return table.starts_with(kTablePrefix); });
}

/// One trace for each process with work on a GPU. Regions of HIP, HSA and RCCL become calls, those of roctx
/// annotations; a dispatch and the call that made it have one `stack_id`. Times are of the machine's clock
/// since its start, so there is no `base_time_ns`. Counters and allocations are not read, which a remark
/// says. Throws FormatError.
std::vector<TraceFile> read_rocpd(Input& input, const ReadOptions& options) {
  Database& database = input.database();
  if (database.has_table("rocpd_op") && database.has_table("rocpd_api"))
    throw FormatError(database.path(),
                      "a database of rocmProfileData: its rpd2tracing.py writes it as JSON, which is read");
  std::vector<std::string> remarks;
  std::set<std::string> suffixes;
  for (const std::string& table : database.tables()) {
    for (const std::string_view known : kWorkTables) {
      if (table.starts_with(known)) suffixes.insert(table.substr(known.size()));
    }
  }
  std::vector<RocpdTables> sets;
  for (const std::string& suffix : suffixes) sets.emplace_back(database, suffix, options);
  std::vector<ProcessTrace*> processes;
  for (RocpdTables& set : sets) {
    set.read(remarks);
    for (auto& [id, process] : set.processes) processes.push_back(&process);
  }
  std::vector<TraceFile> traces = ranks_of(processes, std::move(remarks), database.path());
  for (TraceFile& file : traces) file.notes.bytes = database.bytes();
  return traces;
}

}  // namespace
}  // namespace headrace::trace::rocm

const headrace::trace::Format headrace::trace::kRocpd{"rocprofv3", true, rocm::is_rocpd, rocm::read_rocpd};
