#include "headrace/trace/ascend/profile_folder.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
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

constexpr const char* kOfSteps = "a JSON object of steps; run the profiler's analyse() again";
constexpr const char* kOfGroups = "a JSON object of groups of ranks";

json parsed(std::string_view text, const std::string& path, const char* expected) {
  json document = json::parse(text, nullptr, false);
  if (!document.is_object()) throw FormatError(path, 0, expected);
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

using NamedValues = std::vector<std::pair<CommunicationName, const json*>>;

/// Calls `use` with the objects of each step of {group: {step: {operation: value}}}, in newer versions inside
/// p2p and collective.
template <class Use>
void for_each_of_cluster(const json& document, const std::string& type, const Use& use) {
  for (const auto& [group, steps] : document.items()) {
    if (!steps.is_object()) continue;
    if (type.empty() && (group == "p2p" || group == "collective")) {
      for_each_of_cluster(steps, group, use);
      continue;
    }
    for (const auto& [step, operations] : steps.items()) {
      if (!operations.is_object()) continue;
      NamedValues values;
      for (const auto& [key, value] : operations.items()) {
        CommunicationName name = name_of(step, type, key);
        if (name.group.empty()) name.group = group;
        if (value.is_object()) values.emplace_back(name, &value);
      }
      use(values);
    }
  }
}

void add_figures(const CommunicationName& of, const json& value, Communication& into) {
  if (const auto time = value.find("Communication Time Info"); time != value.end()) {
    into.times.push_back({of, ns_of_us(number_at(*time, "Start Timestamp(us)")),
                          ms_at(*time, "Elapse Time(ms)"), ms_at(*time, "Transit Time(ms)"),
                          ms_at(*time, "Wait Time(ms)"), ms_at(*time, "Synchronization Time(ms)"),
                          ms_at(*time, "Idle Time(ms)")});
  }
  if (const auto bandwidth = value.find("Communication Bandwidth Info"); bandwidth != value.end())
    add_bandwidths(of, *bandwidth, into);
}

/// `value`: {source-target: figures}
void add_links(const CommunicationName& of, const json& value, Communication& into) {
  for (const auto& [pair, figures] : value.items()) {
    const std::size_t dash = pair.find('-');
    if (dash == std::string::npos) continue;
    into.links.push_back({of, rank_of(std::string_view(pair).substr(0, dash)),
                          rank_of(std::string_view(pair).substr(dash + 1)),
                          text_at(figures, "Transport Type"), number_at(figures, "Transit Size(MB)"),
                          ms_at(figures, "Transit Time(ms)"), number_at(figures, "Bandwidth(GB/s)"),
                          text_at(figures, "Op Name")});
  }
}

/// Data of one profile.
Communication communication_of(const ProfileFolder& profile) {
  Communication found;
  const auto attempt = [&](const std::string& path, auto read) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) return;
    try {
      read();
      found.files.push_back(path);
    } catch (const FormatError& error) {
      found.failures.push_back(error);
    }
  };
  const auto attempt_json = [&](const char* file, ReadCommunication* read) {
    const std::string path = (std::filesystem::path(profile.output) / file).string();
    attempt(path, [&] { read(profile::read_regular_file(path, kLongestFile), path, found); });
  };
  attempt_json("communication.json", &read_communication_json);
  attempt_json("communication_matrix.json", &read_communication_matrix_json);
  if (found.files.empty()) {
    const std::string& path = profile.analysis_database;
    attempt(path, [&] {
      Database database(path);
      read_communication_tables(database, false, found);
    });
  }
  return found;
}

}  // namespace

void read_communication_json(std::string_view text, const std::string& name, Communication& into) {
  for_each_operation(parsed(text, name, kOfSteps), [&](const CommunicationName& of, const json& value) {
    if (value.is_object()) add_figures(of, value, into);
  });
}

void read_communication_matrix_json(std::string_view text, const std::string& name, Communication& into) {
  for_each_operation(parsed(text, name, kOfSteps), [&](const CommunicationName& of, const json& value) {
    if (value.is_object()) add_links(of, value, into);
  });
}

