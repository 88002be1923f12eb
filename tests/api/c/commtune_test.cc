#include "api/c/commtune.h"

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

extern "C" const char* name_of_a_code_in_c(void);

namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::StrEq;

/// Ranks as threads, which tell each other what they know by memory.
class Meeting {
 public:
  explicit Meeting(int ranks) : records_(static_cast<std::size_t>(ranks)), barrier_(ranks) {}

  void gather(int rank, const void* own, std::size_t bytes, void* all) {
    records_[static_cast<std::size_t>(rank)].assign(static_cast<const char*>(own), bytes);
    barrier_.arrive_and_wait();
    std::size_t place = 0;
    for (const std::string& record : records_) {
      std::memcpy(static_cast<char*>(all) + place, record.data(), record.size());
      place += record.size();
    }
    barrier_.arrive_and_wait();
  }

 private:
  std::vector<std::string> records_;
  std::barrier<> barrier_;
};

struct Member {
  Meeting& meeting;
  int rank = 0;
  static int all_gather(void* context, const void* own, std::size_t bytes, void* all) {
    auto& member = *static_cast<Member*>(context);
    member.meeting.gather(member.rank, own, bytes, all);
    return 0;
  }
};

commtune_join_options options_of(Member& member, int ranks) {
  commtune_join_options options{};
  options.rank = member.rank;
  options.ranks = ranks;
  options.all_gather = Member::all_gather;
  options.context = &member;
  options.timeout_seconds = 100;
  return options;
}

void on_ranks(int ranks, const std::function<void(int rank, commtune_session*)>& body,
              const std::function<void(commtune_join_options&)>& change = {}) {
  Meeting meeting(ranks);
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Member member{meeting, rank};
      commtune_join_options options = options_of(member, ranks);
      if (change) change(options);
      commtune_session* session = nullptr;
      ASSERT_EQ(commtune_join(&options, &session), COMMTUNE_OK) << commtune_last_message();
      body(rank, session);
      commtune_destroy(session);
    });
  }
}

constexpr std::array kTensors = {commtune_tensor{"a.weight", 4000}, commtune_tensor{"a.bias", 40},
                                 commtune_tensor{"b.weight", 8000}, commtune_tensor{"b.bias", 4}};

void lay_out(commtune_session* session) {
  ASSERT_EQ(commtune_layout(session, COMMTUNE_FLOAT32, kTensors.size(), kTensors.data(), nullptr),
            COMMTUNE_OK)
      << commtune_last_message();
}

std::span<float> gradient(commtune_session* session, std::size_t tensor) {
  return {static_cast<float*>(commtune_gradient(session, tensor)), kTensors[tensor].bytes / sizeof(float)};
}

/// Gradients are (rank + 1) x (tensor + 1): the mean over n ranks is (n + 1) / 2 x (tensor + 1).
void step(commtune_session* session, int rank, float mean) {
  ASSERT_EQ(commtune_begin(session), COMMTUNE_OK) << commtune_last_message();
  for (std::size_t tensor = kTensors.size(); tensor-- > 0;) {
    for (float& value : gradient(session, tensor))
      value = static_cast<float>(rank + 1) * static_cast<float>(tensor + 1);
    ASSERT_EQ(commtune_ready(session, tensor), COMMTUNE_OK) << commtune_last_message();
  }
  for (std::size_t tensor = 0; tensor < kTensors.size(); ++tensor) {
    ASSERT_EQ(commtune_wait(session, tensor), COMMTUNE_OK) << commtune_last_message();
    int back = 0;
    ASSERT_EQ(commtune_is_back(session, tensor, &back), COMMTUNE_OK);
    EXPECT_EQ(back, 1);
    std::array<unsigned char, kTensors.size()> all{};
    ASSERT_EQ(commtune_are_back(session, all.size(), all.data()), COMMTUNE_OK);
    EXPECT_EQ(all[tensor], 1);
    EXPECT_THAT(gradient(session, tensor), Each(FloatEq(mean * static_cast<float>(tensor + 1))));
  }
}

