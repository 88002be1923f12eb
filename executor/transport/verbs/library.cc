#include "executor/transport/verbs/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace commtune::verbs {
namespace {

constexpr const char* kFile = "libibverbs.so.1";

/// Looks symbols up in the version of the interface that its header declares: older ones of the same name are
/// other functions.
class Symbols {
 public:
  explicit Symbols(void* handle) : handle_(handle) {}

  template <typename Function>
  void find(Function& function, const char* name, const char* version = "IBVERBS_1.1") {
    void* const found = dlvsym(handle_, name, version);
    if (found == nullptr && missing_.empty()) missing_ = fmt::format("{}@{}", name, version);
    function = reinterpret_cast<Function>(found);
  }
  const std::string& missing() const { return missing_; }

 private:
  void* handle_;
  std::string missing_;
};

Loaded load() {
  Loaded result;
  // Never closed: cards' drivers, which it loads, are not made to be unloaded.
  void* const handle = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    result.why_not = fmt::format("{} cannot be loaded here: is rdma-core (libibverbs1) installed?", kFile);
    return result;
  }
  Symbols symbols(handle);
  Library& library = result.library;
  symbols.find(library.get_device_list, "ibv_get_device_list");
  symbols.find(library.free_device_list, "ibv_free_device_list");
  symbols.find(library.get_device_name, "ibv_get_device_name");
  symbols.find(library.open_device, "ibv_open_device");
  symbols.find(library.close_device, "ibv_close_device");
  symbols.find(library.query_device, "ibv_query_device");
  symbols.find(library.query_port, "ibv_query_port");
  symbols.find(library.query_gid_table, "_ibv_query_gid_table", "IBVERBS_1.11");
  symbols.find(library.alloc_pd, "ibv_alloc_pd");
  symbols.find(library.dealloc_pd, "ibv_dealloc_pd");
  symbols.find(library.reg_mr, "ibv_reg_mr_iova2", "IBVERBS_1.8");
  symbols.find(library.dereg_mr, "ibv_dereg_mr");
  symbols.find(library.create_comp_channel, "ibv_create_comp_channel", "IBVERBS_1.0");
  symbols.find(library.destroy_comp_channel, "ibv_destroy_comp_channel", "IBVERBS_1.0");
  symbols.find(library.create_cq, "ibv_create_cq");
  symbols.find(library.destroy_cq, "ibv_destroy_cq");
  symbols.find(library.get_cq_event, "ibv_get_cq_event");
  symbols.find(library.ack_cq_events, "ibv_ack_cq_events");
  symbols.find(library.create_qp, "ibv_create_qp");
  symbols.find(library.modify_qp, "ibv_modify_qp");
  symbols.find(library.destroy_qp, "ibv_destroy_qp");
  symbols.find(library.wc_status_str, "ibv_wc_status_str");
  if (!symbols.missing().empty()) {
    result.why_not =
        fmt::format("{} of this host is older than rdma-core 33: it has no {}", kFile, symbols.missing());
  }
  return result;
}

}  // namespace

const Loaded& loaded() {
  static const Loaded result = load();
  return result;
}

}  // namespace commtune::verbs
