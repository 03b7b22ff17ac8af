#include "headrace/trace/ascend/profile_folder.h"

#include <map>
#include <optional>
#include <tuple>

#include "trace/ascend/trace_view.h"
#include "trace/database.h"
#include "trace/input.h"

namespace headrace::trace::ascend {
namespace {

constexpr double kKilobyte = 1024;
constexpr double kMegabyte = 1024 * 1024;
/// A chip has a few dozen; a damaged file may claim any number.
constexpr std::size_t kMaxCounters = 4096;

/// A row of the timeline, with its place in the process ids.
struct TimelineRow {
  std::string_view name;
  std::int64_t place;
};
constexpr TimelineRow kFrequency{"AI Core Freq", 14};
constexpr TimelineRow kHbm{"HBM", 17};
constexpr TimelineRow kLlc{"LLC", 18};
constexpr TimelineRow kMemory{"NPU MEM", 19};
constexpr TimelineRow kSoc{"Stars Soc Info", 20};
constexpr TimelineRow kAccelerators{"Acc PMU", 21};

class CounterReader {
 public:
  explicit CounterReader(Database& database) : database_(database) {
    TableRows tasks(database, "TASK", {"globalPid"});
    if (tasks.next()) pid_ = tasks.integer(0).value_or(0);
  }

  std::vector<Counter> read() {
    read_types();
    read_frequency();
    read_hbm();
    read_llc();
    read_memory();
    read_soc();
    read_accelerators();
    std::vector<Counter> counters;
    for (const auto& key : order_) counters.push_back(std::move(counters_[key]));
    return counters;
  }

 private:
  using Key = std::tuple<std::int64_t, std::int64_t, std::string>;  // place, device, name

  /// "read", "write", "app", "device": the few texts that counters name their kinds by.
  void read_types() {
    TableRows texts(database_, "STRING_IDS", {"id", "value"});
    while (texts.next()) {
      const std::string_view text = texts.text(1);
      const auto id = texts.integer(0);
      if (!id) continue;
      for (const auto& [word, shown] : {std::pair{"read", "Read"}, std::pair{"write", "Write"},
                                        std::pair{"app", "APP"}, std::pair{"device", "Device"}}) {
        if (text == word) types_.emplace(*id, shown);
      }
    }
  }
  std::string type_of(std::optional<std::int64_t> id) const {
    const auto found = id ? types_.find(*id) : types_.end();
    return found == types_.end() ? "" : found->second;
  }

  void add(TimelineRow row, std::optional<std::int64_t> device, const std::string& name,
           const std::string& unit, std::optional<std::int64_t> at_ns, std::optional<double> value) {
    if (!at_ns || *at_ns < 0 || !value) return;
    Key key{row.place, device.value_or(0), name};
    auto found = counters_.find(key);
    if (found == counters_.end()) {
      if (counters_.size() == kMaxCounters) return;
      Counter made{std::string(row.name), made_up_pid(pid_, row.place, device.value_or(0)), name, unit, {}};
      found = counters_.emplace(key, std::move(made)).first;
      order_.push_back(std::move(key));
    }
    found->second.values.emplace_back(*at_ns, *value);
  }

  static std::optional<double> in(std::optional<double> bytes, double unit) {
    return bytes ? std::optional<double>(*bytes / unit) : std::nullopt;
  }

  void read_frequency() {
    TableRows rows(database_, "AICORE_FREQ", {"deviceId", "timestampNs", "freq"});
    while (rows.next())
      add(kFrequency, rows.integer(0), "AI Core Freq", "MHz", rows.integer(1), rows.number(2));
  }

  void read_hbm() {
    TableRows rows(database_, "HBM", {"deviceId", "timestampNs", "bandwidth", "hbmId", "type"});
    while (rows.next()) {
      const std::string type = type_of(rows.integer(4));
      if (type.empty()) continue;
      add(kHbm, rows.integer(0), "HBM " + std::to_string(rows.integer(3).value_or(0)) + "/" + type,
          type + "(MB/s)", rows.integer(1), in(rows.number(2), kMegabyte));
    }
  }

  void read_llc() {
    TableRows rows(database_, "LLC", {"deviceId", "llcId", "timestampNs", "hitRate", "throughput", "mode"});
    while (rows.next()) {
      const std::string name =
          "LLC " + std::to_string(rows.integer(1).value_or(0)) + " " + type_of(rows.integer(5));
      add(kLlc, rows.integer(0), name + "/Throughput", "Throughput(MB/s)", rows.integer(2),
          in(rows.number(4), kMegabyte));
      add(kLlc, rows.integer(0), name + "/Hit Rate", "Hit Rate(%)", rows.integer(2), rows.number(3));
    }
  }

  void read_memory() {
    TableRows rows(database_, "NPU_MEM", {"deviceId", "timestampNs", "ddr", "hbm", "type"});
    while (rows.next()) {
      const std::string type = type_of(rows.integer(4));
      const std::optional<double> ddr = rows.number(2);
      const std::optional<double> hbm = rows.number(3);
      if (type.empty()) continue;
      const auto add_part = [&](const char* part, std::optional<double> bytes) {
        add(kMemory, rows.integer(0), type + part, "KB", rows.integer(1), in(bytes, kKilobyte));
      };
      add_part("/DDR", ddr);
      add_part("/HBM", hbm);
      if (ddr && hbm) add_part("/Memory", *ddr + *hbm);
    }
  }

  void read_soc() {
    TableRows rows(database_, "SOC_BANDWIDTH_LEVEL",
                   {"deviceId", "timestampNs", "l2BufferBwLevel", "mataBwLevel"});
    while (rows.next()) {
      add(kSoc, rows.integer(0), "L2 Buffer Bw Level", "L2 Buffer Bw Level", rows.integer(1), rows.number(2));
      add(kSoc, rows.integer(0), "Mata Bw Level", "Mata Bw Level", rows.integer(1), rows.number(3));
    }
  }

  void read_accelerators() {
    TableRows rows(
        database_, "ACC_PMU",
        {"deviceId", "timestampNs", "accId", "readBwLevel", "writeBwLevel", "readOstLevel", "writeOstLevel"});
    while (rows.next()) {
      const std::string of = " of " + std::to_string(rows.integer(2).value_or(0));
      const std::string_view names[] = {"read_bandwidth", "write_bandwidth", "read_ost", "write_ost"};
      for (int i = 0; i < 4; ++i)
        add(kAccelerators, rows.integer(0), std::string(names[i]) + of, "value", rows.integer(1),
            rows.number(3 + i));
    }
  }

  Database& database_;
  std::int64_t pid_ = 0;
  std::map<std::int64_t, std::string> types_;
  std::map<Key, Counter> counters_;
  std::vector<Key> order_;
};

}  // namespace

std::vector<Counter> read_counters(const std::string& path) {
  Input input(path);
  return input.has_database() ? read_counters(input.database()) : std::vector<Counter>();
}

std::vector<Counter> read_counters(Database& database) { return CounterReader(database).read(); }

}  // namespace headrace::trace::ascend
