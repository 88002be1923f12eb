// A session cuts messages as its transport likes them, unless it was told otherwise; and where it is to, it
// sends at its plan's pace.

#include <gtest/gtest.h>

#include <array>

#include "executor/session/session.h"
#include "tests/executor/random_plan.h"
#include "tests/executor/ranks.h"

namespace commtune::tests {
namespace {

constexpr TransferTraits kTraits{.chunk = 100_KiB, .uncut = 1_KiB, .cuts = 2, .window = 8, .assumed = false};

/// Another transport, with traits of its own.
class WithTraits final : public Transport {
 public:
  explicit WithTraits(Transport& inner) : inner_(inner) {}
  std::string_view name() const override { return inner_.name(); }
  const Peers& peers() const override { return inner_.peers(); }
  TransferTraits traits() const override { return kTraits; }
  TransferId send(int to, Tag tag, std::span<const std::byte> data) override {
    return inner_.send(to, tag, data);
  }
  TransferId receive(int from, Tag tag, std::span<std::byte> data) override {
    return inner_.receive(from, tag, data);
  }
  std::span<const Completion> wait(Deadline until) override { return inner_.wait(until); }
  void set_pace(double bytes_per_second) override { pace = bytes_per_second; }
  void wake() noexcept override { inner_.wake(); }
  void abort(std::string_view why) noexcept override { inner_.abort(why); }

  double pace = 7;  ///< that it was made with

 private:
  Transport& inner_;
};

RoadSettings settings_of_session(Transport& transport, Bytes chunk) {
  WithTraits with_traits(transport);
  const Profile profile = profile_of({1000, 300'000});
  std::vector<float> small(1000), large(300'000);
  const Gradients gradients{std::as_writable_bytes(std::span(small)),
                            std::as_writable_bytes(std::span(large))};
  SessionOptions options;
  options.workers = transport.peers().size();
  options.chunk = chunk;
  Session session(with_traits, layout_of(profile), gradients, options);
  session.adopt(wait_free_plan(profile, options.workers, AllReduce{}));
  session.begin_iteration();
  session.ready(TensorRange{0, 2});
  session.wait(TensorRange{0, 2}, Clock::now());
  RoadSettings settings = session.settings();
  session.leave();
  return settings;
}

TEST(SessionTraits, AreItsTransports) {
  on_ranks(3, [](Transport& transport) {
    const RoadSettings settings = settings_of_session(transport, {});
    EXPECT_EQ(settings.chunk, kTraits.chunk);
    EXPECT_EQ(settings.uncut, kTraits.uncut);
    EXPECT_EQ(settings.cuts, kTraits.cuts);
    EXPECT_EQ(settings.window, kTraits.window);
  });
}

TEST(SessionTraits, HaveTheLongestTransferThatWasAskedFor) {
  on_ranks(2, [](Transport& transport) {
    const RoadSettings settings = settings_of_session(transport, 8_KiB);
    EXPECT_EQ(settings.chunk, 8_KiB);
    EXPECT_EQ(settings.window, kTraits.window);
  });
}

/// Of the transport, under a plan of pace 1000 and then under one that says nothing.
std::array<double, 2> paces(Transport& transport, bool at_the_plans_pace) {
  WithTraits asked(transport);
  const Profile profile = profile_of({1000});
  std::vector<float> values(1000);
  SessionOptions options;
  options.workers = transport.peers().size();
  options.at_the_plans_pace = at_the_plans_pace;
  Session session(asked, layout_of(profile), {std::as_writable_bytes(std::span(values))}, options);
  Plan plan = wait_free_plan(profile, options.workers, AllReduce{});
  std::array<double, 2> found{};
  plan.pace = 1000;
  session.adopt(plan);
  found[0] = asked.pace;
  plan.pace = 0;
  session.adopt(plan);
  found[1] = asked.pace;
  session.leave();
  return found;
}

TEST(SessionPace, IsThePlansWhereItIsToBe) {
  on_ranks(2, [](Transport& transport) { EXPECT_EQ(paces(transport, true), (std::array{1000.0, 0.0})); });
}

TEST(SessionPace, IsElseTheTransports) {
  on_ranks(2, [](Transport& transport) { EXPECT_EQ(paces(transport, false), (std::array{7.0, 7.0})); });
}

}  // namespace
}  // namespace commtune::tests
