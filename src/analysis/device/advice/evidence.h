// What the rules of `advice` look at; each part is made when the first rule needs it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/analysis/device/device_idle.h"
#include "headrace/analysis/table.h"
#include "headrace/trace/ascend/communication.h"
#include "headrace/trace/ascend/profile_folder.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

/// A step of a rank, seconds.
struct StepParts {
  std::int64_t rank = 0;
  std::int64_t step = 0;
  double computing = 0;
  double exposed = 0;
  double communication = 0;
  double free = 0;
  /// stage + bubble = computing + exposed + free
  double whole = 0;
  double preparing = 0;
  /// `device_idle`: nothing was launched yet, and what held the host up.
  double launch = 0;
  double held_up = 0;
};

/// What a rank's file says about communication.
struct RankCommunication {
  std::int64_t rank = 0;
  trace::ascend::Communication communication;
};

class Evidence {
 public:
  Evidence(std::span<const trace::Trace> traces, std::span<const trace::ascend::ProfileFolder> profiles)
      : traces_(traces), profiles_(profiles) {}

  std::span<const trace::Trace> traces() const noexcept { return traces_; }
  std::span<const trace::ascend::ProfileFolder> profiles() const noexcept { return profiles_; }

  /// `step_time`, row by row, of steps with work.
  const std::vector<StepParts>& steps();
  /// `device_idle` of a trace that has work on a device, what holds its host up (held_up.h) counting as input.
  const DeviceIdle& idle(const trace::Trace& trace);
  /// What rules found that come first, and that later ones leave out: seconds of a trace behind waits for the device,
  /// and whether late launches are named.
  std::map<const trace::Trace*, double> behind_waits;
  bool launches_are_late = false;

  /// True if a file has calls of CANN: the rules about its host apply.
  bool has_cann();
  /// True if a trace has work on a device.
  bool has_device() const noexcept;

  /// A table of the profiler, nullptr if no profile has it or it cannot be read; `why` says which.
  const Table* table(const std::string& name, std::string& why);
  const std::vector<RankCommunication>& communication();

  /// Of `profiler_metadata.json` or the database, nothing if the file does not say.
  const std::optional<std::map<std::string, std::string>>& environment();

  /// Numbers of cores of the device, if a file of the profile says.
  struct Cores {
    std::int64_t cube = 0;
    std::int64_t vector = 0;
  };
  const std::optional<Cores>& cores();

 private:
  std::span<const trace::Trace> traces_;
  std::span<const trace::ascend::ProfileFolder> profiles_;
  std::optional<std::vector<StepParts>> steps_;
  std::map<const trace::Trace*, DeviceIdle> idle_;
  std::optional<bool> has_cann_;
  struct Loaded {
    std::optional<Table> table;
    std::string why;
  };
  std::map<std::string, Loaded> tables_;
  std::optional<std::vector<RankCommunication>> communication_;
  bool environment_read_ = false;
  std::optional<std::map<std::string, std::string>> environment_;
  bool cores_read_ = false;
  std::optional<Cores> cores_;
};

/// A column of numbers whatever it holds; nothing if there is no such column or it holds texts.
std::optional<Numbers> numbers_of(const Table& table, std::string_view column);
/// A column of texts, nullptr if there is none.
const Texts* texts_of(const Table& table, std::string_view column);

}  // namespace headrace::analysis::device