std::string plan_by(commtune_session* session, const commtune_bucket_options& options) {
  char* json = nullptr;
  EXPECT_EQ(commtune_bucket_plan(session, &options, &json), COMMTUNE_OK) << commtune_last_message();
  std::string text = json == nullptr ? "" : json;
  commtune_free(json);
  return text;
}

TEST(CommtuneInC, GradientsAreMeansUnderPlansThatTakeTurns) {
  on_ranks(3, [](int rank, commtune_session* session) {
    lay_out(session);
    for (const int servers : {0, 2, 0}) {
      commtune_bucket_options options{};
      options.first_bytes = options.bytes = 2000;
      options.servers = servers;
      options.per_layer = servers > 0 ? 1 : 0;
      const std::string plan = plan_by(session, options);
      // Rank 0 says which; of the others one says nothing, one the same.
      ASSERT_EQ(commtune_adopt(session, rank == 1 ? nullptr : plan.c_str()), COMMTUNE_OK)
          << commtune_last_message();
      EXPECT_EQ(std::strlen(commtune_plan_digest(session)), 16U);
      for (int i = 0; i < 5; ++i) step(session, rank, 2.0F);
    }
    commtune_statistics statistics{};
    ASSERT_EQ(commtune_get_statistics(session, &statistics), COMMTUNE_OK);
    EXPECT_EQ(statistics.iterations, 15U);
    EXPECT_EQ(statistics.gradient_bytes, 12044U);
    EXPECT_EQ(statistics.messages, 2U);  // b.bias and b.weight; a.bias and a.weight
    std::array<commtune_message_times, 1> times{};
    std::size_t count = 0;
    ASSERT_EQ(commtune_get_message_times(session, times.size(), times.data(), &count), COMMTUNE_OK);
    EXPECT_EQ(count, 2U);
    EXPECT_LE(0, times[0].queued);
    EXPECT_LE(times[0].queued, times[0].distributed);
    EXPECT_EQ(commtune_leave(session), COMMTUNE_OK) << commtune_last_message();
  });
}

TEST(CommtuneInC, MemoryThatTheCallerBringsIsUsed) {
  on_ranks(2, [](int rank, commtune_session* session) {
    std::array<std::vector<float>, kTensors.size()> own;
    std::array<void*, kTensors.size()> memory{};
    for (std::size_t i = 0; i < own.size(); ++i) {
      own[i].resize(kTensors[i].bytes / sizeof(float));
      memory[i] = own[i].data();
    }
    ASSERT_EQ(commtune_layout(session, COMMTUNE_FLOAT32, kTensors.size(), kTensors.data(), memory.data()),
              COMMTUNE_OK);
    EXPECT_EQ(commtune_gradient(session, 2), own[2].data());
    ASSERT_EQ(commtune_adopt(session, "buckets"), COMMTUNE_OK) << commtune_last_message();
    step(session, rank, 1.5F);
    ASSERT_EQ(commtune_leave(session), COMMTUNE_OK);
  });
}

TEST(CommtuneInC, MemoryThatItHandsOutLiesLastTensorFirstWithoutGaps) {
  on_ranks(1, [](int, commtune_session* session) {
    lay_out(session);
    for (std::size_t i = 0; i + 1 < kTensors.size(); ++i) {
      const auto later = gradient(session, i + 1);
      EXPECT_EQ(later.data() + later.size(), gradient(session, i).data());
    }
    EXPECT_EQ(commtune_gradient(session, kTensors.size()), nullptr);
    EXPECT_EQ(std::strlen(commtune_layout_digest(session)), 16U);
    EXPECT_EQ(commtune_rank(session), 0);
    EXPECT_EQ(commtune_ranks(session), 1);
    EXPECT_EQ(commtune_rank(nullptr), -1);
    ASSERT_EQ(commtune_adopt(session, "buckets"), COMMTUNE_OK);
    ASSERT_EQ(commtune_leave(session), COMMTUNE_OK);
  });
}

