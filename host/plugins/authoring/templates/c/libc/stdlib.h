// The part of the C library that a plugin needs; libc.c has the code.
#pragma once
#include <stddef.h>

void *malloc(size_t size);
void *realloc(void *block, size_t size);
void free(void *block);
_Noreturn void abort(void);
