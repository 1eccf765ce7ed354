"""What the page's words mean, beside the definitions that every report prints."""

TERMS = {
    "unseen": "rows that no fit was made to: they say how well torques are predicted in the future, where the motion is"
    " of the same kind; training rows only say how well the past was matched",
    "residual": "measured less predicted torque",
    "rows": "samples of the log after the low-pass and thinning",
    "base parameter": "a combination of inertial parameters and friction that torques depend on. Single parameters of"
    " a body can often not be found at all: another choice of them, with the same combinations, gives the same torques",
    "95 % interval": "where the true value lies with a probability of 95 %, by how far estimates scatter that leave out"
    " a tenth of the log each: correlation of residuals, and what the model lacks, count as far as they differ between"
    " tenths; what is wrong alike all the time does not",
    "std %": "standard deviation, of the least squares value's magnitude: above 51 % the interval holds zero",
    "size": "the greater of a base parameter's magnitude and three standard deviations",
    "model given": "the value in the robot's file or tables, from which the identification started",
    "physically consistent": "a rigid body with positive mass everywhere can have these parameters: positive definite"
    " pseudo-inertia (mass, first and second moments in one 4 x 4 matrix)",
    "principal moments": "moments of inertia about the centre of mass along the three axes in which it has no products",
    "prior": "what decides where the log does not: the model given",
    "log-det distance, entropic": "a distance between bodies, as between Gaussian distributions of mass: it keeps them"
    " far from point masses and rods",
    "cut-off": "the frequency at which the zero-phase low-pass leaves half the amplitude",
    "condition number": "ratio of the greatest to the least singular value of the base regressor, columns of unit"
    " length: below 100 is good excitation",
    "what the log leaves open": "a change of base parameters that would show as less than one standard deviation of the"
    " noise, although it brings torques as large as all that were measured on a joint",
    "Coulomb friction": "a constant torque against the motion [N m]",
    "viscous friction": "a torque against the motion per velocity [N m s/rad]",
    "sigmoid friction": "tanh(velocity / a speed): friction that levels off",
    "Stribeck friction": "what friction at rest exceeds that of motion by, gone above a speed",
    "rotor inertia": "of the motor and gears, seen at the joint [kg m^2]",
    "torque offset": "a constant torque, of sensors or of currents [N m]",
}


def some(*names: str) -> dict[str, str]:
    return {name: TERMS[name] for name in names}
