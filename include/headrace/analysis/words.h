// Numbers as sentences have them: "36.8 ms", "42 %".
#pragma once

#include <string>

namespace headrace::analysis {

/// Three figures and a unit that suits: "850 us", "36.8 ms", "2.40 s"; "-" where it is negative or not
/// finite.
std::string duration(double seconds);

/// "42 %"; below 10 % with one decimal where that says something; "-" where it is not finite.
std::string percent(double share);

/// "2.4 GB", "850 kB"; "-" where it is negative or not finite.
std::string memory_size(double bytes);

/// "1 worker", "4 workers".
std::string counted(double number, const std::string& noun);

}  // namespace headrace::analysis