TEST(CommtuneInC, AnyThreadMaySayReadyAndWait) {
  on_ranks(2, [](int rank, commtune_session* session) {
    lay_out(session);
    commtune_bucket_options options{};
    options.first_bytes = options.bytes = 1;
    options.per_layer = 1;
    ASSERT_EQ(commtune_adopt(session, plan_by(session, options).c_str()), COMMTUNE_OK);
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(commtune_begin(session), COMMTUNE_OK);
      std::vector<std::jthread> threads;
      threads.reserve(2 * kTensors.size());
      for (std::size_t tensor = 0; tensor < kTensors.size(); ++tensor) {
        for (float& value : gradient(session, tensor)) value = static_cast<float>(rank + 1);
        threads.emplace_back([=] { EXPECT_EQ(commtune_ready(session, tensor), COMMTUNE_OK); });
        threads.emplace_back([=] { EXPECT_EQ(commtune_wait(session, tensor), COMMTUNE_OK); });
      }
      threads.clear();
      EXPECT_THAT(gradient(session, 0), Each(FloatEq(1.5F)));
    }
    ASSERT_EQ(commtune_leave(session), COMMTUNE_OK);
  });
}

TEST(CommtuneInC, WhoHasABarrierOfHisOwnWaitsForOneGradientUnderAFullBarrierToo) {
  const auto own = [](commtune_join_options& options) { options.own_barrier = 1; };
  on_ranks(
      2,
      [](int rank, commtune_session* session) {
        lay_out(session);
        commtune_bucket_options options{};
        options.first_bytes = options.bytes = 1;
        const std::string plan = plan_by(session, options);
        EXPECT_THAT(plan, HasSubstr(R"("barrier":"full")"));
        ASSERT_EQ(commtune_adopt(session, plan.c_str()), COMMTUNE_OK);
        ASSERT_EQ(commtune_begin(session), COMMTUNE_OK);
        ASSERT_EQ(commtune_ready(session, 3), COMMTUNE_OK);
        ASSERT_EQ(commtune_wait(session, 3), COMMTUNE_OK) << commtune_last_message();
        int back = 1;
        ASSERT_EQ(commtune_is_back(session, 0, &back), COMMTUNE_OK);
        EXPECT_EQ(back, 0);
        for (const std::size_t tensor : {2, 1, 0}) ASSERT_EQ(commtune_ready(session, tensor), COMMTUNE_OK);
        for (const std::size_t tensor : {0, 1, 2}) ASSERT_EQ(commtune_wait(session, tensor), COMMTUNE_OK);
        step(session, rank, 1.5F);
        ASSERT_EQ(commtune_leave(session), COMMTUNE_OK);
      },
      own);
}

TEST(CommtuneInC, TwoSessionsLiveInOneProcess) {
  const auto job = [] {
    on_ranks(2, [](int rank, commtune_session* session) {
      lay_out(session);
      ASSERT_EQ(commtune_adopt(session, "buckets"), COMMTUNE_OK);
      for (int i = 0; i < 20; ++i) step(session, rank, 1.5F);
      ASSERT_EQ(commtune_leave(session), COMMTUNE_OK);
    });
  };
  const std::jthread other(job);
  job();
}

