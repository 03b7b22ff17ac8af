#include "trace/nsight/reader.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/event_rows.h"
#include "trace/nsight/texts.h"

namespace headrace::trace::nsight {
namespace {

constexpr const char* kKernelTable = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr const char* kCopyTable = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr const char* kFillTable = "CUPTI_ACTIVITY_KIND_MEMSET";
constexpr const char* kGraphTable = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
constexpr const char* kCallTable = "CUPTI_ACTIVITY_KIND_RUNTIME";
constexpr const char* kWaitTable = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
constexpr const char* kRecordTable = "CUPTI_ACTIVITY_KIND_CUDA_EVENT";
constexpr const char* kRangeTable = "NVTX_EVENTS";
/// The first two are in every export, the others where they have rows.
constexpr std::array<const char*, 8> kTables = {
    "META_DATA_EXPORT", "TARGET_INFO_SESSION_START_TIME",
    kKernelTable,       kCopyTable,
    kFillTable,         kGraphTable,
    kCallTable,         kRangeTable,
};

/// Types of NVTX_EVENTS.
enum RangeType : std::int64_t { kPushPop = 59, kStartEnd = 60 };
/// Kinds of copies from here to there are migrations of unified memory.
constexpr std::int64_t kFirstMigration = 11;
constexpr std::int64_t kLastMigration = 13;
/// What stands for "no stream" in 32 bits.
constexpr std::int64_t kNoStream = 0xFFFFFFFF;
/// A globalTid is hardware, virtual machine, process and, in its lowest 24 bits, thread.
constexpr std::int64_t kThreadBits = 24;
constexpr std::int64_t kThreadMask = (1 << kThreadBits) - 1;
/// Behind every process and thread: rows of devices, and of ranges that do not nest beside their threads'.
/// A device is one process's view of it.
constexpr std::int64_t kFirstDevice = kThreadMask + 1;
constexpr std::int64_t kDeviceBits = 8;
constexpr std::int64_t kDeviceMask = (1 << kDeviceBits) - 1;
constexpr std::int64_t kFirstRangeRow = kThreadMask + 1;

/// ENUM_CUPTI_SYNC_TYPE, by the names that PyTorch's profiler gives them.
constexpr std::array<std::string_view, 5> kWaits = {"Sync", "Event Sync", "Stream Wait Event", "Stream Sync",
                                                    "Context Sync"};

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kCopies = {{
    {"Host-to-Device", "Memcpy HtoD"},
    {"Device-to-Host", "Memcpy DtoH"},
    {"Device-to-Device", "Memcpy DtoD"},
    {"Peer-to-Peer", "Memcpy PtoP"},
}};

/// The trace of one process while it is read.
struct Process {
  Process(const std::string& path, std::int64_t id, const ReadOptions& options)
      : pid((id >> kThreadBits) & kThreadMask), rows(file.columns, file.notes, options.arguments) {
    file.path = path;
  }

  std::int64_t pid = 0;
  TraceFile file;
  EventRows rows;
  std::int64_t device = std::numeric_limits<std::int64_t>::max();  ///< the lowest that it has work on
  bool calls = false;
  /// Numbers of its own for the names of Texts.
  std::vector<Names::Id> own;
  std::pair<std::int64_t, std::int64_t> last_row{-1, -1};
  std::uint32_t last_lane = 0;
  /// Where an event of CUDA was recorded: correlation and stream, by what a wait for it names.
  std::unordered_map<std::int64_t, std::pair<std::int64_t, std::int64_t>> records;

  bool has_work() const noexcept { return device != std::numeric_limits<std::int64_t>::max(); }
};

class Reader {
 public:
  Reader(Input& input, const ReadOptions& options)
      : database_(input.database()), options_(options), texts_(database_) {}

  std::vector<TraceFile> run() {
    read_thread_names();
    read_kernels();
    read_copies();
    read_fills();
    read_graphs();
    read_calls();
    read_event_records();
    read_waits();
    read_ranges();
    return chosen();
  }

 private:
  Process& process_of(std::optional<std::int64_t> global_id) {
    const std::int64_t process = global_id.value_or(0) & ~kThreadMask;
    if (last_process_ != nullptr && process == last_id_) return *last_process_;
    last_id_ = process;
    last_process_ = &processes_.try_emplace(process, database_.path(), process, options_).first->second;
    return *last_process_;
  }

