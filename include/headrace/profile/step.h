// Tells the running loops where forward begins and backward ends, so that their steps can be cut into gap,
// forward and backward, and tail (analysis/step_trace.h).
//
//     while (auto batch = batches.next()) {
//       {
//         const profile::Step step;
//         loss_of(*batch).backward();
//       }
//       optimizer.step();
//     }
#pragma once

#include "headrace/metrics/clock.h"
#include "headrace/metrics/step_marks.h"
#include "headrace/profile/annotation.h"

namespace headrace::profile {

// Each may be called by any thread, as often as it happens: of a step, the first beginning and the last end
// count. Nothing if no loop is recorded. They never throw, block or take a lock.

inline void forward_began() noexcept {
  metrics::StepMarks& marks = metrics::StepMarks::process();
  if (marks.anyone_listens()) marks.forward_began(metrics::Clock::now_ns());
}
inline void backward_ended() noexcept {
  metrics::StepMarks& marks = metrics::StepMarks::process();
  if (marks.anyone_listens()) marks.backward_ended(metrics::Clock::now_ns());
}
/// The optimizer begins: if no end of backward was marked, backward has ended by now.
inline void update_began() noexcept {
  metrics::StepMarks& marks = metrics::StepMarks::process();
  if (marks.anyone_listens()) marks.update_began(metrics::Clock::now_ns());
}

/// A block that holds forward and backward; also a range "step" on the timeline (annotation.h).
inline void step_begin() noexcept {
  annotate_begin("step");
  forward_began();
}
inline void step_end() noexcept {
  backward_ended();
  annotate_end();
}

/// A step for as long as the object lives.
class Step {
 public:
  Step() noexcept { step_begin(); }
  ~Step() { step_end(); }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
};

}  // namespace headrace::profile
