// Why the device computed nothing, from a trace that was laid beside the run.
#include <algorithm>
#include <cmath>

#include "../wording.h"
#include "figures.h"
#include "headrace/analysis/words.h"
#include "sections.h"

namespace headrace::report {

using analysis::duration;
using analysis::percent;

void write_device(Markup& out, const Subject& subject) {
  if (!subject.profile.device) return;
  if (const std::vector<std::string> parts = device_part_sentences(subject.profile); !parts.empty()) {
    const auto section = out.open("section", {{"class", "ledger"}});
    out.leaf("h2", "The device's steps");
    for (const std::string& sentence : parts) out.leaf("p", {{"class", "read"}}, sentence);
  }
  if (!(subject.profile.device->idle_s >= 0)) return;
  const profile::DeviceProfile& device = *subject.profile.device;
  const auto section = out.open("section", {{"class", "ledger"}});
  out.leaf("h2", "What the device waited for");
  out.leaf("p", {{"class", "read"}}, device_idle_sentence(device, subject.profile.rank));
  const std::string steps = device_steps_sentence(subject.profile);
  if (!steps.empty()) out.leaf("p", {{"class", "read"}}, steps);
  if (!(device.idle_s > 0)) return;
  const auto table = out.open("table", {{"class", "ledger"}});
  const auto body = out.open("tbody");
  for (std::size_t i = 0; i < std::min<std::size_t>(8, device.causes.size()); ++i) {
    const profile::DeviceIdleCause& cause = device.causes[i];
    const double share = cause.idle_s / device.idle_s;
    if (!(share > 0)) continue;
    const auto row = out.open("tr");
    out.leaf("th", {{"scope", "row"}}, device_idle_words(cause));
    {
      const auto cell = out.open("td", {{"class", "picture"}});
      write_bar(out, percent(share) + " of the idle time",
                {{cause.cause == profile::IdleReason::input ? "hot" : "cool", share, ""}});
    }
    out.leaf("td", {{"class", "number"}}, duration(cause.idle_s));
    out.leaf("td", {{"class", "number"}}, percent(share));
  }
}

}  // namespace headrace::report
