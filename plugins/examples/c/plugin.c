// `gpu2@n03.json` is slot 2 of node n03; ranks count slots through the nodes, in the order of the site's list.
#include "bindings/trace_naming.h"
#include <stdlib.h>
#include <string.h>

typedef trace_naming_string_t text;
typedef exports_tracemend_plugin_naming_label_t label;
typedef exports_tracemend_plugin_naming_claim_t claim;

enum { MOST_GPUS = 1024 };

static text literal(const char *characters) {
  text result;
  trace_naming_string_set(&result, characters);
  return result;
}

static void describe_setting(tracemend_plugin_types_setting_t *setting, const char *name, const char *help,
                             const char *otherwise) {
  trace_naming_string_dup(&setting->name, name);
  trace_naming_string_dup(&setting->help, help);
  setting->default_.is_some = otherwise != NULL;
  if (otherwise != NULL) {
    trace_naming_string_dup(&setting->default_.val, otherwise);
  }
}

void exports_tracemend_plugin_naming_describe(exports_tracemend_plugin_naming_description_t *card) {
  trace_naming_string_dup(&card->name, "gpu-nodes");
  trace_naming_string_dup(&card->version, "0.1.0");
  trace_naming_string_dup(&card->summary, "ranks from gpu<slot>@<node>.json");
  card->settings.len = 2;
  card->settings.ptr = malloc(2 * sizeof *card->settings.ptr);
  describe_setting(&card->settings.ptr[0], "nodes", "The job's nodes in the order of their ranks, with commas between.",
                   NULL);
  describe_setting(&card->settings.ptr[1], "gpus-per-node", "How many GPUs a node has, 1 to 1024.", "4");
}

static bool equal(text a, text b) { return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0; }

static bool drop_prefix(text *from, const char *characters) {
  text prefix = literal(characters);
  if (from->len < prefix.len || memcmp(from->ptr, prefix.ptr, prefix.len) != 0) {
    return false;
  }
  *from = (text){from->ptr + prefix.len, from->len - prefix.len};
  return true;
}

static bool drop_suffix(text *from, const char *characters) {
  text suffix = literal(characters);
  if (from->len < suffix.len || memcmp(from->ptr + from->len - suffix.len, suffix.ptr, suffix.len) != 0) {
    return false;
  }
  from->len -= suffix.len;
  return true;
}

// What stands before `mark`, which `rest` loses together with the mark; all of it where there is no mark.
static text up_to(text *rest, char mark) {
  size_t end = 0;
  while (end < rest->len && rest->ptr[end] != mark) {
    end++;
  }
  text before = {rest->ptr, end};
  size_t used = end < rest->len ? end + 1 : end;
  *rest = (text){rest->ptr + used, rest->len - used};
  return before;
}

static text trimmed(text word) {
  while (word.len > 0 && word.ptr[0] == ' ') {
    word = (text){word.ptr + 1, word.len - 1};
  }
  while (word.len > 0 && word.ptr[word.len - 1] == ' ') {
    word.len--;
  }
  return word;
}

static bool number(text digits, uint32_t *value) {
  if (digits.len == 0 || digits.len > 9) {
    return false;
  }
  *value = 0;
  for (size_t i = 0; i < digits.len; i++) {
    if (digits.ptr[i] < '0' || digits.ptr[i] > '9') {
      return false;
    }
    *value = *value * 10 + (digits.ptr[i] - '0');
  }
  return true;
}

// The site's nodes, in its order.
typedef struct {
  text *ptr;
  uint32_t len;
} list;

static list split(text nodes) {
  list result = {malloc((nodes.len / 2 + 1) * sizeof(text)), 0};
  while (nodes.len > 0) {
    text node = trimmed(up_to(&nodes, ','));
    if (node.len > 0) {
      result.ptr[result.len++] = node;
    }
  }
  return result;
}

static label unknown(const char *reason) {
  label result = {.tag = EXPORTS_TRACEMEND_PLUGIN_NAMING_LABEL_UNKNOWN};
  trace_naming_string_dup(&result.val.unknown, reason);
  return result;
}

static label label_of(text path, list nodes, uint32_t gpus) {
  text file = path;
  while (path.len > 0) {
    file = up_to(&path, '/');
  }
  drop_suffix(&file, ".gz");
  if (!drop_suffix(&file, ".json") || !drop_prefix(&file, "gpu")) {
    return unknown("not named gpu<slot>@<node>.json");
  }
  uint32_t slot;
  if (!number(up_to(&file, '@'), &slot)) {
    return unknown("not named gpu<slot>@<node>.json");
  }
  if (slot >= gpus) {
    return unknown("no node has so many GPUs");
  }
  for (uint32_t i = 0; i < nodes.len; i++) {
    if (equal(file, nodes.ptr[i])) {
      label result = {.tag = EXPORTS_TRACEMEND_PLUGIN_NAMING_LABEL_RANK};
      claim *rank = &result.val.rank;
      rank->rank = i * gpus + slot;
      rank->world_size.is_some = true;
      rank->world_size.val = nodes.len * gpus;
      rank->node.is_some = true;
      trace_naming_string_dup_n(&rank->node.val, (const char *)file.ptr, file.len);
      rank->certain = true;
      trace_naming_string_dup(&rank->evidence, "slot and node in the name");
      return result;
    }
  }
  return unknown("its node is not in the setting nodes");
}

bool exports_tracemend_plugin_naming_label_all(exports_tracemend_plugin_naming_list_trace_t *traces,
                                               trace_naming_list_tuple2_string_string_t *settings,
                                               exports_tracemend_plugin_naming_list_label_t *labels, text *error) {
  list nodes = {NULL, 0};
  uint32_t gpus = 4;
  for (size_t i = 0; i < settings->len; i++) {
    trace_naming_tuple2_string_string_t *set = &settings->ptr[i];
    if (equal(set->f0, literal("nodes"))) {
      nodes = split(set->f1);
    }
    if (equal(set->f0, literal("gpus-per-node")) && (!number(set->f1, &gpus) || gpus < 1 || gpus > MOST_GPUS)) {
      trace_naming_string_dup(error, "gpus-per-node must be 1 to 1024");
      return false;
    }
  }
  labels->len = traces->len;
  labels->ptr = malloc(traces->len * sizeof(label));
  for (size_t i = 0; i < traces->len; i++) {
    labels->ptr[i] = label_of(traces->ptr[i].path, nodes, gpus);
  }
  return true;
}
