#include "headrace/analysis/words.h"

#include <cmath>
#include <cstdio>
#include <iterator>

namespace headrace::analysis {
namespace {

std::string three_figures(double value) {
  char text[48];
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
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
  char text[400];
  std::snprintf(text, sizeof text, "%.*f %s", unit > 0 && bytes < 9.95 ? 1 : 0, bytes, units[unit]);
  return text;
}

std::string percent(double share) {
  if (!std::isfinite(share) || std::abs(share) > 1e4) return "-";
  char text[48];
  const double value = share * 100;
  std::snprintf(text, sizeof text, value > 0.05 && value < 9.95 ? "%.1f %%" : "%.0f %%", value);
  return text;
}

std::string counted(double number, const std::string& noun) {
  char text[48];
  std::snprintf(text, sizeof text, "%.0f ", number);
  return text + noun + (number == 1 ? "" : "s");
}

}  // namespace headrace::analysis
