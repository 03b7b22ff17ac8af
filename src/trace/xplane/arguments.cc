#include "trace/xplane/arguments.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace headrace::trace::xplane {
namespace {

using enum ArgumentKind;

constexpr std::array<std::pair<std::string_view, ArgumentKind>, 12> kArguments = {{
    {kStepNumber, integer},
    {kProducerType, integer},
    {kProducer, integer},
    {kConsumerType, integer},
    {kConsumer, integer},
    {kIterator, integer},
    {kIteratorAbove, integer},
    {kDataset, text},
    {kParallelism, integer},
    {kLevel, integer},
    {kCapacity, integer},
    {kCores, integer},
}};

}  // namespace

std::string_view argument_of(std::string_view stat) noexcept {
  const auto* const at = std::find_if(kArguments.begin(), kArguments.end(),
                                      [&](const auto& each) { return each.first == stat; });
  return at == kArguments.end() ? std::string_view() : at->first;
}

ReadOptions with_arguments(ReadOptions options, bool of_json) {
  const auto add = [&](std::string_view name, ArgumentKind kind) {
    const bool is_there = std::any_of(options.arguments.begin(), options.arguments.end(),
                                      [&](const Argument& each) { return each.name == name; });
    if (!is_there) options.arguments.push_back({std::string(name), kind});
  };
  for (const auto& [name, kind] : kArguments) add(name, kind);
  for (const std::string_view name : {kCopyDetails, kFillDetails, kOperationKind}) {
    if (of_json) add(name, text);
  }
  if (of_json) add("correlation_id", integer);
  return options;
}

}  // namespace headrace::trace::xplane
