/* A disk that fails when it is told to, and notes all that is written to it.

   Preloaded before a process starts, it stands between the process and the C library for every call that changes a
   file below one folder. `disk_fail` makes the n-th call of a kind fail; `disk_note` writes each successful call into a
   file, from which a test builds what a power cut could have left. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WRITE, SYNC, ALLOCATE, TRUNCATE, RENAME, OPEN, LINK, REMOVE, MAKE, KINDS };

static struct {
  long after;
  int error, lasting;
  long cut;
} plan[KINDS];
static long calls[KINDS];
static char folder[4096];
static int notes = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void disk_watch(const char *path) { snprintf(folder, sizeof folder, "%s", path); }
void disk_fail(int kind, long after, int error, int lasting, long cut) {
  plan[kind].after = after, plan[kind].error = error, plan[kind].lasting = lasting, plan[kind].cut = cut;
}
void disk_heal(void) { memset(plan, 0, sizeof plan); }
long disk_calls(int kind) { return calls[kind]; }
void disk_note(const char *path) {
  int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
  notes = real(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
}

static int below(const char *path) {
  size_t length = strlen(folder);
  return length && !strncmp(path, folder, length);
}

static const char *path_of(int fd, char *out) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, out, 4095);
  out[length < 0 ? 0 : length] = 0;
  return out;
}

static const char *path_at(int fd, const char *name, char *out) {
  if (name[0] == '/' || fd == AT_FDCWD) {
    if (name[0] == '/') return name;
    if (!getcwd(out, 2048)) out[0] = 0;
  } else path_of(fd, out);
  size_t length = strlen(out);
  snprintf(out + length, 4096 - length, "/%s", name);
  return out;
}

/* 0, or the error that this call has to fail with; a cut is left in `*cut`. */
static int due(int kind, long *cut) {
  int error = 0;
  pthread_mutex_lock(&lock);
  calls[kind]++;
  if ((plan[kind].error || plan[kind].cut) && plan[kind].after-- <= 0) {
    error = plan[kind].error;
    if (cut) *cut = plan[kind].cut;
    if (!plan[kind].lasting) plan[kind].error = 0, plan[kind].cut = 0;
  }
  pthread_mutex_unlock(&lock);
  return error;
}

static void note(int kind, const char *path, const char *other, uint64_t offset, const void *data, uint64_t length) {
  if (notes < 0) return;
  ssize_t (*put)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
  struct { uint32_t kind, path, other; uint32_t pad; uint64_t offset, length; } head = {
      kind, strlen(path), other ? strlen(other) : 0, 0, offset, data ? length : 0};
  pthread_mutex_lock(&lock);
  if (put(notes, &head, sizeof head) < 0 || put(notes, path, head.path) < 0) _exit(99);
  if (other && put(notes, other, head.other) < 0) _exit(99);
  if (data && put(notes, data, length) < 0) _exit(99);
  pthread_mutex_unlock(&lock);
}

void disk_mark(const char *what) { note(KINDS, what, NULL, 0, NULL, 0); }

#define REAL(type, name, ...) type (*real)(__VA_ARGS__) = dlsym(RTLD_NEXT, name)
#define FAIL_IF(kind) do { int e = due(kind, NULL); if (e) { errno = e; return -1; } } while (0)

static ssize_t put(int fd, const void *data, size_t count, off_t offset, int placed) {
  REAL(ssize_t, "write", int, const void *, size_t);
  ssize_t (*real_at)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite64");
  char path[4096];
  int ours = folder[0] && below(path_of(fd, path));
  if (ours) {
    long cut = 0;
    int error = due(WRITE, &cut);
    if (cut > 0 && (size_t)cut < count) count = cut;
    else if (error) { errno = error; return -1; }
  }
  ssize_t done = placed ? real_at(fd, data, count, offset) : real(fd, data, count);
  if (ours && done > 0) note(WRITE, path, NULL, placed ? offset : lseek(fd, 0, SEEK_CUR) - done, data, done);
  return done;
}

ssize_t write(int fd, const void *data, size_t count) { return put(fd, data, count, 0, 0); }
ssize_t pwrite64(int fd, const void *data, size_t count, off_t offset) { return put(fd, data, count, offset, 1); }
ssize_t pwrite(int fd, const void *data, size_t count, off_t offset) { return put(fd, data, count, offset, 1); }

