/* The controller's process: for each state that arrives, the exported law's torque goes back.
 *
 *     controller ROBOT_PORT SAMPLES PERIOD_US FILE
 *
 * Replace the two calls of the socket by those of your robot's driver. FILE gets a line for each sample: when the state
 * arrived, how long the law took, and when the torque was sent, in nanoseconds of the monotonic clock.
 */
#define _GNU_SOURCE
#include "messages.h"
#include "law.h"

#include <poll.h>

/* Which arguments the exported step has depends on whether the law has a state, and a rate of it (law.h). */
#if defined(NZ) && defined(Z_RATE)
#define LAW_STEP law_step(state.t, period, state.q, state.v, z, command.tau)
#elif defined(NZ)
#define LAW_STEP law_step(state.t, state.q, state.v, z, command.tau)
#else
#define LAW_STEP law_step(state.t, state.q, state.v, command.tau)
#endif

typedef struct { int64_t sample, arrived, computing, sent; } Times;

int main(int count, char **arguments)
{
    if (count != 5) return fprintf(stderr, "controller ROBOT_PORT SAMPLES PERIOD_US FILE\n"), 2;
    const int64_t samples = atoll(arguments[2]);
    const double period = 1e-6 * atof(arguments[3]);
    (void)period; /* of laws without a rate */
    Times *times = calloc(samples, sizeof *times); /* before the loop: nothing is allocated or printed in it */
    FILE *file = fopen(arguments[4], "w");
    if (!times || !file) fail(arguments[4]);
    int s = open_socket(0), is_real_time = real_time(80);
    connect_to(s, atoi(arguments[1]));

#ifdef NZ
    double z[NZ];
    law_start(z);
#endif
    int64_t done = 0;
    Command command = {.sample = -1}; /* says where we are: the robot begins when it has this */
    if (send(s, &command, sizeof command, 0) < 0) fail("send");
    while (done < samples) {
        State state;
        struct pollfd waiting = {.fd = s, .events = POLLIN};
        if (poll(&waiting, 1, 5000) <= 0) break; /* the robot is gone */
        if (recv(s, &state, sizeof state, 0) != sizeof state || state.status == FINISHED) break;
        Times *k = &times[done++];
        k->sample = state.sample;
        k->arrived = now();
        command.sample = state.sample;
        command.valid = LAW_STEP;
        k->computing = now() - k->arrived;
        if (!command.valid) memset(command.tau, 0, sizeof command.tau);
        send(s, &command, sizeof command, 0);
        k->sent = now();
        if (!command.valid) break;
    }
    fprintf(file, "# real-time priority and locked memory: %s\n", is_real_time ? "yes" : "no");
    fprintf(file, "sample,arrived,computing,sent\n");
    for (int64_t k = 0; k < done; k++)
        fprintf(file, "%lld,%lld,%lld,%lld\n", (long long)times[k].sample, (long long)times[k].arrived,
                (long long)times[k].computing, (long long)times[k].sent);
    return fclose(file) ? 2 : 0;
}
