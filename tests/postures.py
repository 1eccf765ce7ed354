"""Postures of arms for tests of laws, and the axes of their hands that can move there."""

POSTURES = {  # away from singular configurations
    "panda": [0.1, -0.5, 0.2, -1.8, 0.3, 1.5, 0.4],
    "ur10": [0.2, -1.0, 1.3, -0.8, -1.2, 0.3],
    "puma560": [0.2, 0.6, 0.4, 0.3, 0.8, 0.2],
    "scara": [0.4, 0.9, 0.05, 0.2],
    "two_link": [0.4, 1.2],
}
AXES = {"two_link": "xz", "scara": "xyz"}  # arms that can not rotate their hands freely
