// The SQLite file of an Ascend profile, read into the columns that its trace_view.json gives.
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "headrace/trace/ascend/categories.h"
#include "headrace/trace/ascend/profile_folder.h"
#include "trace/ascend/database_facts.h"
#include "trace/ascend/trace_view.h"
#include "trace/database.h"
#include "trace/event_rows.h"
#include "trace/input.h"

namespace headrace::trace::ascend {
namespace {

/// Tables with events; a database that has none of them is none of Ascend's.
constexpr std::array<const char*, 4> kEvents = {"TASK", "CANN_API", "PYTORCH_API", "COMMUNICATION_OP"};

/// ENUM_API_TYPE, and what the JSON puts before the name of a call.
constexpr std::array<std::pair<std::int64_t, std::string_view>, 5> kCallPrefixes = {{
    {5000, "Runtime@"},
    {5500, "Hccl@"},
    {10000, "Node@"},
    {15000, "Model@"},
    {20000, "AscendCL@"},
}};
enum ApiType : std::int64_t { kOperatorApi = 50001, kQueueApi = 50002, kPythonApi = 50003, kMarkApi = 50004 };

/// Places of rows in the view.
constexpr std::int64_t kHardwarePlace = 13;
constexpr std::int64_t kCollectivePlace = 15;

constexpr std::int64_t kLow32 = 0xFFFFFFFF;

class Reader {
 public:
  Reader(Database& database, TraceFile& file, const ReadOptions& options)
      : database_(database),
        file_(file),
        rows_(file.columns, file.notes, options.arguments),
        facts_(database, file.columns.names) {}

  void run() {
    for (const char* table : kEvents) {
      if (!database_.has_table(table))
        file_.notes.remarks.push_back(std::string("the database has no table ") + table);
    }
    read_rank();
    read_framework_calls();
    read_calls();
    read_collective_connections();
    read_tasks();
    read_collectives();
    read_steps();
    read_collections();
    read_marks();
    read_metadata();
  }

 private:
  Names& names() { return file_.columns.names; }
  Names::Id id_of(std::string_view text) { return names().intern(text); }
  void remark_missing(const TableRows& rows, const char* name) {
    for (const std::string& column : rows.missing())
      file_.notes.remarks.push_back(std::string("table ") + name + " has no column " + column);
  }

  void read_rank() {
    TableRows rows(database_, "RANK_DEVICE_MAP", {"rankId", "deviceId"});
    std::size_t count = 0;
    std::optional<std::int64_t> rank;
    for (; rows.next(); ++count) rank = rows.integer(0);
    if (count == 1 && rank && *rank >= 0) file_.rank = rank;
    if (!file_.rank) file_.rank = rank_of_database(database_.path());
  }

  std::uint32_t thread_lane(std::int64_t global_tid) {
    if (global_tid == last_thread_) return last_lane_;
    last_thread_ = global_tid;
    last_lane_ = rows_.lane((global_tid >> 32) & kLow32, global_tid & kLow32, "Python", "CPU",
                            "Thread " + std::to_string(global_tid & kLow32));
    return last_lane_;
  }

  /// Times of PYTORCH_API are texts, those of the other tables numbers.
  static EventRow times_of(const TableRows& rows, int start, int end) {
    EventRow event;
    event.start_ns = rows.integer(start).value_or(-1);
    event.end_ns = rows.integer(end).value_or(-1);
    return event;
  }

