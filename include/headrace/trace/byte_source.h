// Sources of a trace's bytes: a file, memory, whatever a caller can read from, and the same inflated where gzip
// compressed it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/profile/regular_file.h"

namespace headrace::trace {

/// A stream of bytes that is read once, from its beginning. Used by one thread at a time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// Puts the next bytes into `into` and returns how many; 0 means the end (or an empty `into`). May return
  /// fewer than fit. Throws FormatError when the bytes cannot be had.
  virtual std::size_t read(std::span<char> into) = 0;
};

/// A file on disk. Throws FormatError when it is no regular file, or cannot be opened or read.
class FileBytes : public ByteSource {
 public:
  /// `bytes_read`: incremented by the bytes read, to show progress; may be null.
  explicit FileBytes(std::string path, std::atomic<std::uint64_t>* bytes_read = nullptr);

  std::size_t read(std::span<char> into) override;

 private:
  std::string path_;
  profile::RegularFile file_;
  std::atomic<std::uint64_t>* bytes_read_;
};

/// Bytes that are in memory already; `bytes` must outlive this.
class MemoryBytes : public ByteSource {
 public:
  explicit MemoryBytes(std::string_view bytes) : rest_(bytes) {}

  std::size_t read(std::span<char> into) override;

 private:
  std::string_view rest_;
};

/// The first bytes of a source, which can be looked at, then all of the source. Refers to it.
class PeekedBytes : public ByteSource {
 public:
  PeekedBytes(ByteSource& source, std::size_t bytes);

  std::string_view first() const noexcept { return first_; }
  std::size_t read(std::span<char> into) override;

 private:
  ByteSource& source_;
  std::string first_;
  std::size_t given_ = 0;
};

/// Content of `compressed`, inflated when it begins like gzip (the name of the file does not matter).
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
