// The text of a file that a GzipWriter wrote.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "headrace/trace/byte_source.h"

namespace headrace::timeline {

inline std::string read_back(const std::string& path) {
  trace::FileBytes bytes(path);
  trace::GzipStream inflated(bytes, path);
  std::string text;
  std::string part(1 << 16, '\0');
  for (std::size_t got = 0; (got = inflated.read(part)) > 0;) text.append(part, 0, got);
  EXPECT_EQ(inflated.damage(), "");
  return text;
}

}  // namespace headrace::timeline