TEST(CommtuneInC, ADedicatedServerServesUntilTheWorkersLeave) {
  Meeting meeting(3);
  std::vector<std::jthread> threads;
  threads.reserve(3);
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      Member member{meeting, rank};
      commtune_join_options options = options_of(member, 3);
      options.workers = 2;
      commtune_session* session = nullptr;
      ASSERT_EQ(commtune_join(&options, &session), COMMTUNE_OK);
      lay_out(session);
      if (rank == 2) {
        EXPECT_EQ(commtune_gradient(session, 0), nullptr);
        EXPECT_EQ(commtune_serve(session), COMMTUNE_OK) << commtune_last_message();
      } else {
        commtune_bucket_options buckets{};
        buckets.servers = 1;
        std::string plan = plan_by(session, buckets);
        const std::size_t place = plan.find("colocated");
        ASSERT_NE(place, std::string::npos) << plan;
        plan.replace(place, std::strlen("colocated"), "dedicated");
        ASSERT_EQ(commtune_adopt(session, plan.c_str()), COMMTUNE_OK) << commtune_last_message();
        for (int i = 0; i < 3; ++i) step(session, rank, 1.5F);
        EXPECT_EQ(commtune_serve(session), COMMTUNE_BAD_CALL);
        EXPECT_EQ(commtune_leave(session), COMMTUNE_OK) << commtune_last_message();
      }
      commtune_destroy(session);
    });
  }
}

TEST(CommtuneInC, APlanThatDoesNotSuitIsRefusedOnAllRanksAndTheOneBeforeGoesOn) {
  on_ranks(2, [](int rank, commtune_session* session) {
    lay_out(session);
    ASSERT_EQ(commtune_adopt(session, "buckets"), COMMTUNE_OK);
    const std::string digest = commtune_plan_digest(session);
    std::string plan = plan_by(session, {});
    const std::size_t place = plan.find("\"workers\":2");
    ASSERT_NE(place, std::string::npos) << plan;
    plan.replace(place, 11, "\"workers\":3");
    EXPECT_EQ(commtune_adopt(session, rank == 0 ? plan.c_str() : nullptr), COMMTUNE_PLAN_REFUSED);
    EXPECT_THAT(commtune_last_message(), HasSubstr("the plan is for 3 workers"));
    EXPECT_EQ(commtune_plan_digest(session), digest);
    step(session, rank, 1.5F);
    ASSERT_EQ(commtune_leave(session), COMMTUNE_OK);
  });
}

void on_ranks_with_announced_plans(int ranks, const std::function<void(int rank, commtune_session*)>& body) {
  on_ranks(ranks, body, [](commtune_join_options& options) { options.announced_plans = 1; });
}

TEST(CommtuneInC, APlanThatRankZeroAnnouncesIsAdoptedByAllInTheSameStep) {
  on_ranks_with_announced_plans(3, [](int rank, commtune_session* session) {
    lay_out(session);
    commtune_bucket_options options{};
    options.servers = 2;
    const std::string servers = plan_by(session, options);
    ASSERT_EQ(commtune_adopt(session, rank == 0 ? "buckets" : nullptr), COMMTUNE_OK);
    const std::string before = commtune_plan_digest(session);
    for (int i = 0; i < 2; ++i) step(session, rank, 2.0F);
    std::uint64_t first = 5;
    if (rank == 0) {
      ASSERT_EQ(commtune_announce(session, servers.c_str(), &first), COMMTUNE_OK) << commtune_last_message();
      std::uint64_t again = 0;
      EXPECT_EQ(commtune_announce(session, servers.c_str(), &again), COMMTUNE_BAD_CALL);
      EXPECT_THAT(commtune_last_message(), HasSubstr("a plan is announced already"));
    }
    for (std::uint64_t i = 3; i < 10; ++i) {
      step(session, rank, 2.0F);
      EXPECT_EQ(commtune_plan_digest(session) == before, i < first) << "step " << i;
    }
    EXPECT_THAT(commtune_refusal(session), StrEq(""));
    EXPECT_EQ(commtune_leave(session), COMMTUNE_OK) << commtune_last_message();
  });
}

