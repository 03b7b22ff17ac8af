// Language data in words, for text and page.
#pragma once

#include <string>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::report {

/// What is in a batch, how long sequences are, what the ranks have; a sentence each.
std::vector<std::string> token_sentences(const profile::TokenProfile& tokens);
/// What to do about it, a sentence each.
std::vector<std::string> token_advice(const profile::TokenProfile& tokens);
/// Lines of text, headed; empty for other data.
std::vector<std::string> token_section(const profile::Profile& profile, std::size_t width);

}  // namespace headrace::report