  void read_framework_calls() {
    TableRows rows(database_, "PYTORCH_API",
                   {"startNs", "endNs", "globalTid", "name", "type", "connectionId", "sequenceNumber",
                    "fwdThreadId", "inputShapes", "inputDtypes"});
    remark_missing(rows, "PYTORCH_API");
    const Names::Id operation = id_of(kOperator);
    const Names::Id python = id_of("python_function");
    const Names::Id enqueue = id_of(kEnqueue);
    const Names::Id dequeue = id_of(kDequeue);
    const Names::Id mark = id_of(kAnnotation);
    while (rows.next()) {
      EventRow event = times_of(rows, 0, 1);
      event.lane = thread_lane(rows.integer(2).value_or(0));
      event.name = facts_.text_at(rows.integer(3));
      const std::int64_t type = rows.integer(4).value_or(kOperatorApi);
      const bool takes = names()[event.name].starts_with("Dequeue");
      event.category = type == kPythonApi  ? python
                       : type == kMarkApi  ? mark
                       : type != kQueueApi ? operation
                       : takes             ? dequeue
                                           : enqueue;
      has_steps_ |= type == kOperatorApi && names()[event.name].starts_with("ProfilerStep#");
      if (!rows_.add(event)) continue;
      if (const auto sequence = rows.integer(6)) rows_.integer("Sequence number", *sequence);
      if (const auto thread = rows.integer(7)) rows_.integer("Fwd thread id", *thread);
      if (!rows.is_null(8)) rows_.text("Input Dims", facts_.text_at(rows.integer(8)));
      if (!rows.is_null(9)) rows_.text("Input type", facts_.text_at(rows.integer(9)));
      const auto id = rows.integer(5);
      if (!id) continue;
      const auto connections = facts_.connections(*id);
      if (type == kQueueApi && !connections.empty())
        rows_.integer("correlation_id", connections.front().second);
      if (type != kOperatorApi) continue;
      // A task queue's two ends give the same; without a queue these lead to the operator.
      if (connections.size() > kMaxConnections) continue;
      for (const auto& [number, connection] : connections)
        operator_of_.try_emplace(connection, std::pair(event.lane, event.start_ns));
    }
  }

  void read_calls() {
    TableRows rows(database_, "CANN_API", {"startNs", "endNs", "type", "globalTid", "connectionId", "name"});
    remark_missing(rows, "CANN_API");
    const Names::Id category = id_of(kCall);
    std::unordered_map<std::uint64_t, Names::Id> prefixed;
    while (rows.next()) {
      EventRow event = times_of(rows, 0, 1);
      event.category = category;
      event.lane = thread_lane(rows.integer(3).value_or(0));
      event.correlation = rows.integer(4).value_or(kAbsent);
      const std::int64_t type = rows.integer(2).value_or(0);
      const Names::Id name = facts_.text_at(rows.integer(5));
      const auto key = static_cast<std::uint64_t>(type) << 32 | name;
      const auto [at, is_new] = prefixed.try_emplace(key, name);
      if (is_new) {
        for (const auto& [number, prefix] : kCallPrefixes) {
          if (number == type) at->second = id_of(std::string(prefix) + std::string(names()[name]));
        }
      }
      event.name = at->second;
      rows_.add(event);
    }
  }

  void read_collective_connections() {
    TableRows rows(database_, "COMMUNICATION_OP", {"connectionId"});
    while (rows.next()) {
      if (const auto connection = rows.integer(0)) place_of_.try_emplace(*connection);
    }
  }