void read_cluster_communication_json(std::string_view text, const std::string& name, Communication& into) {
  for_each_of_cluster(parsed(text, name, kOfGroups), "", [&](const NamedValues& operations) {
    std::map<std::int64_t, NamedValues> by_rank;
    for (auto [of, ranks] : operations) {
      for (const auto& [rank, figures] : ranks->items()) {
        of.rank = rank_of(rank);
        if (of.rank >= 0 && figures.is_object()) by_rank[of.rank].emplace_back(of, &figures);
      }
    }
    for (const auto& [rank, values] : by_rank) {
      for (const auto& [of, figures] : values) add_figures(of, *figures, into);
    }
  });
}

void read_cluster_matrix_json(std::string_view text, const std::string& name, Communication& into) {
  for_each_of_cluster(parsed(text, name, kOfGroups), "", [&](const NamedValues& operations) {
    for (const auto& [of, pairs] : operations) add_links(of, *pairs, into);
  });
}

void read_communication_tables(Database& database, bool of_cluster, Communication& into) {
  const std::string prefix = of_cluster ? "ClusterCommunication" : "CommAnalyzer";
  const char* const whose = of_cluster ? "rank_id" : "type";
  std::set<std::string, std::less<>> point_to_point;
  TableRows groups(database, "CommunicationGroupMapping", {"type", "group_name"});
  while (groups.next()) {
    if (groups.text(0) == "p2p") point_to_point.emplace(groups.text(1));
  }
  const auto value = [](const TableRows& rows, int column) { return rows.number(column).value_or(kNone); };
  // The first four columns of each table.
  const auto name_in = [&](const TableRows& rows) {
    CommunicationName name =
        name_of(std::string(rows.text(2)), std::string(rows.text(3)), std::string(rows.text(0)));
    name.group = rows.text(1);
    name.point_to_point |= point_to_point.contains(name.group);
    if (of_cluster) name.rank = rows.integer(3).value_or(-1);
    return name;
  };
  TableRows times(database, prefix + "Time",
                  {"hccl_op_name", "group_name", "step", whose, "start_timestamp",
                   of_cluster ? "elapsed_time" : "elapse_time", "transit_time", "wait_time",
                   "synchronization_time", "idle_time"});
  while (times.next()) {
    into.times.push_back({name_in(times), ns_of_us(value(times, 4)), value(times, 5) / 1e3,
                          value(times, 6) / 1e3, value(times, 7) / 1e3, value(times, 8) / 1e3,
                          value(times, 9) / 1e3});
  }
  TableRows bandwidths(database, prefix + "Bandwidth",
                       {"hccl_op_name", "group_name", "step", whose,
                        of_cluster ? "band_type" : "transport_type", "transit_size", "transit_time",
                        "bandwidth", "large_packet_ratio", "package_size", "count", "total_duration"});
  while (bandwidths.next()) {
    into.bandwidths.push_back({name_in(bandwidths), std::string(bandwidths.text(4)), value(bandwidths, 5),
                               value(bandwidths, 6) / 1e3, value(bandwidths, 7), value(bandwidths, 8),
                               value(bandwidths, 9), bandwidths.integer(10).value_or(0),
                               value(bandwidths, 11) / 1e3});
  }
  TableRows links(database, prefix + "Matrix",
                  {"hccl_op_name", "group_name", "step", whose, "src_rank", "dst_rank", "transport_type",
                   "transit_size", "transit_time", "bandwidth", "op_name"});
  while (links.next()) {
    into.links.push_back({name_in(links), links.integer(4).value_or(-1), links.integer(5).value_or(-1),
                          std::string(links.text(6)), value(links, 7), value(links, 8) / 1e3, value(links, 9),
                          std::string(links.text(10))});
  }
}

Communication read_communication(std::span<const ProfileFolder> profiles) {
  Communication all;
  for (const ProfileFolder& profile : profiles) {
    Communication found = communication_of(profile);
    all.profiles += found.files.empty() ? 0 : 1;
    const auto move_all = [&](auto& from, auto& into) {
      for (auto& each : from) {
        if constexpr (requires { each.of.rank; }) each.of.rank = profile.rank.value_or(-1);
        into.push_back(std::move(each));
      }
    };
    move_all(found.times, all.times);
    move_all(found.bandwidths, all.bandwidths);
    move_all(found.links, all.links);
    move_all(found.files, all.files);
    move_all(found.failures, all.failures);
  }
  return all;
}

}  // namespace headrace::trace::ascend
