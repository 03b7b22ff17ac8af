#include "headrace/trace/ascend/communication.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "headrace/profile/errors.h"
#include "headrace/profile/regular_file.h"
#include "trace/database.h"

namespace headrace::trace::ascend {
namespace {

using nlohmann::json;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::uintmax_t kLongestFile = std::uintmax_t{256} << 20;
constexpr std::string_view kGroupMark = "@";

double number_at(const json& object, const char* key) {
  const auto at = object.is_object() ? object.find(key) : object.end();
  return at != object.end() && at->is_number() ? at->get<double>() : kNone;
}

double ms_at(const json& object, const char* key) { return number_at(object, key) / 1e3; }

std::string text_at(const json& object, const char* key) {
  const auto at = object.is_object() ? object.find(key) : object.end();
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

std::int64_t ns_of_us(double us) {
  constexpr double kMax = 4e15;
  return us >= 0 && us < kMax ? std::llround(us * 1000) : -1;
}

CommunicationName name_of(const std::string& step, const std::string& type, const std::string& key) {
  const std::size_t mark = key.find(kGroupMark);
  CommunicationName name;
  name.step = step.starts_with("step") ? step.substr(4) : step;
  name.point_to_point = type == "p2p";
  name.operation = key.substr(0, mark);
  if (mark != std::string::npos) name.group = key.substr(mark + 1);
  return name;
}

json parsed(std::string_view text, const std::string& path) {
  json document = json::parse(text, nullptr, false);
  if (!document.is_object())
    throw FormatError(path, 0, "a JSON object of steps; run the profiler's analyse() again");
  return document;
}

/// Calls `use(name, value)` for {step: {type: {key: value}}}; `type` is p2p or collective.
template <class Use>
void for_each_operation(const json& document, Use use) {
  for (const auto& [step, types] : document.items()) {
    if (!types.is_object()) continue;
    for (const auto& [type, operations] : types.items()) {
      if (!operations.is_object()) continue;
      for (const auto& [key, value] : operations.items()) use(name_of(step, type, key), value);
    }
  }
}

void add_bandwidths(const CommunicationName& name, const json& transports, Communication& into) {
  if (!transports.is_object()) return;
  for (const auto& [transport, figures] : transports.items()) {
    CommunicationBandwidth row;
    row.of = name;
    row.transport = transport;
    row.size_mb = number_at(figures, "Transit Size(MB)");
    row.transit_s = ms_at(figures, "Transit Time(ms)");
    row.bandwidth_gbps = number_at(figures, "Bandwidth(GB/s)");
    row.large_packet_ratio = number_at(figures, "Large Packet Ratio");
    row.packet_mb = kNone;
    row.packets_s = kNone;
    const auto sizes = figures.is_object() ? figures.find("Size Distribution") : figures.end();
    bool any = false;
    if (sizes != figures.end() && sizes->is_object()) {
      for (const auto& [size, counts] : sizes->items()) {
        double packet = 0;
        const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), packet);
        if (error != std::errc() || end != size.data() + size.size()) continue;
        if (!counts.is_array() || counts.size() < 2 || !counts[0].is_number() || !counts[1].is_number())
          continue;
        row.packet_mb = packet;
        const double count = counts[0].get<double>();
        row.packets = count >= 0 && count < 1e15 ? static_cast<std::int64_t>(count) : 0;
        row.packets_s = counts[1].get<double>() / 1e3;
        into.bandwidths.push_back(row);
        any = true;
      }
    }
    if (!any) into.bandwidths.push_back(row);
  }
}

std::int64_t rank_of(std::string_view text) {
  std::int64_t rank = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  return error == std::errc() && end == text.data() + text.size() ? rank : -1;
}

double value(const TableRows& rows, int column) { return rows.number(column).value_or(kNone); }

CommunicationName name_of(const TableRows& rows, int operation, int group, int step, int type) {
  const std::string of_step(rows.text(step));
  CommunicationName name = name_of(of_step, std::string(rows.text(type)), std::string(rows.text(operation)));
  name.group = rows.text(group);
  return name;
}

void read_database(const std::string& path, Communication& into) {
  Database database(path);
  TableRows times(database, "CommAnalyzerTime",
                  {"hccl_op_name", "group_name", "step", "type", "start_timestamp", "elapse_time",
                   "transit_time", "wait_time", "synchronization_time", "idle_time"});
  while (times.next()) {
    into.times.push_back({name_of(times, 0, 1, 2, 3), ns_of_us(value(times, 4)), value(times, 5) / 1e3,
                          value(times, 6) / 1e3, value(times, 7) / 1e3, value(times, 8) / 1e3,
                          value(times, 9) / 1e3});
  }
  TableRows bandwidths(
      database, "CommAnalyzerBandwidth",
      {"hccl_op_name", "group_name", "step", "type", "transport_type", "transit_size", "transit_time",
       "bandwidth", "large_packet_ratio", "package_size", "count", "total_duration"});
  while (bandwidths.next()) {
    into.bandwidths.push_back({name_of(bandwidths, 0, 1, 2, 3), std::string(bandwidths.text(4)),
                               value(bandwidths, 5), value(bandwidths, 6) / 1e3, value(bandwidths, 7),
                               value(bandwidths, 8), value(bandwidths, 9), bandwidths.integer(10).value_or(0),
                               value(bandwidths, 11) / 1e3});
  }
  TableRows links(database, "CommAnalyzerMatrix",
                  {"hccl_op_name", "group_name", "step", "type", "src_rank", "dst_rank", "transport_type",
                   "transit_size", "transit_time", "bandwidth", "op_name"});
  while (links.next()) {
    into.links.push_back({name_of(links, 0, 1, 2, 3), links.integer(4).value_or(-1),
                          links.integer(5).value_or(-1), std::string(links.text(6)), value(links, 7),
                          value(links, 8) / 1e3, value(links, 9), std::string(links.text(10))});
  }
}

}  // namespace

