#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <string>
#include <utility>

#include "headrace/profile/session.h"
#include "headrace/profile/unnamed_runs.h"

namespace headrace::profile {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// A name that is safe as one path component.
std::string as_file_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-' && c != '_'; }, '-');
  // "..", from wherever it came, would be another folder, and ".x" a hidden one.
  if (!name.empty() && name.front() == '.') name.insert(0, "run-");
  if (name.size() > 100) name.resize(100);
  return name;
}

std::string shared_name() {
  std::string elastic = environment("TORCHELASTIC_RUN_ID");
  // "none" is a launcher's own default id; the rendezvous address then tells jobs apart.
  if (!elastic.empty() && elastic != "none") return elastic;
  const std::string slurm = environment("SLURM_JOB_ID");
  if (!slurm.empty()) return "slurm-" + slurm;
  // The ranks' meeting point, by their launchers.
  for (const auto& [host, port] :
       {std::pair("MASTER_ADDR", "MASTER_PORT"), std::pair("MS_SCHED_HOST", "MS_SCHED_PORT")}) {
    const std::string address = environment(host);
    const std::string number = environment(port);
    if (!address.empty() && !number.empty()) return address + "-" + number;
  }
  return "";
}

}  // namespace

std::string default_run_folder() {
  std::string given = environment("HEADRACE_DIR");
  if (!given.empty()) return given;
  std::string name = shared_name();
  if (name.empty()) {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &local);
    name = std::string(text.data()) + "-" + std::to_string(getpid());
  }
  return std::string(kDefaultRuns) + "/" + as_file_name(name);
}

bool default_run_is_unnamed() { return environment("HEADRACE_DIR").empty() && shared_name().empty(); }

}  // namespace headrace::profile
