#include "headrace/analysis/cluster/links.h"

#include <gtest/gtest.h>

#include <string>

#include "analysis/device/trace_builder.h"

namespace headrace::analysis::cluster {
namespace {

LinkRecord group(std::int64_t rank, const std::string& members, double bytes, double seconds) {
  return {rank, LinkForm::collective, "all_reduce", "", members, 10, bytes, seconds};
}

LinkRecord pair(std::int64_t source, std::int64_t target, double seconds, const std::string& kind = "HCCS") {
  const std::string members = std::to_string(source) + '>' + std::to_string(target);
  return {source, LinkForm::pair, kind, "", members, 1, 30e6, seconds};
}

TEST(RankTexts, AreShortAndReversible) {
  using Ranks = std::vector<std::int64_t>;
  const std::vector<std::pair<Ranks, std::string>> cases = {
      {{0, 1, 2, 3}, "0-3"}, {{0, 8, 16, 24}, "0-24/8"},        {{4}, "4"}, {{1, 9}, "1,9"},
      {{3, 1, 2}, "1-3"},    {{0, 1, 2, 8, 9, 10}, "0-2,8-10"}, {{}, ""},   {{1, 4, 9, 16}, "1,4,9,16"}};
  for (const auto& [ranks, text] : cases) {
    Ranks sorted = ranks;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(ranks_text(ranks), text);
    EXPECT_EQ(ranks_of_text(text), sorted) << text;
  }
  for (const char* text : {"x", "1-", "5-1", "1-9/0", "-3", "1-9999999999", "0-9223372036854775807/1"})
    EXPECT_TRUE(ranks_of_text(text).empty()) << text;
}

TEST(Links, ASlowGroupIsNamedBesideGroupsOfItsForm) {
  std::vector<LinkRecord> records;
  for (std::int64_t first = 0; first < 4; ++first) {
    const std::string members = std::to_string(first) + '-' + std::to_string(first + 12) + "/4";
    // One rank comes last and waits for nobody; the others wait.
    for (std::int64_t i = 0; i < 4; ++i)
      records.push_back(
          group(first + 4 * i, members, 80e6, (first == 2 ? 0.004 : 0.001) + (i == 1 ? 0 : 0.02)));
    records.push_back(group(first, members, 1000, 20e-6));
  }
  records.push_back(group(0, "0-3", 80e6, 0.0001));  // another form: neighbours
  const Links found = judge_links(records);
  ASSERT_EQ(found.links.size(), 5U);
  EXPECT_EQ(found.slow, 1U);
  const Link& slow = found.links[0];
  EXPECT_EQ(slow.members, "2-14/4");
  EXPECT_NEAR(slow.bandwidth_gbps.value(), 20, 1e-6);
  EXPECT_NEAR(slow.usual_gbps.value(), 80, 1e-6);
  EXPECT_NEAR(slow.latency_s.value(), 20e-6, 1e-12);
  EXPECT_NEAR(slow.excess_s, 10 * 0.003, 1e-9);
  EXPECT_FALSE(found.common_rank);
}

TEST(Links, ASlowPairIsNamedAndTheRankThatSlowPairsShare) {
  std::vector<LinkRecord> records;
  for (std::int64_t source = 0; source < 8; ++source) {
    for (std::int64_t target = 0; target < 8; ++target) {
      if (source != target)
        records.push_back(
            pair(source, target,
                 (source == 5 && target < 2 ? 0.004 : 0.002) + 1e-6 * static_cast<double>(source)));
    }
  }
  const Links found = judge_links(records);
  EXPECT_EQ(found.slow, 2U);
  EXPECT_EQ(found.links[0].members, "5>0");
  EXPECT_NEAR(found.links[0].excess_s, 0.002, 1e-5);
  EXPECT_EQ(found.common_rank, 5);
  EXPECT_FALSE(found.links[0].latency_s);
}

TEST(Links, AnotherTransportIsNotSlow) {
  std::vector<LinkRecord> records;
  for (std::int64_t rank = 0; rank < 6; ++rank) records.push_back(pair(rank, (rank + 1) % 6, 0.002));
  for (std::int64_t rank = 0; rank < 3; ++rank) records.push_back(pair(rank, rank + 3, 0.02, "RDMA"));
  EXPECT_EQ(judge_links(records).slow, 0U);
  EXPECT_TRUE(judge_links({}).links.empty());
}

TEST(Links, RanksOfAGroupBecomeRanksOfTheJob) {
  std::vector<LinkRecord> records;
  for (std::int64_t local = 0; local < 3; ++local) {
    const std::string own = std::to_string(local) + '>' + std::to_string(local);
    const std::string other = std::to_string(local) + '>' + std::to_string((local + 1) % 3);
    records.push_back({10 + local, LinkForm::local_pair, "LOCAL", "g", own, 1, 0, 0});
    records.push_back(
        {10 + local, LinkForm::local_pair, "HCCS", "g", other, 1, 1e6, local == 1 ? 0.004 : 0.001});
    records.push_back({10 + local, LinkForm::transit, "HCCS", "g", "", 1, 1e6, 0.001});
  }
  records.push_back({10, LinkForm::local_pair, "HCCS", "g", "0>7", 1, 1e6, 0.001});
  const Links found = judge_links(records);
  EXPECT_EQ(found.unknown, 1U);
  ASSERT_EQ(found.slow, 1U);
  EXPECT_EQ(found.links[0].members, "11>12");
  EXPECT_TRUE(std::any_of(found.links.begin(), found.links.end(),
                          [](const Link& link) { return link.members == "10-12" && !link.is_pair; }));
}

TEST(LinkRecords, OfATraceSurviveTheirText) {
  device::TraceBuilder builder;
  builder.rank(1);
  for (int step = 0; step < 4; ++step) {
    builder.step(step, 1000.0 * step, 1000);
    builder.device("kernel", "ncclDevKernel_AllReduce", 0, 1000.0 * step + 100, 50, 7, 0,
                   R"("Collective name": "allreduce", "Process Group Name": "2", "dtype": "Float", )"
                   R"("In msg nelems": 1000000, "Group size": 2, "Process Group Ranks": "[1, 3]")");
  }
  std::vector<std::string> notes;
  const std::vector<LinkRecord> records = link_records(builder.build(), nullptr, {0, 1}, notes);
  ASSERT_EQ(records.size(), 1U);
  const std::string text = to_text(records);
  EXPECT_EQ(text, "c\tall_reduce\t\t1,3\t1\t4e+06\t5e-05\n");
  std::vector<LinkRecord> read;
  add_link_records(text + "damaged\nc\ta\tb\tc\t1\t2\n\nz\ta\tb\tc\t1\t2\t3\nc\ta\tb\tc\t1\t-2\t3\n", 7,
                   read);
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].rank, 7);
  EXPECT_EQ(read[0].members, "1,3");
  EXPECT_EQ(read[0].bytes, 4e6);
  EXPECT_TRUE(link_records(builder.build(), nullptr, {}, notes).empty());
  EXPECT_TRUE(notes.empty());
}

TEST(LinkRecords, AreBounded) {
  std::vector<LinkRecord> records;
  for (std::int64_t rank = 1; rank < 1000; ++rank)
    records.push_back(pair(0, rank, 1e-6 * static_cast<double>(rank)));
  const std::string text = to_text(records);
  EXPECT_LT(text.size(), 10'000U);
  EXPECT_NE(text.find("0>999"), std::string::npos);
}

}  // namespace
}  // namespace headrace::analysis::cluster
