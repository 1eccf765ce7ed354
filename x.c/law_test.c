/* Compares law.c with Python; exit status 0 where they agree. */
#include "law.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int differs(const char *what, const double *made, const double *expected, const double *tolerance, int n)
{
    double worst = 0.0;
    int failed = 0;
    for (int k = 0; k < n; k++) {
        const double a = (double)made[k], b = (double)expected[k], d = a == b ? 0.0 : fabs(a - b);
        const int same = d <= tolerance[k] || (isnan(a) && isnan(b));
        failed |= !same;
        worst = d <= worst ? worst : d; /* nan too */
    }
    printf("%s: off by %g\n", what, worst);
    return failed;
}

int main(void)
{
    int failed = 0;
    {
        const double t = 0.7;
        const double q[] = {(-0.02678346865805555), 0.01807975274547424};
        const double v[] = {0.032021132522164104, 0.0052450058576519855};
        double tau[2];
        double signal_e[2];
        double signal_s[2];
        failed += law_command(t, q, v, tau, signal_e, signal_s) != 1;
        const double expected_tau[] = {96.57160952620966, 42.63848253567259};
        const double tolerance_tau[] = {1.0566655654393893e-11, 1.0225595141229045e-11};
        failed += differs("law_command, tau", tau, expected_tau, tolerance_tau, 2);
        {
            double shared[2];
            memcpy(shared, q, sizeof shared);
            failed += law_command(t, shared, v, shared, signal_e, signal_s) != 1;
            failed += differs("law_command, tau, in the memory of q", shared, expected_tau, tolerance_tau, 2);
        }
        const double expected_signal_e[] = {(-0.6214696438766621), (-0.7766064224731324)};
        const double tolerance_signal_e[] = {8.121335592611374e-14, 8.298971276551399e-14};
        failed += differs("law_command, signal_e", signal_e, expected_signal_e, tolerance_signal_e, 2);
        {
            double shared[2];
            memcpy(shared, q, sizeof shared);
            failed += law_command(t, shared, v, tau, shared, signal_s) != 1;
            failed += differs("law_command, signal_e, in the memory of q", shared, expected_signal_e, tolerance_signal_e, 2);
        }
        const double expected_signal_s[] = {(-2.934044904143744), (-3.7365049237906076)};
        const double tolerance_signal_s[] = {3.878613470942628e-13, 3.949667744518638e-13};
        failed += differs("law_command, signal_s", signal_s, expected_signal_s, tolerance_signal_s, 2);
        {
            double shared[2];
            memcpy(shared, q, sizeof shared);
            failed += law_command(t, shared, v, tau, signal_e, shared) != 1;
            failed += differs("law_command, signal_s, in the memory of q", shared, expected_signal_s, tolerance_signal_s, 2);
        }
    }
    {
        const double t = 1.4;
        const double q[] = {0.27410390540137985, 2.7336406607023154};
        const double v[] = {1.3040000451301372, 0.9470809631292422};
        double tau[2];
        double signal_e[2];
        double signal_s[2];
        failed += law_command(t, q, v, tau, signal_e, signal_s) != 1;
        const double expected_tau[] = {(-62.459614066780816), (-152.72127056290086)};
        const double tolerance_tau[] = {1.5954248082619782e-11, 1.7091116459835942e-11};
        failed += differs("law_command, tau", tau, expected_tau, tolerance_tau, 2);
        const double expected_signal_e[] = {0.08454127120678312, 2.344078026507719};
        const double tolerance_signal_e[] = {2.3729438251479727e-13, 2.4861865736597387e-13};
        failed += differs("law_command, signal_e", signal_e, expected_signal_e, tolerance_signal_e, 2);
        const double expected_signal_s[] = {2.4277413557753484, 13.368506050279132};
        const double tolerance_signal_s[] = {1.3652723144583172e-12, 1.4221157333191252e-12};
        failed += differs("law_command, signal_s", signal_s, expected_signal_s, tolerance_signal_s, 2);
    }
    {
        const double t = 2.0999999999999996;
        const double q[] = {(-0.11625153873194172), (-0.010939583196627287)};
        const double v[] = {(-0.03116372312686761), 0.00206629896736218};
        double tau[2];
        double signal_e[2];
        double signal_s[2];
        failed += law_command(t, q, v, tau, signal_e, signal_s) != 1;
        const double expected_tau[] = {69.36205746943692, 27.702279112588684};
        const double tolerance_tau[] = {8.75519515048955e-12, 7.504639935551773e-12};
        failed += differs("law_command, tau", tau, expected_tau, tolerance_tau, 2);
        const double expected_signal_e[] = {(-0.16295316108133706), (-0.25764120554602266)};
        const double tolerance_signal_e[] = {2.976092344325283e-14, 2.9316834233402766e-14};
        failed += differs("law_command, signal_e", signal_e, expected_signal_e, tolerance_signal_e, 2);
        const double expected_signal_s[] = {(-1.2499334139821716), (-1.69014361421137)};
        const double tolerance_signal_s[] = {2.009887845303415e-13, 2.04541498209142e-13};
        failed += differs("law_command, signal_s", signal_s, expected_signal_s, tolerance_signal_s, 2);
    }
    {
        const double t = 0.0;
        const double q[] = {0.0, 0.0};
        const double v[] = {0.0, (-0.0)};
        double tau[2];
        double signal_e[2];
        double signal_s[2];
        failed += law_command(t, q, v, tau, signal_e, signal_s) != 1;
        const double expected_tau[] = {99.18396540081037, 44.89584245507605};
        const double tolerance_tau[] = {1.1282638592740429e-11, 1.0486830728689117e-11};
        failed += differs("law_command, tau", tau, expected_tau, tolerance_tau, 2);
        const double expected_signal_e[] = {(-0.3), (-0.5)};
        const double tolerance_signal_e[] = {5.177635683940025e-14, 5.177635683940025e-14};
        failed += differs("law_command, signal_e", signal_e, expected_signal_e, tolerance_signal_e, 2);
        const double expected_signal_s[] = {(-2.25398223686155), (-3.2539822368615505)};
        const double tolerance_signal_s[] = {3.5381993311655906e-13, 3.5381993311655906e-13};
        failed += differs("law_command, signal_s", signal_s, expected_signal_s, tolerance_signal_s, 2);
    }
    {
        const double t = 0.7;
        const double q[] = {(-0.02678346865805555), 0.01807975274547424};
        const double v[] = {0.032021132522164104, 0.0052450058576519855};
        double tau[2];
        failed += law_step(t, q, v, tau) != 1;
        const double expected_tau[] = {96.57160952620966, 42.63848253567259};
        const double tolerance_tau[] = {1.0566655654393893e-11, 1.0225595141229045e-11};
        failed += differs("law_step, tau", tau, expected_tau, tolerance_tau, 2);
    }
    return failed ? 1 : 0;
}
