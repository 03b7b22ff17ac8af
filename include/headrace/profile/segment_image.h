// A copy of a segment's live parts, checked and ready to be read at leisure.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headrace/profile/layout.h"

namespace headrace::profile {

/// Bytes of one segment at one moment. Nothing in it is trusted: `read` checks magic, version, checksum,
/// sizes and every section; indexes inside records are checked where they are used.
///
/// Reading 8 operators x 64 workers takes well under 1 ms; the writers never wait. A group that its writer
/// changed meanwhile is read again. The buffer is kept between reads. Not thread-safe.
class SegmentImage {
 public:
  SegmentImage();
  ~SegmentImage();
  SegmentImage(SegmentImage&&) noexcept;
  SegmentImage& operator=(SegmentImage&&) noexcept;

  /// Later reads include the history (tracks, words, annotations), which only timelines need;
  /// else those sections are empty.
  void include_history() noexcept { with_history_ = true; }
  /// This thread found a live segment, which its own process, or any other one of Headrace, may replace by a copy at
  /// any moment: `read_file(live_path)` reads that then.
  static void expect_copy(const std::string& live_path, const std::string& copy_path);
  /// Reads a segment: a live one by pread, or a copy (gzip). Throws SegmentError (file, reason).
  void read_file(const std::string& path);
  /// From an open file, whose name is only for messages.
  void read_descriptor(int fd, const std::string& name);
  /// Reads a segment in this process's memory.
  void read_memory(const void* data, std::size_t size);
  /// All that is held, as the file of a copy: gzip of the whole segment.
  std::vector<unsigned char> pack() const;
  /// A copy of its own of what is held now.
  SegmentImage clone() const;

  const std::string& path() const noexcept { return path_; }
  bool empty() const noexcept;

  const SegmentHeader& header() const noexcept;
  std::span<const LoaderRecord> loaders() const noexcept { return section<LoaderRecord>(Section::loaders); }
  std::span<const OperatorRecord> operators() const noexcept {
    return section<OperatorRecord>(Section::operators);
  }
  std::span<const QueueRecord> queues() const noexcept { return section<QueueRecord>(Section::queues); }
  std::span<const metrics::WorkerCell> workers() const noexcept {
    return section<metrics::WorkerCell>(Section::workers);
  }
  std::span<const metrics::OperatorCell> cells() const noexcept {
    return section<metrics::OperatorCell>(Section::cells);
  }
  std::span<const metrics::Relaxed<std::int64_t>> bins() const noexcept {
    return section<metrics::Relaxed<std::int64_t>>(Section::bins);
  }
  std::span<const metrics::RemoteCell> remotes() const noexcept {
    return section<metrics::RemoteCell>(Section::remotes);
  }
  std::span<const metrics::HistoryTrack> tracks() const noexcept {
    return section<metrics::HistoryTrack>(Section::tracks);
  }
  std::span<const metrics::HistoryWord> words() const noexcept {
    return section<metrics::HistoryWord>(Section::words);
  }
  std::span<const AnnotationName> annotations() const noexcept {
    return section<AnnotationName>(Section::annotations);
  }
  const metrics::HostCell& host() const noexcept { return section<metrics::HostCell>(Section::host).front(); }

 private:
  class SegmentBytes;
  struct Buffer;
  std::size_t unpack(const SegmentBytes& file, const Buffer& into);
  /// Checks that it is a segment of this version.
  static void read_header(const SegmentBytes& source, SegmentHeader& header);
  void read(const SegmentBytes& source);
  void read_records(const SegmentBytes& source, const SegmentHeader& header);
  void settle_groups(const SegmentBytes& source);
  void settle_tracks(const SegmentBytes& source);
  template <class ReadAgain>
  void settle(const SegmentBytes& source, const metrics::Seqlock& lock, ReadAgain&& read_again);
  template <class T>
  std::span<const T> section(Section which) const noexcept {
    const char* base = reinterpret_cast<const char*>(&header());
    return {reinterpret_cast<const T*>(base + info_of(which).offset), info_of(which).count};
  }

  std::unique_ptr<Buffer> buffer_;
  std::string path_;
  bool with_history_ = false;
};

}  // namespace headrace::profile
