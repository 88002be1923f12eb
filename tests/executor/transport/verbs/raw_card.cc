#include "tests/executor/transport/verbs/raw_card.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace commtune::tests {
namespace {

constexpr std::chrono::seconds kPatience{100};
constexpr int kEntries = 1024;

}  // namespace

RawCard::RawCard(Bootstrap& bootstrap, const std::string& device)
    : device_(verbs::choose_gid(verbs::list_gids(), {.device = device}, 0)),
      regions_(device_, false),
      completions_(verbs::library().create_cq(device_.context(), kEntries, nullptr, nullptr, 0)),
      pair_(device_, regions_, completions_.get(), {}, 0, 0),
      data_(64 << 10),
      region_(regions_.readable(data_)) {
  const Deadline until = Clock::now() + kPatience;
  verbs::agree_on_success(bootstrap, "", until);
  const std::vector<verbs::PairsOfPeer> pairs{{&pair_}, {}};
  introduction_ =
      verbs::connect_pairs(bootstrap, device_, pairs, verbs::retry_rule(Seconds{10}), until).front();
}

int RawCard::send(const verbs::FrameHeader& header, std::span<const std::byte> payload) {
  const std::span<std::byte> out = pair_.outgoing(0);
  std::memcpy(out.data(), &header, sizeof header);
  if (!payload.empty()) std::memcpy(out.data() + sizeof header, payload.data(), payload.size());
  pair_.send(++last_, 0, sizeof header + payload.size(), verbs::Signal::kYes);
  return ended(last_);
}

int RawCard::write(std::uint64_t address, std::uint32_t key, std::optional<verbs::Immediate> immediate) {
  pair_.write(++last_, data_, region_.local_key, address, key, immediate ? &*immediate : nullptr,
              verbs::Signal::kYes);
  return ended(last_);
}

verbs::FrameHeader RawCard::next(verbs::FrameKind kind) {
  for (;;) {
    const auto found = std::ranges::find(heard_, kind, &verbs::FrameHeader::kind);
    if (found != heard_.end()) {
      const verbs::FrameHeader header = *found;
      heard_.erase(found);
      return header;
    }
    if (verbs::WorkId::unpack(next_completion().wr_id).receive) continue;
    throw std::runtime_error("something else has ended");
  }
}

/// Keeps the frames that have come.
ibv_wc RawCard::next_completion() {
  ibv_wc completion{};
  for (const Deadline until = Clock::now() + kPatience;
       ibv_poll_cq(completions_.get(), 1, &completion) == 0;) {
    if (Clock::now() > until) throw std::runtime_error("the card says nothing");
    std::this_thread::yield();
  }
  const verbs::WorkId work = verbs::WorkId::unpack(completion.wr_id);
  if (work.receive && completion.status == IBV_WC_SUCCESS && completion.opcode == IBV_WC_RECV) {
    verbs::FrameHeader header;
    std::memcpy(&header, pair_.incoming(work.number).data(), sizeof header);
    heard_.push_back(header);
  }
  return completion;
}

int RawCard::ended(verbs::WorkNumber number) {
  for (;;) {
    const ibv_wc completion = next_completion();
    const verbs::WorkId work = verbs::WorkId::unpack(completion.wr_id);
    if (!work.receive && work.number == number) return completion.status;
  }
}

}  // namespace commtune::tests
