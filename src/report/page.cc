#include "headrace/report/page.h"

#include <nlohmann/json.hpp>

#include "budget.h"
#include "headrace/analysis/queue_words.h"
#include "headrace/analysis/step_trace.h"
#include "headrace/analysis/verdict/diagnosis_json.h"
#include "headrace/profile/json_fields.h"
#include "headrace/profile/rank_figures.h"
#include "lane_rows.h"
#include "loader_sections.h"
#include "part_sentences.h"
#include "wording.h"
#include "worker_states.h"

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

json budget_of(const Profile& profile) {
  json rows = json::array();
  if (!is_worth_saying(profile.budget)) return rows;
  for (const profile::BudgetPart* part : rows_of(profile.budget)) {
    rows.push_back({{"part", part_words(*part)},
                    {"place", place_words(*part)},
                    {"cure", cure_words(*part)},
                    {"training", is_training(*part)},
                    {"seconds", part->seconds},
                    {"share", part->share}});
  }
  return rows;
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

/// Texts for each of a list.
template <class List, class Words>
json words_of(const List& list, Words&& words) {
  json all = json::array();
  for (const auto& each : list) all.push_back(words(each));
  return all;
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
  page["autopilot"] = words_of(profile.autopilot, change_sentence);
  page["budget"] = budget_of(profile);
  page["budget_leads"] = leads(profile.budget);
  page["wall_s"] = wall_s(profile.budget);
  page["own_s"] = profile.sink.compute_s + device_lag_s(diagnosis);
  page["tokens"] = profile.tokens ? json{{"says", token_sentences(*profile.tokens)},
                                         {"advice", token_advice(*profile.tokens)}}
                                  : json(nullptr);
  page["step"] = step_sentence(analysis::step_trace(profile));
  page["graph"] = folded_json(profile, 1);
  page["histograms"] = folded_json(profile, 4);
  page["queue_groups"] = groups_of(profile);
  page["workers"] = workers_of(profile);
  page["ledger"] = words_of(profile.stall_ledger, ledger_words);
  page["windows"] = words_of(diagnosis.windows, window_words);
  page["device_parts"] = device_part_sentences(profile);
  page["device_steps"] = device_steps_sentence(profile);
  page["device_idle"] = profile.device ? device_idle_sentence(*profile.device, profile.rank) : "";
  page["device_causes"] =
      profile.device ? words_of(profile.device->causes, device_idle_words) : json::array();
  page["ranks"] = ranks_json(profile);
  page["handoff"] = handoff_sentence(profile);
  page["transfers"] = transfer_sentences(profile);
  page["requests"] = remote_sentences(profile);
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
