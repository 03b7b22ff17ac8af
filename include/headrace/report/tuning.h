// The page of a search for parameters: each change that was tried, predicted against measured.
//
//     page.points.push_back({"decode.workers 1 -> 3", 0.0106, 0.0069, 0.0133, 0.0093, 0.0002});
//     std::ofstream("tuning.html") << report::to_html(page);
#pragma once

#include <string>
#include <vector>

#include "headrace/analysis/what_if/curve.h"

namespace headrace::report {

/// A change with a prediction. Seconds a step.
struct TuningPoint {
  std::string label;       ///< what was changed
  double predicted_s = 0;  ///< from the recording before the change
  double low_s = 0;        ///< the interval of the prediction
  double high_s = 0;
  double measured_s = 0;  ///< with the change
  double error_s = 0;     ///< standard error of `measured_s`
};

/// The step that was measured with one value of the curve's parameter. Seconds.
struct MeasuredStep {
  int value = 0;
  double step_s = 0;
};

/// The sentences are those of the text; they are escaped here.
struct TuningPage {
  std::string headline;  ///< "TUNED 34.6 ms -> 9.7 ms a step (3.56x) with decode.workers=3"
  std::string about;     ///< "train.py: 7 trials in 10 s"
  std::vector<TuningPoint> points;
  std::vector<std::string> columns;  ///< of the table of trials; "#" in front: numbers
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> remarks;
  analysis::StepCurve curve = {};           ///< predicted from the recording of the start; empty: not drawn
  std::vector<MeasuredStep> measured = {};  ///< of trials that changed its parameter and nothing else
};

/// UTF-8, without script; opens offline. whole_page: false: one `<div>`, as of `HtmlOptions`. Points that are not
/// finite are left out of the picture. Thread-safe; never fails.
std::string to_html(const TuningPage& page, bool whole_page = true);

}  // namespace headrace::report
