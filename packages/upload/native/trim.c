/*
 * trim(): gives back to the system what the C library keeps of freed memory. It keeps much after buffers of many sizes have come and gone:
 * a hundred megabytes, for as long as the process lives. Compiled by scripts/native.mjs where there is a C compiler, and called by
 * src/youngHeap.ts in quiet moments; where it is not there, the memory stays with the process until it is needed again.
 */
#include "nodeApi.h"
#include <malloc.h>

static napi_value trim(napi_env env, napi_info info) {
  (void)env;
  (void)info;
  malloc_trim(0);
  return NULL;
}

napi_value napi_register_module_v1(napi_env env, napi_value exports) {
  return exporting(env, exports, "trim", trim);
}
