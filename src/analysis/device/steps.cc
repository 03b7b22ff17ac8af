#include "headrace/analysis/device/steps.h"

#include <vector>

#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {

Table steps(std::span<const trace::Trace> traces) {
  Rows<StepsColumns> rows;
  for (const trace::Trace& trace : traces) {
    const std::vector<trace::Step>& all = trace.steps.all();
    if (all.empty()) rows.note(trace.rank, " has no steps: call step() of the profiler after each");
    std::vector<std::vector<Work>> of_step(all.size());
    for (const Work& work : device_work(trace, Scope::everything()).work) {
      const std::int32_t step = trace.steps.step_of(work.row);
      if (step != trace::Steps::kNone) of_step[static_cast<std::size_t>(step)].push_back(work);
    }
    const bool cut_off = last_step_is_cut_off(trace);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::vector<Work>& work = of_step[i];
      rows.add(trace.rank, all[i].number, all[i].start_ns, seconds(all[i].end_ns - all[i].start_ns),
               !cut_off || i + 1 != all.size(), work.size(),
               work.empty() ? all[i].start_ns : work.front().start_ns, seconds(span_ns(work)),
               seconds(total_ns(busy(work))), seconds(total_ns(busy(work, KernelKind::computation))),
               seconds(total_ns(busy(work, KernelKind::communication))),
               seconds(total_ns(busy(work, KernelKind::memory))));
    }
  }
  return rows.take();
}

}  // namespace headrace::analysis::device
