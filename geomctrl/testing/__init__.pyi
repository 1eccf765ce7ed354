# What geomctrl/testing/__init__.py loads when asked, for type checkers; a test compares the two.
from .assertions import assert_passive as assert_passive
from .assertions import assert_skew_symmetric as assert_skew_symmetric
from .closed_loop import ClosedLoop as ClosedLoop
from .lyapunov import State as State
from .lyapunov import assert_lyapunov as assert_lyapunov
from .random_robots import random_inertia as random_inertia
from .random_robots import random_joint as random_joint
from .random_robots import random_robot as random_robot
from .strategies import bundled_robots as bundled_robots
from .strategies import configurations as configurations
from .strategies import inertias as inertias
from .strategies import motions as motions
from .strategies import robots as robots
from .strategies import states as states
from .strategies import velocities as velocities