void read_communication_json(std::string_view text, const std::string& name, Communication& into) {
  for_each_operation(parsed(text, name), [&](const CommunicationName& of, const json& value) {
    if (!value.is_object()) return;
    if (const auto time = value.find("Communication Time Info"); time != value.end()) {
      into.times.push_back({of, ns_of_us(number_at(*time, "Start Timestamp(us)")),
                            ms_at(*time, "Elapse Time(ms)"), ms_at(*time, "Transit Time(ms)"),
                            ms_at(*time, "Wait Time(ms)"), ms_at(*time, "Synchronization Time(ms)"),
                            ms_at(*time, "Idle Time(ms)")});
    }
    if (const auto bandwidth = value.find("Communication Bandwidth Info"); bandwidth != value.end())
      add_bandwidths(of, *bandwidth, into);
  });
}

void read_communication_matrix_json(std::string_view text, const std::string& name, Communication& into) {
  for_each_operation(parsed(text, name), [&](const CommunicationName& of, const json& value) {
    if (!value.is_object()) return;
    for (const auto& [pair, figures] : value.items()) {
      const std::size_t dash = pair.find('-');
      if (dash == std::string::npos) continue;
      into.links.push_back({of, rank_of(std::string_view(pair).substr(0, dash)),
                            rank_of(std::string_view(pair).substr(dash + 1)),
                            text_at(figures, "Transport Type"), number_at(figures, "Transit Size(MB)"),
                            ms_at(figures, "Transit Time(ms)"), number_at(figures, "Bandwidth(GB/s)"),
                            text_at(figures, "Op Name")});
    }
  });
}

Communication read_communication(const ProfileFolder& profile) {
  Communication found;
  const std::filesystem::path output(profile.output);
  const auto read = [&](const char* file, auto* parse) {
    const std::string path = (output / file).string();
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) return;
    try {
      parse(profile::read_regular_file(path, kLongestFile), path, found);
      found.files.push_back(path);
    } catch (const FormatError& error) {
      found.failures.push_back(error);
    }
  };
  read("communication.json", &read_communication_json);
  read("communication_matrix.json", &read_communication_matrix_json);
  if (found.files.empty() && !profile.analysis_database.empty()) {
    try {
      read_database(profile.analysis_database, found);
      found.files.push_back(profile.analysis_database);
    } catch (const FormatError& error) {
      found.failures.push_back(error);
    }
  }
  return found;
}

}  // namespace headrace::trace::ascend
