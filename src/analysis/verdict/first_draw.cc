#include "first_draw.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "headrace/analysis/read/loader.h"
#include "headrace/analysis/read/thresholds.h"

namespace headrace::analysis {

FirstDraw first_draw_of(const profile::Profile& profile, double startup_s) {
  const std::string text = setting(profile, kFirstDraw);
  const std::size_t space = text.rfind(' ');
  FirstDraw draw;
  if (space == std::string::npos) return draw;
  std::from_chars(text.data() + space + 1, text.data() + text.size(), draw.seconds);
  const auto epochs = static_cast<double>(std::max<std::uint64_t>(1, profile.epochs));
  if (draw.seconds * epochs >= kMostOf * startup_s) draw.sampler = text.substr(0, space);
  return draw;
}

std::string cure_of(const FirstDraw& draw) {
  return "draw the order in chunks, or the next epoch's in the background; " + draw.sampler +
         " makes all of it before the first batch, so workers that stay gain nothing";
}

}  // namespace headrace::analysis
