// A `Description` as columns.
#pragma once

#include <string>
#include <utility>

#include "headrace/analysis/device/describe.h"
#include "headrace/analysis/table.h"

namespace headrace::analysis::device {

/// `count`, and mean, std, min, p25, p50, p75, max with `unit` behind them ("_s").
class DescriptionColumns {
 public:
  /// `scale` turns the figures into the unit.
  void add(const Description& figures, double scale) {
    count_.push_back(static_cast<std::int64_t>(figures.count));
    mean_.push_back(figures.mean * scale);
    std_.push_back(figures.std * scale);
    min_.push_back(figures.min * scale);
    p25_.push_back(figures.p25 * scale);
    p50_.push_back(figures.p50 * scale);
    p75_.push_back(figures.p75 * scale);
    max_.push_back(figures.max * scale);
  }

  void put_into(Table& table, const std::string& unit) {
    table.add("count", std::move(count_))
        .add("mean" + unit, std::move(mean_))
        .add("std" + unit, std::move(std_))
        .add("min" + unit, std::move(min_))
        .add("p25" + unit, std::move(p25_))
        .add("p50" + unit, std::move(p50_))
        .add("p75" + unit, std::move(p75_))
        .add("max" + unit, std::move(max_));
  }

 private:
  Integers count_;
  Numbers mean_, std_, min_, p25_, p50_, p75_, max_;
};

}  // namespace headrace::analysis::device
