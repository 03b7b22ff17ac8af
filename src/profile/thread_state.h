// Activity of another process's thread now, in words.
#pragma once

#include <string>

namespace headrace::profile {

/// "sleeps in futex_do_wait", "waits for storage in folio_wait_bit_common", "runs", "is stopped": as the
/// kernel says it, without stopping the thread; "" if it is gone.
std::string state_of_thread(int pid, int tid);

}  // namespace headrace::profile
