// The tokens in a loader's batches. Declared as figure.h says; part of profile.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/profile/figure.h"

namespace headrace::profile {

struct LengthBin {
  std::int64_t up_to = 0;
  double share = 0;
};

constexpr About about(Of<LengthBin>) {
  return {"LengthBin", "Sequences of a length: longer than those of the bin before, and up to this."};
}
template <class Visit>
constexpr void figures_of(Of<LengthBin>, Visit&& figure) {
  figure("up_to", &LengthBin::up_to, {"Tokens.", &kCount});
  figure("share", &LengthBin::share, {"Of all sequences."});
}

struct TokenSaving {
  std::string change;
  double saves = 0;
  std::string says;
};

constexpr About about(Of<TokenSaving>) {
  return {"TokenSaving", "What another way to form batches would save."};
}
template <class Visit>
constexpr void figures_of(Of<TokenSaving>, Visit&& figure) {
  figure("change", &TokenSaving::change,
         {"`pad_to_longest`: rows as long as the longest of their batch. `bucket`: batches of sequences of "
          "similar "
          "length. `pack`: several sequences in a row. `batch_by_tokens`: as many rows as hold a number of "
          "tokens."});
  figure(
      "saves", &TokenSaving::saves,
      {"Share of the places that a step computes, from the recorded lengths; of `batch_by_tokens`, how much "
       "smaller the largest batch gets."});
  figure("says", &TokenSaving::says, {"What to do."});
}

struct TokenProfile {
  std::uint64_t batches = 0;
  double tokens = 0;
  double places = 0;
  std::optional<double> tokens_per_s;
  double padding_share = 0;
  double rows = 0;
  double sequences_per_row = 0;
  bool fixed_width = false;
  double length_mean = 0;
  std::int64_t length_p50 = 0;
  std::int64_t length_p90 = 0;
  std::int64_t length_max = 0;
  std::vector<LengthBin> lengths;
  std::optional<double> rank_imbalance;
  std::vector<TokenSaving> savings;
};

constexpr About about(Of<TokenProfile>) {
  return {"Tokens", "Batches of language data: what is in them, from some of them (docs/watch.md)."};
}
template <class Visit>
constexpr void figures_of(Of<TokenProfile>, Visit&& figure) {
  figure("batches", &TokenProfile::batches, {"How many were looked into."});
  figure("tokens", &TokenProfile::tokens, {"Tokens in a batch, padding excluded; mean.", &kCount});
  figure("places", &TokenProfile::places, {"Places in a batch: rows times their width; mean.", &kCount});
  figure("tokens_per_s", &TokenProfile::tokens_per_s,
         {"Tokens that a second of training takes from this loader.", &kCount});
  figure("padding_share", &TokenProfile::padding_share,
         {"Part of the places without a token. The step computes them, too."});
  figure("rows", &TokenProfile::rows, {"In a batch; mean.", &kCount});
  figure("sequences_per_row", &TokenProfile::sequences_per_row,
         {"Above 1: sequences are packed. From position ids or lengths in the batch.", &kCount});
  figure("fixed_width", &TokenProfile::fixed_width, {"Whether all batches are equally wide."});
  figure("length_mean", &TokenProfile::length_mean, {"Tokens in a sequence.", &kCount});
  figure("length_p50", &TokenProfile::length_p50, {"Half of the sequences are no longer.", &kCount});
  figure("length_p90", &TokenProfile::length_p90, {"Nine of ten are no longer.", &kCount});
  figure("length_max", &TokenProfile::length_max, {"The longest.", &kCount});
  figure("lengths", &TokenProfile::lengths, {"How many are how long."});
  figure("rank_imbalance", &TokenProfile::rank_imbalance,
         {"By how much the rank with the most tokens exceeds the mean of its step, on average; the others "
          "wait for "
          "it. Null for one rank."});
  figure("savings", &TokenProfile::savings, {"The largest first; empty where nothing saves 5 %."});
}

}  // namespace headrace::profile