  Names::Id own_name(Process& process, Names::Id shared) const {
    if (shared >= process.own.size()) process.own.resize(texts_.names().size(), Names::missing);
    Names::Id& own = process.own[shared];
    if (own == Names::missing) own = process.file.columns.names.intern(texts_.names()[shared]);
    return own;
  }
  static Names::Id intern(Process& process, std::string_view text) {
    return process.file.columns.names.intern(text);
  }

  std::uint32_t device_lane(Process& process, std::int64_t device, std::int64_t stream) {
    const std::pair row(kFirstDevice + (process.pid << kDeviceBits) + (device & kDeviceMask), stream);
    if (process.last_row != row) {
      process.last_row = row;
      process.last_lane =
          process.rows.lane(row.first, stream, "", "GPU " + std::to_string(device),
                            stream == kAbsent ? "no stream" : "stream " + std::to_string(stream));
    }
    return process.last_lane;
  }

  std::uint32_t thread_lane(Process& process, std::int64_t global_tid, bool nests = true) {
    const std::int64_t thread = global_tid & kThreadMask;
    const std::int64_t row = nests ? thread : thread + kFirstRangeRow;
    if (process.last_row != std::pair(process.pid, row)) {
      process.last_row = {process.pid, row};
      const auto name = thread_names_.find(global_tid);
      std::string label = "thread " + std::to_string(thread);
      if (name != thread_names_.end()) label += " (" + std::string(texts_.names()[name->second]) + ")";
      process.last_lane = process.rows.lane(process.pid, row, "", "CPU", nests ? label : label + ", ranges");
    }
    return process.last_lane;
  }

