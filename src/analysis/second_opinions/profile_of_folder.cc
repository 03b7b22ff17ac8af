#include "headrace/analysis/second_opinions/profile_of_folder.h"

#include <algorithm>

#include "headrace/analysis/cluster/run_ranks.h"
#include "headrace/analysis/second_opinions/second_opinions.h"
#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/loader_files/profile_of.h"
#include "headrace/profile/errors.h"

namespace headrace::analysis {
namespace {

/// Other ranks that are read to compare: a verdict on one of ten thousand needs no more.
constexpr std::size_t kMaxCompared = 256;

void add_other_ranks(const loader_files::ProfilerFolder& folder, profile::Profile& profile) {
  cluster::RunRanks ranks(profile);
  std::size_t compared = 0;
  for (const loader_files::RankFolder& other : folder.ranks) {
    if (other.rank == profile.rank || compared >= kMaxCompared) continue;
    try {
      const profile::Profile its = loader_files::profile_of(loader_files::read_rank(other));
      if (its.sink.steps == 0) continue;
      ranks.add(its);
      ++compared;
    } catch (const Error& error) {
      profile.notes.push_back("rank " + std::to_string(other.rank) +
                              " is not compared: its files cannot be read");
    }
  }
  std::move(ranks).write(profile);
}

}  // namespace

std::vector<int> ranks_in_folder(const std::string& folder) {
  std::vector<int> ranks;
  for (const loader_files::RankFolder& rank : loader_files::find_profiler_files(folder).ranks)
    ranks.push_back(rank.rank);
  return ranks;
}

profile::Profile profile_of_folder(const std::string& folder, int rank) {
  const loader_files::ProfilerFolder found = loader_files::find_profiler_files(folder);
  const loader_files::RankFolder* wanted = found.rank(rank);
  if (wanted == nullptr)
    throw Error(folder + ": no file of rank " + std::to_string(rank) + "; " + files_looked_for());
  loader_files::RankFiles files = loader_files::read_rank(*wanted);
  files.ranks_beside = static_cast<int>(found.ranks.size());
  files.notes.insert(files.notes.end(), found.notes.begin(), found.notes.end());
  profile::Profile profile = loader_files::profile_of(files);
  add_other_ranks(found, profile);
  profile.second_opinions = second_opinions(files, profile, diagnose(profile));
  return profile;
}

std::string files_looked_for() { return loader_files::looked_for(); }

}  // namespace headrace::analysis
