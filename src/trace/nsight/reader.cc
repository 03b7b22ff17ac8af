// The SQLite export of NVIDIA Nsight Systems (`nsys export --type sqlite`), read into the columns of a trace.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "headrace/trace/names.h"
#include "trace/database.h"
#include "trace/event_rows.h"
#include "trace/input.h"
#include "trace/process_trace.h"

namespace headrace::trace::nsight {
namespace {

constexpr std::array<std::string_view, 3> kUnique = {", op_id = ", ", seq = ", ", sizes = "};

/// The number behind `key`, nothing if it is not there.
std::optional<std::int64_t> number_behind(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::int64_t number = 0;
  const char* const begin = text.data() + at + key.size();
  if (std::from_chars(begin, text.data() + text.size(), number).ec != std::errc() || number < 0)
    return std::nullopt;
  return number;
}

template <class Value>
void sort_by_id(std::vector<std::pair<std::int64_t, Value>>& pairs) {
  const auto by_id = [](const auto& a, const auto& b) { return a.first < b.first; };
  if (!std::is_sorted(pairs.begin(), pairs.end(), by_id)) std::stable_sort(pairs.begin(), pairs.end(), by_id);
}

template <class Value>
const Value* find_id(const std::vector<std::pair<std::int64_t, Value>>& pairs, std::int64_t id) {
  const auto at = std::lower_bound(pairs.begin(), pairs.end(), id,
                                   [](const auto& pair, std::int64_t wanted) { return pair.first < wanted; });
  return at == pairs.end() || at->first != id ? nullptr : &at->second;
}

/// PyTorch's `emit_nvtx` writes "aten::add, seq = 12, op_id = 34, sizes = [[2, 3]]": a text of its own for
/// each call.
struct RangeText {
  std::string_view name;
  std::optional<std::int64_t> sequence;
  bool of_operator = false;
};
RangeText range_text(std::string_view text) {
  std::size_t end = text.size();
  for (const std::string_view key : kUnique) end = std::min(end, text.find(key));
  const std::string_view name = text.substr(0, end);
  const bool of_operator = end != text.size() || name.starts_with("aten::") || name.starts_with("autograd::");
  return {name, end == text.size() ? std::nullopt : number_behind(text, ", seq = "), of_operator};
}

/// "cudaLaunchKernel" of "cudaLaunchKernel_v7000".
std::string_view call_name(std::string_view text) {
  const std::size_t at = text.rfind("_v");
  if (at == std::string_view::npos || at + 2 == text.size()) return text;
  const bool version = text.find_first_not_of("0123456789", at + 2) == std::string_view::npos;
  return version ? text.substr(0, at) : text;
}

/// Table StringIds; of ranges' texts the name alone is kept.
class Texts {
 public:
  /// Numbers of `name` are those of `names()`.
  struct Text {
    Names::Id name = 0;
    std::int64_t sequence = -1;
    bool of_operator = false;
  };

  explicit Texts(Database& database) {
    TableRows rows(database, "StringIds", {"id", "value"});
    while (rows.next()) {
      const auto id = rows.integer(0);
      if (!id) continue;
      const RangeText text = range_text(rows.text(1));
      const Names::Id name = names_.intern(text.name);
      if (name >= of_operator_.size()) of_operator_.resize(name + std::size_t{1});
      if (text.of_operator) of_operator_[name] = true;
      by_id_.emplace_back(*id, name);
      if (text.sequence) sequences_.emplace_back(*id, *text.sequence);
    }
    sort_by_id(by_id_);
    sort_by_id(sequences_);
  }

  /// The empty text for a number that the table does not have.
  Text at(std::optional<std::int64_t> id) const {
    const Names::Id* const name = id ? find_id(by_id_, *id) : nullptr;
    if (name == nullptr) return {};
    const std::int64_t* const sequence = find_id(sequences_, *id);
    return {*name, sequence == nullptr ? -1 : *sequence, of_operator_[*name]};
  }
  const Names& names() const noexcept { return names_; }