  /// Work of a device: `columns` begin with start, end, deviceId, streamId, correlationId, globalPid.
  static std::vector<std::string> work_columns(std::vector<std::string> more) {
    std::vector<std::string> columns = {"start", "end", "deviceId", "streamId", "correlationId", "globalPid"};
    columns.insert(columns.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    return columns;
  }
  static constexpr int kFirstOwn = 6;

  EventRow work_of(const TableRows& rows, Process& process, std::string_view category,
                   bool has_stream = true) {
    EventRow event;
    event.start_ns = rows.integer(0).value_or(-1);
    event.end_ns = rows.integer(1).value_or(-1);
    const std::int64_t device = rows.integer(2).value_or(0);
    const std::int64_t stream = rows.integer(3).value_or(kNoStream);
    event.stream = has_stream && stream != kNoStream ? stream : kAbsent;
    const std::int64_t correlation = rows.integer(4).value_or(0);
    if (correlation > 0 && has_stream) event.correlation = correlation;
    event.category = intern(process, category);
    event.lane = device_lane(process, device, event.stream);
    return event;
  }

  bool add_work(Process& process, const EventRow& event, std::int64_t device) {
    if (!process.rows.add(event)) return false;
    process.device = std::min(process.device, device);
    process.rows.integer("device", device);
    return true;
  }

  void read_thread_names() {
    TableRows rows(database_, "ThreadNames", {"globalTid", "nameId"});
    while (rows.next()) thread_names_[rows.integer(0).value_or(0)] = texts_.at(rows.integer(1)).name;
  }

  void read_kernels() {
    TableRows rows(database_, kKernelTable, work_columns({"demangledName", "shortName"}));
    while (rows.next()) {
      Process& process = process_of(rows.integer(5));
      EventRow event = work_of(rows, process, "kernel");
      const bool demangled = !rows.is_null(kFirstOwn);
      event.name = own_name(process, texts_.at(rows.integer(demangled ? kFirstOwn : kFirstOwn + 1)).name);
      add_work(process, event, rows.integer(2).value_or(0));
    }
  }

  void read_copies() {
    std::map<std::int64_t, std::string> names;
    TableRows labels(database_, "ENUM_CUDA_MEMCPY_OPER", {"id", "label"});
    while (labels.next()) {
      const std::string label(labels.text(1));
      const auto known =
          std::find_if(kCopies.begin(), kCopies.end(), [&](const auto& copy) { return copy.first == label; });
      names[labels.integer(0).value_or(0)] =
          known == kCopies.end() ? "Memcpy " + label : std::string(known->second);
    }
    TableRows rows(database_, kCopyTable, work_columns({"bytes", "copyKind"}));
    while (rows.next()) {
      Process& process = process_of(rows.integer(5));
      const std::int64_t kind = rows.integer(kFirstOwn + 1).value_or(0);
      const bool migrates = kind >= kFirstMigration && kind <= kLastMigration;
      EventRow event = work_of(rows, process, "gpu_memcpy", !migrates);
      const auto name = names.find(kind);
      event.name = intern(process, name == names.end() ? "Memcpy " + std::to_string(kind) : name->second);
      if (!add_work(process, event, rows.integer(2).value_or(0))) continue;
      if (const auto bytes = rows.integer(kFirstOwn)) process.rows.integer("bytes", *bytes);
    }
  }

  void read_fills() {
    TableRows rows(database_, kFillTable, work_columns({"bytes"}));
    while (rows.next()) {
      Process& process = process_of(rows.integer(5));
      EventRow event = work_of(rows, process, "gpu_memset");
      event.name = intern(process, "Memset");
      if (!add_work(process, event, rows.integer(2).value_or(0))) continue;
      if (const auto bytes = rows.integer(kFirstOwn)) process.rows.integer("bytes", *bytes);
    }
  }

  /// Unless every node of a graph was traced, a replay is one row, without its kernels.
  void read_graphs() {
    TableRows rows(database_, kGraphTable, work_columns({"graphId"}));
    bool any = false;
    while (rows.next()) {
      Process& process = process_of(rows.integer(5));
      EventRow event = work_of(rows, process, "kernel");
      event.name = intern(process, "CUDA graph " + std::to_string(rows.integer(kFirstOwn).value_or(0)));
      any |= add_work(process, event, rows.integer(2).value_or(0));
    }
    if (any)
      remarks_.emplace_back(
          "a replay of a CUDA graph is one row without its kernels: record with --cuda-graph-trace=node to "
          "see "
          "them");
  }

  void read_calls() {
    TableRows rows(database_, kCallTable,
                   {"start", "end", "globalTid", "correlationId", "nameId", "eventClass"});
    std::unordered_map<Names::Id, std::string> names;  // of runtime and driver, without versions
    constexpr std::int64_t kDriver = 1;
    while (rows.next()) {
      const std::int64_t thread = rows.integer(2).value_or(0);
      Process& process = process_of(thread);
      process.calls = true;
      EventRow event;
      event.start_ns = rows.integer(0).value_or(-1);
      event.end_ns = rows.integer(1).value_or(-1);
      event.correlation = rows.integer(3).value_or(kAbsent);
      event.category = intern(process, rows.integer(5) == kDriver ? "cuda_driver" : "cuda_runtime");
      const Names::Id name = texts_.at(rows.integer(4)).name;
      const auto [at, is_new] = names.try_emplace(name);
      if (is_new) at->second = call_name(texts_.names()[name]);
      event.name = intern(process, at->second);
      event.lane = thread_lane(process, thread);
      process.rows.add(event);
    }
  }

  void read_event_records() {
    TableRows rows(database_, kRecordTable, {"globalPid", "eventSyncId", "correlationId", "streamId"});
    while (rows.next()) {
      const auto id = rows.integer(1);
      if (!id || *id <= 0) continue;
      process_of(rows.integer(0)).records[*id] = {rows.integer(2).value_or(kAbsent),
                                                  rows.integer(3).value_or(kAbsent)};
    }
  }

  void read_waits() {
    TableRows rows(database_, kWaitTable, work_columns({"syncType", "eventSyncId"}));
    while (rows.next()) {
      Process& process = process_of(rows.integer(5));
      EventRow event = work_of(rows, process, "cuda_sync");
      const std::int64_t type = rows.integer(kFirstOwn).value_or(0);
      event.name =
          intern(process, kWaits[type > 0 && type < std::ssize(kWaits) ? static_cast<std::size_t>(type) : 0]);
      if (!process.rows.add(event)) continue;
      const auto record = process.records.find(rows.integer(kFirstOwn + 1).value_or(0));
      if (record == process.records.end()) continue;
      process.rows.integer("wait_on_cuda_event_record_corr_id", record->second.first);
      process.rows.integer("wait_on_stream", record->second.second);
    }
  }

  void read_ranges() {
    TableRows rows(database_, kRangeTable, {"start", "end", "globalTid", "eventType", "text", "textId"});
    std::uint64_t open = 0;
    while (rows.next()) {
      const std::int64_t type = rows.integer(3).value_or(0);
      if (type != kPushPop && type != kStartEnd) continue;
      if (rows.is_null(1)) {
        ++open;
        continue;
      }
      const std::int64_t thread = rows.integer(2).value_or(0);
      Process& process = process_of(thread);
      EventRow event;
      event.start_ns = rows.integer(0).value_or(-1);
      event.end_ns = rows.integer(1).value_or(-1);
      const bool nests = type == kPushPop;
      std::int64_t sequence = -1;
      bool of_operator = false;
      if (rows.is_null(4)) {
        const Texts::Text text = texts_.at(rows.integer(5));
        event.name = own_name(process, text.name);
        sequence = text.sequence;
        of_operator = text.of_operator;
      } else {
        const RangeText text = range_text(rows.text(4));
        event.name = intern(process, text.name);
        sequence = text.sequence.value_or(-1);
        of_operator = text.of_operator;
      }
      event.category = intern(process, nests && of_operator ? "cpu_op" : "user_annotation");
      event.lane = thread_lane(process, thread, nests);
      if (process.rows.add(event) && sequence >= 0) process.rows.integer("Sequence number", sequence);
    }
    if (open > 0)
      remarks_.push_back(std::to_string(open) + " ranges of NVTX have no end in the file: they are left out");
  }

  std::vector<TraceFile> chosen() {
    const auto any = [&](auto&& is) {
      return std::any_of(processes_.begin(), processes_.end(),
                         [&](const auto& each) { return is(each.second); });
    };
    const bool works = any([](const Process& process) { return process.has_work(); });
    const bool calls = any([](const Process& process) { return process.calls; });
    std::vector<std::tuple<std::int64_t, std::int64_t, Process*>> wanted;
    for (auto& [id, process] : processes_) {
      if (works ? process.has_work() : !calls || process.calls) {
        wanted.emplace_back(process.device, id, &process);
      } else {
        remarks_.push_back("process " + std::to_string(process.pid) + " has no work on a device: its " +
                           std::to_string(process.file.columns.size()) + " events are left out");
      }
    }
    std::sort(wanted.begin(), wanted.end());
    const auto [base_ns, metadata] = facts();
    std::vector<TraceFile> traces;
    for (const auto& [device, id, process] : wanted) {
      TraceFile& file = process->file;
      file.base_time_ns = base_ns;
      file.metadata = metadata;
      file.notes.bytes = database_.bytes();
      if (traces.empty())
        file.notes.remarks.insert(file.notes.remarks.end(), remarks_.begin(), remarks_.end());
      traces.push_back(std::move(file));
    }
    if (traces.empty()) {
      traces.emplace_back().path = database_.path();
      traces.back().notes.remarks = remarks_;
    }
    return traces;
  }

  using Metadata = std::vector<std::pair<std::string, std::string>>;
  std::pair<std::optional<std::int64_t>, Metadata> facts() {
    std::pair<std::optional<std::int64_t>, Metadata> found;
    TableRows start(database_, "TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"});
    if (start.next()) found.first = start.integer(0);
    TableRows rows(database_, "META_DATA_EXPORT", {"name", "value"});
    while (rows.next()) {
      const std::string_view name = rows.text(0);
      if (name == "EXPORT_PRODUCT_VERSION" || name == "EXPORT_SCHEMA_VERSION")
        found.second.emplace_back(name, '"' + plain(rows.text(1)) + '"');
    }
    return found;
  }
  /// What may stand in JSON as it is.
  static std::string plain(std::string_view text) {
    std::string kept(text.substr(0, 100));
    std::erase_if(kept, [](char c) { return c < ' ' || c > '~' || c == '"' || c == '\\'; });
    return kept;
  }

  Database& database_;
  const ReadOptions& options_;
  Texts texts_;
  std::map<std::int64_t, Process> processes_;
  std::int64_t last_id_ = 0;
  Process* last_process_ = nullptr;
  std::unordered_map<std::int64_t, Names::Id> thread_names_;
  std::vector<std::string> remarks_;
};

}  // namespace

bool is_export(const Input& input) {
  return std::any_of(kTables.begin(), kTables.end(), [&](auto table) { return input.has_table(table); });
}

std::vector<TraceFile> read_export(Input& input, const ReadOptions& options) {
  return Reader(input, options).run();
}

}  // namespace headrace::trace::nsight
