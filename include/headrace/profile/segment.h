// The memory that a run records into: created once, attached by its other processes, copied out while it
// runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "headrace/metrics/history_store.h"
#include "headrace/profile/layout.h"
#include "headrace/profile/segment_image.h"

namespace headrace::profile {

/// A mapped, writable segment. Readers of files use SegmentReader instead: they never map (a file that
/// is truncated would kill them with SIGBUS).
///
/// Only what is used takes memory: the tables that every run needs are allocated at once, records when they
/// are first given out (`back_record`), so that a full disk is an error there and no SIGBUS later.
///
/// Remaining risk: the segment is a file of mode 0600 in a folder of mode 0700, so a process of the same user
/// (or root) can still truncate it under the writer.
class Segment {
 public:
  /// Places for a new segment, tried in this order; memory of the process itself when none works.
  struct Places {
    std::string first;   ///< file path, usually below /dev/shm
    std::string second;  ///< file path in the run folder
  };

  /// Creates a segment of the current layout. Never truncates or reuses an existing file. A file system that
  /// is short (`has_room`) is passed over. Never fails: see `path()`.
  static std::unique_ptr<Segment> create(const Places& places, int rank);

  /// Maps the segment of a running job in another process. Throws SegmentError if it is none of this
  /// version.
  static std::unique_ptr<Segment> attach(const std::string& path);

  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  /// The file behind it; empty where recording goes to the process's own memory.
  const std::string& path() const noexcept { return path_; }
  /// Why the first place was not taken, and the second one where that failed too; empty when all is well.
  const std::string& problem() const noexcept { return problem_; }

  /// Gives the pages of a record their memory; false if there is no room. Before its first use.
  bool back_record(Section section, std::uint32_t index) noexcept;

  /// Records of a section that were ever given out: the rest may be a hole in the file.
  std::uint32_t given_out(Section section) noexcept {
    return std::min(header().high_water[static_cast<std::size_t>(section)].load(std::memory_order_relaxed),
                    info_of(section).count);
  }
  std::span<LoaderRecord> known_loaders() noexcept { return {loaders(), given_out(Section::loaders)}; }
  std::span<QueueRecord> known_queues() noexcept { return {queues(), given_out(Section::queues)}; }
  std::span<metrics::WorkerCell> known_workers() noexcept { return {workers(), given_out(Section::workers)}; }
  std::span<metrics::OperatorCell> known_cells() noexcept { return {cells(), given_out(Section::cells)}; }

  SegmentHeader& header() noexcept { return *static_cast<SegmentHeader*>(base_); }
  LoaderRecord* loaders() noexcept { return section<LoaderRecord>(Section::loaders); }
  OperatorRecord* operators() noexcept { return section<OperatorRecord>(Section::operators); }
  QueueRecord* queues() noexcept { return section<QueueRecord>(Section::queues); }
  metrics::WorkerCell* workers() noexcept { return section<metrics::WorkerCell>(Section::workers); }
  metrics::DeliveryRing* deliveries() noexcept { return section<metrics::DeliveryRing>(Section::deliveries); }
  metrics::OperatorCell* cells() noexcept { return section<metrics::OperatorCell>(Section::cells); }
  metrics::Relaxed<std::int64_t>* bins() noexcept {
    return section<metrics::Relaxed<std::int64_t>>(Section::bins);
  }
  metrics::HostCell& host() noexcept { return *section<metrics::HostCell>(Section::host); }

  metrics::RemoteCell* remotes() noexcept { return section<metrics::RemoteCell>(Section::remotes); }
  metrics::RemoteTraffic& remote_traffic() noexcept {
    return *section<metrics::RemoteTraffic>(Section::remote_traffic);
  }
  AnnotationName* annotations() noexcept { return section<AnnotationName>(Section::annotations); }
  metrics::HistoryStore history() noexcept;

  const void* data() const noexcept { return base_; }
  std::size_t size() const noexcept { return size_; }

  /// Writes a copy to `path`, compressed with gzip (20 to 150 kB; 1 ms). Returns "" or the reason why not;
  /// then whatever was at `path` is still there.
  std::string copy_to(const std::string& path) noexcept;

  /// Removes the file; the mapping stays.
  void unlink() noexcept;

 private:
  Segment(void* base, std::size_t size, std::string path)
      : base_(base), size_(size), path_(std::move(path)) {}

  template <class T>
  T* section(Section which) noexcept {
    return reinterpret_cast<T*>(static_cast<char*>(base_) + info_of(which).offset);
  }

  void* base_;
  std::size_t size_;
  std::string path_;
  std::string problem_;
};

/// Reads a segment's header; false if the file is none of this version.
bool read_header(int fd, SegmentHeader& header) noexcept;

/// Writes what is held to `path`, compressed with gzip. Throws Error; then whatever was at `path` is still
/// there.
void write_copy(const SegmentImage& image, const std::string& path);

}  // namespace headrace::profile
