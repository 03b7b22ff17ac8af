// This user's folder of live segments in shared memory.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "headrace/profile/private_folder.h"
#include "headrace/profile/process_identity.h"
#include "headrace/profile/run_folder.h"
#include "profile/live_segments.h"

namespace headrace::profile {

namespace fs = std::filesystem;

std::string shared_memory_folder() { return "/dev/shm/headrace-" + std::to_string(geteuid()); }

std::string shared_memory_path() {
  static std::atomic<unsigned> next{0};
  const PrivateFolder folder(shared_memory_folder(), true);
  if (!folder.ok()) return "";
  return folder.path() + "/" + std::to_string(current_pid()) + "-" +
         std::to_string(process_start(current_pid())) + "-" + std::to_string(next.fetch_add(1)) +
         std::string(kSegmentSuffix);
}

void write_home(const std::string& live_path, const std::string& copy_path) {
  const PrivateFolder folder(shared_memory_folder(), false);
  // A live segment in the run folder needs none: it is at home.
  if (!folder.ok() || live_path.rfind(folder.path() + "/", 0) != 0) return;
  const std::string name = live_path.substr(folder.path().size() + 1) + std::string(kHomeSuffix);
  if (copy_path.empty()) {
    folder.remove(name);
  } else {
    folder.write_text(name, copy_path + "\n");
  }
}

// Adds segments whose pointer could not be written (full run folder): each still has its home.
void add_without_pointer(const std::string& run, std::vector<RunSegment>& segments) {
  const PrivateFolder folder(shared_memory_folder(), false);
  std::vector<std::string> homes;
  folder.each([&](const std::string& name) {
    if (name.ends_with(kHomeSuffix)) homes.push_back(name);
  });
  for (const std::string& name : homes) {
    const std::string copy_path = folder.read_line(name);
    std::error_code error;
    const fs::path home(copy_path);
    if (!is_copy_path(copy_path) || !fs::equivalent(home.parent_path(), run, error)) continue;
    const std::string live = folder.path() + "/" + name.substr(0, name.size() - kHomeSuffix.size());
    const auto known = std::find_if(segments.begin(), segments.end(), [&](const RunSegment& segment) {
      return fs::path(segment.copy_path).filename() == home.filename();
    });
    if (known != segments.end() && known->live) continue;
    RunSegment segment{.path = "",
                       .copy_path = (fs::path(run) / home.filename()).string(),
                       .rank = rank_of_file(home.filename().string())};
    if (!take_live(segment, live, 0)) continue;
    if (known != segments.end()) {
      *known = segment;
    } else {
      segments.push_back(segment);
    }
  }
}

}  // namespace headrace::profile
