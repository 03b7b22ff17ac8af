#include "headrace/loader_files/steady_files.h"

#include <algorithm>

#include "sample_range.h"

namespace headrace::loader_files {
namespace {

template <class Values>
void cut(Values& values, std::size_t begin, std::size_t end) {
  end = std::min(end, values.size());
  begin = std::min(begin, end);
  values = Values(values.begin() + static_cast<std::ptrdiff_t>(begin),
                  values.begin() + static_cast<std::ptrdiff_t>(end));
}

}  // namespace

RankFiles only_steady(const RankFiles& files) {
  RankFiles steady = files;
  if (!steady.pipeline) return steady;
  const SampleRange range = steady_samples(files);
  const std::size_t samples = files.pipeline->samples();
  for (PipelineOperator& op : steady.pipeline->operators) {
    if (op.queue) cut(op.queue->levels, range.begin, range.end);
  }
  if (!steady.cpu) return steady;
  for (auto& [id, values] : steady.cpu->raw_operators) {
    if (values.size() == samples) cut(values, range.begin, range.end);
  }
  return steady;
}

}  // namespace headrace::loader_files
