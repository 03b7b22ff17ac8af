// Whether a thread that sleeps waits for files, and on which file system. Only texts of /proc are read: a file
// system whose server is gone is never touched.
#pragma once

#include <string>
#include <string_view>

namespace headrace::profile {

/// True if `wchan`, the kernel function in which a thread sleeps where signals wake it, belongs to a file
/// system in user space or across a network.
bool waits_for_files(std::string_view wchan) noexcept;

/// The kernel function in which a thread sleeps; "" if that cannot be read.
std::string sleeps_in(int pid, int tid);

/// The type of the file system of which a thread that sleeps now reads, writes or asks for an open file; "" if it
/// is not known. May throw std::bad_alloc.
std::string file_system_in_use(int pid, int tid);

/// "sleeps in futex_do_wait", "waits for storage in folio_wait_bit_common", "runs", "is stopped": as the
/// kernel says it, without stopping the thread; "" if it is gone.
std::string state_of_thread(int pid, int tid);

}  // namespace headrace::profile
