// Times in which a worker cannot work: garbage collection, and the end of its part of a stream.
#pragma once

namespace headrace::profile {

/// All of them concern the calling thread and do nothing in one that records nothing. 20 to 60 ns each.

/// The interpreter's garbage collector begins and ends. Counted while a wrapped loop runs; it stays a part of
/// the operator in which it happens.
void collection_began() noexcept;
void collection_ended() noexcept;

/// This worker's part of a stream has no more items, while the loop may go on with those of other workers.
void ran_out_of_data() noexcept;
/// It has items again (the next epoch), or the worker ends.
void has_data_again() noexcept;

}  // namespace headrace::profile
