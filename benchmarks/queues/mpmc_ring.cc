// The many-to-many kind: its tickets are its counters.
#include "headrace/queues/mpmc_ring.h"

#include "kinds.h"

namespace {

using namespace headrace::bench;
using Ring = headrace::queues::MpmcRing<std::uint64_t>;

const Entered items("items", "MpmcRing (counters)", transfer_through_kind<Ring>);
const Entered rings("rings", "MpmcRing (counters)", transfer_through_kind<Ring>);
const Entered one("one thread", "MpmcRing (counters)", alone_with_kind<Ring>);

}  // namespace
