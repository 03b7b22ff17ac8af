#include "headrace/report/page.h"

#include <nlohmann/json.hpp>

#include "block.h"
#include "headrace/analysis/step_trace.h"
#include "headrace/analysis/verdict/diagnosis_json.h"
#include "headrace/analysis/words.h"
#include "headrace/profile/json_fields.h"
#include "headrace/profile/profile.h"
#include "lane_rows.h"
#include "shown_rows.h"
#include "wording.h"

namespace headrace::report {

using nlohmann::json;
using profile::Profile;

namespace {

json states_of(double busy, double blocked_in, double blocked_out, double idle) {
  return {{"busy", busy}, {"blocked_in", blocked_in}, {"blocked_out", blocked_out}, {"idle", idle}};
}

json groups_of(const Profile& profile) {
  json groups = json::array();
  for (const QueueGroup& group : queue_groups(profile.queues)) {
    const profile::QueueProfile& first = profile.queues[group.members.front()];
    const bool behind = group.members.size() == 1 && analysis::is_named_after_producer(first);
    groups.push_back({{"name", group.name},
                      {"words", behind ? group.name + " ->" : group.name},
                      {"members", group.members},
                      {"capacity", first.capacity}});
  }
  return groups;
}

json workers_of(const Profile& profile) {
  json workers = json::array();
  for (const WorkerRow& row : worker_rows(profile)) {
    workers.push_back({{"name", "worker " + std::to_string(row.id)},
                       {"shard", row.shard},
                       {"batches", row.batches},
                       {"batch_s", row.batch_s()},
                       {"busy_s", row.busy_s},
                       {"cpu_s", row.cpu_known ? json(row.cpu_s) : json(nullptr)},
                       {"states", states_of(row.states.busy, row.states.blocked_in, row.states.blocked_out,
                                            row.states.idle)}});
  }
  return workers;
}

/// Queues of a kind as one, as the profile has them.
json folded_json(const Profile& profile, std::size_t most_equal) {
  Profile of_queues;
  of_queues.queues = folded(profile.queues, most_equal);
  return profile::to_json(of_queues)["queues"];
}

/// All ranks, this one behind the others.
json ranks_json(const Profile& profile) {
  Profile of_ranks;
  of_ranks.ranks = profile.ranks;
  of_ranks.ranks.push_back(profile::rank_figures(profile));
  return profile::to_json(of_ranks)["ranks"];
}

/// Without the lists that no page shows.
json shown_of(const Profile& profile) {
  json shown = profile::to_json(profile);
  shown["sink"].erase("sequence");
  for (json& op : shown["operators"]) {
    for (json& worker : op["per_worker"]) worker.erase("sequence");
  }
  for (json& queue : shown["queues"]) queue.erase("occupancy");
  return shown;
}

}  // namespace

std::string page_json(const Profile& profile, const analysis::Diagnosis& recorded,
                      const PageOptions& options) {
  const analysis::Diagnosis diagnosis = with_short_names(profile, recorded);
  json page{{"profile", shown_of(profile)}, {"diagnosis", analysis::to_json(diagnosis)}};
  page["covered"] = covered(profile);
  page["settings"] = settings_line(profile, 400);
  page["label"] = headline_label(diagnosis.kind);
  page["begins_with_a_name"] = begins_with_a_name(profile, diagnosis.summary);
  page["explanation"] = explanation(profile, diagnosis);
  page["budget_leads"] = budget_leads(profile);
  page["own_s"] = profile.sink.compute_s + device_lag_s(diagnosis);
  page["step"] = step_sentence(analysis::step_trace(profile));
  page["graph"] = folded_json(profile, 1);
  page["histograms"] = folded_json(profile, 4);
  page["queue_groups"] = groups_of(profile);
  page["workers"] = workers_of(profile);
  page["windows"] = json::array();
  for (const analysis::VerdictWindow& window : diagnosis.windows)
    page["windows"].push_back(window_words(window));
  page["blocks"] = {{"autopilot", json_of(autopilot_block(profile))},
                    {"budget", json_of(budget_block(profile))},
                    {"risks", json_of(risk_block(diagnosis))},
                    {"findings", json_of(finding_block(profile))},
                    {"tokens", json_of(token_block(profile))},
                    {"ledger", json_of(ledger_block(profile, diagnosis))},
                    {"device_steps", json_of(device_steps_block(profile))},
                    {"device_idle", json_of(device_idle_block(profile))},
                    {"evidence", json_of(evidence_block(profile, diagnosis))},
                    {"opinions", json_of(opinion_block(profile))}};
  page["ranks"] = ranks_json(profile);
  page["lanes"] = lanes_json(profile, options);
  page["limits"] = json::array();
  for (std::size_t i = 0; i < diagnosis.advice.size(); ++i) {
    const analysis::Advice& advice = diagnosis.advice[i];
    page["limits"].push_back(limit_after(diagnosis, i));
    page["diagnosis"]["advice"][i]["from"] = profile::as_written(advice.from);
    page["diagnosis"]["advice"][i]["to"] = profile::as_written(advice.to);
  }
  page["states"] = json::array();
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    const ShownStates shown = shown_states(profile, i);
    page["states"].push_back(
        states_of(shown.busy, shown.blocked_in, shown.blocked_out, profile.operators[i].states.idle));
    page["states"].back()["elsewhere"] = shown.known ? json(shown.elsewhere) : json(nullptr);
  }
  return profile::dump_json(page, -1);
}

}  // namespace headrace::report
