#include "headrace/pipeline/item_trace.h"

#include <algorithm>

namespace headrace::pipeline {

void ItemTrace::until(std::int64_t now, What what, int stage) {
  if (now <= known_ns()) return;
  if (!parts_.empty() && parts_.back().what == what && parts_.back().stage == stage) {
    parts_.back().until_ns = now;
    return;
  }
  if (parts_.size() == kMaxParts) thin_out();
  parts_.push_back({now, what, static_cast<std::int16_t>(stage)});
}

void ItemTrace::wait_for(const ItemTrace& item, std::int64_t now, int stage) {
  until(std::min(item.began_ns_, now), What::waiting_for_worker, 0);
  for (const Part& part : item.parts_) until(std::min(part.until_ns, now), part.what, part.stage);
  until(now, What::waiting_for_worker, stage);
}

void ItemTrace::thin_out() {
  std::size_t kept = 0;
  std::int64_t began = began_ns_;
  for (std::size_t i = 0; i + 1 < parts_.size(); i += 2) {
    const Part& first = parts_[i];
    const Part& second = parts_[i + 1];
    Part both = first.until_ns - began >= second.until_ns - first.until_ns ? first : second;
    both.until_ns = second.until_ns;
    began = second.until_ns;
    parts_[kept++] = both;
  }
  if (parts_.size() % 2 != 0) parts_[kept++] = parts_.back();
  parts_.resize(kept);
}

metrics::WaitCharges ItemTrace::charges(std::int64_t asked, std::int64_t now,
                                        std::span<const int> operators) const {
  metrics::WaitCharges charges;
  charges.made_from_ns = began_ns_;
  charges.made_until_ns = known_ns();
  charges.ready = known_ns() <= asked;
  if (charges.ready) return charges;
  const auto charge = [&](std::int64_t from, std::int64_t to, What what, int stage) {
    const std::int64_t ns = std::min(to, now) - std::max(from, asked);
    if (ns <= 0) return;
    const int op = what == What::handoff || stage < 0 || static_cast<std::size_t>(stage) >= operators.size()
                       ? -1
                       : operators[static_cast<std::size_t>(stage)];
    for (std::size_t i = 0; i < charges.count; ++i) {
      if (charges.charges[i].what != what || charges.charges[i].op != op) continue;
      charges.charges[i].ns += ns;
      return;
    }
    charges.add(what, op, ns);
  };
  charge(asked, began_ns_, What::waiting_for_worker, 0);
  std::int64_t began = began_ns_;
  for (const Part& part : parts_) {
    charge(began, part.until_ns, part.what, part.stage);
    began = part.until_ns;
  }
  charge(known_ns(), now, What::handoff, -1);
  return charges;
}

}  // namespace headrace::pipeline
