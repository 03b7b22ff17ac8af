// Public traces of other tools. Tests that need one are skipped where it is absent, and fail there in CI.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/tests_folder.h"

namespace headrace::trace {

/// A file of HEADRACE_CONFORMANCE_DATA, or of ../shared/data beside the checkout.
inline std::string conformance_file(const std::string& name) {
  const char* folder = std::getenv("HEADRACE_CONFORMANCE_DATA");
  const std::filesystem::path fallback = std::filesystem::path(kTestsFolder) / "../../shared/data";
  return (folder != nullptr && *folder != '\0' ? std::filesystem::path(folder) : fallback) / name;
}

}  // namespace headrace::trace

/// Leaves the test, saying so, when `path` is not there.
#define HEADRACE_NEEDS_FILE(path)                                                          \
  if (!std::filesystem::exists(path)) {                                                    \
    if (std::getenv("CI") != nullptr) FAIL() << "CI needs conformance data at " << (path); \
    GTEST_SKIP() << "no conformance data at " << (path);                                   \
  }                                                                                        \
  static_assert(true, "a semicolon follows")
