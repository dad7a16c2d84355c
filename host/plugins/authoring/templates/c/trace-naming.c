// Whose trace is this? `gpu3.json` is rank 3's.
#include "bindings/trace_naming.h"
#include <stdlib.h>
#include <string.h>

typedef trace_naming_string_t text;
typedef exports_tracemend_plugin_naming_label_t label;

static text literal(const char *characters) {
  text result;
  trace_naming_string_set(&result, characters);
  return result;
}

void exports_tracemend_plugin_naming_describe(exports_tracemend_plugin_naming_description_t *card) {
  // What is returned is freed after the call, so it is copied to the heap.
  trace_naming_string_dup(&card->name, "@NAME@");
  trace_naming_string_dup(&card->version, "0.1.0");
  trace_naming_string_dup(&card->summary, "ranks from gpu<rank>.json");
  card->settings.len = 1;
  card->settings.ptr = malloc(sizeof *card->settings.ptr);
  tracemend_plugin_types_setting_t *prefix = card->settings.ptr;
  trace_naming_string_dup(&prefix->name, "prefix");
  trace_naming_string_dup(&prefix->help, "What stands before the rank in a trace's name.");
  prefix->default_.is_some = true;
  trace_naming_string_dup(&prefix->default_.val, "gpu");
}

static bool equal(text a, text b) { return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0; }

// The file's name without folders, up to the first dot.
static text stem(text path) {
  size_t begin = path.len;
  while (begin > 0 && path.ptr[begin - 1] != '/') {
    begin--;
  }
  size_t end = begin;
  while (end < path.len && path.ptr[end] != '.') {
    end++;
  }
  return (text){path.ptr + begin, end - begin};
}

// Whether `name` is `prefix` and a rank, and nothing else.
static bool rank_of(text name, text prefix, uint32_t *rank) {
  if (name.len <= prefix.len || memcmp(name.ptr, prefix.ptr, prefix.len) != 0) {
    return false;
  }
  uint64_t number = 0;
  for (size_t i = prefix.len; i < name.len; i++) {
    if (name.ptr[i] < '0' || name.ptr[i] > '9') {
      return false;
    }
    number = number * 10 + (name.ptr[i] - '0');
    if (number > UINT32_MAX) {
      return false;
    }
  }
  *rank = (uint32_t)number;
  return true;
}

bool exports_tracemend_plugin_naming_label_all(exports_tracemend_plugin_naming_list_trace_t *traces,
                                               trace_naming_list_tuple2_string_string_t *settings,
                                               exports_tracemend_plugin_naming_list_label_t *labels, text *error) {
  (void)error; // set it and return false where nothing at all can be labelled
  text prefix = literal("gpu");
  for (size_t i = 0; i < settings->len; i++) {
    if (equal(settings->ptr[i].f0, literal("prefix"))) {
      prefix = settings->ptr[i].f1;
    }
  }
  labels->len = traces->len;
  labels->ptr = malloc(traces->len * sizeof(label));
  memset(labels->ptr, 0, traces->len * sizeof(label));
  for (size_t i = 0; i < traces->len; i++) {
    text name = stem(traces->ptr[i].path);
    uint32_t rank;
    if (rank_of(name, prefix, &rank)) {
      labels->ptr[i].tag = EXPORTS_TRACEMEND_PLUGIN_NAMING_LABEL_RANK;
      labels->ptr[i].val.rank.rank = rank;
      // A name proves nothing, so `certain` stays false: what a trace says of itself overrules it.
      trace_naming_string_dup(&labels->ptr[i].val.rank.evidence, "number in the name");
    } else {
      labels->ptr[i].tag = EXPORTS_TRACEMEND_PLUGIN_NAMING_LABEL_UNKNOWN;
      trace_naming_string_dup(&labels->ptr[i].val.unknown, "not called <prefix><rank>.json");
    }
  }
  return true;
}