TEST(CommtuneInC, AnAnnouncementThatIsWrongSaysWhyAndEndsNothing) {
  on_ranks(2, [](int rank, commtune_session* session) {
    lay_out(session);
    ASSERT_EQ(commtune_adopt(session, rank == 0 ? "buckets" : nullptr), COMMTUNE_OK);
    std::uint64_t first = 0;
    EXPECT_EQ(commtune_announce(session, "buckets", &first), COMMTUNE_BAD_CALL);
    EXPECT_THAT(commtune_last_message(),
                HasSubstr(rank == 0 ? "announced_plans" : "only rank 0 may announce a plan"));
    EXPECT_EQ(commtune_announce(session, nullptr, &first), COMMTUNE_BAD_CALL);
    step(session, rank, 1.5F);
    EXPECT_EQ(commtune_leave(session), COMMTUNE_OK);
  });
}

TEST(CommtuneInC, APlanForAnotherTransportIsRefused) {
  on_ranks(2, [](int rank, commtune_session* session) {
    lay_out(session);
    std::string plan = plan_by(session, {});
    plan.insert(1, "\"transport\":\"verbs\",");
    EXPECT_EQ(commtune_adopt(session, rank == 0 ? plan.c_str() : nullptr), COMMTUNE_PLAN_REFUSED);
    EXPECT_THAT(commtune_last_message(),
                HasSubstr("the plan is for transport verbs: this session was joined over tcp"));
    ASSERT_EQ(commtune_adopt(session, rank == 0 ? "buckets" : nullptr), COMMTUNE_OK);
    step(session, rank, 1.5F);
    EXPECT_EQ(commtune_leave(session), COMMTUNE_OK);
  });
}

TEST(CommtuneInC, CallsThatAreWrongSayWhyAndEndNothing) {
  commtune_session* none = nullptr;
  EXPECT_EQ(commtune_join(nullptr, &none), COMMTUNE_BAD_CALL);
  EXPECT_EQ(commtune_begin(nullptr), COMMTUNE_BAD_CALL);
  EXPECT_THAT(commtune_last_message(), HasSubstr("session is NULL"));
  commtune_destroy(nullptr);
  on_ranks(1, [](int rank, commtune_session* session) {
    EXPECT_EQ(commtune_adopt(session, "buckets"), COMMTUNE_BAD_CALL);
    EXPECT_THAT(commtune_last_message(), HasSubstr("commtune_layout() comes first"));
    const commtune_tensor odd{"odd", 6};
    EXPECT_EQ(commtune_layout(session, COMMTUNE_FLOAT32, 1, &odd, nullptr), COMMTUNE_BAD_CALL);
    EXPECT_THAT(commtune_last_message(), StrEq("tensors[0].bytes = 6: must be a positive multiple of 4"));
    lay_out(session);
    EXPECT_EQ(commtune_begin(session), COMMTUNE_BAD_CALL);
    EXPECT_EQ(commtune_ready(session, 0), COMMTUNE_BAD_CALL);
    EXPECT_EQ(commtune_adopt(session, nullptr), COMMTUNE_BAD_CALL);
    EXPECT_EQ(commtune_adopt(session, "/no/such/plan.json"), COMMTUNE_BAD_CALL);
    EXPECT_THAT(commtune_last_message(), HasSubstr("/no/such/plan.json: No such file"));
    EXPECT_EQ(commtune_adopt(session, R"({"format": "commtune/plan/1")"), COMMTUNE_BAD_CALL);
    const std::string answer = R"({"id": 7, "plan": )" + plan_by(session, {}) + "}";
    ASSERT_EQ(commtune_adopt(session, answer.c_str()), COMMTUNE_OK) << commtune_last_message();
    EXPECT_EQ(commtune_ready(session, 4), COMMTUNE_BAD_CALL);
    EXPECT_THAT(commtune_last_message(), HasSubstr("tensor = 4: must be less than 4"));
    unsigned char one = 0;
    EXPECT_EQ(commtune_are_back(session, 1, &one), COMMTUNE_BAD_CALL);
    EXPECT_THAT(commtune_last_message(), HasSubstr("tensors = 1: must be 4"));
    EXPECT_EQ(commtune_ready_after(session, 0, nullptr), COMMTUNE_BAD_CALL);
    EXPECT_THAT(commtune_last_message(), HasSubstr("gradients lie in the host's memory"));
    step(session, rank, 1.0F);
    ASSERT_EQ(commtune_leave(session), COMMTUNE_OK);
  });
}