 private:
  Names names_;
  /// Ascending by the number of the text; `sequences_` has the few that have one.
  std::vector<std::pair<std::int64_t, Names::Id>> by_id_;
  std::vector<std::pair<std::int64_t, std::int64_t>> sequences_;
  std::vector<bool> of_operator_;  ///< by name
};

constexpr const char* kKernelTable = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr const char* kCopyTable = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr const char* kFillTable = "CUPTI_ACTIVITY_KIND_MEMSET";
constexpr const char* kGraphTable = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
constexpr const char* kCallTable = "CUPTI_ACTIVITY_KIND_RUNTIME";
constexpr const char* kWaitTable = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
constexpr const char* kRecordTable = "CUPTI_ACTIVITY_KIND_CUDA_EVENT";
constexpr const char* kRangeTable = "NVTX_EVENTS";
/// An export has only those with rows.
constexpr std::array<const char*, 5> kCudaTables = {kKernelTable, kCopyTable, kFillTable, kGraphTable,
                                                    kCallTable};
/// The first two are in every export.
constexpr std::array<const char*, 3> kOtherTables = {"META_DATA_EXPORT", "TARGET_INFO_SESSION_START_TIME",
                                                     kRangeTable};

/// Types of NVTX_EVENTS.
enum RangeType : std::int64_t { kPushPop = 59, kStartEnd = 60 };
/// Kinds of copies from here to there are migrations of unified memory.
constexpr std::int64_t kFirstMigration = 11;
constexpr std::int64_t kLastMigration = 13;
/// Code for "no stream" in 32 bits.
constexpr std::int64_t kNoStream = 0xFFFFFFFF;
/// A globalTid is hardware, virtual machine, process and, in its lowest 24 bits, thread.
constexpr std::int64_t kThreadBits = 24;
constexpr std::int64_t kThreadMask = (1 << kThreadBits) - 1;

/// ENUM_CUPTI_SYNC_TYPE, by the names that PyTorch's profiler gives them.
constexpr std::array<std::string_view, 5> kWaits = {"Sync", "Event Sync", "Stream Wait Event", "Stream Sync",
                                                    "Context Sync"};

/// CUPTI's number of a kind of copies, Nsight's label of it, and its name here.
struct CopyKind {
  std::int64_t number;
  std::string_view label;
  const char* name;
};
constexpr std::array<CopyKind, 4> kCopies = {{
    {1, "Host-to-Device", "Memcpy HtoD"},
    {2, "Device-to-Host", "Memcpy DtoH"},
    {8, "Device-to-Device", "Memcpy DtoD"},
    {10, "Peer-to-Peer", "Memcpy PtoP"},
}};

struct Process : ProcessTrace {
  Process(const std::string& path, std::int64_t id, const ReadOptions& options)
      : ProcessTrace(path, (id >> kThreadBits) & kThreadMask, options) {}

  /// Numbers of its own for the names of Texts.
  std::vector<Names::Id> own;
  /// Records of CUDA events: correlation and stream, by what a wait for one names.
  std::unordered_map<std::int64_t, std::pair<std::int64_t, std::int64_t>> records;
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
    remark_on_the_rest();
    return ranks();
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
    if (own == Names::missing) own = process.intern(texts_.names()[shared]);
    return own;
  }

  std::uint32_t thread_lane(Process& process, std::int64_t global_tid, bool nests = true) {
    const std::int64_t thread = global_tid & kThreadMask;
    if (global_tid != last_thread_) {
      last_thread_ = global_tid;
      thread_label_ = "thread " + std::to_string(thread);
      const auto name = thread_names_.find(global_tid);
      if (name != thread_names_.end())
        thread_label_.append(" (").append(texts_.names()[name->second]).append(")");
    }
    return process.thread_lane(thread, thread_label_, nests);
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
    event.category = process.intern(category);
    event.lane = process.device_lane(device, event.stream);
    return event;
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
      process.add_work(event, rows.integer(2).value_or(0));
    }
  }

  void read_copies() {
    std::map<std::int64_t, std::string> names;
    for (const CopyKind& copy : kCopies) names[copy.number] = copy.name;
    TableRows labels(database_, "ENUM_CUDA_MEMCPY_OPER", {"id", "label"});
    while (labels.next()) {
      const std::string label(labels.text(1));
      const auto* const known = std::find_if(kCopies.begin(), kCopies.end(),
                                             [&](const CopyKind& copy) { return copy.label == label; });
      names[labels.integer(0).value_or(0)] = known == kCopies.end() ? "Memcpy " + label : known->name;
    }
    TableRows rows(database_, kCopyTable, work_columns({"bytes", "copyKind"}));
    while (rows.next()) {
      Process& process = process_of(rows.integer(5));
      const std::int64_t kind = rows.integer(kFirstOwn + 1).value_or(0);
      const bool migrates = kind >= kFirstMigration && kind <= kLastMigration;
      EventRow event = work_of(rows, process, "gpu_memcpy", !migrates);
      const auto name = names.find(kind);
      event.name = process.intern(name == names.end() ? "Memcpy " + std::to_string(kind) : name->second);
      if (!process.add_work(event, rows.integer(2).value_or(0))) continue;
      if (const auto bytes = rows.integer(kFirstOwn)) process.rows.integer("bytes", *bytes);
    }
  }

