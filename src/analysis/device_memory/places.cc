#include "analysis/device_memory/places.h"

#include <algorithm>
#include <array>

namespace headrace::analysis::device_memory {
namespace {

constexpr std::string_view kBackward = "backward";
constexpr std::string_view kNoStack = "no stack recorded";
constexpr std::string_view kNoName = "C++ without names";

/// Functions that every stack begins with: they record it, or allocate.
constexpr std::array<std::string_view, 3> kRecorders = {"torch::unwind", "torch::CapturedTraceback", "c10::"};

/// Parts of autograd that forward runs, too.
constexpr std::array<std::string_view, 3> kForward = {"VariableType", "THPVariable", "NotImplemented"};

bool contains(std::string_view text, std::string_view part) noexcept {
  return text.find(part) != std::string_view::npos;
}

bool is_of_backward(std::string_view name) noexcept {
  return contains(name, "autograd") &&
         std::none_of(kForward.begin(), kForward.end(),
                      [&](std::string_view part) { return contains(name, part); });
}

std::string_view last_part(std::string_view path) noexcept {
  return path.substr(path.find_last_of("/\\") + 1);
}

}  // namespace

Places::Places(const memory::Snapshot& snapshot)
    : snapshot_(snapshot), of_stack_(snapshot.stacks.size(), memory::kNone) {
  kinds_.reserve(snapshot.frames.size());
  for (const memory::Frame& frame : snapshot.frames) kinds_.push_back(kind_of(frame));
}

Places::FrameKind Places::kind_of(const memory::Frame& frame) const {
  const std::string_view file = snapshot_.texts[frame.file];
  const std::string_view name = snapshot_.texts[frame.name];
  if (file.ends_with(".py")) {
    return contains(file, "/torch/") || contains(file, "\\torch\\") ? FrameKind::framework
                                                                    : FrameKind::program;
  }
  if (is_of_backward(name)) return FrameKind::autograd;
  if (name.empty() || name == "??") return FrameKind::no_name;
  for (const std::string_view recorder : kRecorders) {
    if (name.starts_with(recorder)) return FrameKind::no_name;
  }
  return FrameKind::native;
}

std::uint32_t Places::of_stack(std::uint32_t stack) {
  if (stack >= of_stack_.size() || snapshot_.stack(stack).empty()) return named(kNoStack);
  if (of_stack_[stack] == memory::kNone) of_stack_[stack] = find(stack);
  return of_stack_[stack];
}

std::uint32_t Places::find(std::uint32_t stack) {
  const memory::Frame* framework = nullptr;
  const memory::Frame* native = nullptr;
  bool backward = false;
  for (const std::uint32_t number : snapshot_.stack(stack)) {
    const memory::Frame& frame = snapshot_.frames[number];
    switch (kinds_[number]) {
      case FrameKind::program:
        return function(frame);
      case FrameKind::framework:
        if (framework == nullptr) framework = &frame;
        break;
      case FrameKind::autograd:
        backward = true;
        break;
      case FrameKind::native:
        if (native == nullptr) native = &frame;
        break;
      case FrameKind::no_name:
        break;
    }
  }
  if (backward) return named(kBackward);
  if (framework != nullptr) return function(*framework);
  if (native == nullptr) return named(kNoName);
  const std::string_view name = snapshot_.texts[native->name];
  return named(name.substr(0, name.find('(')));
}

std::uint32_t Places::function(const memory::Frame& frame) {
  const std::string_view file = snapshot_.texts[frame.file];
  std::string label(last_part(file));
  label += ':' + std::to_string(frame.line);
  const std::string_view name = snapshot_.texts[frame.name];
  if (!name.empty()) label.append(" ").append(name);
  return numbered(std::move(label), file);
}

std::uint32_t Places::numbered(std::string label, std::string_view file) {
  const auto [at, is_new] =
      numbers_.try_emplace(std::move(label), static_cast<std::uint32_t>(places_.size()));
  if (is_new) places_.push_back({at->first, std::string(file)});
  return at->second;
}

}  // namespace headrace::analysis::device_memory
