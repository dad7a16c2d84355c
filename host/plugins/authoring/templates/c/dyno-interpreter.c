// What did the answer to a capture request mean? This site's wrapper around dyno prints `traced PID` for each process.
#include "bindings/dyno_interpreter.h"
#include <stdlib.h>
#include <string.h>

typedef dyno_interpreter_string_t text;
typedef exports_tracemend_plugin_interpreter_answer_t answer;

void exports_tracemend_plugin_interpreter_describe(exports_tracemend_plugin_interpreter_description_t *card) {
  // What is returned is freed after the call, so it is copied to the heap.
  dyno_interpreter_string_dup(&card->name, "@NAME@");
  dyno_interpreter_string_dup(&card->version, "0.1.0");
  dyno_interpreter_string_dup(&card->summary, "a wrapper that prints `traced PID`");
  card->settings.len = 0;
}

// The next line of `rest`, which is shortened by it; false at the end.
static bool next_line(text *rest, text *line) {
  if (rest->len == 0) {
    return false;
  }
  size_t end = 0;
  while (end < rest->len && rest->ptr[end] != '\n') {
    end++;
  }
  *line = (text){rest->ptr, end};
  size_t used = end < rest->len ? end + 1 : end;
  rest->ptr += used;
  rest->len -= used;
  return true;
}

// `traced 4101` is 4101, any other line 0.
static int64_t traced(text line) {
  static const char word[] = "traced ";
  size_t begin = sizeof word - 1;
  if (line.len <= begin || line.len > begin + 18 || memcmp(line.ptr, word, begin) != 0) {
    return 0;
  }
  int64_t pid = 0;
  for (size_t i = begin; i < line.len; i++) {
    if (line.ptr[i] < '0' || line.ptr[i] > '9') {
      return 0;
    }
    pid = pid * 10 + (line.ptr[i] - '0');
  }
  return pid;
}

static void add_once(dyno_interpreter_list_s64_t *pids, int64_t pid) {
  for (size_t i = 0; i < pids->len; i++) {
    if (pids->ptr[i] == pid) {
      return;
    }
  }
  pids->ptr[pids->len++] = pid;
}

static bool is_blank(text line) {
  for (size_t i = 0; i < line.len; i++) {
    if (line.ptr[i] > ' ') {
      return false;
    }
  }
  return true;
}

// The first line that says something, cut to a length for people.
static bool said(text output, text *line) {
  while (next_line(&output, line)) {
    if (!is_blank(*line)) {
      line->len = line->len < 200 ? line->len : 200;
      return true;
    }
  }
  return false;
}

bool exports_tracemend_plugin_interpreter_interpret(exports_tracemend_plugin_interpreter_call_t *call,
                                                    dyno_interpreter_list_tuple2_string_string_t *settings,
                                                    answer *result, text *error) {
  (void)settings;
  (void)error; // set it and return false where nothing of this kind can be interpreted
  memset(result, 0, sizeof *result);
  text line;
  if (!call->exit_code.is_some) {
    result->verdict = EXPORTS_TRACEMEND_PLUGIN_INTERPRETER_VERDICT_UNREACHABLE;
    dyno_interpreter_string_dup(&result->reason, "the wrapper did not come to its end");
    return true;
  }
  if (call->exit_code.val != 0) {
    result->verdict = EXPORTS_TRACEMEND_PLUGIN_INTERPRETER_VERDICT_REJECTED;
    if (said((text){call->stderr_.ptr, call->stderr_.len}, &line)) {
      // Output may be any bytes; the host makes text of them.
      tracemend_plugin_bytes_repair(&(dyno_interpreter_list_u8_t){line.ptr, line.len}, &result->reason);
    } else {
      dyno_interpreter_string_dup(&result->reason, "it failed without a word");
    }
    return true;
  }
  text rest = {call->stdout_.ptr, call->stdout_.len};
  dyno_interpreter_list_s64_t pids = {malloc((call->stdout_.len / 8 + 1) * sizeof(int64_t)), 0};
  while (next_line(&rest, &line)) {
    int64_t pid = traced(line);
    if (pid > 0) {
      add_once(&pids, pid);
    }
  }
  if (pids.len == 0) {
    result->verdict = EXPORTS_TRACEMEND_PLUGIN_INTERPRETER_VERDICT_WAITING;
    dyno_interpreter_string_dup(&result->reason, "no process is there yet");
    return true;
  }
  result->verdict = EXPORTS_TRACEMEND_PLUGIN_INTERPRETER_VERDICT_ACCEPTED;
  result->matched = pids;
  result->triggered = (dyno_interpreter_list_s64_t){malloc(pids.len * sizeof(int64_t)), pids.len};
  memcpy(result->triggered.ptr, pids.ptr, pids.len * sizeof(int64_t));
  dyno_interpreter_string_dup(&result->reason, "traced");
  return true;
}
