#include "headrace/analysis/read/service_shape.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "numbers.h"

namespace headrace::analysis {
namespace {

constexpr std::size_t kEnoughSamples = 40;
constexpr std::size_t kShortSequence = 200;
/// More would sharpen nothing and cost a verdict milliseconds: what-if asks for shapes many times.
constexpr std::size_t kMaxSamples = 2048;
/// Between usual and slow: above so many medians, and below half of the slow items' mean.
constexpr double kUsualMedians = 2;

double cv_of(const std::vector<double>& values) {
  double sum = 0;
  double squares = 0;
  for (double value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  for (double value : values) squares += (value - mean) * (value - mean);
  return ratio(std::sqrt(squares / static_cast<double>(values.size())), mean);
}

ServiceShape from_sequence(std::vector<double> walls) {
  ServiceShape shape;
  std::sort(walls.begin(), walls.end());
  shape.samples = walls.size();
  shape.median_s = walls[walls.size() / 2];
  double sum = 0;
  double tail = 0;
  std::size_t tail_items = 0;
  for (double wall : walls) {
    sum += wall;
    if (wall > kTailMedians * shape.median_s) {
      tail += wall;
      ++tail_items;
    }
  }
  shape.mean_s = sum / static_cast<double>(walls.size());
  shape.cv = cv_of(walls);
  shape.tail_item_share = ratio(static_cast<double>(tail_items), static_cast<double>(walls.size()));
  shape.tail_busy_share = ratio(tail, sum);
  shape.tail_mean_s = ratio(tail, static_cast<double>(tail_items));
  const auto between = std::count_if(walls.begin(), walls.end(), [&](double wall) {
    return wall > kUsualMedians * shape.median_s && wall < kMostOf * shape.tail_mean_s;
  });
  shape.between_share = ratio(static_cast<double>(between), static_cast<double>(walls.size()));
  return shape;
}

/// The histogram as five steps: half of the items at p50, 40 % between p50 and p90, 9 % to p99, 1 % beyond.
ServiceShape from_latency(const profile::Latency& service) {
  ServiceShape shape;
  shape.mean_s = service.mean_s;
  shape.median_s = service.p50_s;
  if (service.count < 8 || service.mean_s <= 0) return shape;
  const double top = service.count >= 100 ? 0.5 * (service.p99_s + service.max_s) : service.p99_s;
  const struct {
    double share;
    double value;
  } steps[] = {{0.5, service.p50_s},
               {0.4, 0.5 * (service.p50_s + service.p90_s)},
               {0.09, 0.5 * (service.p90_s + service.p99_s)},
               {0.01, top}};
  double squares = 0;
  for (const auto& step : steps)
    squares += step.share * (step.value - service.mean_s) * (step.value - service.mean_s);
  shape.cv = std::sqrt(squares) / service.mean_s;
  if (service.p99_s > kTailMedians * service.p50_s && service.p50_s > 0) {
    // The ninth decile tells whether there is a slope between usual and slow, or a gap.
    const double p90 = ratio(service.p90_s, service.p50_s);
    shape.between_share = p90 > 2.2 && p90 < kTailMedians ? 0.1 : 0;
    const double body =
        service.p90_s > kTailMedians * service.p50_s ? service.p50_s : 0.5 * (service.p50_s + service.p90_s);
    shape.tail_mean_s = service.p99_s;
    const double above = std::max(0.0, service.mean_s - body);
    shape.tail_item_share = std::clamp(ratio(above, shape.tail_mean_s - body), 0.0, 1.0);
    shape.tail_busy_share = std::clamp(shape.tail_item_share * shape.tail_mean_s / service.mean_s, 0.0, 1.0);
  }
  return shape;
}

}  // namespace

ServiceShape shape_of(const profile::OperatorProfile& op) {
  std::size_t recorded = 0;
  for (const profile::WorkerProfile& worker : op.per_worker) recorded += worker.sequence.size();
  const std::size_t stride = recorded / kMaxSamples + 1;
  std::vector<double> walls;
  walls.reserve(std::min(recorded, kMaxSamples));
  std::size_t at = 0;
  for (const profile::WorkerProfile& worker : op.per_worker) {
    for (const profile::ServiceSample& sample : worker.sequence) {
      if (at++ % stride == 0) walls.push_back(sample.wall_s);
    }
  }
  // A short sequence holds too few of the rare items; the histogram has seen them all.
  const bool histogram_knows_more =
      recorded < kShortSequence && op.service.count >= std::max<std::uint64_t>(80, 2 * recorded);
  const bool sequence_says_enough = walls.size() >= kEnoughSamples && !histogram_knows_more;
  return sequence_says_enough ? from_sequence(std::move(walls)) : from_latency(op.service);
}

double compute_cv(const profile::SinkProfile& sink) {
  std::vector<double> computes;
  for (const profile::StepSample& step : sink.sequence) computes.push_back(step.compute_s);
  return computes.size() >= kEnoughSamples / 2 ? cv_of(computes) : 0;
}

}  // namespace headrace::analysis
