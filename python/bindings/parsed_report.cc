// A report's profile and diagnosis as C++ has them: read once, written as text, page or JSON as often as
// asked.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cmath>
#include <optional>

#include "crossing.h"
#include "headrace/analysis/comparison/comparison.h"
#include "headrace/analysis/read/plausible.h"
#include "headrace/analysis/simulate/predictor.h"
#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/analysis/what_if/curve.h"
#include "headrace/analysis/what_if/what_if.h"
#include "headrace/analysis/words.h"
#include "headrace/profile/errors.h"
#include "headrace/profile/history.h"
#include "headrace/profile/profile_json.h"
#include "headrace/report/comparison.h"
#include "headrace/report/json.h"
#include "headrace/report/page.h"
#include "headrace/report/text.h"

namespace py = pybind11;

namespace headrace::python {
namespace {

/// Immutable, so that threads may share it. What needs simulations is made when it is first asked for, once.
class ParsedReport {
 public:
  explicit ParsedReport(const std::string& profile_text)
      : profile_(analysis::plausible(profile::profile_from_json(profile_text))),
        predictor_(analysis::predictor_for(profile_)) {}

  std::string text(int width, bool color) const {
    return report::to_text(profile_, diagnosis(), {width, color});
  }
  /// segment: of the same run, for what each worker did over time; "": without. One that cannot be read any
  /// more is left out: the page is about the profile.
  std::string page(const std::string& segment, double from_s, double to_s) const {
    report::PageOptions options{nullptr, from_s, to_s};
    profile::History history;
    if (!segment.empty()) {
      try {
        history = profile::read_history(segment);
        options.history = &history;
      } catch (const Error&) {
      }
    }
    return report::page_json(profile_, diagnosis(), options);
  }
  std::string json(int indent) const { return report::to_json(profile_, diagnosis(), indent); }
  auto what_if(const std::vector<std::pair<std::string, std::string>>& assigned) const {
    std::vector<analysis::Assignment> assignments;
    for (const auto& [parameter, value] : assigned) assignments.push_back({parameter, value});
    const analysis::WhatIf then = analysis::what_if(profile_, assignments);
    return std::make_tuple(then.known, then.reason, then.step_s, then.low_s, then.high_s, then.bottleneck);
  }

  const profile::Profile& profile() const noexcept { return profile_; }

  const analysis::StepCurve& curve() const {
    std::call_once(drawn_, [&] { curve_ = analysis::step_curve(predictor_, diagnosis()); });
    return curve_;
  }

 private:
  const analysis::Diagnosis& diagnosis() const {
    std::call_once(diagnosed_, [&] { diagnosis_ = analysis::diagnose(predictor_); });
    return diagnosis_;
  }
  const profile::Profile profile_;
  const analysis::CachedPredictor predictor_;
  mutable std::once_flag diagnosed_;
  mutable analysis::Diagnosis diagnosis_;
  mutable std::once_flag drawn_;
  mutable analysis::StepCurve curve_;
};

using SharedReport = std::shared_ptr<ParsedReport>;

std::vector<profile::Profile> profiles_of(const std::vector<SharedReport>& reports) {
  std::vector<profile::Profile> profiles;
  for (const SharedReport& each : reports) profiles.push_back(each->profile());
  if (profiles.empty()) throw UsageError("a comparison needs at least one run on each side");
  return profiles;
}

/// Two sides of runs, compared once.
class ComparedReports {
 public:
  ComparedReports(const std::vector<SharedReport>& a, const std::vector<SharedReport>& b,
                  const std::string& name_a, const std::string& name_b)
      : comparison_(analysis::compare(profiles_of(a), profiles_of(b), name_a, name_b)) {}

  std::string text(int width, bool color) const { return report::to_text(comparison_, {width, color}); }
  std::string json(int indent) const { return report::to_json(comparison_, indent); }
  std::string page() const { return report::page_json(comparison_); }
  std::string headline() const { return report::headline_of(comparison_); }

