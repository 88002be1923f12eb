#include "api/launch/hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::string refusal(const std::string& text) {
  try {
    parse_hostfile(text, "hosts.txt");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadInput);
    return error.what();
  }
  return "accepted";
}

std::string list_refusal(const std::string& text) {
  try {
    parse_host_list(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadInput);
    return error.what();
  }
  return "accepted";
}

std::vector<std::pair<std::string, int>> pairs(const HostList& list) {
  std::vector<std::pair<std::string, int>> out;
  for (const Host& host : list.hosts) out.emplace_back(host.name, host.slots);
  return out;
}

TEST(Hostfile, ReadsHostsSlotsAndComments) {
  const HostList list = parse_hostfile(
      "# the lab\n"
      "node1 slots=4\n"
      "\n"
      "node2\tslots=2 max_slots=8  # with a spare\r\n"
      "10.0.0.3 max-slots=2 slots=1",
      "hosts.txt");
  EXPECT_THAT(pairs(list),
              ElementsAre(std::pair("node1", 4), std::pair("node2", 2), std::pair("10.0.0.3", 1)));
  EXPECT_TRUE(list.notes.empty());
  EXPECT_EQ(known_ranks(list), 7);
}

TEST(Hostfile, MissingSlotsMeanCoresAndItIsSaid) {
  const HostList list = parse_hostfile("node1\nnode2 slots=2\n", "hosts.txt");
  EXPECT_EQ(list.hosts[0].slots, 0);
  EXPECT_EQ(known_ranks(list), 0);  // nobody knows before node1 has answered
  ASSERT_EQ(list.notes.size(), 1U);
  EXPECT_THAT(list.notes[0],
              HasSubstr("hosts.txt:1: node1 has no slots=: understood as one rank for each of its cores"));
}

TEST(Hostfile, ExpandsRangesAndAddsUpRepeatedHosts) {
  const HostList list = parse_hostfile("tux[0-2,7] slots=2\ntux1 slots=3\n", "hosts.txt");
  EXPECT_THAT(pairs(list), ElementsAre(std::pair("tux0", 2), std::pair("tux1", 5), std::pair("tux2", 2),
                                       std::pair("tux7", 2)));
}

TEST(Hostfile, NamesLineValueAndRuleOfWhatIsWrong) {
  EXPECT_EQ(refusal("node1 slots=4\nnode2 slots=four\n"),
            "hosts.txt:2: \"slots=four\": must be a whole number from 1 to 65536");
  EXPECT_THAT(refusal("node1 slots=0"), HasSubstr("hosts.txt:1: \"slots=0\""));
  EXPECT_THAT(refusal("node1 slots=-1"), HasSubstr("must be a whole number"));
  EXPECT_THAT(refusal("node1 solts=4"), HasSubstr("expected slots=N or max_slots=N"));
  EXPECT_THAT(refusal("node1 4"), HasSubstr("expected slots=N"));
  EXPECT_THAT(refusal("\n# nothing\n"), HasSubstr("hosts.txt: names no host"));
}

TEST(Hostfile, RefusesNamesThatAShellOrSshCouldMisread) {
  EXPECT_THAT(refusal("node1;reboot slots=1"), HasSubstr("must be made of letters"));
  EXPECT_THAT(refusal("-oProxyCommand=x slots=1"), HasSubstr("not start with '-'"));
  EXPECT_THAT(refusal("$(id) slots=1"), HasSubstr("must be made of letters"));
  EXPECT_THAT(refusal("me@node1 slots=1"), HasSubstr("~/.ssh/config"));
}

TEST(HostList, ReadsMpirunsForm) {
  const HostList list = parse_host_list("h1:4,h2:4,tux[08-10]:2,h3");
  EXPECT_THAT(pairs(list), ElementsAre(std::pair("h1", 4), std::pair("h2", 4), std::pair("tux08", 2),
                                       std::pair("tux09", 2), std::pair("tux10", 2), std::pair("h3", 1)));
  ASSERT_EQ(list.notes.size(), 1U);
  EXPECT_THAT(list.notes[0], HasSubstr("h3 has no :N: understood as one rank"));
}

TEST(HostList, NamesWhatIsWrong) {
  EXPECT_THAT(list_refusal("h1:x"), HasSubstr("\"h1:x\": after ':' must be a whole number"));
  EXPECT_THAT(list_refusal(""), HasSubstr("host \"\""));
  EXPECT_THAT(list_refusal("h1,,h2"), HasSubstr("host \"\""));
  EXPECT_THAT(list_refusal("tux[3-1]"), HasSubstr("\"3-1\" must be a number or low-high"));
  EXPECT_THAT(list_refusal("tux[0-3"), HasSubstr("one pair of brackets"));
  EXPECT_THAT(list_refusal("tux[0-999999999]"), HasSubstr("more than 65536 hosts"));
}

TEST(FirstRanks, FillHostsInTheirOrder) {
  const HostList list = parse_host_list("h1:4,h2:4,h3:1");
  EXPECT_THAT(pairs(first_ranks(list, 6)), ElementsAre(std::pair("h1", 4), std::pair("h2", 2)));
  EXPECT_THAT(pairs(first_ranks(list, 4)), ElementsAre(std::pair("h1", 4)));
  EXPECT_THAT(first_ranks(list, 9).hosts, SizeIs(3));
  EXPECT_THAT(first_ranks(list, 10).hosts, SizeIs(3));
  const HostList open = parse_hostfile("h1 slots=4\nh2\n", "hosts");
  EXPECT_THAT(first_ranks(open, 2).hosts, SizeIs(2));
}

TEST(Ranges, KeepLeadingZerosAndSuffixes) {
  EXPECT_THAT(expand_ranges("n[008-010]-ib"), ElementsAre("n008-ib", "n009-ib", "n010-ib"));
  EXPECT_THAT(expand_ranges("plain"), ElementsAre("plain"));
}

TEST(LocalHosts, AreThisMachine) {
  EXPECT_TRUE(all_local(local_hosts(4)));
  EXPECT_EQ(known_ranks(local_hosts(4)), 4);
  EXPECT_FALSE(all_local(parse_host_list("localhost:2,elsewhere:2")));
  EXPECT_THROW(local_hosts(0), Error);
}

}  // namespace
}  // namespace commtune::api