TEST(CommtuneInC, RanksThatDifferInATensorAllHearWhich) {
  on_ranks(2, [](int rank, commtune_session* session) {
    const commtune_tensor tensor{rank == 0 ? "weight" : "bias", 8};
    EXPECT_EQ(commtune_layout(session, COMMTUNE_FLOAT32, 1, &tensor, nullptr), COMMTUNE_CONFLICT);
    EXPECT_THAT(commtune_last_message(), AllOf(HasSubstr("weight of 8 B"), HasSubstr("bias of 8 B")));
  });
}

TEST(CommtuneInC, ARankThatAbortsIsNamedWithItsReasonAndTheSessionStaysOver) {
  on_ranks(3, [](int rank, commtune_session* session) {
    lay_out(session);
    ASSERT_EQ(commtune_adopt(session, "buckets"), COMMTUNE_OK);
    if (rank == 2) return commtune_abort(session, "out of memory");
    // On a busy machine it is known before the iteration begins.
    if (const int begun = commtune_begin(session); begun != COMMTUNE_PEER_LOST) {
      ASSERT_EQ(begun, COMMTUNE_OK);
      for (std::size_t tensor = 0; tensor < kTensors.size(); ++tensor) commtune_ready(session, tensor);
      ASSERT_EQ(commtune_wait_all(session), COMMTUNE_PEER_LOST);
    }
    const std::string first = commtune_last_message();
    EXPECT_THAT(first, AllOf(HasSubstr("rank 2"), HasSubstr("out of memory")));
    EXPECT_EQ(commtune_leave(session), COMMTUNE_PEER_LOST);
    EXPECT_EQ(commtune_last_message(), first);
  });
}

TEST(CommtuneInC, AFailedAllGatherIsAnError) {
  commtune_join_options options{};
  options.ranks = 2;
  options.all_gather = [](void*, const void*, std::size_t, void*) { return 3; };
  commtune_session* session = nullptr;
  EXPECT_EQ(commtune_join(&options, &session), COMMTUNE_UNAVAILABLE);
  EXPECT_THAT(commtune_last_message(), StrEq("all_gather returned 3"));
  EXPECT_EQ(session, nullptr);
  options.transport = "pigeon";
  options.ranks = 1;
  options.all_gather = [](void*, const void* own, std::size_t bytes, void* all) {
    std::memcpy(all, own, bytes);
    return 0;
  };
  EXPECT_EQ(commtune_join(&options, &session), COMMTUNE_UNAVAILABLE);
  EXPECT_THAT(commtune_last_message(), HasSubstr("pigeon"));
}

constexpr const char* kProfile =
    R"({"format": "commtune/profile/1", "model": "small", "batch": 1, "data_type": "float32",
        "origin": {"how": "derived"}, "layers": [
         {"name": "a", "forward_seconds": 0.001, "backward_seconds": 0.002,
          "tensors": [{"name": "a.weight", "bytes": 4000}, {"name": "a.bias", "bytes": 40}]},
         {"name": "b", "forward_seconds": 0.001, "backward_seconds": 0.002,
          "tensors": [{"name": "b.weight", "bytes": 8000}, {"name": "b.bias", "bytes": 4}]}]})";

/// What rank 0 of two is told of their network.
std::string probed() {
  constexpr int kRanks = 2;
  std::string cluster;
  Meeting meeting(kRanks);
  std::vector<std::jthread> threads;
  threads.reserve(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      Member member{meeting, rank};
      const commtune_join_options join = options_of(member, kRanks);
      commtune_probe_options options{};
      options.cluster = "threads";
      options.budget_seconds = 8;
      options.profile = rank == 0 ? kProfile : nullptr;
      char* json = nullptr;
      ASSERT_EQ(commtune_probe(&join, &options, &json), COMMTUNE_OK) << commtune_last_message();
      ASSERT_EQ(json != nullptr, rank == 0);
      if (rank == 0) cluster = json;
      commtune_free(json);
    });
  }
  threads.clear();
  return cluster;
}

