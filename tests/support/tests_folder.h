// The tests' folder in the source tree: recorded profiles and other data are read from there.
#pragma once

namespace headrace {

/// Absolute.
extern const char* const kTestsFolder;

}  // namespace headrace