 private:
  const analysis::Comparison comparison_;
};

}  // namespace

void add_parsed_report(PyObject* into) {
  using Released = py::call_guard<LockReleased>;
  using Shared = const std::shared_ptr<ParsedReport>&;
  auto module = py::reinterpret_borrow<py::module_>(into);
  const auto add_words = [&](const char* name, auto words, const char* says) {
    module.def(
        name, [words](std::optional<double> figure) { return words(figure.value_or(-1)); }, py::arg("figure"),
        says);
  };
  add_words("duration", analysis::duration, "Seconds as reports write them: \"36.8 ms\"; None: \"-\".");
  add_words("memory_size", analysis::memory_size, "Bytes as reports write them: \"2.4 GB\"; None: \"-\".");
  module.def(
      "percent", [](std::optional<double> share) { return analysis::percent(share.value_or(HUGE_VAL)); },
      py::arg("share"), "A share as reports write it: \"42 %\"; None: \"-\".");
  py::class_<ParsedReport, std::shared_ptr<ParsedReport>>(
      module, "ParsedReport",
      "A profile with its diagnosis, read once. Immutable. Raises FormatError if the text is not a profile.")
      .def(py::init<const std::string&>(), py::arg("profile_text"), Released())
      .def("text", on_shared(&ParsedReport::text), py::arg("width"), py::arg("color"), Released())
      .def("page", on_shared(&ParsedReport::page), py::arg("segment") = "", py::arg("from_s") = 0.0,
           py::arg("to_s") = 0.0, Released(),
           "The JSON document of a page. segment: of the run, for the lanes in this range; (0, 0): the "
           "newest steps.")
      .def("json", on_shared(&ParsedReport::json), py::arg("indent"), Released())
      .def(
          "verdict",
          [](Shared self) {
            const auto found = without_lock([&] { return analysis::verdict_on(self->profile()); });
            const profile::Profile& profile = self->profile();
            const std::string_view cause = found.cause ? analysis::name_of(*found.cause) : "";
            return py::make_tuple(analysis::name_of(found.kind), decoded(found.op.value_or("")), cause,
                                  profile.sink.wait_share, profile.sink.step_s, decoded(profile.loader),
                                  found.most_speedup);
          },
          "Kind, operator and cause (\"\": none), share of the wait, step in seconds, the loader, and the "
          "gain of an input that is never waited for (None: not known): for lists of runs.")
      .def(
          "curve",
          [](Shared self) {
            const analysis::StepCurve& found = *without_lock([&] { return &self->curve(); });
            py::list points;
            for (const analysis::CurvePoint& each : found.points)
              points.append(py::make_tuple(each.value, each.then.step_s, each.then.low_s, each.then.high_s,
                                           each.then.limit));
            return py::make_tuple(found.parameter, found.now, points);
          },
          "-> tuple[str, int, list[tuple[int, float, float, float, str]]]\nParameter, its value now, and for "
          "each value: step, low, high in seconds, and the limit then.")
      .def_property_readonly("loader", [](Shared self) { return self->profile().loader; })
      .def_property_readonly("rank", [](Shared self) { return self->profile().rank; })
      .def("what_if", on_shared(&ParsedReport::what_if), py::arg("assigned"), Released(),
           "Whether it is known, the reason if not; step, low and high in seconds; the bottleneck.");

  py::class_<ComparedReports, std::shared_ptr<ComparedReports>>(module, "ComparedReports",
                                                                "Two sides of parsed reports, compared once.")
      .def(py::init<const std::vector<SharedReport>&, const std::vector<SharedReport>&, const std::string&,
                    const std::string&>(),
           py::arg("a"), py::arg("b"), py::arg("name_a") = "A", py::arg("name_b") = "B", Released())
      .def("text", on_shared(&ComparedReports::text), py::arg("width"), py::arg("color"), Released())
      .def("headline", on_shared(&ComparedReports::headline), Released())
      .def("page", on_shared(&ComparedReports::page), Released(), "The JSON document of a page.")
      .def("json", on_shared(&ComparedReports::json), py::arg("indent"), Released());
}

}  // namespace headrace::python
