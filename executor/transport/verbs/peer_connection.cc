#include "executor/transport/verbs/peer_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <string>
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

PeerConnection::PeerConnection(const std::vector<Wire*>& wires, matching::Transfers& transfers,
                               const Peers& peers, const MessageLimits& limits, const ConnectionSizes& sizes,
                               int peer)
    : transfers_(&transfers),
      peers_(&peers),
      sizes_(sizes),
      peer_(peer),
      matches_(transfers, peers, limits, peer) {
  assert(!wires.empty() && wires.size() == sizes.connections);
  lanes_.reserve(wires.size());
  for (Wire* const wire : wires) lanes_.push_back({.wire = wire});
}

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
  if (early) met_.push_back({id, early->envelope, early->send});
}

// ---- What is sent ----

void PeerConnection::pump() {
  if (left_ || said_leave_) return;
  for (; !met_.empty() && may_grant(); met_.pop_front()) grant(met_.front());
  while (!due_.empty() && has_room() && credits_.may_send()) {
    send_frame(due_.front(), {}, Signal::kNo);
    due_.pop_front();
  }
  send_messages();
  for (Lane& lane : lanes_) write_chains(lane);
  if (credits_.should_give_back() && has_room() && credits_.may_give_back())
    send_frame({.kind = FrameKind::kCredits}, {}, Signal::kNo);
}

bool PeerConnection::has_room() const {
  return frames_posted_ < ConnectionSizes::kFrames && lanes_.front().has_room();
}

PeerConnection::Posted& PeerConnection::Lane::post() {
  Posted& added = posted.emplace_back();
  added.number = ++last_posted;
  return added;
}

Signal PeerConnection::Lane::next_signal(bool wanted) {
  if (!wanted && ++unsignalled < kSignalEvery) return Signal::kNo;
  unsignalled = 0;
  return Signal::kYes;
}

