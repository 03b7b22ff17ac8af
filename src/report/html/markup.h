// Writes HTML and SVG. Neither a forgotten escape nor an element left open can be written: tags and names of
// attributes are constants of this library, everything else is escaped, and elements close with their scope.
//
//     Markup out;
//     {
//       const auto list = out.open("ul", {{"class", "names"}});
//       out.leaf("li", {{"title", name}}, shortened(name, 20));
//     }
//     out.take();   // <ul class="names"><li title="...">...</li></ul>
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace headrace::report {

/// Text that stands in the source code, and therefore needs no escaping.
class Literal {
 public:
  template <std::size_t N>
  consteval Literal(const char (&text)[N]) : text_(text, N - 1) {}
  constexpr std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

struct Attribute {
  Literal name;
  std::string value;
};
using Attributes = std::initializer_list<Attribute>;

class Markup {
 public:
  /// An open element; it closes at the end of its scope.
  class Element {
   public:
    Element(Markup& out, Literal tag) : out_(out), tag_(tag) {}
    ~Element() { out_.close(tag_); }
    Element(const Element&) = delete;
    Element& operator=(const Element&) = delete;

   private:
    Markup& out_;
    Literal tag_;
  };

  [[nodiscard]] Element open(Literal tag, Attributes attributes = {});
  /// An element with nothing but text in it.
  void leaf(Literal tag, Attributes attributes, std::string_view text);
  void leaf(Literal tag, std::string_view text) { leaf(tag, {}, text); }
  /// An element without content: <rect/>, <meta/>.
  void empty(Literal tag, Attributes attributes);
  void text(std::string_view text);
  /// As it stands: the document type, the style sheet.
  void verbatim(Literal markup) { text_ += markup.text(); }

  std::string take() { return std::move(text_); }

 private:
  void begin(Literal tag, Attributes attributes);
  void close(Literal tag);

  std::string text_;
};

}  // namespace headrace::report
