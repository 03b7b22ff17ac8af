// How long an item takes in each operator: the usual ones, the slow ones, the slowest.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "../printable.h"
#include "figures.h"
#include "headrace/analysis/words.h"
#include "sections.h"

namespace headrace::report {

using analysis::duration;
using profile::Latency;

namespace {

/// Quantiles are within 1/16, so one may lie beyond the exact longest time.
double longest_s(const Latency& service) { return std::max(service.p99_s, service.max_s); }

/// From `low_s` at the left to `high_s` at the right, equal distances for equal ratios.
class Scale {
 public:
  explicit Scale(const std::vector<const profile::OperatorProfile*>& operators) {
    for (const profile::OperatorProfile* op : operators) {
      low_s_ = std::min(low_s_, op->service.p50_s);
      high_s_ = std::max(high_s_, longest_s(op->service));
    }
    low_s_ *= 0.8;
    high_s_ *= 1.25;
  }
  std::string x(double seconds) const {
    return length(1000 * fraction(std::log(seconds / low_s_) / std::log(high_s_ / low_s_)));
  }
  double low_s() const { return low_s_; }
  double middle_s() const { return std::sqrt(low_s_ * high_s_); }
  double high_s() const { return high_s_; }

 private:
  double low_s_ = std::numeric_limits<double>::max();
  double high_s_ = 0;
};

bool is_shown(const profile::OperatorProfile& op) {
  const Latency& service = op.service;
  return service.count > 0 && service.p50_s > 0 && std::isfinite(service.max_s) &&
         service.p50_s <= service.p90_s && service.p90_s <= service.p99_s && std::isfinite(service.p99_s);
}

void write_row(Markup& out, const profile::OperatorProfile& op, bool is_bottleneck, const Scale& scale) {
  const Latency& service = op.service;
  out.leaf("span", {{"class", is_bottleneck ? "label here" : "label"}, {"title", whole(op.name)}},
           brief(op.name));
  const std::string words = fmt::format("{}: half within {}, 90 % within {}, 99 % within {}, longest {}",
                                        brief(op.name), duration(service.p50_s), duration(service.p90_s),
                                        duration(service.p99_s), duration(service.max_s));
  const auto svg = out.open("svg", {{"class", "service"},
                                    {"viewBox", "0 0 1000 14"},
                                    {"preserveAspectRatio", "none"},
                                    {"role", "img"},
                                    {"aria-label", words}});
  out.leaf("title", words);
  const std::string half = scale.x(service.p50_s);
  const std::string most = scale.x(service.p90_s);
  const std::string tail = scale.x(service.p99_s);
  const std::string longest = scale.x(longest_s(service));
  out.empty("path", {{"class", "grid"}, {"d", "M0 13.5H1000"}});
  out.empty("path", {{"class", "line"}, {"d", "M" + most + " 7H" + longest + "M" + tail + " 3V11"}});
  out.empty("path", {{"class", "usual"}, {"d", "M" + half + " 7H" + most + "h5"}});
  out.empty("path", {{"class", "dot"}, {"d", "M" + longest + " 7h0"}});
}

}  // namespace

void write_service(Markup& out, const Subject& subject) {
  std::vector<const profile::OperatorProfile*> shown;
  for (const profile::OperatorProfile& op : subject.profile.operators) {
    if (is_shown(op) && shown.size() < kMaxRows) shown.push_back(&op);
  }
  if (shown.empty()) return;
  const Scale scale(shown);
  if (!(scale.low_s() > 0) || !(scale.high_s() > scale.low_s())) return;
  const auto section = out.open("section");
  out.leaf("h2", "How long an item takes");
  out.leaf(
      "p", {{"class", "read"}},
      "The thick bar reaches from the time of half of the items to that of nine of ten, the mark is at 99 "
      "%, the dot is the longest. A dot far to the right: rare slow items. The scale is logarithmic.");
  const auto grid = out.open("div", {{"class", "time"}});
  for (const profile::OperatorProfile* op : shown) write_row(out, *op, subject.is_bottleneck(*op), scale);
  out.leaf("span", {{"class", "label"}}, "");
  const auto axis = out.open("div", {{"class", "axis"}});
  for (const double at : {scale.low_s(), scale.middle_s(), scale.high_s()}) out.leaf("span", duration(at));
}

}  // namespace headrace::report
