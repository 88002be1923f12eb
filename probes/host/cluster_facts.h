#pragma once
// What is known of a cluster without timing anything: its hosts, and which releases run there. Facts have
// names in four groups:
//
//   host.NAME.cpu, .kernel, .interfaces            what a host is
//   host.NAME.card_DEVICE_PORT                     what a rank there reaches the others by, where it has a
//   card release.NAME.commtune, .open_mpi, .glibc       what runs there; no part of the fingerprint
//   release.NAME.firmware_DEVICE                   the same of such a card
//   host.NAME.gpu_0, gpu_1, ...                    its GPUs, where gradients lie on them
//   release.NAME.nvidia_driver, .nccl              what runs them
//   setting.VARIABLE                               Open MPI's settings, from who starts the ranks
//   wire_revision                                  kWireRevision of the program that measured

#include <span>

#include "executor/transport/transport.h"
#include "perfmodel/device_kind.h"
#include "probes/host/fact_differences.h"

namespace commtune::probes {

/// This rank's host under the names above, from the first rank there; empty from the others.
///
/// device  kCuda: and its GPUs
Facts own_facts(const Peers& peers, DeviceKind device);

/// This rank's end of the transport, from every rank: those of a host may use several cards.
Facts end_facts(const Transport& transport);

/// What all ranks said, and the revision of this program.
Facts joined_facts(std::span<const Facts> said);

/// Both of all ranks, joined, on rank 0; empty elsewhere. All ranks of the transport call it.
/// Throws Error{kTimeout} or Error{kPeerLost} naming a rank that did not answer.
///
/// device  kCuda: what is known of the hosts' GPUs, too
Facts gather_facts(Transport& transport, Deadline until, DeviceKind device = DeviceKind::kHost);

}  // namespace commtune::probes
