// Any bytes: a Profile or a FormatError; what was read can be diagnosed, printed, written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/analysis/verdict/parameters.h"
#include "headrace/analysis/what_if/what_if.h"
#include "headrace/profile/errors.h"
#include "headrace/profile/profile_json.h"
#include "headrace/report/json.h"
#include "headrace/report/page.h"
#include "headrace/report/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  headrace::profile::Profile profile;
  try {
    profile = headrace::profile::profile_from_json(text);
  } catch (const headrace::FormatError&) {
    return 0;
  }
  const headrace::analysis::Diagnosis diagnosis = headrace::analysis::diagnose(profile);
  headrace::report::to_text(profile, diagnosis, {.width = 60});
  headrace::report::page_json(profile, diagnosis);
  headrace::report::to_json(profile, diagnosis);
  // Every parameter the profile claims to have, at a value in its range and at one that is not.
  for (const headrace::analysis::Parameter& parameter : headrace::analysis::parameters_of(profile)) {
    for (const char* value : {"2", "True", "1e300"}) {
      try {
        headrace::analysis::what_if(profile, {{parameter.name, value}});
      } catch (const headrace::UsageError&) {
      }
    }
    if (size > 4096) break;
  }
  const std::string written = headrace::profile::profile_to_json(profile);
  if (headrace::profile::profile_to_json(headrace::profile::profile_from_json(written)) != written)
    std::abort();
  return 0;
}
