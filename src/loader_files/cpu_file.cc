#include "headrace/loader_files/cpu_file.h"

#include <algorithm>
#include <cmath>

#include "headrace/profile/errors.h"
#include "json_document.h"

namespace headrace::loader_files {
namespace {

constexpr int kMaxCores = 1 << 20;

using Values = std::vector<double>;

/// Where values of an array belong: the value's place, and that of its stamp.
struct Alignment {
  std::size_t first_value = 0;
  std::size_t step = 1;
  std::size_t first_stamp = 0;
};

/// Empty for a length that no version writes.
std::optional<Alignment> alignment_of(std::size_t values, std::size_t stamps, bool doubled) {
  if (doubled && values >= 2) return Alignment{2, 2, 1};
  if (values == stamps) return Alignment{1, 1, 1};
  if (values + 1 == stamps) return Alignment{0, 1, 1};
  return std::nullopt;
}

class CpuFileReader {
 public:
  CpuFileReader(Json root, const std::string& path) : root_(root), path_(path) {}

  CpuFile read() {
    const std::optional<Values> stamps = numbers_of(root_, "time_stamp");
    if (!stamps) throw FormatError(path_, 0, "a list \"time_stamp\" beside the CPU times");
    const std::optional<Json> interval = member(root_, "sampling_interval");
    const std::optional<Json> cores = member(root_, "cpu_processor_num");
    if (interval) file_.interval_ms = number_of(*interval);
    const std::optional<std::int64_t> count = cores ? integer_of(*cores) : std::nullopt;
    if (count && *count > 0 && *count <= kMaxCores) file_.cores = static_cast<int>(*count);
    file_.time_stamps_ms = *stamps;
    const bool grows = std::is_sorted(stamps->begin(), stamps->end()) &&
                       std::none_of(stamps->begin(), stamps->end(), [](double t) { return std::isnan(t); });
    if (!grows) {
      file_.notes.push_back("the CPU file's time stamps do not grow; its CPU times are left out");
      file_.time_stamps_ms.clear();
    }
    read_machine();
    read_process();
    read_operators();
    return std::move(file_);
  }

 private:
  std::size_t stamps() const { return file_.time_stamps_ms.size(); }

  TimedSeries series(const std::optional<Values>& values, bool doubled, const std::string& what) {
    TimedSeries made;
    if (!values || values->empty() || stamps() == 0) return made;
    const std::optional<Alignment> align = alignment_of(values->size(), stamps(), doubled);
    if (!align) {
      if (values->size() > 1)
        file_.notes.push_back(what + " has " + std::to_string(values->size()) + " values for " +
                              std::to_string(stamps()) + " time stamps; it is left out");
      return made;
    }
    std::size_t stamp = align->first_stamp;
    for (std::size_t i = align->first_value; i < values->size() && stamp < stamps();
         i += align->step, ++stamp) {
      if (std::isnan((*values)[i]) || (*values)[i] < 0) continue;
      made.end_ms.push_back(file_.time_stamps_ms[stamp]);
      made.values.push_back((*values)[i]);
    }
    return made;
  }

  void read_machine() {
    const std::optional<Json> device = member(root_, "device_info");
    if (!device) return;
    const std::optional<Values> idle = numbers_of(*device, "idle_utilization");
    file_.raw_idle = idle.value_or(Values{});
    // Where one entry is of double length, so are the others; those that seem to be of single length are its
    // first half.
    bool doubled = false;
    for (const char* name :
         {"idle_utilization", "io_utilization", "runnable_process", "context_switch_count"}) {
      const std::optional<Values> each = numbers_of(*device, name);
      doubled = doubled || (each && stamps() > 0 && each->size() == 2 * stamps());
    }
    file_.idle_percent = series(idle, doubled, "the machine's idle time");
    file_.io_percent = series(numbers_of(*device, "io_utilization"), doubled, "the machine's I/O wait");
    file_.user_percent = series(numbers_of(*device, "user_utilization"), doubled, "the machine's user time");
    file_.system_percent =
        series(numbers_of(*device, "sys_utilization"), doubled, "the machine's system time");
  }

  /// Sum of user and system time, as far as both are there.
  static std::optional<Values> both(Json of) {
    const std::optional<Values> user = numbers_of(of, "user_utilization");
    const std::optional<Values> system = numbers_of(of, "sys_utilization");
    if (!user || !system) return std::nullopt;
    Values sum;
    for (std::size_t i = 0; i < std::min(user->size(), system->size()); ++i)
      sum.push_back((*user)[i] + (*system)[i]);
    return sum;
  }

  void read_process() {
    if (const std::optional<Json> process = member(root_, "process_info"))
      file_.process_percent = series(both(*process), false, "the process's CPU time");
    const std::optional<Json> memory = member(root_, "process_memory_info");
    const std::optional<Values> resident = memory ? numbers_of(*memory, "rss_mbytes") : std::nullopt;
    if (resident && !resident->empty() && resident->back() >= 0) {
      constexpr double kMegabyte = 1024.0 * 1024.0;
      file_.resident_bytes = resident->back() * kMegabyte;
    }
  }

  void read_operators() {
    const auto operators = array_of(root_, "op_info");
    if (!operators) return;
    for (const Json op : *operators) {
      const std::optional<Json> id = member(op, "op_id");
      const std::optional<std::int64_t> number = id ? integer_of(*id) : std::nullopt;
      const std::optional<Json> metrics = member(op, "metrics");
      // An entry of -1 is of no operator.
      if (!number || *number < 0 || !metrics || file_.operators.size() >= kMaxOperators) continue;
      const std::optional<Values> percent = both(*metrics);
      file_.operators.push_back(
          {*number, series(percent, false, "the CPU time of operator " + std::to_string(*number))});
      file_.raw_operators.emplace_back(*number, percent.value_or(Values{}));
    }
  }

  Json root_;
  const std::string& path_;
  CpuFile file_;
};

}  // namespace

std::optional<double> TimedSeries::mean_between(double from_ms, double to_ms) const noexcept {
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(end_ms[i] > from_ms && end_ms[i] <= to_ms)) continue;
    sum += values[i];
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

std::optional<double> TimedSeries::mean() const noexcept {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

CpuFile read_cpu(std::string_view text, const std::string& path) {
  const JsonDocument document(text, path);
  return CpuFileReader(document.root(), path).read();
}

}  // namespace headrace::loader_files