  void read_fills() {
    TableRows rows(database_, kFillTable, work_columns({"bytes"}));
    while (rows.next()) {
      Process& process = process_of(rows.integer(5));
      EventRow event = work_of(rows, process, "gpu_memset");
      event.name = process.intern("Memset");
      if (!process.add_work(event, rows.integer(2).value_or(0))) continue;
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
      event.name = process.intern("CUDA graph " + std::to_string(rows.integer(kFirstOwn).value_or(0)));
      any |= process.add_work(event, rows.integer(2).value_or(0));
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
      event.category = process.intern(rows.integer(5) == kDriver ? "cuda_driver" : "cuda_runtime");
      const Names::Id name = texts_.at(rows.integer(4)).name;
      const auto [at, is_new] = names.try_emplace(name);
      if (is_new) at->second = call_name(texts_.names()[name]);
      event.name = process.intern(at->second);
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
          process.intern(kWaits[type > 0 && type < std::ssize(kWaits) ? static_cast<std::size_t>(type) : 0]);
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
        event.name = process.intern(text.name);
        sequence = text.sequence.value_or(-1);
        of_operator = text.of_operator;
      }
      event.category = process.intern(nests && of_operator ? "cpu_op" : "user_annotation");
      event.lane = thread_lane(process, thread, nests);
      if (process.rows.add(event) && sequence >= 0) process.rows.integer("Sequence number", sequence);
    }
    if (open > 0)
      remarks_.push_back(std::to_string(open) + " ranges of NVTX have no end in the file: they are left out");
  }

  /// Notes what the report lacks, in Nsight's own words if it says why, and what is not read.
  void remark_on_the_rest() {
    if (std::none_of(kCudaTables.begin(), kCudaTables.end(),
                     [&](const char* table) { return database_.has_table(table); })) {
      remarks_.emplace_back(processes_.empty() ? "the report has no events"
                                               : "the report has no trace of CUDA: record with -t cuda,nvtx");
      TableRows said(database_, "DIAGNOSTIC_EVENT", {"text"});
      while (said.next()) {
        if (said.text(0).find("CUDA") == std::string_view::npos) continue;
        remarks_.push_back("Nsight Systems says: " + plain_text(said.text(0)));
        break;
      }
    }
    std::uint64_t calls = 0;
    for (TableRows rows(database_, "OSRT_API", {"start"}); rows.next();) ++calls;
    if (calls > 0) remarks_.push_back(std::to_string(calls) + " calls of the operating system are not read");
  }

  std::vector<TraceFile> ranks() {
    std::vector<ProcessTrace*> processes;
    for (auto& [id, process] : processes_) processes.push_back(&process);
    std::vector<TraceFile> traces = ranks_of(processes, remarks_, database_.path());
    const auto [base_ns, metadata] = facts();
    for (TraceFile& file : traces) {
      file.base_time_ns = base_ns;
      file.metadata = metadata;
      file.notes.bytes = database_.bytes();
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
        found.second.emplace_back(name, '"' + plain_text(rows.text(1)) + '"');
    }
    return found;
  }

  Database& database_;
  const ReadOptions& options_;
  Texts texts_;
  std::map<std::int64_t, Process> processes_;
  std::int64_t last_id_ = 0;
  Process* last_process_ = nullptr;
  std::int64_t last_thread_ = -1;
  std::string thread_label_;
  std::unordered_map<std::int64_t, Names::Id> thread_names_;
  std::vector<std::string> remarks_;
};

bool is_export(const Input& input) {
  const auto there = [&](const char* table) { return input.has_table(table); };
  return std::any_of(kCudaTables.begin(), kCudaTables.end(), there) ||
         std::any_of(kOtherTables.begin(), kOtherTables.end(), there);
}

/// A trace for each process that has work on a device, by device and then by process; where none has, for
/// each process that called CUDA, else one for the whole file. Export schemas 3.4 to 3.25; a table that has
/// no rows is not in a file.
///
/// Kernels, copies, fills and replays of graphs keep stream and correlation, which is one of their process's
/// calls. Ranges of NVTX are operators where PyTorch's `emit_nvtx` wrote them, else annotations. Migrations
/// of unified memory are on no stream. Times are nanoseconds since the session began; `base_time_ns` is its
/// Unix time. Memory beside the columns: each name once, and 16 bytes for each row of StringIds.
std::vector<TraceFile> read_export(Input& input, const ReadOptions& options) {
  return Reader(input, options).run();
}

}  // namespace
}  // namespace headrace::trace::nsight

const headrace::trace::Format headrace::trace::kNsightExport{"Nsight Systems", true, nsight::is_export,
                                                             nsight::read_export};
