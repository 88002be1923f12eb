#include "executor/transport/verbs/queue_pair.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "executor/transport/proof/proof.h"

namespace commtune::verbs {
namespace {

constexpr std::uint32_t kPacketNumbers = 1U << 24;
constexpr std::size_t kCacheLine = 64;
// What fits goes to the card with the work itself, which saves it a read of our memory.
constexpr std::uint32_t kInlineWanted = 128;
// Credits keep receive queues from running dry; a peer's card that is behind has so many times 0.64 ms.
constexpr std::uint8_t kNotReadyTries = 6;
constexpr std::uint8_t kNotReadyTimer = 12;
constexpr std::uint8_t kMostHops = 64;

constexpr std::uint64_t kReceiveBit = std::uint64_t{1} << 63;
constexpr int kNumberBits = 40, kPeerBits = 20;
constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << kNumberBits) - 1;
constexpr std::uint64_t kPeerMask = (std::uint64_t{1} << kPeerBits) - 1;
static_assert(kMostConnections << (kNumberBits + kPeerBits) <= kReceiveBit);

std::uint32_t random_packet_number() {
  std::uint32_t number = 0;
  proof::fill_randomly(std::as_writable_bytes(std::span(&number, 1)));
  return number % kPacketNumbers;
}

}  // namespace

CardAddress address_of(const Device& device) {
  return {device.gid().address, device.port().lid, device.gid().kind,
          static_cast<std::uint32_t>(device.port().active_mtu)};
}

std::uint64_t WorkId::packed() const {
  return (receive ? kReceiveBit : 0) | (static_cast<std::uint64_t>(lane) << (kNumberBits + kPeerBits)) |
         ((static_cast<std::uint64_t>(peer) & kPeerMask) << kNumberBits) | (number & kNumberMask);
}

WorkId WorkId::unpack(std::uint64_t packed) {
  return {static_cast<int>((packed >> kNumberBits) & kPeerMask),
          (packed & ~kReceiveBit) >> (kNumberBits + kPeerBits), (packed & kReceiveBit) != 0,
          packed & kNumberMask};
}

QueuePair::QueuePair(const Device& device, const Regions& regions, ibv_cq* completions,
                     const ConnectionSizes& sizes, int peer, std::size_t lane)
    : device_(device),
      regions_(regions),
      peer_(peer),
      lane_(lane),
      slot_(lane == 0 ? (sizes.slot() + kCacheLine - 1) / kCacheLine * kCacheLine : 0),
      memory_((ConnectionSizes::kReceives + ConnectionSizes::kFrames) * slot_),
      region_(lane == 0 ? regions.frames(memory_) : Region{}),
      first_packet_(random_packet_number()) {
  create(completions);
  initialise();
  for (std::size_t slot = 0; slot < ConnectionSizes::kReceives; ++slot) post_receive(slot);
}

void QueuePair::create(ibv_cq* completions) {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = completions;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = ConnectionSizes::kMostWork + 8;
  wanted.cap.max_recv_wr = ConnectionSizes::kReceives;
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
  for (const std::uint32_t limit : {kInlineWanted, 0U}) {
    ibv_qp_init_attr attributes = wanted;
    attributes.cap.max_inline_data = limit;
    pair_.reset(library().create_qp(device_.domain(), &attributes));
    inline_limit_ = attributes.cap.max_inline_data;
    if (pair_) return;
  }
  throw card_error("creating a queue pair", device_.gid(), errno);
}

void QueuePair::modify(ibv_qp_attr& attributes, int mask, const char* what) {
  const int status = library().modify_qp(pair_.get(), &attributes, mask);
  if (status != 0) throw card_error(what, device_.gid(), status);
}

void QueuePair::initialise() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = static_cast<std::uint8_t>(device_.gid().port);
  attributes.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  modify(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
         "initialising a queue pair");
}

void QueuePair::connect(const CardAddress& card, const PairAddress& pair, const RetryRule& retry) {
  make_ready_to_receive(card, pair);
  make_ready_to_send(retry);
}

