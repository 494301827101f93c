/*
 * The few functions of Node-API that our C needs. Its binary interface is promised to stay; Debian's Node brings no header.
 */
#include <stddef.h>

typedef struct napi_env_ *napi_env;
typedef struct napi_value_ *napi_value;
typedef struct napi_info_ *napi_info;
typedef napi_value (*napi_function)(napi_env, napi_info);
int napi_create_function(napi_env, const char *, size_t, napi_function, void *, napi_value *);
int napi_set_named_property(napi_env, napi_value, const char *, napi_value);
int napi_get_cb_info(napi_env, napi_info, size_t *, napi_value *, napi_value *, void **);
int napi_get_buffer_info(napi_env, napi_value, void **, size_t *);
int napi_throw_type_error(napi_env, const char *, const char *);

/* Node asks every file that it loads. */
int node_api_module_get_api_version_v1(void) {
  return 8;
}

static inline napi_value exporting(napi_env env, napi_value exports, const char *name, napi_function function) {
  napi_value made;
  if (napi_create_function(env, name, (size_t)-1, function, NULL, &made) == 0)
    napi_set_named_property(env, exports, name, made);
  return exports;
}
