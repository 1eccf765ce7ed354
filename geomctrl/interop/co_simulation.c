/* A model as an FMU for FMI 3.0 co-simulation. The exporter fills in the words between at-signs. */

#include "fmi3Functions.h"
#include "@HEADER@"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = @NUMBERS@, VARIABLES = @VARIABLES@ };
enum Settable { NEVER, BEFORE_THE_FIRST_STEP, ALWAYS };
enum Phase { INSTANTIATED, INITIALIZING, STEPPING, TERMINATED };

static const size_t first[] = {@FIRST@}, size[] = {@SIZE@};
static const enum Settable settable[] = {@SETTABLE@};
static const double start[] = {@START@};

typedef struct {
    double x[NUMBERS]; /* the values of all variables, one after the other; time is the first */
    enum Phase phase;
} State;

typedef struct {
    State state;
    fmi3InstanceEnvironment environment;
    fmi3LogMessageCallback log;
} Instance;

@MODEL@
static fmi3Status refuse(Instance *instance, fmi3Status status, const char *message)
{
    if (instance->log) {
        instance->log(instance->environment, status, "error", message);
    }
    return status;
}

static fmi3Status enter(Instance *instance, enum Phase from, enum Phase to)
{
    if (instance->state.phase != from) {
        return refuse(instance, fmi3Error, "this function can not be called in the present state of the FMU");
    }
    instance->state.phase = to;
    return fmi3OK;
}

static int is_finite(const double *x)
{
    for (int k = 0; k < NUMBERS; k++) {
        if (!isfinite(x[k])) {
            return 0;
        }
    }
    return 1;
}

const char *fmi3GetVersion(void) { return "3.0"; }

fmi3Status fmi3SetDebugLogging(fmi3Instance instance, fmi3Boolean on, size_t n, const fmi3String categories[])
{
    (void)instance, (void)on, (void)n, (void)categories;
    return fmi3OK;
}

fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
    fmi3Boolean logging, fmi3Boolean events, fmi3Boolean early, const fmi3ValueReference required[], size_t n,
    fmi3InstanceEnvironment environment, fmi3LogMessageCallback log, fmi3IntermediateUpdateCallback update)
{
    (void)name, (void)resources, (void)visible, (void)events, (void)early, (void)required, (void)n, (void)update;
    Instance *instance = token && !strcmp(token, "@TOKEN@") ? calloc(1, sizeof *instance) : NULL;
    if (instance) {
        instance->environment = environment;
        instance->log = logging ? log : NULL;
        fmi3Reset(instance);
    } else if (log) {
        log(environment, fmi3Error, "error", "the instantiation token is not that of this FMU, or there is no memory");
    }
    return instance;
}

void fmi3FreeInstance(fmi3Instance instance) { free(instance); }

fmi3Status fmi3Reset(fmi3Instance instance)
{
    State *state = &((Instance *)instance)->state;
    memcpy(state->x, start, sizeof state->x);
    state->phase = INSTANTIATED;
    return fmi3OK;
}

fmi3Status fmi3EnterInitializationMode(fmi3Instance instance, fmi3Boolean has_tolerance, fmi3Float64 tolerance,
    fmi3Float64 start_time, fmi3Boolean has_stop, fmi3Float64 stop)
{
    (void)has_tolerance, (void)tolerance, (void)has_stop, (void)stop;
    const fmi3Status status = enter(instance, INSTANTIATED, INITIALIZING);
    if (status == fmi3OK) {
        ((Instance *)instance)->state.x[0] = start_time;
    }
    return status;
}

fmi3Status fmi3ExitInitializationMode(fmi3Instance instance)
{
    State *state = &((Instance *)instance)->state;
    const fmi3Status status = enter(instance, INITIALIZING, STEPPING);
    if (status == fmi3OK && !(initialize(state->x) && is_finite(state->x))) {
        state->phase = INITIALIZING;
        return refuse(instance, fmi3Error, "the model has no finite result for the start values");
    }
    return status;
}

fmi3Status fmi3Terminate(fmi3Instance instance) { return enter(instance, STEPPING, TERMINATED); }