void QueuePair::make_ready_to_receive(const CardAddress& card, const PairAddress& pair) {
  const bool infiniband = card.kind == GidKind::kInfiniBand;
  const std::array<std::uint8_t, 16>& own = device_.gid().address;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu =
      static_cast<ibv_mtu>(std::min(card.mtu, static_cast<std::uint32_t>(device_.port().active_mtu)));
  attributes.dest_qp_num = pair.number;
  attributes.rq_psn = pair.first_packet;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = kNotReadyTimer;
  ibv_ah_attr& way = attributes.ah_attr;
  way.port_num = static_cast<std::uint8_t>(device_.gid().port);
  way.dlid = static_cast<std::uint16_t>(card.lid);
  // Within an InfiniBand subnet the LID suffices.
  constexpr auto kSubnetPrefix = 8;
  way.is_global =
      !infiniband || !std::equal(own.begin(), own.begin() + kSubnetPrefix, card.gid.begin()) ? 1 : 0;
  std::copy(card.gid.begin(), card.gid.end(), std::begin(way.grh.dgid.raw));
  way.grh.sgid_index = static_cast<std::uint8_t>(device_.gid().index);
  way.grh.hop_limit = kMostHops;
  modify(attributes,
         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
         "finding the way to the peer's card");
}

void QueuePair::make_ready_to_send(const RetryRule& retry) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = retry.timeout;
  attributes.retry_cnt = retry.tries;
  attributes.rnr_retry = kNotReadyTries;
  attributes.sq_psn = first_packet_;
  attributes.max_rd_atomic = 1;
  modify(attributes,
         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC,
         "making a queue pair ready to send");
}

std::span<std::byte> QueuePair::outgoing(std::size_t slot) {
  return {slot_at(ConnectionSizes::kReceives + slot), slot_};
}

std::span<const std::byte> QueuePair::incoming(std::size_t slot) const {
  return std::span(memory_).subspan(slot * slot_, slot_);
}

void QueuePair::post_receive(std::size_t slot) {
  ibv_sge place{reinterpret_cast<std::uint64_t>(slot_at(slot)), static_cast<std::uint32_t>(slot_),
                region_.local_key};
  ibv_recv_wr work{};
  work.wr_id = WorkId{peer_, lane_, true, slot}.packed();
  work.sg_list = &place;
  work.num_sge = slot_ > 0 ? 1 : 0;  // else it takes the end of a message, which has no bytes of its own
  ibv_recv_wr* refused = nullptr;
  if (const int status = ibv_post_recv(pair_.get(), &work, &refused); status != 0)
    throw card_error("posting a receive", device_.gid(), status);
}

void QueuePair::send(WorkNumber number, std::size_t slot, std::size_t bytes, Signal signal) {
  ibv_sge place{reinterpret_cast<std::uint64_t>(outgoing(slot).data()), static_cast<std::uint32_t>(bytes),
                region_.local_key};
  ibv_send_wr work{};
  work.wr_id = WorkId{peer_, lane_, false, number}.packed();
  work.sg_list = &place;
  work.num_sge = 1;
  work.opcode = IBV_WR_SEND;
  if (bytes <= inline_limit_) work.send_flags |= IBV_SEND_INLINE;
  post(work, signal);
}

void QueuePair::write(WorkNumber number, std::span<const std::byte> data, std::uint32_t local_key,
                      std::uint64_t address, std::uint32_t key, const Immediate* immediate, Signal signal) {
  ibv_sge place{reinterpret_cast<std::uint64_t>(data.data()), static_cast<std::uint32_t>(data.size()),
                local_key};
  ibv_send_wr work{};
  work.wr_id = WorkId{peer_, lane_, false, number}.packed();
  work.sg_list = &place;
  work.num_sge = data.empty() ? 0 : 1;
  work.opcode = IBV_WR_RDMA_WRITE;
  work.wr.rdma.remote_addr = address;
  work.wr.rdma.rkey = key;
  if (immediate != nullptr) {
    work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    work.imm_data = htonl(*immediate);
  }
  post(work, signal);
}

void QueuePair::post(ibv_send_wr& work, Signal signal) {
  if (signal == Signal::kYes) work.send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* refused = nullptr;
  if (const int status = ibv_post_send(pair_.get(), &work, &refused); status != 0)
    throw card_error("posting work", device_.gid(), status);
}

}  // namespace commtune::verbs
