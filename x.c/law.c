#include "law.h"

#include <math.h>
#include <string.h>

int law_command(double t, const double q[2], const double v[2], double tau[2], double signal_e[2], double signal_s[2])
{
    const double t5 = fabs(t);
    const int t7 = t5 <= 1.7976931348623157e+308;
    const double t13 = t * 2.5132741228718345;
    const double t14 = sin(t13);
    const double t16 = t14 * 0.3;
    const double t17 = cos(t13);
    const double t19 = t17 * 0.7539822368615503;
    const double t21 = t14 * 1.8949640450091565;
    const double t22 = -t21;
    const double t23 = 0.3 + t16;
    const double t25 = t16 + 0.5;
    const double t26 = q[0] + q[1];
    const double t27 = fabs(t26);
    const int t28 = t27 <= 1.7976931348623157e+308;
    const double t29 = v[0] + v[1];
    const double t30 = fabs(t29);
    const int t31 = t30 <= 1.7976931348623157e+308;
    const double t32 = t23 + t25;
    const double t33 = fabs(t32);
    const int t34 = t33 <= 1.7976931348623157e+308;
    const double t35 = t19 + t19;
    const double t36 = fabs(t35);
    const int t37 = t36 <= 1.7976931348623157e+308;
    const double t38 = t22 - t21;
    const double t39 = fabs(t38);
    const int t40 = t39 <= 1.7976931348623157e+308;
    const double t41 = q[0] - t23;
    const double t42 = v[0] - t19;
    const double t43 = q[1] - t25;
    const double t44 = v[1] - t19;
    const double t46 = t41 * 5.0;
    const double t47 = t19 - t46;
    const double t48 = t42 * 5.0;
    const double t49 = t21 + t48;
    const double t50 = -t49;
    const double t51 = v[0] - t47;
    const double t52 = t43 * 5.0;
    const double t53 = t19 - t52;
    const double t54 = t44 * 5.0;
    const double t55 = t21 + t54;
    const double t57 = v[1] - t53;
    const double t58 = t50 - t55;
    const double t59 = fabs(t58);
    const int t60 = t59 <= 1.7976931348623157e+308;
    const double t61 = t47 + t53;
    const double t62 = fabs(t61);
    const int t63 = t62 <= 1.7976931348623157e+308;
    const double t64 = sin(q[0]);
    const double t65 = cos(q[0]);
    const double t68 = t46 - t19;
    const double t70 = t64 * 9.81;
    const double t71 = t65 * 9.81;
    const double t72 = sin(q[1]);
    const double t73 = cos(q[1]);
    const double t76 = t52 - t19;
    const double t82 = t71 - t49;
    const double t84 = t72 * t82;
    const double t88 = t73 * t82;
    const double t96 = t49 + t55;
    const double t97 = v[0] * t47;
    const double t99 = t70 - t97;
    const double t100 = t73 * t99;
    const double t101 = t84 + t100;
    const double t102 = t72 * t99;
    const double t104 = t88 - t102;
    const double t105 = t68 + t76;
    const double t107 = t49 * 0.3333333333333333;
    const double t114 = 0.5 * t71;
    const double t116 = t107 - t114;
    const double t119 = t96 * 0.3333333333333333;
    const double t121 = 0.5 * t96;
    const double t123 = 0.5 * t105;
    const double t125 = t29 * t123;
    const double t126 = 0.5 * t104;
    const double t128 = t119 - t126;
    const double t129 = t101 + t125;
    const double t130 = t104 - t121;
    const double t131 = t126 - t119;
    const double t136 = t72 * t129;
    const double t137 = t73 * t130;
    const double t138 = t136 + t137;
    const double t140 = t128 - t138;
    const double t141 = t116 + t140;
    const double t144 = -t141;
    const double t153 = t51 * 29.44534130319765;
    const double t155 = fabs(t57);
    const int t156 = t155 <= 1.7976931348623157e+308;
    const double t157 = 0.0 + t153;
    const double t160 = t57 * 10.938170570463605;
    const double t161 = fabs(t51);
    const int t162 = t161 <= 1.7976931348623157e+308;
    const double t163 = 0.0 + t160;
    const double t164 = t144 - t157;
    const double t165 = t131 - t163;
    const int t166 = t7 && t28;
    const int t167 = t31 && t166;
    const int t168 = t34 && t167;
    const int t169 = t37 && t168;
    const int t170 = t40 && t169;
    const int t171 = t60 && t170;
    const int t172 = t63 && t171;
    const int t173 = t156 && t172;
    const int t174 = t162 && t173;
    if (!t174) {
        return 0;
    }
    tau[0] = t164;
    tau[1] = t165;
    signal_e[0] = t41;
    signal_e[1] = t43;
    signal_s[0] = t51;
    signal_s[1] = t57;
    return 1;
}

int law_step(double t, const double q[2], const double v[2], double tau[2])
{
    double signal_e[2];
    double signal_s[2];
    double torque[2];
    if (!law_command(t, q, v, torque, signal_e, signal_s)) {
        return 0;
    }
    memcpy(tau, torque, sizeof torque);
    return 1;
}
