// Bytes as the files of another profiler, each behind a byte of 1: every reader refuses its file or reads it, and
// what was read can be made a profile, judged, printed and given second opinions.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "headrace/analysis/second_opinions/autotune.h"
#include "headrace/analysis/second_opinions/bottleneck_analyzer.h"
#include "headrace/analysis/second_opinions/mindinsight.h"
#include "headrace/analysis/second_opinions/second_opinions.h"
#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/loader_files/collectives_file.h"
#include "headrace/loader_files/parallel_steps_file.h"
#include "headrace/loader_files/profile_of.h"
#include "headrace/loader_files/profiler_timeline.h"
#include "headrace/profile/errors.h"
#include "headrace/profile/profile_json.h"
#include "headrace/report/html.h"
#include "headrace/report/text.h"

namespace {

using namespace headrace;
using namespace headrace::loader_files;

template <class File, class Read>
void take(std::string_view text, std::optional<File>& into, Read&& read) {
  try {
    into = read(text, "file");
  } catch (const FormatError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::array<std::string_view, 12> parts;
  for (std::string_view& part : parts) {
    const std::size_t end = std::min(rest.find('\x01'), rest.size());
    part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  RankFiles files;
  take(parts[0], files.pipeline, read_pipeline_profiling);
  if (!files.pipeline) take(parts[1], files.pipeline, read_pipeline_table);
  take(parts[1], files.summary, read_pipeline_summary);
  if (!files.summary) take(parts[1], files.summary, read_pipeline_summary_table);
  if (!files.pipeline && files.summary) files.pipeline = files.summary->as_pipeline();
  take(parts[2], files.dataset_iterator, read_batch_records);
  take(parts[3], files.device_queue, read_batch_records);
  take(parts[4], files.getnext, [](std::string_view text, const std::string& path) {
    return read_getnext(text, DeviceTicks::microseconds, path);
  });
  if (!files.getnext) take(parts[10], files.getnext, read_raw_getnext);
  take(parts[5], files.cpu, read_cpu);
  take(parts[6], files.steps, read_step_trace);
  take(parts[7], files.points, read_step_points);
  std::optional<CollectivesFile> collectives;
  take(parts[8], collectives, read_collectives);
  std::optional<ParallelStepsFile> parallel_steps;
  take(parts[9], parallel_steps, read_parallel_steps);
  with_row_names(std::string(parts[11]));
  files.has_device = size % 2 == 0;
  profile::Profile profile = profile_of(files);
  analysis::pipeline_summary(files);
  analysis::autotune_round(files);
  analysis::queue_summary(files);
  // A verdict simulates the run, which takes a hundred times as long as reading it.
  if (size % 16 != 0) return 0;
  const analysis::Diagnosis diagnosis = analysis::diagnose(profile);
  profile.second_opinions = analysis::second_opinions(files, profile, diagnosis);
  report::to_text(profile, diagnosis, {.width = 60});
  report::to_html(profile, diagnosis);
  const std::string written = profile::profile_to_json(profile);
  if (profile::profile_to_json(profile::profile_from_json(written)) != written) std::abort();
  return 0;
}
