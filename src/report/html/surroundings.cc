// The machine, the start-up, how the loader was set.
#include <string>
#include <utility>
#include <vector>

#include "../printable.h"
#include "../wording.h"
#include "figures.h"
#include "headrace/analysis/words.h"
#include "sections.h"

namespace headrace::report {

using analysis::duration;
using analysis::memory_size;
using analysis::percent;

namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

void add_share(Facts& facts, const std::string& name, const std::optional<double>& share) {
  if (share) facts.emplace_back(name, percent(*share));
}

Facts machine_facts(const profile::Host& host, const std::optional<std::int64_t>& batch_bytes) {
  Facts facts;
  if (host.cores > 0) facts.emplace_back("cores", std::to_string(host.cores));
  add_share(facts, "CPU of this run", host.cpu_share);
  if (host.process_cpu_cores) {
    facts.emplace_back("CPU of the training loop's process", number(*host.process_cpu_cores, 2) + " cores");
  }
  add_share(facts, "CPU of others", host.foreign_cpu_share);
  add_share(facts, "of that, taken from this run", host.foreign_contention_share);
  add_share(facts, "throttled by quota", host.throttled_share);
  add_share(facts, "workers waiting for a core", host.run_queue_wait_share);
  add_share(facts, "waiting for I/O (pressure)", host.io_pressure_share);
  add_share(facts, "waiting for memory (pressure)", host.memory_pressure_share);
  add_share(facts, "interpreter lock taken", host.gil_share);
  if (host.memory) facts.emplace_back("memory", memory_size(static_cast<double>(*host.memory)));
  if (host.available_memory)
    facts.emplace_back("memory left", memory_size(static_cast<double>(*host.available_memory)));
  if (host.shared_memory)
    facts.emplace_back("shared memory left", memory_size(static_cast<double>(*host.shared_memory)));
  if (batch_bytes) facts.emplace_back("memory of a batch", memory_size(static_cast<double>(*batch_bytes)));
  return facts;
}

Facts startup_facts(const profile::Startup& startup) {
  Facts facts;
  if (startup.first_batch_s > 0) facts.emplace_back("first batch", duration(startup.first_batch_s));
  if (startup.worker_start_s > 0)
    facts.emplace_back("of that, workers starting", duration(startup.worker_start_s));
  if (startup.later_epochs_s > 0)
    facts.emplace_back("later epochs together", duration(startup.later_epochs_s));
  return facts;
}

Facts setting_facts(const std::vector<profile::Setting>& settings) {
  Facts facts;
  for (const profile::Setting& setting : settings) {
    if (facts.size() == kMaxDrawn) break;
    facts.emplace_back(shortened(setting.parameter, 40), shortened(setting.value, 60));
  }
  return facts;
}

Facts handoff_facts(const std::optional<profile::Handoff>& handoff) {
  if (!handoff || handoff->batches == 0) return {};
  return {{"batches received", std::to_string(handoff->batches)},
          {"message", memory_size(handoff->message_bytes)},
          {"tensors in shared memory", number(handoff->tensors, 1)},
          {"pickling", duration(handoff->pickle_s) + " (CPU " + duration(handoff->pickle_cpu_s) + ")"},
          {"sending", duration(handoff->send_s)},
          {"receiving", duration(handoff->receive_s) + " (CPU " + duration(handoff->receive_cpu_s) + ")"},
          {"never used", std::to_string(handoff->unused_batches)}};
}

void write_facts(Markup& out, Literal title, const Facts& facts) {
  if (facts.empty()) return;
  const auto place = out.open("div", {{"class", "facts"}});
  out.leaf("h3", title.text());
  const auto list = out.open("dl");
  for (const auto& [name, value] : facts) {
    out.leaf("dt", name);
    out.leaf("dd", value);
  }
}

}  // namespace

void write_surroundings(Markup& out, const Subject& subject) {
  const profile::Profile& profile = subject.profile;
  const Facts machine = machine_facts(profile.host, profile.sink.batch_bytes);
  const Facts startup = startup_facts(profile.startup);
  const Facts settings = setting_facts(profile.settings);
  const Facts handoff = handoff_facts(profile.handoff);
  if (machine.empty() && startup.empty() && settings.empty() && handoff.empty()) return;
  const auto section = out.open("section", {{"class", "surroundings"}});
  out.leaf("h2", "Machine and settings");
  const auto grid = out.open("div", {{"class", "columns"}});
  write_facts(out, "Machine", machine);
  write_facts(out, "Start-up, in no other figure", startup);
  write_facts(out, "Settings of the loader", settings);
  write_facts(out, "Hand-off, per batch", handoff);
}

}  // namespace headrace::report
