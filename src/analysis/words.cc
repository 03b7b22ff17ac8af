#include "headrace/analysis/words.h"

#include <fmt/core.h>

#include <cmath>
#include <iterator>

namespace headrace::analysis {
namespace {

std::string three_figures(double value) {
  return fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

}  // namespace

std::string duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  if (seconds < 1e-9) return "0 ms";
  if (seconds < 0.9995e-3) return three_figures(seconds * 1e6) + " us";
  if (seconds < 0.9995) return three_figures(seconds * 1e3) + " ms";
  return seconds < 1e7 ? three_figures(seconds) + " s" : "over a month";
}

std::string memory_size(double bytes) {
  if (!std::isfinite(bytes) || bytes < 0) return "-";
  const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < std::size(units); bytes /= 1e3) ++unit;
  return fmt::format("{:.{}f} {}", bytes, unit > 0 && bytes < 9.95 ? 1 : 0, units[unit]);
}

std::string percent(double share) {
  if (!std::isfinite(share) || std::abs(share) > 1e4) return "-";
  const double value = share * 100;
  return fmt::format("{:.{}f} %", value, value > 0.05 && value < 9.95 ? 1 : 0);
}

std::string counted(double number, const std::string& noun) {
  return fmt::format("{:.0f} {}{}", number, noun, number == 1 ? "" : "s");
}

}  // namespace headrace::analysis
