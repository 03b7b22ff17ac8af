// A range of the program that the user gave a name, for the timeline.
#pragma once

#include <cstdint>
#include <string_view>

namespace headrace::profile {

/// Begins a range on the calling thread. Ranges nest, up to 32 deep (deeper ones are not kept). Nothing where
/// nobody records; it never opens a run by itself. Never throws; takes a lock at the first use of a name
/// only. At most 64 names per run.
void annotate_begin(std::string_view name) noexcept;
/// Ends the innermost range of the calling thread.
void annotate_end() noexcept;

/// One range, as long as the object lives.
///
///     const Annotation annotation("augment");
class Annotation {
 public:
  explicit Annotation(std::string_view name) noexcept { annotate_begin(name); }
  ~Annotation() { annotate_end(); }
  Annotation(const Annotation&) = delete;
  Annotation& operator=(const Annotation&) = delete;
};

}  // namespace headrace::profile
