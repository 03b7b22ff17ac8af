#include "headrace/trace/ascend/database_reader.h"

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

#include "headrace/profile/errors.h"
#include "headrace/trace/ascend/categories.h"
#include "headrace/trace/ascend/profile_folder.h"
#include "trace/ascend/database.h"
#include "trace/ascend/event_rows.h"
#include "trace/ascend/task_type.h"

namespace headrace::trace::ascend {
namespace {

/// ENUM_API_TYPE, and what the JSON puts before the name of a call.
constexpr std::array<std::pair<std::int64_t, std::string_view>, 5> kCallPrefixes = {{
    {5000, "Runtime@"},
    {5500, "Hccl@"},
    {10000, "Node@"},
    {15000, "Model@"},
    {20000, "AscendCL@"},
}};
enum ApiType : std::int64_t { kOperatorApi = 50001, kQueueApi = 50002, kPythonApi = 50003, kMarkApi = 50004 };

/// The process ids that msprof makes up: the real one, the place of the row in the view, the device.
constexpr std::int64_t kHardwarePlace = 13;
constexpr std::int64_t kCollectivePlace = 15;
std::int64_t made_up_pid(std::int64_t pid, std::int64_t place, std::int64_t device) noexcept {
  return (pid & ((std::int64_t{1} << 40) - 1)) << 10 | place << 5 | (device & 31);
}

constexpr std::int64_t kLow32 = 0xFFFFFFFF;

/// What other tables say of a task.
struct TaskFacts {
  Names::Id name = Names::missing;
  Names::Id type = Names::missing;
  bool computes = false;
};
struct CopyFacts {
  std::int64_t bytes = 0;
  Names::Id name = Names::missing;
};

class Reader {
 public:
  Reader(Database& database, TraceFile& file, const ReadOptions& options)
      : database_(database), file_(file), rows_(file.columns, file.notes, options.arguments) {}

