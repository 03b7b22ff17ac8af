#include "headrace/analysis/device/step_points.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/device/callers.h"
#include "analysis/device/step_windows.h"
#include "headrace/analysis/device/device_idle.h"
#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
namespace {

using trace::Row;

/// Tells whether a call is, or was called by, one whose name is among some.
class CalledBy {
 public:
  CalledBy(const trace::Trace& trace, std::vector<bool> names)
      : columns_(trace.columns()), names_(std::move(names)), callers_(trace, Wanted{&columns_, &names_}) {}
  CalledBy(const CalledBy&) = delete;
  CalledBy& operator=(const CalledBy&) = delete;

  bool operator()(Row row) { return callers_.outermost(row) != trace::kNoRow; }
  bool has_name(Row row) const { return names_[columns_.name[row]]; }

 private:
  struct Wanted {
    const trace::Columns* columns;
    const std::vector<bool>* names;
    bool operator()(Row row) const { return (*names)[columns->name[row]]; }
  };

  const trace::Columns& columns_;
  std::vector<bool> names_;
  Callers<Wanted> callers_;
};

bool contains(std::string_view text, std::string_view part) noexcept {
  return text.find(part) != std::string_view::npos;
}

struct Points {
  std::optional<std::int64_t> fp_ns;
  std::optional<std::int64_t> bp_ns;
};

/// Finds the points of one step after the other.
class PointFinder {
 public:
  PointFinder(const trace::Trace& trace, const StepPointsOptions& options)
      : columns_(trace.columns()),
        options_(options),
        loads_(trace, loader_wait_names(trace)),
        optimizes_(trace, names_that(columns_,
                                     [](std::string_view name) { return name.starts_with("Optimizer."); })),
        goes_backward_(trace, names_that(columns_,
                                         [](std::string_view name) {
                                           return contains(name, "autograd::") || contains(name, "ackward");
                                         })),
        at_fp_(trace, names_that(columns_,
                                 [&](std::string_view name) {
                                   return !options.fp_point.empty() && contains(name, options.fp_point);
                                 })),
        at_bp_(trace, names_that(columns_, [&](std::string_view name) {
                 return !options.bp_point.empty() && contains(name, options.bp_point);
               })) {
    const std::vector<bool> updates =
        names_that(columns_, [](std::string_view name) { return contains(name, "Optimizer.step"); });
    for (Row row = 0; row < columns_.size(); ++row) {
      if (columns_.phase[row] == 'X' && updates[columns_.name[row]])
        optimizer_starts_ns_.push_back(columns_.start_ns[row]);
    }
    std::sort(optimizer_starts_ns_.begin(), optimizer_starts_ns_.end());
  }

  Points find(std::span<const StepPiece> pieces, const trace::Step& step) {
    Points points;
    const bool named_fp = !options_.fp_point.empty();
    points.fp_ns = first_start(pieces, [&](const StepPiece& piece) {
      return named_fp ? is_named(at_fp_, piece) : is_of_the_model(piece);
    });
    points.bp_ns = options_.bp_point.empty()
                       ? usual_bp(pieces, step)
                       : last_end(pieces, [&](const StepPiece& piece) { return is_named(at_bp_, piece); });
    return points;
  }

 private:
  static bool is_named(CalledBy& named, const StepPiece& piece) {
    return named.has_name(piece.row) || named(piece.host);
  }
  bool is_of_the_model(const StepPiece& piece) {
    return piece.computes && !loads_(piece.host) && !optimizes_(piece.host);
  }

  template <class Is>
  static std::optional<std::int64_t> first_start(std::span<const StepPiece> pieces, Is is) {
    std::optional<std::int64_t> first;
    for (const StepPiece& piece : pieces) {
      if (is(piece)) first = std::min(first.value_or(piece.start_ns), piece.start_ns);
    }
    return first;
  }
  template <class Is>
  static std::optional<std::int64_t> last_end(std::span<const StepPiece> pieces, Is is) {
    std::optional<std::int64_t> last;
    for (const StepPiece& piece : pieces) {
      if (is(piece)) last = std::max(last.value_or(piece.end_ns), piece.end_ns);
    }
    return last;
  }

  std::optional<std::int64_t> usual_bp(std::span<const StepPiece> pieces, const trace::Step& step) {
    const auto last = last_end(
        pieces, [&](const StepPiece& piece) { return is_of_the_model(piece) && goes_backward_(piece.host); });
    if (last) return last;
    const auto update =
        std::lower_bound(optimizer_starts_ns_.begin(), optimizer_starts_ns_.end(), step.start_ns);
    if (update == optimizer_starts_ns_.end() || *update >= step.end_ns) return std::nullopt;
    return last_end(pieces, [&](const StepPiece& piece) {
      return is_of_the_model(piece) && columns_.start_ns[piece.host] < *update;
    });
  }

