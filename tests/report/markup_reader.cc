#include "report/markup_reader.h"

#include <cctype>

namespace headrace::report {
namespace {

class Reader {
 public:
  explicit Reader(const std::string& page) : page_(page) {}

  MarkupReading read() {
    if (page_.starts_with("<!doctype html>")) at_ = page_.find('>') + 1;
    while (at_ < page_.size() && out_.error.empty()) {
      if (page_[at_] == '<') {
        read_tag();
      } else {
        read_text();
      }
    }
    if (out_.error.empty() && !open_.empty()) fail("not closed: " + open_.back());
    return std::move(out_);
  }

 private:
  void fail(const std::string& what) {
    if (out_.error.empty()) out_.error = what + " at " + page_.substr(at_ < 40 ? 0 : at_ - 40, 100);
  }

  void read_text() {
    const std::size_t end = std::min(page_.find('<', at_), page_.size());
    const std::string text = page_.substr(at_, end - at_);
    if (!open_.empty() && open_.back() == "style") {
      at_ = end;
      return;
    }
    check_escaped(text);
    out_.text += text + "\n";
    at_ = end;
  }

  /// Control characters, quotes and loose ampersands are never written.
  void check_escaped(const std::string& text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      if ((c < 0x20 && c != '\n') || c == 0x7F) return fail("a control character");
      if (c == '>' || c == '"' || c == '\'') return fail("not escaped: " + text.substr(i, 20));
      if (c != '&') continue;
      const std::string entity = text.substr(i, text.find(';', i) - i + 1);
      if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;" &&
          entity != "&#39;")
        return fail("a loose &");
    }
  }

  std::string name() {
    const std::size_t begin = at_;
    while (at_ < page_.size() && (std::isalnum(static_cast<unsigned char>(page_[at_])) || page_[at_] == '-'))
      ++at_;
    return page_.substr(begin, at_ - begin);
  }

  void read_tag() {
    ++at_;
    if (page_[at_] == '/') {
      ++at_;
      const std::string closed = name();
      if (open_.empty() || open_.back() != closed) return fail("closes " + closed);
      open_.pop_back();
      if (page_[at_] != '>') return fail("no end of a tag");
      ++at_;
      return;
    }
    const std::string opened = name();
    if (opened.empty()) return fail("a loose <");
    out_.elements.push_back(opened);
    while (at_ < page_.size() && page_[at_] == ' ') {
      ++at_;
      read_attribute();
      if (!out_.error.empty()) return;
    }
    if (page_.compare(at_, 2, "/>") == 0) {
      at_ += 2;
    } else if (page_.compare(at_, 1, ">") == 0) {
      ++at_;
      open_.push_back(opened);
    } else {
      fail("no end of a tag");
    }
  }

  void read_attribute() {
    const std::string attribute = name();
    if (attribute.empty() || page_.compare(at_, 2, "=\"") != 0) return fail("no attribute");
    at_ += 2;
    const std::size_t end = page_.find('"', at_);
    if (end == std::string::npos) return fail("no end of an attribute");
    const std::string value = page_.substr(at_, end - at_);
    if (value.find('<') != std::string::npos) return fail("a < in an attribute");
    check_escaped(value);
    out_.attributes.push_back(attribute + "=" + value);
    at_ = end + 1;
  }

  const std::string& page_;
  std::size_t at_ = 0;
  std::vector<std::string> open_;
  MarkupReading out_;
};

}  // namespace

MarkupReading read_markup(const std::string& page) { return Reader(page).read(); }

}  // namespace headrace::report