  void read_tasks() {
    TableRows rows(database_, "TASK",
                   {"startNs", "endNs", "deviceId", "connectionId", "globalTaskId", "globalPid", "taskType",
                    "streamId"});
    remark_missing(rows, "TASK");
    while (rows.next()) {
      EventRow event = times_of(rows, 0, 1);
      const std::int64_t device = rows.integer(2).value_or(0);
      const std::int64_t task = rows.integer(4).value_or(-1);
      const std::int64_t pid = rows.integer(5).value_or(0);
      event.correlation = rows.integer(3).value_or(kAbsent);
      event.stream = rows.integer(7).value_or(kAbsent);
      event.name = facts_.text_at(rows.integer(6));
      const auto place = place_of_.find(event.correlation);
      if (place != place_of_.end() && !place->second.known) place->second = {true, device, pid, event.stream};
      if (const PartFacts* const part = facts_.part(task)) {
        add_part(event, *part, pid, device);
        continue;
      }
      const auto kernel = facts_.kernel(task);
      const CopyFacts* const copy = facts_.copy(task);
      std::string_view category = kComputation;
      if (kernel) {
        event.name = *kernel;
      } else {
        category = category_of_task(names()[event.name], names()[event.name]);
        if (category == kComputation) category = kTask;  // a collective as a whole
        if (copy != nullptr && copy->name != Names::missing) event.name = copy->name;
      }
      event.category = id_of(category);
      event.lane = rows_.lane(made_up_pid(pid, kHardwarePlace, device), event.stream, "Ascend Hardware",
                              "NPU", "Stream " + std::to_string(event.stream));
      if (!rows_.add(event)) continue;
      rows_.integer("device", device);
      if (copy != nullptr && copy->bytes >= 0) rows_.integer("bytes", copy->bytes);
      if (category != kTask) link_operator(event);
    }
  }

  void add_part(EventRow event, const PartFacts& part, std::int64_t pid, std::int64_t device) {
    event.name = part.name;
    event.category = id_of(kTask);
    event.correlation = kAbsent;
    constexpr std::int64_t kMaxPlanes = 1 << 20;
    const std::int64_t plane = std::clamp<std::int64_t>(part.plane, 0, kMaxPlanes);
    event.lane = rows_.lane(made_up_pid(pid, kCollectivePlace, device), plane + kFirstPlane, "HCCL", "NPU",
                            "Plane " + std::to_string(plane));
    if (!rows_.add(event)) return;
    if (part.bytes >= 0) rows_.integer("size(Byte)", part.bytes);
    if (part.transport != Names::missing) rows_.text("transport type", part.transport);
    if (part.link != Names::missing) rows_.text("link type", part.link);
  }

  void read_collectives() {
    TableRows rows(database_, "COMMUNICATION_OP",
                   {"startNs", "endNs", "connectionId", "opName", "groupName"});
    remark_missing(rows, "COMMUNICATION_OP");
    const Names::Id category = id_of(kCollective);
    std::unordered_map<std::int64_t, std::int64_t> groups;
    while (rows.next()) {
      EventRow event = times_of(rows, 0, 1);
      event.category = category;
      event.correlation = rows.integer(2).value_or(kAbsent);
      event.name = facts_.text_at(rows.integer(3));
      const auto place = place_of_.find(event.correlation);
      const Place where = place == place_of_.end() ? Place{} : place->second;
      event.stream = where.stream;
      const std::int64_t group =
          groups.try_emplace(rows.integer(4).value_or(0), static_cast<std::int64_t>(groups.size()))
              .first->second;
      // Far behind the planes, of which there are a few dozen.
      event.lane = rows_.lane(made_up_pid(where.pid, kCollectivePlace, where.device), kFirstGroup + group,
                              "HCCL", "NPU", "Group " + std::to_string(group) + " Communication");
      if (!rows_.add(event)) continue;
      rows_.integer("device", where.device);
      link_operator(event);
    }
  }

  /// The flow from an operator to the work that it started, as the JSON has it.
  void link_operator(const EventRow& work) {
    const auto at = operator_of_.find(work.correlation);
    if (at == operator_of_.end()) return;
    EventRow flow;
    flow.name = id_of("torch_to_npu");
    flow.category = id_of("async_npu");
    flow.phase = 's';
    std::tie(flow.lane, flow.start_ns) = at->second;
    flow.end_ns = flow.start_ns;
    if (rows_.add(flow)) rows_.flow_id(work.start_ns);
    flow.phase = 'f';
    flow.lane = work.lane;
    flow.start_ns = flow.end_ns = work.start_ns;
    if (rows_.add(flow)) rows_.flow_id(work.start_ns);
  }

