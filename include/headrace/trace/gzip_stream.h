// A byte source that inflates gzip on the way and passes anything else through.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headrace/trace/byte_source.h"

namespace headrace::trace {

/// What `compressed` holds, inflated when it begins like gzip (the name of the file is never looked at).
/// Members that follow each other are one stream, as `cat a.gz b.gz` makes them; zeros and other bytes behind
/// the last member are left alone, as gzip itself does.
///
/// A stream that ends too early or is damaged gives what could be inflated and then ends; `damage` says why.
/// Only a header that is not a gzip header is a FormatError (there is no content).
class GzipStream : public ByteSource {
 public:
  /// `name`: what errors call the stream.
  GzipStream(ByteSource& compressed, std::string name);
  ~GzipStream() override;

  std::size_t read(std::span<char> into) override;

  /// Empty while all is well, else what is wrong with the compressed stream, in plain words.
  const std::string& damage() const noexcept { return damage_; }

 private:
  enum class Mode { unknown, plain, inflating, done };
  struct Inflater;

  std::size_t inflate(std::span<char> into);
  std::size_t pass_through(std::span<char> into);
  void begin();
  bool refill();
  bool next_member();
  void give_up(std::string damage);

  ByteSource& compressed_;
  std::string name_;
  std::vector<char> input_;
  std::size_t input_begin_ = 0;
  std::size_t input_end_ = 0;
  std::uint64_t read_bytes_ = 0;
  Mode mode_ = Mode::unknown;
  std::unique_ptr<Inflater> inflater_;
  std::string damage_;
};

}  // namespace headrace::trace
