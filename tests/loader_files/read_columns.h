// How tests read the tables of a written folder.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "headrace/loader_files/file_table.h"
#include "support/profiler_folder.h"

namespace headrace::loader_files {

template <class T>
std::vector<T> column(const FileTable& table, const std::string& name) {
  for (const FileColumn& each : table.columns) {
    if (each.name == name) return std::get<std::vector<T>>(each.values);
  }
  ADD_FAILURE() << "no column " << name;
  return {};
}

inline FileTable table_in(const test::ProfilerFolderWriter& folder, const std::string& name,
                          std::size_t rank = 0) {
  return read_table(find_profiler_files(folder.path()).ranks.at(rank), name);
}

}  // namespace headrace::loader_files
