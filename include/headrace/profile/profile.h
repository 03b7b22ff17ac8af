// The recording of one wrapped loader in one rank, as plain data.
//
// A Profile is everything a verdict may rest on: it is read from a live or dead segment (snapshot.h), or from
// a saved report (profile_json.h), and means the same either way. Times are seconds here, because this is the
// form that users, JSON and Python see; the recording side (metrics/) counts nanoseconds.
//
// A figure that the machine or the loader cannot give is empty (null in JSON), never zero.
//
// Each struct is followed by the declaration of its figures (figure.h): names, units, how to read them. The
// same as a page: docs/figures.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/profile/device_profile.h"
#include "headrace/profile/figure.h"
#include "headrace/profile/handoff_profile.h"
#include "headrace/profile/host_profile.h"
#include "headrace/profile/latency.h"
#include "headrace/profile/loader_model.h"
#include "headrace/profile/operator_profile.h"
#include "headrace/profile/queue_profile.h"
#include "headrace/profile/run_findings.h"
#include "headrace/profile/sink_profile.h"
#include "headrace/profile/token_profile.h"
#include "headrace/profile/window_profile.h"

namespace headrace::profile {

/// How the framework's loader is set, as its user would write it: {"workers", "4"}, {"ordered", "True"}.
/// In JSON all of them are one object.
struct Setting {
  std::string parameter;
  std::string value;
};

struct RankFigures {
  int rank = 0;
  std::uint64_t steps = 0;
  double step_s = 0;
  double compute_s = 0;
  double wait_share = 0;
  double starved_share = 0;
  double demand_s = 0;
  std::string op;
};

constexpr About about(Of<RankFigures>) {
  return {"RankFigures", "The same loader in another rank of the run."};
}
template <class Visit>
constexpr void figures_of(Of<RankFigures>, Visit&& figure) {
  figure("rank", &RankFigures::rank, {"Its number.", &kName});
  figure("steps", &RankFigures::steps, {"Steady steps."});
  figure("step_s", &RankFigures::step_s, {"Mean of a steady step."});
  figure("compute_s", &RankFigures::compute_s, {"Mean time between two GetNext calls."});
  figure("wait_share", &RankFigures::wait_share, {"GetNext wait / time."});
  figure("starved_share", &RankFigures::starved_share, {"Part of it in which no batch was there."});
  figure("demand_s", &RankFigures::demand_s, {"Demand of its operator with the largest one."});
  figure("operator", &RankFigures::op, {"Name of that operator."});
}

struct Profile {
  std::string loader;
  std::vector<Setting> settings;
  std::optional<LoaderModel> model;
  int rank = 0;
  double elapsed_s = 0;
  std::uint64_t epochs = 0;
  Startup startup;
  SinkProfile sink;
  std::vector<OperatorProfile> operators;
  std::vector<QueueProfile> queues;
  std::vector<LedgerRow> stall_ledger;
  std::optional<Handoff> handoff;
  std::optional<HandoffEstimate> handoff_estimate;
  std::vector<Window> windows;
  std::vector<RankFigures> ranks;
  std::vector<int> slow_ranks;
  Host host;
  std::optional<DeviceProfile> device;
  std::vector<SecondOpinion> second_opinions;
  std::vector<Finding> findings;
  std::vector<BudgetPart> budget;
  std::optional<TokenProfile> tokens;
  std::vector<ParameterChange> autopilot;
  bool finished = false;
  std::vector<std::string> notes;
};

constexpr About about(Of<Profile>) { return {"Profile", "What was recorded of one loader in one rank."}; }
template <class Visit>
constexpr void figures_of(Of<Profile>, Visit&& figure) {
  figure("loader", &Profile::loader, {"Name of the loader."});
  figure("settings", &Profile::settings,
         {"How the framework's loader is set, as you would write it; empty for pipelines of your own."});
  figure("model", &Profile::model,
         {"How the framework's loader is built and set; null for pipelines of your own and for loaders that "
          "are not known."});
  figure("rank", &Profile::rank, {"Which rank of the job.", &kName});
  figure("elapsed_s", &Profile::elapsed_s, {"Steady time covered: GetNext waits and computes."});
  figure("epochs", &Profile::epochs, {"Loops begun."});
  figure("startup", &Profile::startup, {"Kept out of everything else."});
  figure("sink", &Profile::sink, {"The training loop."});
  figure("operators", &Profile::operators, {"In the order of the data flow, source first."});
  figure("queues", &Profile::queues, {"Between the operators."});
  figure("stall_ledger", &Profile::stall_ledger, {"What the awaited batches were doing."});
  figure("handoff", &Profile::handoff, {"Null where batches do not pass between processes."});
  figure("handoff_estimate", &Profile::handoff_estimate,
         {"What handing over a batch would cost with workers, for a loader without them; null where there "
          "are workers, or the batch cannot be pickled."});
  figure("windows", &Profile::windows, {"The run over time."});
  figure("ranks", &Profile::ranks, {"The other ranks of the run folder; empty where it was not read."});
  figure("slow_ranks", &Profile::slow_ranks,
         {"Ranks of the run that the others wait for, the slowest first; empty where there are none or the "
          "ranks were not compared."});
  figure("host", &Profile::host, {"The machine."});
  figure("device", &Profile::device, {"Null where no device trace was laid beside the run."});
  figure("second_opinions", &Profile::second_opinions,
         {"What other tools conclude from the same files; empty for what Headrace recorded itself."});
  figure("findings", &Profile::findings,
         {"What is wrong with the data and the training, worst first; empty where nobody watched."});
  figure("budget", &Profile::budget,
         {"Where the wall clock of the rank's run went, the largest part first; empty where it was not "
          "watched."});
  figure("tokens", &Profile::tokens, {"What language data is in the batches; null for other data."});
  figure("autopilot", &Profile::autopilot,
         {"What was set while the program trained, in its order; empty where nothing was."});
  figure("finished", &Profile::finished,
         {"Whether the loop has ended or its process is gone; false: read while it ran."});
  figure("notes", &Profile::notes, {"What could not be recorded, in words. Empty is good."});
}

/// One rank beside the others of its run.
inline RankFigures rank_figures(const Profile& profile) {
  RankFigures figures;
  figures.rank = profile.rank;
  figures.steps = profile.sink.getnext_wait.count;
  figures.step_s = profile.sink.step_s;
  figures.compute_s = profile.sink.compute_s;
  figures.wait_share = profile.sink.wait_share;
  figures.starved_share = profile.sink.starved_share;
  for (const OperatorProfile& op : profile.operators) {
    if (op.demand_s <= figures.demand_s) continue;
    figures.demand_s = op.demand_s;
    figures.op = op.name;
  }
  return figures;
}

}  // namespace headrace::profile
