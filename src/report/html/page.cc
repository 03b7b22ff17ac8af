#include "../budget.h"
#include "../printable.h"
#include "../wording.h"
#include "figures.h"
#include "headrace/report/html.h"
#include "headrace/version.h"
#include "markup.h"
#include "sections.h"
#include "style.h"

namespace headrace::report {
namespace {

void write_content(Markup& out, const Subject& subject, const HtmlOptions& options) {
  const bool budget_first = leads(subject.profile.budget);
  write_header(out, subject);
  write_autopilot(out, subject);
  if (budget_first) write_budget(out, subject);
  write_verdict(out, subject);
  write_advice(out, subject);
  if (!budget_first) write_budget(out, subject);
  write_curve(out, subject, options.curve);
  write_risks(out, subject);
  write_findings(out, subject);
  write_tokens(out, subject);
  write_step(out, subject);
  write_graph(out, subject);
  write_histograms(out, subject);
  write_states(out, subject);
  write_service(out, subject);
  write_time(out, subject);
  write_lanes(out, subject, options);
  write_ledger(out, subject);
  write_device(out, subject);
  write_ranks(out, subject);
  write_evidence(out, subject);
  write_opinions(out, subject);
  write_surroundings(out, subject);
  write_tables(out, subject);
}

std::string title_of(const Subject& subject) {
  return shortened(subject.profile.loader.empty() ? "loader" : subject.profile.loader, 60) + ": " +
         headline_label(subject.diagnosis.kind);
}

void write_head(Markup& out, const std::string& title) {
  const auto head = out.open("head");
  out.empty("meta", {{"charset", "utf-8"}});
  out.empty("meta", {{"http-equiv", "Content-Security-Policy"},
                     {"content",
                      "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
                      "form-action 'none'"}});
  out.empty("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  out.empty("meta", {{"name", "color-scheme"}, {"content", "light dark"}});
  out.empty("link", {{"rel", "icon"}, {"href", "data:,"}});  // or a browser asks the server for one
  out.leaf("title", title);
  out.verbatim(kPageStyle);
  out.verbatim(kStyle);
}

}  // namespace

std::string write_page(const std::string& title, bool whole_page,
                       const std::function<void(Markup&)>& content) {
  Markup out;
  const auto write_sheet = [&](Literal tag) {
    const auto sheet = out.open(tag, {{"class", "sheet"}});
    content(out);
    out.leaf("footer", "Headrace " HEADRACE_VERSION);
  };
  if (!whole_page) {
    const auto root = out.open("div", {{"class", "headrace"}});
    out.verbatim(kStyle);
    write_sheet("div");
  } else {
    out.verbatim("<!doctype html>\n");
    const auto html = out.open("html", {{"lang", "en"}});
    write_head(out, title);
    const auto body = out.open("body", {{"class", "headrace"}});
    write_sheet("main");
  }
  return out.take();
}

std::string page_style() {
  Markup out;
  out.verbatim(kPageStyle);
  out.verbatim(kStyle);
  return out.take();
}

std::string to_html(const profile::Profile& profile, const analysis::Diagnosis& recorded,
                    const HtmlOptions& options) {
  const analysis::Diagnosis diagnosis = with_short_names(profile, recorded);
  const Subject subject{profile, diagnosis};
  return write_page(title_of(subject), options.whole_page,
                    [&](Markup& out) { write_content(out, subject, options); });
}

}  // namespace headrace::report
