// From figures to the page: shares that stay in their picture, numbers in attributes, bars.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "../loader_sections.h"
#include "headrace/profile/profile.h"
#include "markup.h"

namespace headrace::report {

/// Between 0 and 1, whatever was recorded; 0 if it is not finite.
double fraction(double share);

/// A length of a picture: one decimal, no exponent.
std::string length(double value);

/// "42.0%", of a share, for CSS.
std::string css_percent(double share);

/// The class of a queue's level or a worker's load: "l0" (none) to "l4" (all).
std::string level_class(double share);

/// Items in the queues of a group during one window, their mean; empty if the window does not say.
std::optional<double> mean_level(const profile::Window& window, const QueueGroup& group);

/// "0.4 of 8".
std::string level_words(const profile::QueueProfile& queue);

/// Four figures, as a table of evidence has them: "0.4205", "1.2e-05"; "-" where it is not finite.
std::string figure_words(double value);

/// A name in a picture: at most 40 columns.
std::string brief(const std::string& name);
/// A name in a table: whole, as long as that makes sense (1000 columns).
std::string whole(const std::string& name);

/// Text that begins with a small letter, as a sentence of at most 600 columns: "Run decode with 2 workers".
std::string sentence(const std::string& text);

struct BarPart {
  std::string css_class;
  double share = 0;
  std::string title;  ///< the tooltip
};

/// One horizontal bar as wide as its place, its parts from left to right in shares of it.
void write_bar(Markup& out, const std::string& label, const std::vector<BarPart>& parts);

/// What the parts of a bar mean: a swatch and a word each.
struct LegendEntry {
  std::string css_class;
  std::string word;
  std::string figure;  ///< may be empty
};
void write_legend(Markup& out, const std::vector<LegendEntry>& entries);

/// busy, blocked-in, blocked-out, idle, with their tooltips.
std::vector<BarPart> state_parts(const profile::States& states);

/// A table of text: `titles` that begin with "#" are of numbers and stand to the right. Scrolls in its place.
void write_table(Markup& out, const std::vector<std::string>& titles,
                 const std::vector<std::vector<std::string>>& rows);

}  // namespace headrace::report
