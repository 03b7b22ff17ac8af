// Costs of copies to a device: bytes, kind of source memory, time in the copy, time without a buffer.
#pragma once

#include <cstdint>

#include "headrace/metrics/relaxed.h"

namespace headrace::metrics {

/// Copies reported by their operator. Every field adds up, so the time of an asynchronous copy may be
/// reported later than its bytes.
struct TransferRecord {
  std::int64_t copies = 0;  ///< batches
  std::int64_t bytes = 0;
  std::int64_t pinned_bytes = 0;    ///< of these, from page-locked memory
  std::int64_t pageable_bytes = 0;  ///< ... and from pageable memory; neither where pinning means nothing
  std::int64_t timed_bytes = 0;     ///< bytes of the copies whose time is in `copy_ns`
  std::int64_t copy_ns = 0;
  std::int64_t buffer_wait_ns = 0;  ///< until a buffer of the device was free
};

/// Part of an OperatorCell; all zero for operators that copy nothing. Steady loop only.
struct TransferCell {
  Relaxed<std::int64_t> copies;
  Relaxed<std::int64_t> bytes;
  Relaxed<std::int64_t> pinned_bytes;
  Relaxed<std::int64_t> pageable_bytes;
  Relaxed<std::int64_t> timed_bytes;
  Relaxed<std::int64_t> copy_ns;
  Relaxed<std::int64_t> buffer_wait_ns;

  void add(const TransferRecord& record) noexcept {
    copies.bump(record.copies);
    bytes.bump(record.bytes);
    pinned_bytes.bump(record.pinned_bytes);
    pageable_bytes.bump(record.pageable_bytes);
    timed_bytes.bump(record.timed_bytes);
    copy_ns.bump(record.copy_ns);
    buffer_wait_ns.bump(record.buffer_wait_ns);
  }
  TransferRecord read() const noexcept {
    return {copies.load(),      bytes.load(),   pinned_bytes.load(),  pageable_bytes.load(),
            timed_bytes.load(), copy_ns.load(), buffer_wait_ns.load()};
  }
  void reset() noexcept {
    for (Relaxed<std::int64_t>* field :
         {&copies, &bytes, &pinned_bytes, &pageable_bytes, &timed_bytes, &copy_ns, &buffer_wait_ns}) {
      field->store(0);
    }
  }
};

}  // namespace headrace::metrics
