// Folders as MindSpore's profiler leaves them, written by tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace headrace::test {

struct WrittenOperator {
  int id = 0;
  std::string type;
  int workers = 1;
  std::vector<int> children;
  std::vector<int> levels;       ///< empty: metrics are null
  std::vector<int> cpu_percent;  ///< of each sample; empty: all 0
  int capacity = 16;
};

/// A run of `levels.size()` samples, one every `tick_ms`, and of batches in the same time.
struct WrittenRun {
  std::vector<WrittenOperator> operators;
  int tick_ms = 50;
  int cores = 4;
  int step_ms = 40;
  int wait_ms = 30;
  int process_percent = 30;
  int idle_percent = 90;
  std::vector<int> waits_ms = {};  ///< of each batch; empty: all `wait_ms`
  int left = 0;                    ///< batches in the host queue after each fetch
};

/// The level of each sample of a queue that is always as full.
inline std::vector<int> all(int level) { return std::vector<int>(60, level); }

inline std::string joined(const std::vector<int>& values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(values[i]);
  return text + "]";
}

/// A folder of its own below the temporary one; removed at the end.
class ProfilerFolderWriter {
 public:
  explicit ProfilerFolderWriter(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("headrace-test-" + name + "-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~ProfilerFolderWriter() { std::filesystem::remove_all(path_); }
  ProfilerFolderWriter(const ProfilerFolderWriter&) = delete;
  ProfilerFolderWriter& operator=(const ProfilerFolderWriter&) = delete;

  std::string path() const { return path_.string(); }

  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
  }

  static std::size_t samples(const WrittenRun& run) {
    std::size_t most = 0;
    for (const WrittenOperator& op : run.operators) most = std::max(most, op.levels.size());
    return most;
  }

  void write_pipeline(const WrittenRun& run, int rank = 0) const {
    std::string text = R"({"op_info":[)";
    for (std::size_t i = 0; i < run.operators.size(); ++i) {
      const WrittenOperator& op = run.operators[i];
      text += i == 0 ? "{" : ",{";
      if (!op.children.empty()) text += "\"children\":" + joined(op.children) + ",";
      text += op.levels.empty() ? "\"metrics\":null"
                                : "\"metrics\":{\"output_queue\":{\"length\":" + std::to_string(op.capacity) +
                                      ",\"size\":" + joined(op.levels) + "}}";
      text += ",\"num_workers\":" + std::to_string(op.workers) + ",\"op_id\":" + std::to_string(op.id) +
              ",\"op_type\":\"" + op.type + "\"}";
    }
    write("pipeline_profiling_" + std::to_string(rank) + ".json",
          text + "],\"sampling_interval\":" + std::to_string(run.tick_ms) + "}");
  }

  /// Lengths as MindSpore 2.10 writes them.
  void write_cpu(const WrittenRun& run, int rank = 0) const {
    const std::size_t count = samples(run);
    std::vector<int> stamps;
    std::vector<int> doubled;
    for (std::size_t i = 0; i < count; ++i) {
      stamps.push_back(1000 + static_cast<int>(i) * run.tick_ms);
      doubled.push_back(i == 0 ? 0 : run.idle_percent);
      doubled.push_back(0);
    }
    const auto all = [](std::size_t length, int value) { return joined(std::vector<int>(length, value)); };
    std::string text = "{\"cpu_processor_num\":" + std::to_string(run.cores) +
                       ",\"sampling_interval\":" + std::to_string(run.tick_ms) +
                       ",\"time_stamp\":" + joined(stamps) +
                       ",\"device_info\":{\"idle_utilization\":" + joined(doubled) +
                       ",\"io_utilization\":" + all(2 * count, 0) + ",\"user_utilization\":" + all(count, 5) +
                       ",\"sys_utilization\":" + all(count, 5) +
                       "},\"process_info\":{\"user_utilization\":" + all(count - 1, run.process_percent) +
                       ",\"sys_utilization\":" + all(count - 1, 0) + "},\"op_info\":[";
    for (std::size_t i = 0; i < run.operators.size(); ++i) {
      const WrittenOperator& op = run.operators[i];
      std::vector<int> percent = op.cpu_percent.empty() ? std::vector<int>(count, 0) : op.cpu_percent;
      percent.resize(count, percent.empty() ? 0 : percent.back());
      text += std::string(i == 0 ? "" : ",") + "{\"op_id\":" + std::to_string(op.id) +
              ",\"metrics\":{\"user_utilization\":" + joined(percent) +
              ",\"sys_utilization\":" + all(count, 0) + "}}";
    }
    write("minddata_cpu_utilization_" + std::to_string(rank) + ".json", text + "]}");
  }

  /// As many batches as the samples' time has room for.
  void write_iterator(const WrittenRun& run, int rank = 0) const {
    const int last = 1000 + static_cast<int>(samples(run)) * run.tick_ms;
    std::string text;
    int batch = 1;
    for (int end = 1010; end < last; ++batch) {
      const auto place = static_cast<std::size_t>(batch - 1);
      const int wait_ms = place < run.waits_ms.size() ? run.waits_ms[place] : run.wait_ms;
      if (batch > 1) end += run.step_ms - run.wait_ms + wait_ms;
      const std::string rest = " " + std::to_string(batch) + " ";
      const std::string stamp = " " + std::to_string(end) + "\n";
      text += "0 1" + rest + "0" + stamp + "0 2" + rest + std::to_string(wait_ms) + stamp + "0 0" + rest +
              std::to_string(wait_ms) + stamp + "1 16" + rest + std::to_string(run.left) + stamp;
    }
    write("dataset_iterator_profiling_" + std::to_string(rank) + ".txt", text);
  }

  void write_run(const WrittenRun& run, int rank = 0) const {
    write_pipeline(run, rank);
    write_cpu(run, rank);
    write_iterator(run, rank);
  }

 private:
  std::filesystem::path path_;
};

/// generator -> map -> batch, with the levels that the middle operator's slowness makes.
inline WrittenRun slow_map(int map_workers = 1) {
  constexpr std::size_t kSamples = 60;
  return {.operators = {{0, "BatchOp", 1, {1}, std::vector<int>(kSamples, 0), {}},
                        {1, "MapOp", map_workers, {2}, std::vector<int>(kSamples, 0), {}},
                        {2, "GeneratorOp", 1, {}, std::vector<int>(kSamples, 16), {}}}};
}

}  // namespace headrace::test
