# The controllers that __init__.py finds in its folder, for type checkers; a test compares the two.
from typing import Any, Literal, overload

from geomctrl.control.tuning import TunableController
from geomctrl.controllers.attitude_tracking import AttitudeTracking as AttitudeTracking
from geomctrl.controllers.cartesian_impedance import CartesianImpedance as CartesianImpedance
from geomctrl.controllers.composite import Composite as Composite
from geomctrl.controllers.computed_torque import ComputedTorque as ComputedTorque
from geomctrl.controllers.concurrent_learning import ConcurrentLearning as ConcurrentLearning
from geomctrl.controllers.dead_zone import DeadZone as DeadZone
from geomctrl.controllers.drem import DREM as DREM
from geomctrl.controllers.e_modification import EModification as EModification
from geomctrl.controllers.elastic_joint import ElasticJoint as ElasticJoint
from geomctrl.controllers.energy_tank import EnergyTank as EnergyTank
from geomctrl.controllers.geometric_impedance import GeometricImpedance as GeometricImpedance
from geomctrl.controllers.joint_impedance import JointImpedance as JointImpedance
from geomctrl.controllers.lqr import LQR as LQR
from geomctrl.controllers.momentum_adaptation import MomentumAdaptation as MomentumAdaptation
from geomctrl.controllers.momentum_observer import MomentumObserver as MomentumObserver
from geomctrl.controllers.natural_adaptation import NaturalAdaptation as NaturalAdaptation
from geomctrl.controllers.online_identification import OnlineIdentification as OnlineIdentification
from geomctrl.controllers.operational_space import OperationalSpace as OperationalSpace
from geomctrl.controllers.passivity import Passivity as Passivity
from geomctrl.controllers.pd_gravity import PDGravity as PDGravity
from geomctrl.controllers.qp_inverse_dynamics import QPInverseDynamics as QPInverseDynamics
from geomctrl.controllers.quadrotor_tracking import QuadrotorTracking as QuadrotorTracking
from geomctrl.controllers.robust import Robust as Robust
from geomctrl.controllers.sigma_modification import SigmaModification as SigmaModification
from geomctrl.controllers.slotine_li import SlotineLi as SlotineLi
from geomctrl.controllers.smooth_projection import SmoothProjection as SmoothProjection
from geomctrl.controllers.super_twisting import SuperTwisting as SuperTwisting
from geomctrl.controllers.swing_up import SwingUp as SwingUp

def __getattr__(name: str) -> Any: ...
@overload
def classes(tuned: Literal[True]) -> dict[str, type[TunableController]]: ...
@overload
def classes(tuned: bool = False) -> dict[str, type]: ...