#define ON_DESCRIPTOR(kind, name, declared, passed, offset, ...)       \
  int name declared {                                                  \
    REAL(int, #name, __VA_ARGS__);                                     \
    char path[4096];                                                   \
    int ours = folder[0] && below(path_of(fd, path));                  \
    if (ours) FAIL_IF(kind);                                           \
    int done = real passed;                                            \
    if (ours && !done) note(kind, path, NULL, offset, NULL, 0);        \
    return done;                                                       \
  }
ON_DESCRIPTOR(SYNC, fsync, (int fd), (fd), 0, int)
ON_DESCRIPTOR(SYNC, fdatasync, (int fd), (fd), 0, int)
ON_DESCRIPTOR(ALLOCATE, fallocate, (int fd, int mode, off_t at, off_t length), (fd, mode, at, length), at + length, int, int, off_t, off_t)
ON_DESCRIPTOR(ALLOCATE, fallocate64, (int fd, int mode, off_t at, off_t length), (fd, mode, at, length), at + length, int, int, off_t, off_t)
ON_DESCRIPTOR(TRUNCATE, ftruncate, (int fd, off_t length), (fd, length), length, int, off_t)
ON_DESCRIPTOR(TRUNCATE, ftruncate64, (int fd, off_t length), (fd, length), length, int, off_t)

#define ON_PATH(kind, name, declared, at, given, passed, ...)          \
  int name declared {                                                  \
    REAL(int, #name, __VA_ARGS__);                                     \
    char full[8192];                                                   \
    const char *path = path_at(at, given, full);                       \
    int ours = below(path);                                            \
    if (ours) FAIL_IF(kind);                                           \
    int done = real passed;                                            \
    if (ours && !done) note(kind, path, NULL, 0, NULL, 0);             \
    return done;                                                       \
  }
ON_PATH(REMOVE, unlink, (const char *name), AT_FDCWD, name, (name), const char *)
ON_PATH(REMOVE, rmdir, (const char *name), AT_FDCWD, name, (name), const char *)
ON_PATH(REMOVE, unlinkat, (int fd, const char *name, int flags), fd, name, (fd, name, flags), int, const char *, int)
ON_PATH(MAKE, mkdir, (const char *name, mode_t mode), AT_FDCWD, name, (name, mode), const char *, mode_t)

#define ON_TWO(kind, name, declared, from_at, from, to_at, to, passed, ...)                 \
  int name declared {                                                                       \
    REAL(int, #name, __VA_ARGS__);                                                          \
    char one[8192], two[8192];                                                              \
    const char *path = path_at(from_at, from, one), *other = path_at(to_at, to, two);       \
    int ours = below(path) || below(other);                                                 \
    if (ours) FAIL_IF(kind);                                                                \
    int done = real passed;                                                                 \
    if (ours && !done) note(kind, path, other, 0, NULL, 0);                                 \
    return done;                                                                            \
  }
ON_TWO(RENAME, rename, (const char *a, const char *b), AT_FDCWD, a, AT_FDCWD, b, (a, b), const char *, const char *)
ON_TWO(RENAME, renameat, (int x, const char *a, int y, const char *b), x, a, y, b, (x, a, y, b), int, const char *, int, const char *)
ON_TWO(LINK, link, (const char *a, const char *b), AT_FDCWD, a, AT_FDCWD, b, (a, b), const char *, const char *)
ON_TWO(LINK, linkat, (int x, const char *a, int y, const char *b, int flags), x, a, y, b, (x, a, y, b, flags), int, const char *, int, const char *, int)

static int open_noted(int (*real)(int, const char *, int, ...), int fd, const char *name, int flags, mode_t mode) {
  char full[8192];
  const char *path = path_at(fd, name, full);
  int writes = (flags & O_ACCMODE) != O_RDONLY, ours = below(path);
  struct stat known;
  int there = ours && writes && !fstatat(fd, name, &known, 0);
  if (ours) FAIL_IF(OPEN);
  int done = real(fd, name, flags, mode);
  if (ours && writes && done >= 0 && (flags & O_CREAT) && !there) note(OPEN, path, NULL, 0, NULL, 0);
  else if (ours && writes && done >= 0 && (flags & O_TRUNC)) note(TRUNCATE, path, NULL, 0, NULL, 0);
  return done;
}

#define OPENS(name, real_name)                                                      \
  int name(const char *path, int flags, ...) {                                      \
    va_list more;                                                                   \
    va_start(more, flags);                                                          \
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0;       \
    va_end(more);                                                                   \
    return open_noted(dlsym(RTLD_NEXT, real_name), AT_FDCWD, path, flags, mode);    \
  }
OPENS(open, "openat64")
OPENS(open64, "openat64")
#define OPENS_AT(name)                                                              \
  int name(int fd, const char *path, int flags, ...) {                              \
    va_list more;                                                                   \
    va_start(more, flags);                                                          \
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0;       \
    va_end(more);                                                                   \
    return open_noted(dlsym(RTLD_NEXT, "openat64"), fd, path, flags, mode);         \
  }
OPENS_AT(openat)
OPENS_AT(openat64)