  void run() {
    constexpr std::array<const char*, 4> kEvents = {"TASK", "CANN_API", "PYTORCH_API", "COMMUNICATION_OP"};
    if (std::none_of(kEvents.begin(), kEvents.end(), [&](auto table) { return database_.has_table(table); }))
      throw FormatError(database_.path(), 0,
                        "a profile's database with a table TASK, CANN_API, PYTORCH_API or COMMUNICATION_OP");
    for (const char* table : kEvents) {
      if (!database_.has_table(table))
        file_.notes.remarks.push_back(std::string("the database has no table ") + table);
    }
    read_texts();
    read_rank();
    read_task_facts();
    read_connections();
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
  Names::Id text_at(std::optional<std::int64_t> id) const {
    if (!id) return 0;
    const auto at = texts_.find(*id);
    return at == texts_.end() ? Names::Id{0} : at->second;
  }

  void remark_missing(const TableRows& rows, const char* name) {
    for (const std::string& column : rows.missing())
      file_.notes.remarks.push_back(std::string("table ") + name + " has no column " + column);
  }

  void read_texts() {
    TableRows rows(database_, "STRING_IDS", {"id", "value"});
    while (rows.next()) {
      if (const auto id = rows.integer(0)) texts_.insert_or_assign(*id, id_of(rows.text(1)));
    }
  }

  void read_rank() {
    TableRows rows(database_, "RANK_DEVICE_MAP", {"rankId", "deviceId"});
    std::size_t count = 0;
    std::optional<std::int64_t> rank;
    for (; rows.next(); ++count) rank = rows.integer(0);
    if (count == 1 && rank && *rank >= 0) file_.rank = rank;
    if (!file_.rank) file_.rank = rank_of_database(database_.path());
  }

  void read_task_facts() {
    TableRows tasks(database_, "COMPUTE_TASK_INFO", {"globalTaskId", "name", "taskType"});
    while (tasks.next()) {
      const auto id = tasks.integer(0);
      if (id)
        facts_.insert_or_assign(*id, TaskFacts{text_at(tasks.integer(1)), text_at(tasks.integer(2)), true});
    }
    TableRows copies(database_, "MEMCPY_INFO", {"globalTaskId", "size", "memcpyOperation"});
    std::unordered_map<std::int64_t, std::string> operations;
    TableRows words(database_, "ENUM_MEMCPY_OPERATION", {"id", "name"});
    while (words.next()) {
      if (const auto id = words.integer(0)) operations.insert_or_assign(*id, std::string(words.text(1)));
    }
    while (copies.next()) {
      const auto id = copies.integer(0);
      const auto operation = copies.integer(2);
      if (!id) continue;
      CopyFacts copy{copies.integer(1).value_or(-1), Names::missing};
      const auto word = operation ? operations.find(*operation) : operations.end();
      const std::string_view name =
          word == operations.end() ? std::string_view() : name_of_copy(word->second);
      if (!name.empty()) copy.name = id_of(name);
      copies_.insert_or_assign(*id, copy);
    }
  }

  void read_connections() {
    TableRows rows(database_, "CONNECTION_IDS", {"id", "connectionId"});
    while (rows.next()) {
      const auto id = rows.integer(0);
      const auto connection = rows.integer(1);
      if (id && connection) connections_.emplace_back(*id, *connection);
    }
    std::stable_sort(connections_.begin(), connections_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  auto connections_of(std::int64_t id) const {
    return std::equal_range(connections_.begin(), connections_.end(), std::pair(id, std::int64_t{0}),
                            [](const auto& a, const auto& b) { return a.first < b.first; });
  }

  std::uint32_t thread_lane(std::int64_t global_tid) {
    if (global_tid == last_thread_) return last_lane_;
    last_thread_ = global_tid;
    last_lane_ = rows_.lane((global_tid >> 32) & kLow32, global_tid & kLow32, "Python", "CPU", "Thread");
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
      event.name = text_at(rows.integer(3));
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
      if (!rows.is_null(8)) rows_.text("Input Dims", text_at(rows.integer(8)));
      if (!rows.is_null(9)) rows_.text("Input type", text_at(rows.integer(9)));
      const auto id = rows.integer(5);
      if (!id) continue;
      const auto [first, last] = connections_of(*id);
      if (type == kQueueApi && first != last) rows_.integer("correlation_id", first->second);
      if (type != kOperatorApi) continue;
      // Where there is a task queue its two ends say the same; without one these lead to the operator.
      for (auto at = first; at != last && last - first <= kMostConnections; ++at)
        operator_of_.try_emplace(at->second, std::pair(event.lane, event.start_ns));
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
      const Names::Id name = text_at(rows.integer(5));
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
    TableRows parts(database_, "COMMUNICATION_TASK_INFO",
                    {"globalTaskId", "name", "size", "transportType", "linkType", "planeId"});
    const auto transports = words_of("ENUM_HCCL_TRANSPORT_TYPE");
    const auto links = words_of("ENUM_HCCL_LINK_TYPE");
    const auto word = [](const auto& words, std::optional<std::int64_t> id) {
      const auto at = id ? words.find(*id) : words.end();
      return at == words.end() ? Names::missing : at->second;
    };
    while (parts.next()) {
      const auto id = parts.integer(0);
      if (!id) continue;
      parts_.insert_or_assign(*id, Part{text_at(parts.integer(1)), parts.integer(2).value_or(-1),
                                        word(transports, parts.integer(3)), word(links, parts.integer(4)),
                                        parts.integer(5).value_or(0)});
    }
  }

  std::unordered_map<std::int64_t, Names::Id> words_of(const char* table) {
    std::unordered_map<std::int64_t, Names::Id> words;
    TableRows rows(database_, table, {"id", "name"});
    while (rows.next()) {
      if (const auto id = rows.integer(0)) words.insert_or_assign(*id, id_of(rows.text(1)));
    }
    return words;
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
      event.name = text_at(rows.integer(6));
      const auto place = place_of_.find(event.correlation);
      if (place != place_of_.end() && !place->second.known) place->second = {true, device, pid, event.stream};
      if (const auto part = parts_.find(task); part != parts_.end()) {
        add_part(event, part->second, pid, device);
        continue;
      }
      const auto facts = facts_.find(task);
      const auto copy = copies_.find(task);
      std::string_view category = kComputation;
      if (facts != facts_.end()) {
        event.name = facts->second.name;
      } else {
        category = category_of_task(names()[event.name], names()[event.name]);
        if (category == kComputation) category = kTask;  // a collective as a whole
        if (copy != copies_.end() && copy->second.name != Names::missing) event.name = copy->second.name;
      }
      event.category = id_of(category);
      event.lane = rows_.lane(made_up_pid(pid, kHardwarePlace, device), event.stream, "Ascend Hardware",
                              "NPU", "Stream");
      if (!rows_.add(event)) continue;
      rows_.integer("device", device);
      if (copy != copies_.end() && copy->second.bytes >= 0) rows_.integer("bytes", copy->second.bytes);
      if (category != kTask) link_operator(event);
    }
  }

  struct Part {
    Names::Id name = 0;
    std::int64_t bytes = -1;
    Names::Id transport = Names::missing;
    Names::Id link = Names::missing;
    std::int64_t plane = 0;
  };

  void add_part(EventRow event, const Part& part, std::int64_t pid, std::int64_t device) {
    event.name = part.name;
    event.category = id_of(kTask);
    event.correlation = kAbsent;
    constexpr std::int64_t kMostPlanes = 1 << 20;
    const std::int64_t plane = std::clamp<std::int64_t>(part.plane, 0, kMostPlanes);
    event.lane =
        rows_.lane(made_up_pid(pid, kCollectivePlace, device), plane + kFirstPlane, "HCCL", "NPU", "Plane");
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
      event.name = text_at(rows.integer(3));
      const auto place = place_of_.find(event.correlation);
      const Place where = place == place_of_.end() ? Place{} : place->second;
      event.stream = where.stream;
      const std::int64_t group =
          groups.try_emplace(rows.integer(4).value_or(0), static_cast<std::int64_t>(groups.size()))
              .first->second;
      // Far behind the planes, of which there are a few dozen.
      event.lane = rows_.lane(made_up_pid(where.pid, kCollectivePlace, where.device), kFirstGroup + group,
                              "HCCL", "NPU", "Group");
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
      event.name = text_at(rows.integer(3));
      event.lane = thread_lane(rows.integer(2).value_or(0));
      rows_.add(event);
    }
  }

  void read_metadata() {
    constexpr std::size_t kMost = 1000;
    TableRows rows(database_, "META_DATA", {"name", "value"});
    while (rows.next() && file_.metadata.size() < kMost) {
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
  static constexpr std::ptrdiff_t kMostConnections = 10'000;

  /// Where the tasks of a collective ran.
  struct Place {
    bool known = false;
    std::int64_t device = 0;
    std::int64_t pid = 0;
    std::int64_t stream = kAbsent;
  };

  Database& database_;
  TraceFile& file_;
  EventRows rows_;
  std::unordered_map<std::int64_t, Names::Id> texts_;
  std::unordered_map<std::int64_t, TaskFacts> facts_;
  std::unordered_map<std::int64_t, CopyFacts> copies_;
  std::unordered_map<std::int64_t, Part> parts_;
  std::unordered_map<std::int64_t, Place> place_of_;
  /// By id, in the order of the table.
  std::vector<std::pair<std::int64_t, std::int64_t>> connections_;
  /// Lane and start of the operator, by connection.
  std::unordered_map<std::int64_t, std::pair<std::uint32_t, std::int64_t>> operator_of_;
  std::int64_t last_thread_ = std::numeric_limits<std::int64_t>::min();
  std::uint32_t last_lane_ = 0;
  bool has_steps_ = false;
};

TraceFile read(Database& database, const ReadOptions& options) {
  TraceFile file;
  file.path = database.path();
  file.notes.bytes = database.bytes();
  Reader(database, file, options).run();
  return file;
}

}  // namespace

bool is_database(std::string_view first_bytes) noexcept { return first_bytes.starts_with(kDatabaseMagic); }

TraceFile read_database(const std::string& path, const ReadOptions& options) {
  Database database(path);
  TraceFile file = read(database, options);
  if (options.bytes_read != nullptr) *options.bytes_read += database.bytes();
  return file;
}

TraceFile read_database_bytes(std::string_view bytes, const std::string& name, const ReadOptions& options) {
  Database database(bytes, name);
  return read(database, options);
}

}  // namespace headrace::trace::ascend
