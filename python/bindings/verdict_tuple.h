// A verdict as lists of runs show it.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string_view>

#include "headrace/analysis/verdict/verdict.h"
#include "recorded_text.h"

namespace headrace::python {

/// Kind, operator and cause ("" if there is none), the loop's wait as a share of the time, the step in seconds, the
/// loader's name, and how many times as fast a faster input can make the step (None: not known).
inline pybind11::tuple verdict_tuple(const analysis::Verdict& verdict, const profile::Profile& profile) {
  const std::string_view cause = verdict.cause ? analysis::name_of(*verdict.cause) : "";
  return pybind11::make_tuple(analysis::name_of(verdict.kind), decoded(verdict.op.value_or("")), cause,
                              profile.sink.wait_share, profile.sink.step_s, decoded(profile.loader),
                              verdict.most_speedup);
}

}  // namespace headrace::python
