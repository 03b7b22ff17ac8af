// The top level of a trace file: finds the events array in it and keeps the rest.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/trace/read_notes.h"
#include "trace/byte_window.h"
#include "trace/event_array.h"
#include "trace/json_walk.h"

namespace headrace::trace {

class Document {
 public:
  /// `name`: what errors call the file.
  Document(ByteWindow& window, EventArray& events, ReadNotes& notes, std::string name)
      : window_(window), events_(events), notes_(notes), name_(std::move(name)) {}

  /// Reads to the end of the top-level value; that something follows it is noted. Throws FormatError when
  /// there is no events array.
  void read();

  /// Keys besides `traceEvents`, and their values as JSON.
  std::vector<std::pair<std::string, std::string>> metadata;

 private:
  void read_object();
  void look_behind();
  void cut_off(std::string_view where);

  ByteWindow& window_;
  JsonWalk walk_{window_};
  EventArray& events_;
  ReadNotes& notes_;
  std::string name_;
  bool found_events_ = false;
};

}  // namespace headrace::trace
