// Builds against an installed copy alone. Its headers bring no other library's along.
#include <cstdio>

#include "every_header.h"

#if defined(__TBB_detail__config_H) || defined(BOOST_CONFIG_HPP) || defined(NLOHMANN_JSON_VERSION_MAJOR) || \
    defined(INCLUDE_NLOHMANN_JSON_FWD_HPP_) || defined(SIMDJSON_H)
#error "an installed header includes oneTBB, Boost, nlohmann/json or simdjson"
#endif

int main() {
  using namespace headrace;
  auto numbers = pipeline::generator<int>("numbers", [](const pipeline::Shard&) -> pipeline::ItemMaker<int> {
    return [at = 0]() mutable -> std::optional<int> {
      if (at == 100) return std::nullopt;
      return at++;
    };
  });
  auto chain = std::move(numbers)
                   .map("ring", [](int item) { return 2 * item; })
                   .map("tbb", [](int item) { return item + 1; }, {.queue = pipeline::QueueChoice::tbb});
  int sum = 0;
  while (const auto item = chain.next()) sum += *item;

  profile::Profile profile;
  profile.loader = "numbers";
  const std::string text = report::to_text(profile, analysis::diagnose(profile));
  std::puts(text.c_str());
  return sum == 10'000 && text.find("numbers") != std::string::npos ? 0 : 1;
}