/* The numbers of some variables: the present ones, or the start of the next write. */
static fmi3Status visit(Instance *instance, const fmi3ValueReference references[], size_t n, double *to,
                        const double *from, size_t values)
{
    State *state = &instance->state;
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        const fmi3ValueReference r = references[i];
        if (r >= VARIABLES) {
            return refuse(instance, fmi3Error, "there is no variable with this value reference");
        }
        if (from && settable[r] < (state->phase < STEPPING ? BEFORE_THE_FIRST_STEP : ALWAYS)) {
            return refuse(instance, fmi3Error, "this variable can not be set now");
        }
        total += size[r];
    }
    if (total != values) {
        return refuse(instance, fmi3Error, "the number of values is not that of the variables");
    }
    for (size_t i = 0, k = 0; i < n; k += size[references[i++]]) {
        double *x = state->x + first[references[i]];
        if (from) {
            memcpy(x, from + k, size[references[i]] * sizeof *x);
        } else {
            memcpy(to + k, x, size[references[i]] * sizeof *x);
        }
    }
    return fmi3OK;
}

fmi3Status fmi3GetFloat64(fmi3Instance instance, const fmi3ValueReference references[], size_t n, fmi3Float64 values[],
                          size_t total)
{
    State *state = &((Instance *)instance)->state;
    if (state->phase == INITIALIZING && !initialize(state->x)) {
        return refuse(instance, fmi3Error, "the model has no result for the start values");
    }
    return visit(instance, references, n, values, NULL, total);
}

fmi3Status fmi3SetFloat64(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                          const fmi3Float64 values[], size_t total)
{
    return visit(instance, references, n, NULL, values, total);
}

fmi3Status fmi3DoStep(fmi3Instance instance, fmi3Float64 t, fmi3Float64 h, fmi3Boolean no_return, fmi3Boolean *event,
                      fmi3Boolean *terminate, fmi3Boolean *early, fmi3Float64 *last)
{
    Instance *own = instance;
    const State before = own->state;
    (void)no_return;
    *event = *terminate = *early = fmi3False;
    *last = t;
    if (before.phase != STEPPING || !(h > 0.0)) {
        return refuse(own, fmi3Error, "a step needs a positive length, after the initialization");
    }
    own->state.x[0] = t;
    if (!(step(own->state.x, h) && is_finite(own->state.x))) {
        own->state = before;
        return refuse(own, fmi3Discard, "the step has no finite result");
    }
    *last = own->state.x[0] = t + h;
    return fmi3OK;
}

fmi3Status fmi3GetFMUState(fmi3Instance instance, fmi3FMUState *copy)
{
    if (!*copy && !(*copy = malloc(sizeof(State)))) {
        return refuse(instance, fmi3Error, "there is no memory for the state");
    }
    memcpy(*copy, &((Instance *)instance)->state, sizeof(State));
    return fmi3OK;
}

fmi3Status fmi3SetFMUState(fmi3Instance instance, fmi3FMUState copy)
{
    memcpy(&((Instance *)instance)->state, copy, sizeof(State));
    return fmi3OK;
}

fmi3Status fmi3FreeFMUState(fmi3Instance instance, fmi3FMUState *copy)
{
    (void)instance;
    free(*copy);
    *copy = NULL;
    return fmi3OK;
}

fmi3Status fmi3SerializedFMUStateSize(fmi3Instance instance, fmi3FMUState copy, size_t *bytes)
{
    (void)instance, (void)copy;
    *bytes = sizeof(State);
    return fmi3OK;
}

fmi3Status fmi3SerializeFMUState(fmi3Instance instance, fmi3FMUState copy, fmi3Byte bytes[], size_t n)
{
    if (n < sizeof(State)) {
        return refuse(instance, fmi3Error, "too few bytes for the state");
    }
    memcpy(bytes, copy, sizeof(State));
    return fmi3OK;
}

fmi3Status fmi3DeserializeFMUState(fmi3Instance instance, const fmi3Byte bytes[], size_t n, fmi3FMUState *copy)
{
    if (n != sizeof(State) || (!*copy && !(*copy = malloc(sizeof(State))))) {
        return refuse(instance, fmi3Error, "these bytes are no state of this FMU");
    }
    memcpy(*copy, bytes, sizeof(State));
    return fmi3OK;
}
