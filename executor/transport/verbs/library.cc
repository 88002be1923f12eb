#include "executor/transport/verbs/library.h"

#include <fmt/format.h>

#include "executor/base/shared_library.h"

namespace commtune::verbs {
namespace {

constexpr const char* kFile = "libibverbs.so.1";

/// Older symbols of the same name are other functions.
constexpr const char* kInterface = "IBVERBS_1.1";

Loaded load() {
  Loaded result;
  SharedLibrary file(kFile);
  if (!file.is_there()) {
    result.why_not = fmt::format("{} cannot be loaded here: is rdma-core (libibverbs1) installed?", kFile);
    return result;
  }
  Library& library = result.library;
  file.find(library.get_device_list, "ibv_get_device_list", kInterface);
  file.find(library.free_device_list, "ibv_free_device_list", kInterface);
  file.find(library.get_device_name, "ibv_get_device_name", kInterface);
  file.find(library.open_device, "ibv_open_device", kInterface);
  file.find(library.close_device, "ibv_close_device", kInterface);
  file.find(library.query_device, "ibv_query_device", kInterface);
  file.find(library.query_port, "ibv_query_port", kInterface);
  file.find(library.query_gid_table, "_ibv_query_gid_table", "IBVERBS_1.11");
  file.find(library.alloc_pd, "ibv_alloc_pd", kInterface);
  file.find(library.dealloc_pd, "ibv_dealloc_pd", kInterface);
  file.find(library.reg_mr, "ibv_reg_mr_iova2", "IBVERBS_1.8");
  file.find(library.dereg_mr, "ibv_dereg_mr", kInterface);
  file.find(library.create_comp_channel, "ibv_create_comp_channel", "IBVERBS_1.0");
  file.find(library.destroy_comp_channel, "ibv_destroy_comp_channel", "IBVERBS_1.0");
  file.find(library.create_cq, "ibv_create_cq", kInterface);
  file.find(library.destroy_cq, "ibv_destroy_cq", kInterface);
  file.find(library.get_cq_event, "ibv_get_cq_event", kInterface);
  file.find(library.ack_cq_events, "ibv_ack_cq_events", kInterface);
  file.find(library.create_qp, "ibv_create_qp", kInterface);
  file.find(library.modify_qp, "ibv_modify_qp", kInterface);
  file.find(library.destroy_qp, "ibv_destroy_qp", kInterface);
  file.find(library.wc_status_str, "ibv_wc_status_str", kInterface);
  if (!file.missing().empty()) {
    result.why_not =
        fmt::format("{} of this host is older than rdma-core 33: it has no {}", kFile, file.missing());
  }
  return result;
}

}  // namespace

const Loaded& loaded() {
  static const Loaded result = load();
  return result;
}

}  // namespace commtune::verbs
