#include "markup.h"

#include "escape.h"

namespace headrace::report {

void Markup::begin(Literal tag, Attributes attributes) {
  text_ += '<';
  text_ += tag.text();
  for (const Attribute& attribute : attributes) {
    text_ += ' ';
    text_ += attribute.name.text();
    text_ += "=\"";
    text_ += escaped(attribute.value);
    text_ += '"';
  }
}

void Markup::close(Literal tag) {
  text_ += "</";
  text_ += tag.text();
  text_ += '>';
}

Markup::Element Markup::open(Literal tag, Attributes attributes) {
  begin(tag, attributes);
  text_ += '>';
  return {*this, tag};
}

void Markup::leaf(Literal tag, Attributes attributes, std::string_view text) {
  const Element element = open(tag, attributes);
  text_ += escaped(text);
}

void Markup::empty(Literal tag, Attributes attributes) {
  begin(tag, attributes);
  text_ += "/>";
}

void Markup::text(std::string_view text) { text_ += escaped(text); }

}  // namespace headrace::report