  /// Profiles of CANN alone have no framework that marks its steps.
  void read_steps() {
    if (has_steps_) return;
    TableRows rows(database_, "STEP_TIME", {"id", "startNs", "endNs"});
    while (rows.next()) {
      EventRow event = times_of(rows, 1, 2);
      event.category = id_of(kAnnotation);
      event.name = id_of("ProfilerStep#" + std::to_string(rows.integer(0).value_or(0)));
      event.lane = rows_.lane(0, 0, "Steps", "CPU", "Steps");
      rows_.add(event);
    }
  }

  void read_collections() {
    TableRows rows(database_, "GC_RECORD", {"startNs", "endNs", "globalTid"});
    while (rows.next()) {
      EventRow event = times_of(rows, 0, 1);
      event.category = id_of(kCollection);
      event.name = id_of("GC");
      event.lane = thread_lane(rows.integer(2).value_or(0));
      rows_.add(event);
    }
  }

  void read_marks() {
    TableRows rows(database_, "MSTX_EVENTS", {"startNs", "endNs", "globalTid", "message"});
    while (rows.next()) {
      EventRow event = times_of(rows, 0, 1);
      event.category = id_of(kAnnotation);
      event.name = facts_.text_at(rows.integer(3));
      event.lane = thread_lane(rows.integer(2).value_or(0));
      rows_.add(event);
    }
  }

  void read_metadata() {
    constexpr std::size_t kMax = 1000;
    TableRows rows(database_, "META_DATA", {"name", "value"});
    while (rows.next() && file_.metadata.size() < kMax) {
      const std::string value(rows.text(1));
      // Values that are JSON stay JSON.
      const bool is_json = nlohmann::json::accept(value);
      file_.metadata.emplace_back(rows.text(0), is_json ? value : quoted(value));
    }
    TableRows host(database_, "HOST_INFO", {"hostName"});
    if (host.next()) file_.metadata.emplace_back("hostName", quoted(std::string(host.text(0))));
  }
  static std::string quoted(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  static constexpr std::int64_t kFirstPlane = 1;
  static constexpr std::int64_t kFirstGroup = std::int64_t{1} << 30;
  static constexpr std::size_t kMaxConnections = 10'000;

  /// Place of a collective's tasks.
  struct Place {
    bool known = false;
    std::int64_t device = 0;
    std::int64_t pid = 0;
    std::int64_t stream = kAbsent;
  };

  Database& database_;
  TraceFile& file_;
  EventRows rows_;
  DatabaseFacts facts_;
  std::unordered_map<std::int64_t, Place> place_of_;
  /// Lane and start of the operator, by connection.
  std::unordered_map<std::int64_t, std::pair<std::uint32_t, std::int64_t>> operator_of_;
  std::int64_t last_thread_ = std::numeric_limits<std::int64_t>::min();
  std::uint32_t last_lane_ = 0;
  bool has_steps_ = false;
};

bool is_profile(const Input& input) {
  return std::any_of(kEvents.begin(), kEvents.end(), [&](auto table) { return input.has_table(table); });
}

/// `ascend_pytorch_profiler_N.db`, `ascend_mindspore_profiler_N.db`, `msprof_*.db`: one rank. Names, times in
/// integer nanoseconds, rows, streams, connections and the two ends of the task queue are those of
/// trace_view.json; counters are left out, and copies have a direction and bytes only where the file has
/// MEMCPY_INFO. Memory beside the columns: the texts once, and about 50 bytes for each task with a name of
/// its own.
std::vector<TraceFile> read_profile(Input& input, const ReadOptions& options) {
  std::vector<TraceFile> traces(1);
  traces[0].path = input.path();
  traces[0].notes.bytes = input.database().bytes();
  Reader(input.database(), traces[0], options).run();
  return traces;
}

}  // namespace
}  // namespace headrace::trace::ascend

const headrace::trace::Format headrace::trace::kAscendProfile{"the Ascend profiler", true, ascend::is_profile,
                                                              ascend::read_profile};
