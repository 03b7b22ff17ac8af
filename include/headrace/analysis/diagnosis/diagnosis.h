// A verdict on one profile, as plain data. Same names in C++, Python and JSON (`op` is "operator" there).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "headrace/analysis/diagnosis/change.h"
#include "headrace/profile/parameter_value.h"

namespace headrace::analysis {

using profile::ParameterValue;

/// One sentence that the verdict rests on, with every number it uses.
struct Evidence {
  std::string rule;  ///< gate, queues, demand, ledger, agreement, cause, detail, functions, machine
  std::string says;
  std::map<std::string, double> figures;  ///< units in the names: step_s, wait_share
};

/// One change. Best first in Diagnosis::advice.
struct Advice {
  std::string parameter;  ///< "" for a cure that is no parameter (see text)
  ParameterValue from;    ///< value now; empty where the cure is no parameter
  ParameterValue to;
  std::string text;
  std::string code;  ///< lines that make the change, where the loader has no such parameter; "" otherwise
  std::optional<double> predicted_step_s;
  std::optional<double> low;  ///< interval of predicted_step_s, seconds
  std::optional<double> high;
  std::optional<double> speedup;       ///< step now / predicted step
  std::optional<double> memory_bytes;  ///< more batches in memory take so much more, at most
  /// Earlier advice that the prediction takes as followed ("decode.workers=3"); empty: this change alone.
  std::vector<std::string> after;
  std::string then_limit;       ///< what limits then: an operator's name, "sink" or "cpu"; not in JSON
  std::vector<Change> changes;  ///< what was simulated, `after` included; not in JSON
};

struct VerdictWindow {
  double start_s = 0;
  double end_s = 0;
  std::string kind;
  std::optional<std::string> op;
};

struct Diagnosis {
  std::string kind;  ///< not_input_bound, input_bound, intermittent, undetermined
  std::optional<std::string> op;
  std::optional<std::string> cause;
  double confidence = 0;     ///< 0 to 1
  double share_of_step = 0;  ///< what the bottleneck costs: (wait charged to it + stretched compute) / step
  std::string reason;        ///< what is missing, where kind is undetermined
  std::string summary;       ///< one plain sentence: the headline of a report
  std::optional<double> headroom_step_s;  ///< healthy runs: the step time that the input could still feed
  std::vector<Evidence> evidence;
  std::vector<Advice> advice;
  std::optional<std::string> next_bottleneck;  ///< an operator's name, or "sink"
  std::vector<VerdictWindow> windows;          ///< where the verdict differs from the whole
};

}  // namespace headrace::analysis
