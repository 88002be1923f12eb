#include "executor/transport/verbs/peer_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace commtune::verbs {
namespace {

using matching::EarlyMessage;
using matching::Envelope;
using matching::kNoTransfer;

// One completion for so many pieces of work. Fewer than the card has room for, or we would wait for room that
// nothing tells about.
constexpr std::size_t kSignalEvery = 8;

}  // namespace

PeerConnection::PeerConnection(Wire& wire, matching::Transfers& transfers, const Peers& peers,
                               const MessageLimits& limits, const ConnectionSizes& sizes, int peer)
    : wire_(&wire),
      transfers_(&transfers),
      peers_(&peers),
      sizes_(sizes),
      peer_(peer),
      matches_(transfers, peers, limits, peer) {}

void PeerConnection::introduce(const proof::Proof& own, const proof::Proof& expected) {
  expected_ = expected;
  send_frame({.kind = FrameKind::kProof}, own, Signal::kYes);
}

void PeerConnection::check_open() const {
  if (left_) throw lost("it has left");
}

void PeerConnection::send(TransferId id) { transfers_->append(sends_, id); }

void PeerConnection::receive(TransferId id) {
  const std::optional<EarlyMessage> early = matches_.post(id);
  if (early && early->complete) return copy_to(id, early->envelope, early->data);
  check_open();
  if (early) grant(id, early->envelope, early->send);
}

// ---- What is sent ----

void PeerConnection::pump() {
  if (left_ || said_leave_) return;
  while (!due_.empty() && has_room() && credits_.may_send()) {
    send_frame(due_.front(), {}, Signal::kNo);
    due_.pop_front();
  }
  send_messages();
  write_chains();
  if (credits_.should_give_back() && has_room() && credits_.may_give_back())
    send_frame({.kind = FrameKind::kCredits}, {}, Signal::kNo);
}

bool PeerConnection::has_room() const {
  return frames_posted_ < ConnectionSizes::kFrames && posted_.size() < ConnectionSizes::kMostWork;
}

Signal PeerConnection::next_signal(bool wanted) {
  if (!wanted && ++unsignalled_ < kSignalEvery) return Signal::kNo;
  unsignalled_ = 0;
  return Signal::kYes;
}

void PeerConnection::send_frame(FrameHeader header, std::span<const std::byte> payload, Signal signal) {
  header.credits = static_cast<std::uint16_t>(credits_.take_owed());
  credits_.spend();
  const std::size_t slot = next_frame_;
  next_frame_ = (next_frame_ + 1) % ConnectionSizes::kFrames;
  const std::span<std::byte> out = wire_->outgoing(slot);
  std::memcpy(out.data(), &header, sizeof header);
  if (!payload.empty()) std::memcpy(out.data() + sizeof header, payload.data(), payload.size());
  Posted& posted = posted_.emplace_back();
  posted.number = ++last_posted_;
  posted.is_frame = true;
  if (header.kind == FrameKind::kMessage || header.kind == FrameKind::kAnnounce)
    posted.message = header.envelope;
  ++frames_posted_;
  wire_->send(posted.number, slot, sizeof header + payload.size(), next_signal(signal == Signal::kYes));
}

void PeerConnection::send_messages() {
  while (!sends_.empty() && has_room() && credits_.may_send()) {
    const TransferId id = transfers_->pop_front(sends_);
    const matching::Transfer& transfer = (*transfers_)[id];
    const Envelope message = transfer.envelope;
    if (message.size <= sizes_.eager) {
      send_frame({.kind = FrameKind::kMessage, .envelope = message}, {transfer.data, message.size},
                 Signal::kNo);
      copied_ += message.size;
      transfers_->complete(id, message);
    } else {
      announced_.push_back(id);
      send_frame({.kind = FrameKind::kAnnounce, .send = id, .envelope = message}, {}, Signal::kNo);
    }
  }
}

void PeerConnection::write_chains() {
  while (!chains_.empty() && posted_.size() < ConnectionSizes::kMostWork) {
    Chain& chain = chains_.front();
    const matching::Transfer& transfer = (*transfers_)[chain.send];
    const ChunkChain::Write write = chain.writes.next();
    if (write.last && !credits_.may_send()) return;
    Posted& posted = posted_.emplace_back();
    posted.number = ++last_posted_;
    posted.operation = Operation::kWrite;
    posted.message = transfer.envelope;
    wire_->write(posted.number, {transfer.data + write.offset, write.length}, chain.region.local_key,
                 chain.grant.address + write.offset, chain.grant.key,
                 write.last ? &chain.grant.immediate : nullptr, next_signal(write.last));
    chain.writes.advance();
    if (!write.last) continue;
    credits_.spend();
    posted.ends = chain.send;
    posted.region = std::move(chain.region);
    chains_.pop_front();
  }
}

void PeerConnection::look() {
  if (left_ || said_leave_ || posted_.size() >= ConnectionSizes::kMostWork) return;
  Posted& posted = posted_.emplace_back();
  posted.number = ++last_posted_;
  posted.operation = Operation::kLook;
  wire_->write(posted.number, {}, 0, 0, 0, nullptr, next_signal(true));
}

void PeerConnection::leave() {
  if (left_ || said_leave_ || !has_room() || !credits_.may_give_back()) return;
  send_frame({.kind = FrameKind::kLeave}, {}, Signal::kYes);
  said_leave_ = true;
}

// ---- What the card tells ----

void PeerConnection::on_sent(WorkNumber number) {
  heard_ = true;
  while (!posted_.empty() && posted_.front().number <= number) {
    const Posted& posted = posted_.front();
    if (posted.is_frame) --frames_posted_;
    if (posted.ends != kNoTransfer) transfers_->complete(posted.ends, (*transfers_)[posted.ends].envelope);
    posted_.pop_front();
  }
}