  const trace::Columns& columns_;
  const StepPointsOptions& options_;
  CalledBy loads_;
  CalledBy optimizes_;
  CalledBy goes_backward_;
  CalledBy at_fp_;
  CalledBy at_bp_;
  std::vector<std::int64_t> optimizer_starts_ns_;
};

/// The figures of a step, in the order of the columns; NaN if there is none.
enum Figure : std::size_t { gap, forward_backward, tail, total, communication_total, communication_overlap };
using Figures = std::array<double, StepPartColumns::kCount>;

struct CollectiveTotals {
  std::int64_t all_ns = 0;
  std::int64_t hidden_ns = 0;
};

CollectiveTotals communication_of(const trace::Trace& trace, std::span<const StepPiece> pieces) {
  std::vector<Interval> collectives;
  std::vector<Interval> computation;
  for (const StepPiece& piece : pieces) {
    if (piece.computes) {
      computation.push_back({piece.start_ns, piece.end_ns});
      continue;
    }
    const KernelKind kind = kind_of_work(trace.kinds[piece.row], trace.columns().name_of(piece.row));
    if (kind == KernelKind::communication) collectives.push_back({piece.start_ns, piece.end_ns});
  }
  const Intervals all = merged(std::move(collectives));
  return {total_ns(all), total_ns(intersected(all, merged(std::move(computation))))};
}

/// Grows the two tables.
class PointRows {
 public:
  void add_trace(const trace::Trace& trace, const StepPointsOptions& options) {
    const std::vector<StepPiece> pieces = step_pieces(trace);
    const std::vector<StepWindow> windows = step_windows(trace, pieces);
    if (windows.empty()) {
      steps_.note(trace.rank, " has no steps: call step() of the profiler after each");
      return;
    }
    if (!pieces.empty() && !trace::is_device_work(trace.kinds[pieces.front().row]))
      steps_.note(trace.rank, " has no work on a device: its points are those of operators on the host");
    if (last_step_is_cut_off(trace)) steps_.note(trace.rank, ": the last step is cut off and left out");

    PointFinder finder(trace, options);
    std::size_t without_fp = 0;
    std::size_t without_bp = 0;
    Figures sums{};
    std::array<std::size_t, sums.size()> counts{};
    auto first = pieces.begin();
    for (const StepWindow& window : windows) {
      const auto last = std::find_if(first, pieces.end(),
                                     [&](const StepPiece& piece) { return piece.step != window.step; });
      const std::span<const StepPiece> of_step(first, last);
      const trace::Step& step = trace.steps.all()[static_cast<std::size_t>(window.step)];
      const Points points = finder.find(of_step, step);
      without_fp += points.fp_ns ? 0 : 1;
      without_bp += points.bp_ns ? 0 : 1;
      const Figures figures = add_step(trace, window, points, communication_of(trace, of_step));
      for (std::size_t i = 0; i < figures.size(); ++i) {
        if (std::isnan(figures[i])) continue;
        sums[i] += figures[i];
        ++counts[i];
      }
      first = last;
    }
    if (without_fp > 0) add_note(trace.rank, without_fp, options.fp_point, "no computation");
    if (without_bp > 0)
      add_note(trace.rank, without_bp, options.bp_point,
               "nothing that tells where backward ends, so their tail is part of forward and backward");
    Figures means{};
    for (std::size_t i = 0; i < sums.size(); ++i)
      means[i] = counts[i] == 0 ? kNoFigure : sums[i] / static_cast<double>(counts[i]);
    average_.add(trace.rank, windows.size(), means);
  }

  StepPoints finish() {
    average_.notes = steps_.notes;
    return {steps_.take(), average_.take()};
  }

 private:
  Figures add_step(const trace::Trace& trace, const StepWindow& window, const Points& points,
                   const CollectiveTotals& collectives) {
    const auto [start_ns, end_ns] = window.time;
    Figures figures;
    figures.fill(kNoFigure);
    std::int64_t fp_ns = trace::kAbsent;
    std::int64_t bp_ns = trace::kAbsent;
    if (points.fp_ns) {
      fp_ns = std::clamp(*points.fp_ns, start_ns, end_ns);
      if (points.bp_ns) bp_ns = std::clamp(*points.bp_ns, fp_ns, end_ns);
      figures[gap] = seconds(fp_ns - start_ns);
      figures[forward_backward] = seconds((points.bp_ns ? bp_ns : end_ns) - fp_ns);
      if (points.bp_ns) figures[tail] = seconds(end_ns - bp_ns);
    }
    figures[total] = seconds(end_ns - start_ns);
    figures[communication_total] = seconds(collectives.all_ns);
    figures[communication_overlap] = seconds(collectives.hidden_ns);
    steps_.add(trace.rank, window.number, start_ns, fp_ns, bp_ns, end_ns, figures);
    return figures;
  }

  void add_note(std::int64_t rank, std::size_t steps, const std::string& point, const char* usual) {
    steps_.note(rank, ": " + std::to_string(steps) + " steps have " +
                          (point.empty() ? std::string(usual) : "no work called '" + point + "'"));
  }

  Rows<StepPointsColumns> steps_;
  Rows<StepPointsAverageColumns> average_;
};

}  // namespace

StepPoints step_points(std::span<const trace::Trace> traces, const StepPointsOptions& options) {
  PointRows rows;
  for (const trace::Trace& trace : traces) rows.add_trace(trace, options);
  return rows.finish();
}

}  // namespace headrace::analysis::device
