#include "operator_tables.h"

#include <array>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <variant>

#include "csv_table.h"
#include "headrace/profile/errors.h"
#include "text_file.h"

namespace headrace::loader_files {
namespace {

constexpr std::array kAicoreTypes{Renamed{"op_type", "type"}, Renamed{"kernel_type", "type"},
                                  Renamed{"execution_time", "total_s", kMillisecond},
                                  Renamed{"total_time", "total_s", kMillisecond},
                                  Renamed{"execution_frequency", "count"}};
constexpr std::array kAicoreDetails{Renamed{"full_op_name", "operator"},
                                    Renamed{"full_kernel_name", "operator"},
                                    Renamed{"execution_time", "mean_s", kMillisecond}};
constexpr std::array kAicpu{Renamed{"serial_number", "number"},
                            Renamed{"kernel_type", "type"},
                            Renamed{"node_type_name", "type"},
                            Renamed{"total_time", "total_s", kMillisecond},
                            Renamed{"dispatch_time", "dispatch_s", kMillisecond},
                            Renamed{"execution_time", "execution_s", kMillisecond},
                            Renamed{"run_start", "start_s", 1e-6},
                            Renamed{"run_end", "end_s", 1e-6}};

}  // namespace

FileTable aicore_types(const RankFolder& folder) {
  const std::string path = folder.path(FileKind::aicore_types);
  FileTable table = csv_table(path, kAicoreTypes);
  std::erase_if(table.columns, [](const FileColumn& each) { return each.name == "percent"; });
  const FileColumn* total = column_of(table, "total_s");
  const FileColumn* count = column_of(table, "count");
  if (total == nullptr || count == nullptr) throw FormatError(path, 0, "columns of times and frequencies");
  double all = 0;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const double value = number_at(*total, i);
    all += std::isfinite(value) ? value : 0;
  }
  Numbers shares;
  Numbers means;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const double value = number_at(*total, i);
    const double calls = number_at(*count, i);
    shares.push_back(all > 0 ? value / all : kNone);
    means.push_back(calls > 0 ? value / calls : kNone);
  }
  table.columns.push_back({"mean_s", std::move(means)});
  table.columns.push_back({"total_share", std::move(shares)});
  return table;
}

FileTable aicore_operators(const RankFolder& folder) {
  FileTable table = csv_table(folder.path(FileKind::aicore_details), kAicoreDetails);
  FileColumn* operators = column_of(table, "operator");
  const std::string framework = folder.path(FileKind::framework);
  if (operators == nullptr || framework.empty() || !std::holds_alternative<Texts>(operators->values))
    return table;
  const std::vector<Row> rows = rows_of(read_text(framework), framework);
  if (rows.empty()) return table;
  const Heading heading(rows.front());
  std::unordered_map<std::string_view, const Row*> by_name;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::string_view full = heading.value(rows[i], "full_op_name");
    by_name.emplace(full.empty() ? heading.value(rows[i], "full_kernel_name") : full, &rows[i]);
  }
  for (const auto& [from, to] : {std::pair("op_type", "type"), std::pair("subgraph", "subgraph"),
                                 std::pair("stream_id", "stream"), std::pair("op_info", "shapes")}) {
    if (heading.place(from) < 0) continue;
    Texts values;
    for (const std::string& name : std::get<Texts>(column_of(table, "operator")->values)) {
      const auto found = by_name.find(name);
      values.emplace_back(found == by_name.end() ? std::string_view() : heading.value(*found->second, from));
    }
    table.columns.push_back({to, std::move(values)});
  }
  return table;
}

FileTable aicpu_operators(const RankFolder& folder) {
  return csv_table(folder.path(FileKind::aicpu), kAicpu);
}

}  // namespace headrace::loader_files
