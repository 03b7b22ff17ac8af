#include "search.h"

#include <algorithm>

namespace headrace::analysis {
namespace {

/// Values in a row that gain nothing more: the ones after them will not either.
constexpr int kFlat = 3;

}  // namespace

bool worth_it(double step_s, const Prediction& prediction) {
  if (!prediction.known) return true;
  const double likely_high = 0.5 * (prediction.step_s + prediction.high_s);
  return is_gain(step_s, prediction.step_s) && likely_high < step_s;
}

std::optional<Choice> cheapest(const Predictor& predictor, const std::vector<int>& values,
                               const std::function<std::vector<Change>(int)>& changes_to) {
  std::vector<Choice> tried;
  double shortest_s = 0;
  double before_s = 0;  // the shortest when a value last gained something
  int flat = 0;
  for (const int value : values) {
    Prediction then = predictor.predict(changes_to(value));
    if (!then.known) break;
    shortest_s = tried.empty() ? then.step_s : std::min(shortest_s, then.step_s);
    flat = as_short(before_s, shortest_s) && !tried.empty() ? flat + 1 : 0;
    if (flat == 0) before_s = shortest_s;
    tried.push_back({value, std::move(then)});
    if (flat == kFlat) break;
  }
  const double now_s = predictor.profile().sink.step_s;
  const auto is_found = [&](const Choice& each) {
    return as_short(each.then.step_s, shortest_s) && is_gain(now_s, each.then.step_s);
  };
  auto found = std::find_if(tried.begin(), tried.end(), is_found);
  // None is a gain: the cheapest says so.
  if (found == tried.end()) found = tried.begin();
  return found == tried.end() ? std::nullopt : std::optional(std::move(*found));
}

std::vector<int> numbers(int first, int last) {
  std::vector<int> values;
  for (int value = first; value <= last; ++value) values.push_back(value);
  return values;
}

std::vector<int> doubled(int first, int last) {
  std::vector<int> values;
  for (int value = first; value <= last; value *= 2) values.push_back(value);
  return values;
}

}  // namespace headrace::analysis
