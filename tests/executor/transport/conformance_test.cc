// The suite on each transport of the registry, by its name and nothing else: a new one is tested by its line
// there. Ranks are threads; those of transports that need more are tested where they have it: Open MPI's by
// mpi/mpi_test.cc, which mpirun starts, RDMA cards' by verbs/verbs_test.cc in a virtual machine.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "executor/transport/registry/declared.h"
#include "executor/transport/registry/kinds.h"
#include "executor/transport/registry/make_transport.h"
#include "perfmodel/base/error.h"
#include "tests/executor/ranks.h"
#include "tests/executor/transport/attack_surface.h"
#include "tests/executor/transport/conformance.h"
#include "tests/executor/transport/fault_cases.h"

#define COMMTUNE_TRANSPORT(NAME) COMMTUNE_DECLARE_ATTACK_SURFACE(NAME)
#include COMMTUNE_TRANSPORT_LIST
#undef COMMTUNE_TRANSPORT

namespace commtune::tests {
namespace {

/// A transport and what it is told.
struct Carrier {
  std::string name;  ///< of tests
  const TransportKind* kind = nullptr;
  TransportOptions options{};
  std::vector<int> rank_counts{2, 3, 4};
  int ranks_per_host = 4;
};

void PrintTo(const Carrier& carrier, std::ostream* out) { *out << carrier.name; }

std::unique_ptr<Transport> connect(const Carrier& carrier, const std::shared_ptr<Bootstrap>& bootstrap) {
  auto transport = make_transport(carrier.kind->name, bootstrap, carrier.options,
                                  Clock::now() + std::chrono::seconds(200));
  transport->limit_messages(kConformanceLimits);
  return transport;
}

/// What the folder of a transport tells the registry.
struct Listed {
  const TransportKind* kind;
  std::optional<std::string> (*unusable)(const Bootstrap&);
  const AttackSurface* attacks;
};

void PrintTo(const Listed& listed, std::ostream* out) { *out << listed.kind->name; }

constexpr std::array kListed = {
#define COMMTUNE_TRANSPORT(NAME) Listed{&NAME::kKind, &NAME::unusable, &NAME::kAttackSurface},
#include COMMTUNE_TRANSPORT_LIST
#undef COMMTUNE_TRANSPORT
};

std::vector<Listed> listed(bool usable) {
  const auto bootstrap = make_local_bootstraps(1).front();
  std::vector<Listed> result;
  std::ranges::copy_if(kListed, std::back_inserter(result),
                       [&](const Listed& each) { return each.unusable(*bootstrap).has_value() != usable; });
  return result;
}

/// Every transport that this machine can use by threads, as it is and as between hosts with each thing that
/// its kind takes.
std::vector<Carrier> carriers() {
  std::vector<Carrier> all;
  for (const Listed& each : listed(true)) {
    const std::string name(each.kind->name);
    all.push_back({name, each.kind});
    if (each.kind->takes_subnet) {
      all.push_back({name + "_over_version_4", each.kind, {.subnet = "127.0.0.0/8", .own = {}}, {3}, 1});
      all.push_back({name + "_over_version_6", each.kind, {.subnet = "::1/128", .own = {}}, {3}, 1});
    }
    if (each.kind->takes_pace) {
      const std::string subnet = each.kind->takes_subnet ? "127.0.0.0/8" : "";
      all.push_back({name + "_at_a_pace", each.kind, {subnet, 100e6, {}}, {3}, 1});
    }
  }
  return all;
}

/// Why the ranks of a carrier have no such network here; empty: they have. One without a subnet is had
/// wherever its transport does not say that this machine lacks what it needs.
std::optional<std::string> find_no_network(const Carrier& carrier) {
  if (carrier.options.subnet.empty()) return std::nullopt;
  try {
    on_bootstraps(
        2, [&](const std::shared_ptr<Bootstrap>& bootstrap) { connect(carrier, bootstrap); },
        carrier.ranks_per_host);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUnavailable) return error.what();
    throw;
  }
  return std::nullopt;
}

template <typename Case>
std::string name_of(const ::testing::TestParamInfo<std::tuple<Carrier, Case>>& test) {
  return fmt::format("{}_{}", std::get<0>(test.param).name, std::get<1>(test.param).name);
}

class TransportTest : public ::testing::TestWithParam<std::tuple<Carrier, ConformanceCase>> {};

TEST_P(TransportTest, Conforms) {
  const Carrier& carrier = std::get<0>(GetParam());
  const ConformanceCase& test = std::get<1>(GetParam());
  if (const auto why = find_no_network(carrier)) GTEST_SKIP() << *why;
  for (const int ranks : carrier.rank_counts) {
    on_bootstraps(
        ranks,
        [&](const std::shared_ptr<Bootstrap>& bootstrap) {
          const auto transport = connect(carrier, bootstrap);
          EXPECT_EQ(transport->name(), carrier.kind->name);
          test.body(*transport);
          synchronize(*transport);
        },
        carrier.ranks_per_host);
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, TransportTest,
                         ::testing::Combine(::testing::ValuesIn(carriers()),
                                            ::testing::ValuesIn(conformance_cases())),
                         name_of<ConformanceCase>);

class TransportFaultTest : public ::testing::TestWithParam<std::tuple<Carrier, FaultCase>> {};

TEST_P(TransportFaultTest, IsTold) {
  const Carrier& carrier = std::get<0>(GetParam());
  const FaultCase& test = std::get<1>(GetParam());
  if (const auto why = find_no_network(carrier)) GTEST_SKIP() << *why;
  test.body({.connect = [&](const auto& bootstrap) { return connect(carrier, bootstrap); },
             .ranks_per_host = carrier.ranks_per_host});
}

std::vector<std::tuple<Carrier, FaultCase>> faults() {
  std::vector<std::tuple<Carrier, FaultCase>> all;
  for (const Carrier& carrier : carriers())
    for (const FaultCase& test : fault_cases())
      if (!test.in_processes || joins_processes(*carrier.kind)) all.emplace_back(carrier, test);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Registry, TransportFaultTest, ::testing::ValuesIn(faults()), name_of<FaultCase>);

TEST(AttackSurface, IsWithstoodAllOverOrThereIsNone) {
  for (const Listed& each : kListed) {
    for (const auto& [name, attack] : kAttacks)
      EXPECT_NE(each.attacks->*attack == nullptr, each.attacks->none.empty())
          << each.kind->name << ": " << name;
  }
}

/// An attack on a transport whose ranks can be reached by others.
struct Attacked {
  const TransportKind* kind;
  const char* name;
  AttackSurface::Attack attack;
};

void PrintTo(const Attacked& attacked, std::ostream* out) {
  *out << attacked.kind->name << ": " << attacked.name;
}

std::vector<Attacked> attacked() {
  std::vector<Attacked> all;
  for (const Listed& each : kListed) {
    if (!each.attacks->none.empty()) continue;
    for (const auto& [name, attack] : kAttacks) all.push_back({each.kind, name, each.attacks->*attack});
  }
  return all;
}

class HostilePeerTest : public ::testing::TestWithParam<Attacked> {};

TEST_P(HostilePeerTest, IsWithstood) {
  ASSERT_NE(GetParam().attack, nullptr) << "nobody has written it";
  GetParam().attack();
}

INSTANTIATE_TEST_SUITE_P(Registry, HostilePeerTest, ::testing::ValuesIn(attacked()), [](const auto& test) {
  return fmt::format("{}_{}", test.param.kind->name, test.param.name);
});

class UnusableTransportTest : public ::testing::TestWithParam<Listed> {};

TEST_P(UnusableTransportTest, SaysWhatItLacks) {
  GTEST_SKIP() << GetParam().kind->name << ": " << *GetParam().unusable(*make_local_bootstraps(1).front());
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(UnusableTransportTest);
INSTANTIATE_TEST_SUITE_P(Registry, UnusableTransportTest, ::testing::ValuesIn(listed(false)),
                         [](const auto& test) { return std::string(test.param.kind->name); });

}  // namespace
}  // namespace commtune::tests
