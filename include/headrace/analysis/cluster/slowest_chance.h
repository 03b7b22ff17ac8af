// Whether one rank is the slowest more often than chance explains: a sign test.
//
//     const double z = slowest_z(19, 24, 4);        // the slowest of 4 ranks in 19 of 24 steps
//     const bool chronic = z >= chronic_z(4);       // else it may be a one-off
#pragma once

#include <cstddef>

namespace headrace::analysis::cluster {

/// How surprising it is that one of `ranks` equal ranks is the slowest in `slowest` or more of `steps` steps: the exact
/// probability of that, Binomial(steps, 1 / ranks), as the z that a normal variable exceeds with this probability.
/// (The usual (n - m p) / sqrt(m p (1 - p)) is far too large where p is small.) At most 37; 0 for fewer than two ranks
/// or no step. Pure; thread-safe.
double slowest_z(std::size_t slowest, std::size_t steps, std::size_t ranks);

/// The z above which a rank is called chronic. Chance exceeds it once in a week of training for any of the ranks, if a
/// verdict is made of each 24 seconds, three times (the whole, its last half, its last quarter). 4.4 for two ranks, 5.1
/// for 64.
double chronic_z(std::size_t ranks);

}  // namespace headrace::analysis::cluster