void PeerConnection::send_frame(FrameHeader header, std::span<const std::byte> payload, Signal signal) {
  header.credits = static_cast<std::uint16_t>(credits_.take_owed());
  credits_.spend();
  const std::size_t slot = next_frame_;
  next_frame_ = (next_frame_ + 1) % ConnectionSizes::kFrames;
  Lane& lane = first_lane();
  const std::span<std::byte> out = lane.wire->outgoing(slot);
  std::memcpy(out.data(), &header, sizeof header);
  if (!payload.empty()) std::memcpy(out.data() + sizeof header, payload.data(), payload.size());
  Posted& posted = lane.post();
  posted.is_frame = true;
  if (header.kind == FrameKind::kMessage || header.kind == FrameKind::kAnnounce)
    posted.message = header.envelope;
  ++frames_posted_;
  lane.wire->send(posted.number, slot, sizeof header + payload.size(),
                  lane.next_signal(signal == Signal::kYes));
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

void PeerConnection::write_chains(Lane& lane) {
  const bool spends =
      &lane == &lanes_.front();  // on the others, no more is granted than there are receives for
  while (!lane.chains.empty() && lane.has_room()) {
    Chain& chain = lane.chains.front();
    PendingSend& writing = *chain.writing;
    const matching::Transfer& transfer = (*transfers_)[writing.send];
    const ChunkChain::Write write = chain.writes.next();
    if (write.last && spends && !credits_.may_send()) return;
    const std::uint64_t offset = chain.begin + write.offset;
    Posted& posted = lane.post();
    posted.operation = Operation::kWrite;
    posted.message = transfer.envelope;
    lane.wire->write(posted.number, {transfer.data + offset, write.length}, writing.region.local_key,
                     writing.grant.address + offset, writing.grant.key,
                     write.last ? &writing.grant.immediate : nullptr, lane.next_signal(write.last));
    chain.writes.advance();
    if (!write.last) continue;
    if (spends) credits_.spend();
    posted.ends = std::move(chain.writing);
    lane.chains.pop_front();
  }
}

void PeerConnection::look() {
  Lane& lane = first_lane();
  if (left_ || said_leave_ || !lane.has_room()) return;
  Posted& posted = lane.post();
  posted.operation = Operation::kLook;
  lane.wire->write(posted.number, {}, 0, 0, 0, nullptr, lane.next_signal(true));
}

void PeerConnection::leave(std::string_view why) {
  if (left_ || said_leave_ || !has_room() || !credits_.may_give_back()) return;
  send_frame({.kind = FrameKind::kLeave}, std::as_bytes(std::span(why.substr(0, sizes_.eager))),
             Signal::kYes);
  said_leave_ = true;
}

// ---- What the card tells ----

void PeerConnection::on_sent(std::size_t lane, WorkNumber number) {
  heard_ = true;
  std::deque<Posted>& posted = lanes_[lane].posted;
  for (; !posted.empty() && posted.front().number <= number; posted.pop_front()) {
    if (posted.front().is_frame) --frames_posted_;
    const std::shared_ptr<PendingSend>& ends = posted.front().ends;
    if (ends && --ends->parts_left == 0) transfers_->complete(ends->send, (*transfers_)[ends->send].envelope);
  }
}

void PeerConnection::on_frame(std::size_t slot, std::size_t bytes) {
  heard_ = true;
  const std::span<const std::byte> frame =
      first_lane().wire->incoming(slot).first(std::min(bytes, sizes_.slot()));
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

void PeerConnection::on_written(std::size_t lane, std::size_t slot, Immediate immediate) {
  heard_ = true;
  const auto closed = grants_.close(immediate, lane);
  if (!closed.was_granted) throw refused("it has written what it was not granted");
  if (closed.message) transfers_->complete(closed.message->receive, closed.message->message);
  if (lane == 0) return repost(slot);
  if (!left_) lanes_[lane].wire->post_receive(slot);
}

void PeerConnection::repost(std::size_t slot) {
  if (left_) return;
  first_lane().wire->post_receive(slot);
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
      return take_leave(payload);
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
  if (id != kNoTransfer) {
    met_.push_back({id, header.envelope, header.send});
    return;
  }
  EarlyMessage early;
  early.envelope = header.envelope;
  early.send = header.send;
  matches_.keep(std::move(early));  // its bytes stay where they are
}

/// Each may take a receive on every connection, where only the first has credits.
bool PeerConnection::may_grant() const {
  return lanes_.size() == 1 || grants_.open_count() < ConnectionSizes::kReceives;
}

void PeerConnection::grant(const PendingGrant& met) {
  if (grants_.is_full()) throw refused("it has more long messages under way than there are numbers for");
  std::byte* const data = (*transfers_)[met.receive].data;
  Region region = first_lane().wire->writable({data, met.message.size});
  FrameHeader header{.kind = FrameKind::kGrant, .send = met.send};
  header.connections = connections_for(met.message.size);
  header.address = reinterpret_cast<std::uint64_t>(data);
  header.key = region.remote_key;
  header.immediate = grants_.open({met.receive, met.message, std::move(region), header.connections});
  due_.push_back(header);
}

/// All of them for a message with parts that are worth it, else one in turn.
ConnectionSet PeerConnection::connections_for(std::uint64_t size) {
  if (size >= lanes_.size() * ConnectionSizes::kLeastPart)
    return static_cast<ConnectionSet>((1U << lanes_.size()) - 1);
  next_lane_ = (next_lane_ + 1) % lanes_.size();
  return static_cast<ConnectionSet>(1U << next_lane_);
}

void PeerConnection::take_grant(const FrameHeader& header) {
  const auto found = std::ranges::find(announced_, header.send);
  if (found == announced_.end()) throw refused("it grants what was not announced");
  if (header.connections == 0 || header.connections >> lanes_.size() != 0)
    throw refused("it grants on connections that there are not");
  announced_.erase(found);
  const matching::Transfer& transfer = (*transfers_)[header.send];
  const std::uint64_t size = transfer.envelope.size;
  const auto parts = static_cast<std::size_t>(std::popcount(header.connections));
  if (size < parts) throw refused("it grants more connections than the message has bytes");
  const auto writing = std::make_shared<PendingSend>();
  *writing = {header.send, header, first_lane().wire->readable({transfer.data, size}), parts};
  std::uint64_t begin = 0;
  std::size_t part = 0;
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    if ((header.connections >> lane & 1) == 0) continue;
    const std::uint64_t end = size * ++part / parts;
    lanes_[lane].chains.push_back({writing, begin, ChunkChain(end - begin, sizes_.chunk)});
    begin = end;
  }
}

void PeerConnection::take_leave(std::span<const std::byte> why) {
  const bool owed = is_owed();
  left_ = true;
  if (!why.empty())
    throw run_ended(*peers_, peer_, std::string(reinterpret_cast<const char*>(why.data()), why.size()));
  if (owed) raise(lost("it has left in the middle of a transfer"), awaited());
}

void PeerConnection::copy_to(TransferId receive, const Envelope& message, std::span<const std::byte> bytes) {
  std::copy(bytes.begin(), bytes.end(), (*transfers_)[receive].data);
  copied_ += bytes.size();
  transfers_->complete(receive, message);
}

bool PeerConnection::is_owed() const {
  return !proven_ || matches_.any_posted() || !met_.empty() || !grants_.empty() || !announced_.empty() ||
         std::ranges::any_of(lanes_, [](const Lane& lane) { return !lane.chains.empty(); }) ||
         !sends_.empty();
}

bool PeerConnection::is_flushed() const {
  if (left_) return true;
  return sends_.empty() && std::ranges::all_of(lanes_, [](const Lane& lane) {
           return lane.posted.empty() && lane.chains.empty();
         });
}

// ---- What is said of failures ----

WorkFailure PeerConnection::failure_of(std::size_t lane, WorkNumber number) const {
  const std::deque<Posted>& posted = lanes_[lane].posted;
  const auto found = std::ranges::find(posted, number, &Posted::number);
  if (found == posted.end()) return {.message = awaited(), .is_awaited = true};
  if (found->message) return {.operation = found->operation, .message = found->message};
  return {.operation = found->operation, .message = awaited(), .is_awaited = true};
}

WorkFailure PeerConnection::failed_receive() const {
  return {.operation = Operation::kReceive, .message = awaited(), .is_awaited = true};
}

std::optional<Envelope> PeerConnection::awaited() const {
  if (!grants_.empty()) return grants_.any().message;
  for (const Lane& lane : lanes_)
    if (!lane.chains.empty()) return (*transfers_)[lane.chains.front().writing->send].envelope;
  if (!met_.empty()) return met_.front().message;
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
