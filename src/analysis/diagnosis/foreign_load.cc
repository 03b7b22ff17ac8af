#include "headrace/analysis/diagnosis/foreign_load.h"

namespace headrace::analysis {
namespace {

constexpr double kNeedsLittle = 0.05;
constexpr double kWaitsLittle = 0.05;

}  // namespace

double disturbing_foreign_share(const profile::Host& host) noexcept {
  const bool sleeps = host.cpu_share && *host.cpu_share < kNeedsLittle &&
                      host.run_queue_wait_share.value_or(0) < kWaitsLittle;
  return sleeps ? 0 : host.foreign_contention_share.value_or(0);
}

}  // namespace headrace::analysis
