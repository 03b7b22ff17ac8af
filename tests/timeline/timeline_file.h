// Reads a merged file back and checks what every viewer relies on.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "timeline/read_back.h"

namespace headrace::timeline {

class TimelineFile {
 public:
  explicit TimelineFile(const std::string& path) {
    document = nlohmann::json::parse(read_back(path));
    const auto& events = document.is_array() ? document : document.at("traceEvents");
    for (const auto& event : events) all.push_back(event);
  }

  std::vector<nlohmann::json> ours(const std::string& phase, const std::string& name = "") const {
    std::vector<nlohmann::json> found;
    for (const auto& event : all) {
      if (event.value("cat", "") == "headrace" && event.at("ph") == phase &&
          (name.empty() || event.at("name") == name))
        found.push_back(event);
    }
    return found;
  }

  /// Name of the row of an event of ours.
  std::string row_of(const nlohmann::json& event) const {
    for (const auto& meta : ours("M", "thread_name")) {
      if (meta.at("pid") == event.at("pid") && meta.at("tid") == event.at("tid"))
        return meta.at("args").at("name");
    }
    return "";
  }

  static std::int64_t ns(const nlohmann::json& microseconds) {
    return std::llround(microseconds.get<double>() * 1000);
  }

  /// Slices of a row lie apart or one in the other, in order; counters are in order; both ends of each arrow
  /// lie in slices, and time runs along it.
  void expect_sound() const {
    using Key = std::pair<std::string, std::string>;
    std::map<Key, std::vector<std::pair<std::int64_t, std::int64_t>>> slices;
    std::map<Key, std::int64_t> counters;
    const auto key_of = [](const nlohmann::json& event) {
      return Key(event.at("pid").dump(), event.at("tid").dump());
    };
    for (const auto& event : all) {
      const std::string phase = event.at("ph");
      const bool is_ours = event.value("cat", "") == "headrace";
      if (phase == "X") {
        const std::int64_t begin = ns(event.at("ts"));
        const std::int64_t end = begin + ns(event.at("dur"));
        auto& row = slices[key_of(event)];
        if (is_ours) {
          ASSERT_GE(end, begin);
          if (!row.empty()) {
            ASSERT_GE(begin, row.back().first) << event.dump();
          }
          for (const auto& before : row) {
            if (before.second > begin) {
              ASSERT_LE(end, before.second) << event.dump();
            }
          }
        }
        row.emplace_back(begin, end);
      } else if (phase == "C" && is_ours) {
        const Key key(event.at("pid").dump(), event.at("name"));
        const auto before = counters.find(key);
        if (before != counters.end()) {
          ASSERT_GE(ns(event.at("ts")), before->second);
        }
        counters[key] = ns(event.at("ts"));
        ASSERT_GE(event.at("args").at("items").get<double>(), 0);
      }
    }
    std::map<std::string, std::vector<nlohmann::json>> flows;
    for (const auto& event : all) {
      if (event.value("cat", "") == "headrace" &&
          std::string("stf").find(std::string(event.at("ph"))) != std::string::npos)
        flows[event.at("id")].push_back(event);
    }
    for (const auto& [id, arrow] : flows) {
      ASSERT_GE(arrow.size(), 2U) << id;
      ASSERT_EQ(arrow.front().at("ph"), "s");
      ASSERT_EQ(arrow.back().at("ph"), "f");
      for (std::size_t i = 0; i < arrow.size(); ++i) {
        const std::int64_t at = ns(arrow[i].at("ts"));
        if (i > 0) {
          ASSERT_GE(at, ns(arrow[i - 1].at("ts"))) << id;
        }
        const auto& row = slices[key_of(arrow[i])];
        ASSERT_TRUE(std::any_of(row.begin(), row.end(), [&](const auto& slice) {
          return slice.first <= at && at <= slice.second;
        })) << arrow[i].dump();
      }
    }
  }

  nlohmann::json document;
  std::vector<nlohmann::json> all;
};

}  // namespace headrace::timeline
