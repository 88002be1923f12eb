/* The header is C: this is compiled by the C compiler, with all its warnings. */
#include "api/c/commtune.h"

const char* name_of_a_code_in_c(void);
const char* name_of_a_code_in_c(void) { return commtune_code_name(COMMTUNE_PEER_LOST); }
