#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "analysis/device/advice/rule.h"
#include "headrace/analysis/device/device_idle.h"
#include "headrace/analysis/device/profile_table.h"
#include "headrace/analysis/device/steps.h"
#include "headrace/profile/errors.h"
#include "headrace/profile/regular_file.h"
#include "headrace/trace/ascend/categories.h"

namespace headrace::analysis::device {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Files about a run or a device have a few kilobytes.
constexpr std::uintmax_t kLongestInfo = std::uintmax_t{4} << 20;

json read_json(const fs::path& path) try {
  return json::parse(profile::read_regular_file(path.string(), kLongestInfo), nullptr, false);
} catch (const FormatError&) {
  return {};
}

/// Entries of a folder whose names begin so, by name.
std::vector<fs::path> entries(const fs::path& folder, std::string_view begin) {
  constexpr std::size_t kMax = 10'000;
  std::vector<fs::path> found;
  std::error_code error;
  std::size_t left = kMax;
  for (fs::directory_iterator at(folder, error), end; !error && at != end && left > 0;
       at.increment(error), --left) {
    if (at->path().filename().string().starts_with(begin)) found.push_back(at->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<std::map<std::string, std::string>> variables_of(const json& object) {
  if (!object.is_object()) return std::nullopt;
  std::map<std::string, std::string> variables;
  for (const auto& [name, value] : object.items())
    variables[name] = value.is_string() ? value.get<std::string>() : value.dump();
  return variables;
}

std::int64_t count_at(const json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_number_integer()) return 0;
  const auto count = at->get<std::int64_t>();
  return count > 0 && count < 100'000 ? count : 0;
}

}  // namespace

const std::vector<StepParts>& Evidence::steps() {
  if (steps_) return *steps_;
  steps_.emplace();
  const Table table = step_time(traces_);
  std::map<std::pair<std::int64_t, std::int64_t>, std::pair<const Table*, std::size_t>> idle;
  for (const trace::Trace& trace : traces_) {
    if (trace.device_rows.empty()) continue;
    const Table& of_trace = this->idle(trace).steps;
    for (std::size_t row = 0; row < of_trace.rows(); ++row)
      idle[{trace.rank, of_trace.integers("step")[row]}] = {&of_trace, row};
  }
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto of = [&](const char* column) { return table.numbers(column)[row]; };
    steps_->push_back({table.integers("rank")[row], table.integers("step")[row], of("computing_s"),
                       of("communication_not_overlapped_s"), of("communication_s"), of("free_s"),
                       of("stage_s") + of("bubble_s"), of("preparing_s"), 0, 0});
    StepParts& parts = steps_->back();
    const auto known = idle.find({parts.rank, parts.step});
    if (known == idle.end()) continue;
    const auto idle_of = [&](const char* column) {
      return known->second.first->numbers(column)[known->second.second];
    };
    parts.launch = idle_of("launch_s");
    parts.held_up = idle_of("input_s");
    const double idle_s = parts.launch + idle_of("kernel_gap_s") + idle_of("unknown_s");
    if (parts.step < 0) {  // the whole trace
      parts.whole = idle_of("window_s");
      parts.free = idle_s;
    }
    parts.free = std::min(parts.free, idle_s);  // copies, and waits for the input, have rules of their own
  }
  return *steps_;
}

const DeviceIdle& Evidence::idle(const trace::Trace& trace) {
  const auto known = idle_.find(&trace);
  if (known != idle_.end()) return known->second;
  return idle_.emplace(&trace, device_idle(trace, held_up(trace))).first->second;
}

bool Evidence::has_cann() {
  if (!has_cann_) {
    has_cann_ = std::any_of(traces_.begin(), traces_.end(), [](const trace::Trace& trace) {
      return trace.columns().names.find(trace::ascend::kCall) != trace::Names::missing;
    });
  }
  return *has_cann_;
}

bool Evidence::has_device() const noexcept {
  return std::any_of(traces_.begin(), traces_.end(),
                     [](const trace::Trace& trace) { return !trace.device_rows.empty(); });
}

const Table* Evidence::table(const std::string& name, std::string& why) {
  const auto [at, is_new] = tables_.try_emplace(name);
  if (is_new) {
    try {
      at->second.table = profile_table(profiles_, name);
    } catch (const UsageError&) {
      at->second.why = "file " + name + ".csv absent";
    } catch (const FormatError& error) {
      at->second.why = error.what();
    }
  }
  why = at->second.why;
  return at->second.table ? &*at->second.table : nullptr;
}

const trace::ascend::Communication& Evidence::communication() {
  if (!communication_) communication_ = trace::ascend::read_communication(profiles_);
  return *communication_;
}

const std::optional<std::map<std::string, std::string>>& Evidence::environment() {
  if (std::exchange(environment_read_, true)) return environment_;
  for (const trace::ascend::ProfileFolder& profile : profiles_) {
    const json metadata = profile.metadata.empty() ? json() : read_json(profile.metadata);
    if (metadata.is_object() && metadata.contains("ENV_VARIABLES"))
      environment_ = variables_of(metadata["ENV_VARIABLES"]);
    if (environment_) return environment_;
  }
  for (const trace::Trace& trace : traces_) {
    for (const auto& [key, value] : trace.file.metadata) {
      if (key == "ENV_VARIABLES") environment_ = variables_of(json::parse(value, nullptr, false));
    }
    if (environment_) break;
  }
  return environment_;
}

const std::optional<Evidence::Cores>& Evidence::cores() {
  if (std::exchange(cores_read_, true)) return cores_;
  const json::json_pointer kFirst("/DeviceInfo/0");
  for (const trace::ascend::ProfileFolder& profile : profiles_) {
    for (const fs::path& run : entries(profile.path, "PROF_")) {
      for (const fs::path& device : entries(run, "device_")) {
        for (const fs::path& info : entries(device, "info.json")) {
          const json document = read_json(info);
          if (!document.contains(kFirst)) continue;
          const json& first = document.at(kFirst);
          const Cores found{count_at(first, "ai_core_num"), count_at(first, "aiv_num")};
          if (found.cube > 0) cores_ = found;
        }
      }
    }
    if (cores_) break;
  }
  return cores_;
}

std::optional<Numbers> numbers_of(const Table& table, std::string_view column) {
  for (const Column& each : table.columns()) {
    if (each.name != column) continue;
    if (const auto* numbers = std::get_if<Numbers>(&each.values)) return *numbers;
    if (const auto* integers = std::get_if<Integers>(&each.values))
      return Numbers(integers->begin(), integers->end());
  }
  return std::nullopt;
}

const Texts* texts_of(const Table& table, std::string_view column) {
  for (const Column& each : table.columns()) {
    if (each.name == column) return std::get_if<Texts>(&each.values);
  }
  return nullptr;
}

}  // namespace headrace::analysis::device
