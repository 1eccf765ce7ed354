/* Passivity of two_link, in double precision.
 * SI units, radians. Velocity coordinates:
 *   0: joint1
 *   1: joint2
 * Inputs and outputs may be the same arrays.
 */
#ifndef GEOMCTRL_LAW_H
#define GEOMCTRL_LAW_H

#ifdef __cplusplus
extern "C" {
#endif

/* All that the law returns, 103 operations
 * t: time [s]
 * q[2]: configuration, joint by joint [rad or m; a pose [R | p] row by row]
 * v[2]: velocity [rad/s, m/s]
 * tau[2]: torques or forces of the joints [N m, N]
 * signal_e[2]: signal 'e'
 * signal_s[2]: signal 's'
 * Returns 0 where there is no result, and leaves its outputs as they are; else 1.
 */
int law_command(double t, const double q[2], const double v[2], double tau[2], double signal_e[2], double signal_s[2]);

/* One sample: the torque
 * t: time [s]
 * q[2]: configuration, joint by joint [rad or m; a pose [R | p] row by row]
 * v[2]: velocity [rad/s, m/s]
 * tau[2]: torques or forces of the joints [N m, N]
 * Returns 0 where there is no result, and leaves its outputs as they are; else 1.
 */
int law_step(double t, const double q[2], const double v[2], double tau[2]);

#ifdef __cplusplus
}
#endif

#endif