TEST(CommtuneInC, RanksMeasureTheirNetworkAndGetAPlanThatTheirSessionAdopts) {
  const std::string cluster = probed();
  EXPECT_THAT(cluster, AllOf(HasSubstr(R"("name":"threads")"), HasSubstr(R"("transport":"tcp")")));
  std::string plans[2];
  for (const bool full : {false, true}) {
    char* plan = nullptr;
    double seconds = 0;
    ASSERT_EQ(commtune_plan(kProfile, cluster.c_str(), 2, full ? 1 : 0, &plan, &seconds), COMMTUNE_OK)
        << commtune_last_message();
    EXPECT_GE(seconds, 0.006);
    plans[full ? 1 : 0] = plan;
    commtune_free(plan);
  }
  EXPECT_THAT(plans[1], HasSubstr(R"("barrier":"full")"));
  on_ranks(2, [&](int rank, commtune_session* session) {
    lay_out(session);
    for (const std::string& plan : plans) {
      ASSERT_EQ(commtune_adopt(session, plan.c_str()), COMMTUNE_OK) << commtune_last_message();
      step(session, rank, 1.5F);
    }
    ASSERT_EQ(commtune_leave(session), COMMTUNE_OK) << commtune_last_message();
  });
}

TEST(CommtuneInC, WhatCannotBePlannedIsNamed) {
  char* plan = nullptr;
  EXPECT_EQ(commtune_plan("{", "{}", 2, 0, &plan, nullptr), COMMTUNE_BAD_INPUT);
  EXPECT_THAT(commtune_last_message(), HasSubstr("profile: not valid JSON"));
  EXPECT_EQ(commtune_plan(kProfile, "{}", 2, 0, &plan, nullptr), COMMTUNE_BAD_INPUT);
  EXPECT_THAT(commtune_last_message(), HasSubstr("cluster: format: missing"));
  EXPECT_EQ(commtune_plan(kProfile, nullptr, 2, 0, &plan, nullptr), COMMTUNE_BAD_CALL);
  const commtune_join_options join{};
  commtune_probe_options options{};
  options.budget_seconds = -1;
  char* cluster = nullptr;
  EXPECT_EQ(commtune_probe(nullptr, &options, &cluster), COMMTUNE_BAD_CALL);
  EXPECT_EQ(commtune_probe(&join, &options, nullptr), COMMTUNE_BAD_CALL);
}

TEST(CommtuneInC, CodesHaveNamesInBothLanguages) {
  EXPECT_THAT(name_of_a_code_in_c(), StrEq("peer_lost"));
  EXPECT_THAT(commtune_code_name(static_cast<commtune_code>(15)), StrEq("unknown"));
  EXPECT_THAT(commtune_version(), StrEq("0.1.0"));
}

TEST(CommtuneInC, AGpuThatThereIsNotEndsTheSession) {
  on_ranks(1, [](int /*rank*/, commtune_session* session) {
    const commtune_code code =
        commtune_layout_on_gpu(session, COMMTUNE_FLOAT32, kTensors.size(), kTensors.data(), 999, nullptr);
    EXPECT_THAT(code, AnyOf(COMMTUNE_UNAVAILABLE, COMMTUNE_BAD_INPUT)) << "without a driver, and with one";
    EXPECT_THAT(commtune_last_message(), AnyOf(HasSubstr("CUDA"), HasSubstr("cuda"), HasSubstr("GPU 999")));
    EXPECT_EQ(commtune_layout(session, COMMTUNE_FLOAT32, kTensors.size(), kTensors.data(), nullptr), code);
  });
}

}  // namespace
