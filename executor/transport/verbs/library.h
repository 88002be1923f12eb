#pragma once
// libibverbs, loaded when the program runs: one program serves hosts with RDMA and hosts without. Its inline
// functions (ibv_post_send() and the like) reach a card through the card's own table and need no symbol; only
// what it exports is looked up here. For the sources of this folder.

#include <infiniband/verbs.h>

#include <memory>
#include <string>

namespace commtune::verbs {

struct Library {
  decltype(&ibv_get_device_list) get_device_list = nullptr;
  decltype(&ibv_free_device_list) free_device_list = nullptr;
  decltype(&ibv_get_device_name) get_device_name = nullptr;
  decltype(&ibv_open_device) open_device = nullptr;
  decltype(&ibv_close_device) close_device = nullptr;
  decltype(&ibv_query_device) query_device = nullptr;
  decltype(&ibv_query_port) query_port = nullptr;
  decltype(&_ibv_query_gid_table) query_gid_table = nullptr;
  decltype(&ibv_alloc_pd) alloc_pd = nullptr;
  decltype(&ibv_dealloc_pd) dealloc_pd = nullptr;
  decltype(&ibv_reg_mr_iova2) reg_mr = nullptr;  ///< leaves out of what is wished for what a card cannot do
  decltype(&ibv_dereg_mr) dereg_mr = nullptr;
  decltype(&ibv_create_comp_channel) create_comp_channel = nullptr;
  decltype(&ibv_destroy_comp_channel) destroy_comp_channel = nullptr;
  decltype(&ibv_create_cq) create_cq = nullptr;
  decltype(&ibv_destroy_cq) destroy_cq = nullptr;
  decltype(&ibv_get_cq_event) get_cq_event = nullptr;
  decltype(&ibv_ack_cq_events) ack_cq_events = nullptr;
  decltype(&ibv_create_qp) create_qp = nullptr;
  decltype(&ibv_modify_qp) modify_qp = nullptr;
  decltype(&ibv_destroy_qp) destroy_qp = nullptr;
  decltype(&ibv_wc_status_str) wc_status_str = nullptr;
};

/// The library, or why this host does not have it. Loaded once a process and never unloaded; from any thread.
struct Loaded {
  Library library;
  std::string why_not;  ///< empty: it is there
};
const Loaded& loaded();
/// The library itself; it must be there.
inline const Library& library() { return loaded().library; }

/// Owners of what it makes.
struct Release {
  void operator()(ibv_context* context) const noexcept { library().close_device(context); }
  void operator()(ibv_pd* domain) const noexcept { library().dealloc_pd(domain); }
  void operator()(ibv_mr* region) const noexcept { library().dereg_mr(region); }
  void operator()(ibv_comp_channel* channel) const noexcept { library().destroy_comp_channel(channel); }
  void operator()(ibv_cq* queue) const noexcept { library().destroy_cq(queue); }
  void operator()(ibv_qp* pair) const noexcept { library().destroy_qp(pair); }
};
template <typename Made>
using Owned = std::unique_ptr<Made, Release>;

}  // namespace commtune::verbs
