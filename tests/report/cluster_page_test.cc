#include "headrace/report/cluster.h"

#include <gtest/gtest.h>

#include <string>

namespace headrace::report {
namespace {

using analysis::cluster::RankSteps;

std::vector<RankSteps> ranks_of(std::int64_t count) {
  std::vector<RankSteps> ranks;
  for (std::int64_t rank = 0; rank < count; ++rank) {
    RankSteps one{rank, {}, {}, {}};
    for (std::int64_t step = 0; step < 512; ++step) {
      one.step.push_back(step);
      one.total_s.push_back(1);
      one.own_s.push_back(
          rank == 7 && step >= 300 ? 1.0 : 0.5 + 0.001 * static_cast<double>((rank * 31 + step) % 7));
    }
    ranks.push_back(std::move(one));
  }
  return ranks;
}

ClusterPage cluster_page_of(std::int64_t count) {
  const std::vector<RankSteps> ranks = ranks_of(count);
  ClusterPage page;
  page.title = std::to_string(count) + " ranks";
  page.kind = "SLOW RANK";
  page.is_bad = true;
  page.summary = "Rank 7 is <slow>";
  page.map = analysis::cluster::heat_map(ranks);
  page.worst = analysis::cluster::heat_map(ranks, {.only = {7}});
  page.columns = {"#rank", "file"};
  page.rows = {{"7", "a&b.json"}};
  return page;
}

TEST(ClusterPage, ShowsTheLateRankAndEscapesNames) {
  const std::string html = to_html(cluster_page_of(20));
  EXPECT_NE(html.find("Rank 7 is &lt;slow&gt;"), std::string::npos);
  EXPECT_NE(html.find("a&amp;b.json"), std::string::npos);
  EXPECT_NE(html.find("<title>rank 7, steps 300 to 511: late by up to"), std::string::npos);
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("http:"), std::string::npos);
}

TEST(ClusterPage, StaysSmallForThousandsOfRanks) {
  EXPECT_LT(to_html(cluster_page_of(5000)).size(), 100'000U);
}

TEST(ClusterPage, NothingInCommonIsAPageWithoutMaps) {
  ClusterPage page;
  page.summary = "Too little";
  const std::string html = to_html(page);
  EXPECT_NE(html.find("Too little"), std::string::npos);
  EXPECT_EQ(html.find("<svg"), std::string::npos);
}

}  // namespace
}  // namespace headrace::report
