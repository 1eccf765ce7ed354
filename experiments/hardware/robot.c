/* The robot's process, simulated: at each period it sends its state, holds the torque that comes back for a period, and
 * moves on by the classical Runge-Kutta method.
 *
 *     robot SAMPLES PERIOD_US STEPS DEADLINE_US FILE q1 ... v1 ...
 *
 * It keeps the clock, as robots do that are commanded over a network: a torque that is later than DEADLINE_US after the
 * state is missed, and the last one is held for another period. After ten missed in a row, or a command that is not
 * valid, it stops, as a drive would. DEADLINE_US = 0: it waits for each torque and keeps no clock (for tests). FILE gets
 * a line for each sample: whether the torque came in time, how long it took, the state and the torque.
 */
#define _GNU_SOURCE
#include "messages.h"
#include "plant.h"

#include <poll.h>

enum { MAX_MISSED = 10 };

typedef struct { int64_t missed, round_trip; State state; double tau[NV]; } Sample;

static void sleep_until(int64_t instant)
{
    struct timespec t = {instant / NANO, instant % NANO};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL)) { }
}

/* One step of the classical Runge-Kutta method; 0 where there is no acceleration. */
static int advance(double h, double q[NQ], double v[NV], const double tau[NV])
{
    const double share[] = {0.0, 0.5, 0.5, 1.0}, weight[] = {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6};
    double dq[NQ], dv[NV], a[NV], q_stage[NQ], v_stage[NV], q_sum[NQ] = {0}, v_sum[NV] = {0};
    for (int stage = 0; stage < 4; stage++) {
        for (int i = 0; i < NV; i++) {
            q_stage[i] = q[i] + (stage ? h * share[stage] * dq[i] : 0.0);
            v_stage[i] = v[i] + (stage ? h * share[stage] * dv[i] : 0.0);
        }
        if (!plant_forward_dynamics(q_stage, v_stage, tau, a)) return 0;
        for (int i = 0; i < NV; i++) {
            dq[i] = v_stage[i];
            dv[i] = a[i];
            q_sum[i] += weight[stage] * dq[i];
            v_sum[i] += weight[stage] * dv[i];
        }
    }
    for (int i = 0; i < NV; i++) {
        q[i] += h * q_sum[i];
        v[i] += h * v_sum[i];
    }
    return 1;
}

/* The torque for this sample, before the deadline; 0 if it is late. Late ones of samples before are thrown away. */
static int received(int s, int64_t sample, int64_t deadline, Command *command)
{
    for (;;) {
        int64_t left = deadline ? deadline - now() : 5 * NANO;
        struct timespec timeout = {left / NANO, left % NANO};
        struct pollfd waiting = {.fd = s, .events = POLLIN};
        if (left <= 0 || ppoll(&waiting, 1, &timeout, NULL) <= 0) return 0;
        if (recv(s, command, sizeof *command, 0) == sizeof *command && command->sample == sample) return 1;
    }
}

int main(int count, char **arguments)
{
    if (count != 6 + NQ + NV) return fprintf(stderr, "robot SAMPLES PERIOD_US STEPS DEADLINE_US FILE q v\n"), 2;
    const int64_t samples = atoll(arguments[1]), period = (int64_t)(1000.0 * atof(arguments[2]));
    const int64_t deadline = (int64_t)(1000.0 * atof(arguments[4]));
    const int steps = atoi(arguments[3]);
    Sample *log = calloc(samples, sizeof *log);
    FILE *file = fopen(arguments[5], "w");
    if (!log || !file || steps < 1) fail(arguments[5]);
    State state = {.status = RUNNING};
    for (int i = 0; i < NQ; i++) state.q[i] = atof(arguments[6 + i]);
    for (int i = 0; i < NV; i++) state.v[i] = atof(arguments[6 + NQ + i]);

    int s = open_socket(0);
    struct sockaddr_in controller;
    socklen_t size = sizeof controller;
    Command command;
    if (recvfrom(s, &command, sizeof command, 0, (struct sockaddr *)&controller, &size) < 0) fail("controller");
    connect_to(s, ntohs(controller.sin_port));
    real_time(70);

    double tau[NV] = {0};
    int64_t done = 0, missed = 0, begin = now();
    const char *end = "all samples";
    while (done < samples) {
        if (deadline) sleep_until(begin + done * period);
        state.sample = done;
        state.t = 1e-9 * (done * period);
        int64_t sent = now();
        if (send(s, &state, sizeof state, 0) < 0) { end = "no controller"; break; }
        int in_time = received(s, done, deadline ? sent + deadline : 0, &command);
        Sample *k = &log[done++];
        k->missed = !in_time;
        k->round_trip = now() - sent;
        k->state = state;
        if (in_time && !command.valid) { end = "no valid command"; break; }
        if (in_time) memcpy(tau, command.tau, sizeof tau);
        memcpy(k->tau, tau, sizeof tau);
        missed = in_time ? 0 : missed + 1;
        if (missed == MAX_MISSED || (missed && !deadline)) { end = "too many torques missed"; break; }
        int moved = 1;
        for (int i = 0; moved && i < steps; i++) moved = advance(1e-9 * period / steps, state.q, state.v, tau);
        if (!moved) { end = "no acceleration: the state is not finite"; break; }
    }
    state.status = FINISHED;
    send(s, &state, sizeof state, 0);
    fprintf(file, "# end: %s\nmissed,round_trip,t", end);
    for (int i = 0; i < NQ; i++) fprintf(file, ",q%d", i);
    for (int i = 0; i < NV; i++) fprintf(file, ",v%d", i);
    for (int i = 0; i < NV; i++) fprintf(file, ",tau%d", i);
    fprintf(file, "\n");
    for (int64_t k = 0; k < done; k++) {
        fprintf(file, "%lld,%lld,%.17g", (long long)log[k].missed, (long long)log[k].round_trip, log[k].state.t);
        for (int i = 0; i < NQ; i++) fprintf(file, ",%.17g", log[k].state.q[i]);
        for (int i = 0; i < NV; i++) fprintf(file, ",%.17g", log[k].state.v[i]);
        for (int i = 0; i < NV; i++) fprintf(file, ",%.17g", log[k].tau[i]);
        fprintf(file, "\n");
    }
    return fclose(file) ? 2 : 0;
}
