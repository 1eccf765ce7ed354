/* What the robot and its controller send each other, and the clock that both read. Both processes run on one machine:
 * the numbers travel in its byte order.
 */
#ifndef MESSAGES_H
#define MESSAGES_H

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#define NANO 1000000000LL

enum { RUNNING = 1, FINISHED = 0 };

typedef struct { int64_t sample, status; double t, q[NQ], v[NV]; } State;
typedef struct { int64_t sample, valid; double tau[NV]; } Command; /* not valid: the law had no result, stop safely */

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * NANO + t.tv_nsec;
}

static void fail(const char *message)
{
    perror(message);
    exit(2);
}

/* Memory that is never swapped out, and a priority above all ordinary processes. Both need rights that an ordinary user
 * often lacks: the loop runs without them, with more jitter. */
static int real_time(int priority)
{
    struct sched_param parameters = {.sched_priority = priority};
    int locked = !mlockall(MCL_CURRENT | MCL_FUTURE), scheduled = !sched_setscheduler(0, SCHED_FIFO, &parameters);
    return locked && scheduled;
}

/* A UDP socket on this machine; a port of 0 takes a free one, which is printed. */
static int open_socket(int port)
{
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (s < 0 || bind(s, (struct sockaddr *)&address, size)) fail("socket");
    if (getsockname(s, (struct sockaddr *)&address, &size)) fail("socket");
    printf("port %d\n", ntohs(address.sin_port));
    fflush(stdout);
    return s;
}

static void connect_to(int s, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(s, (struct sockaddr *)&address, sizeof address)) fail("connect");
}

#endif
