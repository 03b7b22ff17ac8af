// A run of the test's own, as the current one.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "headrace/profile/current.h"
#include "headrace/profile/session.h"

namespace headrace {

class CurrentRun : public testing::Test {
 protected:
  void SetUp() override {
    session_ = profile::Session::open({});
    profile::CurrentSession::push(session_);
  }
  void TearDown() override {
    profile::CurrentSession::pop(*session_);
    session_->close();
  }

  std::shared_ptr<profile::Session> session_;
};

}  // namespace headrace