void PeerConnection::on_frame(std::size_t slot, std::size_t bytes) {
  heard_ = true;
  const std::span<const std::byte> frame = wire_->incoming(slot).first(std::min(bytes, sizes_.slot()));
  FrameHeader header;
  std::memcpy(&header, frame.data(), std::min(frame.size(), sizeof header));
  if (const auto wrong = what_is_wrong(header, bytes, sizes_.eager)) throw refused(*wrong);
  if (proven_ == (header.kind == FrameKind::kProof)) {
    throw refused(proven_ ? "it proves itself twice" : "it has not proven that it is a rank of this run");
  }
  if (!credits_.add(header.credits)) throw refused("it gives back more credits than it got");
  take(header, frame.subspan(sizeof header));
  repost(slot);
}

void PeerConnection::on_written(std::size_t slot, Immediate immediate) {
  heard_ = true;
  const auto granted = grants_.close(immediate);
  if (!granted) throw refused("it has written what it was not granted");
  transfers_->complete(granted->receive, granted->message);
  repost(slot);
}

void PeerConnection::repost(std::size_t slot) {
  if (left_) return;
  wire_->post_receive(slot);
  credits_.owe();
}

void PeerConnection::take(const FrameHeader& header, std::span<const std::byte> payload) {
  switch (header.kind) {
    case FrameKind::kProof:
      return take_proof(payload);
    case FrameKind::kMessage:
      return take_message(header.envelope, payload);
    case FrameKind::kAnnounce:
      return take_announcement(header);
    case FrameKind::kGrant:
      return take_grant(header);
    case FrameKind::kCredits:
      return;
    case FrameKind::kLeave:
      return take_leave();
  }
}

void PeerConnection::take_proof(std::span<const std::byte> shown) {
  if (!proof::equal(shown, expected_)) throw refused("it does not know the run's secret");
  proven_ = true;
}

void PeerConnection::take_message(const Envelope& message, std::span<const std::byte> payload) {
  const TransferId id = matches_.take_receive(message);
  if (id != kNoTransfer) return copy_to(id, message, payload);
  EarlyMessage& early = matches_.keep(message);
  std::copy(payload.begin(), payload.end(), early.data.begin());
  copied_ += payload.size();
  early.complete = true;
}

void PeerConnection::take_announcement(const FrameHeader& header) {
  const TransferId id = matches_.take_receive(header.envelope);
  if (id != kNoTransfer) return grant(id, header.envelope, header.send);
  EarlyMessage early;
  early.envelope = header.envelope;
  early.send = header.send;
  matches_.keep(std::move(early));  // its bytes stay where they are
}

void PeerConnection::grant(TransferId receive, const Envelope& message, TransferId send) {
  if (grants_.is_full()) throw refused("it has more long messages under way than there are numbers for");
  std::byte* const data = (*transfers_)[receive].data;
  Region region = wire_->writable({data, message.size});
  FrameHeader header{.kind = FrameKind::kGrant, .send = send};
  header.address = reinterpret_cast<std::uint64_t>(data);
  header.key = region.remote_key;
  header.immediate = grants_.open({receive, message, std::move(region)});
  due_.push_back(header);
}

void PeerConnection::take_grant(const FrameHeader& header) {
  const auto found = std::ranges::find(announced_, header.send);
  if (found == announced_.end()) throw refused("it grants what was not announced");
  announced_.erase(found);
  const matching::Transfer& transfer = (*transfers_)[header.send];
  chains_.push_back({header.send, header, wire_->readable({transfer.data, transfer.envelope.size}),
                     ChunkChain(transfer.envelope.size, sizes_.chunk)});
}

void PeerConnection::take_leave() {
  const bool owed = is_owed();
  left_ = true;
  if (owed) raise(lost("it has left in the middle of a transfer"), awaited());
}

void PeerConnection::copy_to(TransferId receive, const Envelope& message, std::span<const std::byte> bytes) {
  std::copy(bytes.begin(), bytes.end(), (*transfers_)[receive].data);
  copied_ += bytes.size();
  transfers_->complete(receive, message);
}

bool PeerConnection::is_owed() const {
  return !proven_ || matches_.any_posted() || !grants_.empty() || !announced_.empty() || !chains_.empty() ||
         !sends_.empty();
}

// ---- What is said of failures ----

WorkFailure PeerConnection::failure_of(WorkNumber number) const {
  const auto found = std::ranges::find(posted_, number, &Posted::number);
  if (found == posted_.end()) return {.message = awaited(), .is_awaited = true};
  if (found->message) return {.operation = found->operation, .message = found->message};
  return {.operation = found->operation, .message = awaited(), .is_awaited = true};
}

WorkFailure PeerConnection::failed_receive() const {
  return {.operation = Operation::kReceive, .message = awaited(), .is_awaited = true};
}

std::optional<Envelope> PeerConnection::awaited() const {
  if (!grants_.empty()) return grants_.any().message;
  if (!chains_.empty()) return (*transfers_)[chains_.front().send].envelope;
  if (!announced_.empty()) return (*transfers_)[announced_.front()].envelope;
  if (matches_.any_posted()) return Envelope{0, matches_.first_posted().envelope.tag};
  return std::nullopt;
}

Error PeerConnection::refused(std::string_view why) const {
  return {ErrorCode::kConflict, fmt::format("{} sent what no rank sends: {}", describe(*peers_, peer_), why)};
}

Error PeerConnection::lost(std::string_view why) const {
  return {ErrorCode::kPeerLost, fmt::format("lost {}: {}", describe(*peers_, peer_), why)};
}

}  // namespace commtune::verbs
