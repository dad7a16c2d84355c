// No C library is there for a plugin without a system below it, and little of one is needed. Every call into a plugin gets a fresh
// memory, so nothing is ever given back: free does nothing.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Where the linker's data ends.
extern unsigned char __heap_base;

enum { ALIGNMENT = 16, PAGE = 65536 };

static uintptr_t next;

// The size of each block stands before it, for realloc.
static size_t *size_of(void *block) { return (size_t *)block - 1; }

_Noreturn void abort(void) { __builtin_trap(); }

void *malloc(size_t size) {
  if (next == 0) {
    next = (uintptr_t)&__heap_base;
  }
  uintptr_t block = (next + sizeof(size_t) + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
  uintptr_t end = block + size;
  uintptr_t have = (uintptr_t)__builtin_wasm_memory_size(0) * PAGE;
  if (end < block) {
    abort();
  }
  if (end > have) {
    uintptr_t pages = (end - have + PAGE - 1) / PAGE;
    if (__builtin_wasm_memory_grow(0, pages) == (size_t)-1) {
      abort();
    }
  }
  next = end;
  *size_of((void *)block) = size;
  return (void *)block;
}

void *realloc(void *block, size_t size) {
  if (block == NULL) {
    return malloc(size);
  }
  size_t old = *size_of(block);
  if (size <= old) {
    return block;
  }
  void *moved = malloc(size);
  memcpy(moved, block, old);
  return moved;
}

void free(void *block) { (void)block; }

void *memcpy(void *to, const void *from, size_t size) {
  unsigned char *out = to;
  const unsigned char *in = from;
  for (size_t i = 0; i < size; i++) {
    out[i] = in[i];
  }
  return to;
}

void *memmove(void *to, const void *from, size_t size) {
  unsigned char *out = to;
  const unsigned char *in = from;
  if (out <= in) {
    return memcpy(to, from, size);
  }
  for (size_t i = size; i > 0; i--) {
    out[i - 1] = in[i - 1];
  }
  return to;
}

void *memset(void *to, int byte, size_t size) {
  unsigned char *out = to;
  for (size_t i = 0; i < size; i++) {
    out[i] = (unsigned char)byte;
  }
  return to;
}

int memcmp(const void *a, const void *b, size_t size) {
  const unsigned char *x = a, *y = b;
  for (size_t i = 0; i < size; i++) {
    if (x[i] != y[i]) {
      return x[i] < y[i] ? -1 : 1;
    }
  }
  return 0;
}

size_t strlen(const char *text) {
  size_t length = 0;
  while (text[length] != 0) {
    length++;
  }
  return length;
}
