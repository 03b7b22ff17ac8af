#include "headrace/analysis/read/shared_waits.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace headrace::analysis {
namespace {

/// Ends of function names, as CPython reports them.
constexpr std::array<std::string_view, 8> kAcquire = {
    "SemLock.__enter__", "SemLock.acquire", "lock.acquire", "lock.__enter__",
    "RLock.acquire",     "RLock.__enter__", "flock",        "lockf"};
constexpr std::array<std::string_view, 6> kReceive = {"socket.recv_into", "socket.recv", "_SSLSocket.read",
                                                      "recv_into",        "recv_bytes",  "Connection._recv"};

/// "SemLock.__enter__" of "SemLock.__enter__ (synchronize.py:95) in read (archive.py:12)".
std::string_view function_of(std::string_view text) { return text.substr(0, text.find(" (")); }

template <std::size_t N>
double share_of(const profile::OperatorProfile& op, const std::array<std::string_view, N>& ends) {
  double share = 0;
  for (const profile::FunctionShare& function : op.functions) {
    const std::string_view name =
        function_of(function.name).substr(0, function_of(function.name).find(" in "));
    if (std::any_of(ends.begin(), ends.end(), [name](std::string_view end) { return name.ends_with(end); }))
      share += function.share;
  }
  return std::min(share, 1.0);
}

}  // namespace

double lock_share(const profile::OperatorProfile& op) { return share_of(op, kAcquire); }

double peer_share(const profile::OperatorProfile& op) { return share_of(op, kReceive); }

}  // namespace headrace::analysis
